"""One guard with everything loaded, made from real keys, a real token and a real policy; no broker is asked."""

import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, replace

from carnet.clock import SystemClock
from carnet.guard.book import read_book
from carnet.guard.state import State
from carnet.token.cache import VerifiedCache
from carnet.token.claims import Claims, DelegationClaim, actors, child_jti
from carnet.token.keyset import KeySet
from carnet.token.sign import mint
from carnet_broker.keys import KeyRing
from carnet_policy import loads

__all__ = ["ARGS", "AUDIENCE", "ISSUER", "TOOL", "World", "build"]

ISSUER, AUDIENCE, TOOL = "https://carnet.example", "https://crm.example", "read_customer_record"
ARGS = {"customer_id": "cust_123456"}
_FRESH = 600.0  # seconds for which nothing needs to be heard: nobody feeds this guard
_POLICY = """\
id: bench
version: 3
defaults: {decision: deny}
catalog:
  search_tickets: {effect: read}
  read_customer_record: {effect: read}
  refund: {effect: irreversible}
tools:
  search_tickets:
    - {decision: allow, args: {query: {type: string, max_length: 200}}}
  read_customer_record:
    - {decision: allow, args: {customer_id: {pattern: "^cust_[0-9]{6}$"}}}
  refund:
    - {decision: require_approval, args: {amount: {min: 0.01, max: 50}}}
    - {decision: deny, args: {amount: {min: 50.01}}, reason: "refunds above 50 need finance"}
history:
  - {match: irreversible, max: 1, decision: deny}
"""


@dataclass(slots=True, kw_only=True)
class World:
    state: State
    token: str
    other: str  # a second token of the same delegation
    claims: Claims
    keys: KeySet
    kid: str

    def revoke_others(self, count: int) -> None:
        """Load so many marks, none of which the token carries."""
        until = {f"dlg:dlg_{number:026x}": 2**33 for number in range(count)}
        self.state.feed.tenant.until = until

    def forgetful(self) -> "World":
        """The same with a memory of verified tokens that holds one."""
        self.state.cache = VerifiedCache(issuer=ISSUER, audience=AUDIENCE, host="crm", tenant="acme", size=1)
        return self

    def swap(self) -> None:
        """Go on with the other token: a forgetful world has just forgotten it."""
        self.token, self.other = self.other, self.token


def build() -> World:
    ring = KeyRing.ephemeral()
    policy = loads([("bench.policy.yaml", _POLICY)])
    now = int(time.time())
    clock = SystemClock()
    state = State(clock)
    state.keys = ring.keyset()
    state.load(read_book(_document(policy.ref.digest)))
    state.feed.digest, state.feed.whole = policy.ref.digest, True
    state.feed.tenant.epoch = "bench"
    ahead = clock.mono() + _FRESH
    state.freshness.heard(ahead, now, ahead)
    claims = _claims(policy.ref.digest, now)
    token, other = mint(claims, ring.active), mint(replace(claims, exp=claims.exp - 1), ring.active)
    if not isinstance(token, str) or not isinstance(other, str):
        raise RuntimeError(f"{token} {other}")
    return World(state=state, token=token, other=other, claims=claims, keys=ring.keyset(), kid=ring.active.kid)


def _document(digest: str) -> dict[str, object]:
    effects = {
        TOOL: {"effect": "read", "resource_arg": None},
        "search_tickets": {"effect": "read", "resource_arg": None},
    }
    host = {
        "name": "crm", "tenant": "acme", "issuer": ISSUER, "audience": AUDIENCE, "tools": list(effects),
        "effects": effects,
        "bind_from_level": 3, "staleness": {"0": 1, "1": 1}, "clear_fields": [],
        "audit_key": urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode(),
    }  # fmt: skip
    return {"digest": digest, "documents": [{"name": "bench.policy.yaml", "text": _POLICY}], "host": host}


def _claims(digest: str, now: int) -> Claims:
    run, child = "dlg_" + "a" * 26, "dlg_" + "b" * 26
    chain = ((run, "support", "support-app"), (child, "summarizer", "support-app"))
    about = DelegationClaim(
        id=child, chain=chain, level=0, depth=1, agent="summarizer", approval_id="apr_" + "c" * 26, policy_id="bench",
        policy_version=3, policy_digest=digest, payload_sha256=None, resource_limit=3, trace_id="4b" * 16,
    )  # fmt: skip
    return Claims(
        iss=ISSUER, sub="agent:support", aud=AUDIENCE, client_id="support-app", act=actors(chain),
        scope=(TOOL, "search_tickets"), authorization_details=(), jkt=None, jti=child_jti(child, "crm", None),
        iat=now, nbf=now, exp=now + 900, txn=run, tenant="acme", delegation=about,
    )  # fmt: skip
