"""Kind `verify`: a genuine token of a real broker, edited and signed again, in front of the verifier of every guard."""

import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from json import loads
from typing import Any

from starlette.requests import Request

from carnet.reasons import Refusal
from carnet.token.keyset import KeySet, parse_jwks
from carnet.token.signer import P256Signer
from carnet.token.verify import verify
from carnet_broker.http.intake import bearer
from carnet_broker.keys.secrets import new_signer
from tests.cases.forging import Forge
from tests.cases.handles import Child
from tests.cases.judging import check_reason, check_time, refusal_text
from tests.cases.reading import Collection, closed
from tests.cases.registering import AUDIENCE, HOST, Agent, Setup, catalog_of
from tests.cases.verdict import CaseFailed, NotRun, Why, expect
from tests.cases.work import facts_of
from tests.cases.world import World, payload

__all__ = ["play"]

INPUT = frozenset(
    {
        "base",
        "header",
        "claims",
        "sign",
        "raw_payload",
        "raw_payload_append",
        "raw_header_prepend",
        "pre",
        "mutate",
        "wrap",
    }
)
EXPECTED = frozenset({"valid", "reason_any", "reason_contains", "max_ms", "no_crash", "no_outbound_request"})
TOOL = "search_tickets"
INSIDE = ("level", "depth", "approval_id", "policy", "payload_sha256", "resource_limit", "trace_id", "chain", "agent")
# Claims of other issuers' tokens that ours do not have in any form.
FOREIGN = frozenset({"may_act", "auth_time", "acr", "amr", "azp", "nonce", "sid", "roles", "groups", "entitlements"})


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, INPUT, "input", frozenset({"base"}))
    closed(expected, EXPECTED, "expected", frozenset({"valid"}))
    agents = {
        "planner": Agent(tools=frozenset({TOOL}), callable_agents=frozenset({"worker"})),
        "worker": Agent(tools=frozenset({TOOL})),
    }
    policy = {"id": "case", "version": 1, "catalog": catalog_of([TOOL]), "tools": {TOOL: [{"decision": "allow"}]}}
    with World(Setup(agents=agents, policy=policy)) as world:
        _play(world, given, expected)


def _play(world: World, given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    retired = _retired(world) if "@retired" in str(given) else None
    base, child = _base(world, str(given["base"]))
    forge = _forge(world, base, retired)
    _edit(forge.header, given.get("header", {}), forge, "header")
    _edit_claims(forge, given.get("claims", {}))
    edited = any(name in given for name in ("header", "claims", "raw_payload", "raw_payload_append"))
    edited |= "raw_header_prepend" in given
    token = (
        forge.token(str(given.get("sign", "active")), given)
        if edited or given.get("sign", "active") != "active"
        else base
    )
    for action in given.get("pre", []):
        _before(world, action, child)
    token = _mutated(token, given.get("mutate"))
    keys, revoked = _known(world)
    value: object = token
    if "wrap" in given:
        value = _unwrapped(str(given["wrap"]).replace("{token}", token))
    issued = world.broker.url
    began = time.perf_counter()
    if isinstance(value, Refusal):
        found: object = value
    else:
        now = world.clock.now()
        found = verify(value, keys=keys, issuer=issued, audience=AUDIENCE, revoked=revoked, now=now, host=HOST)
    took = time.perf_counter() - began
    said = refusal_text(found) if isinstance(found, Refusal) else ""
    valid = not isinstance(found, Refusal)
    expect(valid == expected["valid"], f"valid is {valid} {said}")
    check_reason(expected, said)
    check_time(expected, took)


def _base(world: World, base: str) -> tuple[str, Child]:
    run = world.open_run("planner")
    task = {**facts_of(0, [TOOL]), "tools": [TOOL]}
    body = {"target": "worker", "task": task, "hosts": ["*"]}
    answer = world.request("POST", "/v1/delegations", bearer=run.token, json=body)
    expect(answer.status_code == 201, f"the spawn was refused: {answer.text}")
    child = world.child_of(answer.json())
    if base == "child":
        return child.bearer or "", child
    if base == "root":
        return run.token, Child(run.id, run.id, run.agent, 0, frozenset(), None, run.token)
    if base == "approval_receipt":  # any other document of the same key: what a guard shows at the broker
        return world.guard_token(), child
    raise CaseFailed(f"unknown base {base!r}")


def _retired(world: World) -> P256Signer:
    """A key that signed until lately and is published no more."""
    ring = world.broker.keys
    old = ring.active
    if not isinstance(old, P256Signer):
        raise CaseFailed("the active key is no P-256 key")
    ring.rotate(world.clock.now())
    ring.retire(old.kid)
    return old


def _forge(world: World, base: str, retired: P256Signer | None) -> Forge:
    active = world.broker.keys.active
    if not isinstance(active, P256Signer):
        raise CaseFailed("the active key is no P-256 key")
    head = base.split(".")[0]
    header = loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    attacker = new_signer()
    public = {name: attacker.public_jwk()[name] for name in ("kty", "crv", "x", "y")}
    keys = {active.kid: active}
    extra: dict[str, Any] = {"attacker_public_jwk": public}
    if retired is not None:
        keys[retired.kid] = retired
        extra["retired"] = retired.kid
    return Forge(header, payload(base), keys, attacker, extra)


def _edit(target: dict[str, Any], edits: Mapping[str, Any], forge: Forge, where: str) -> None:
    closed(edits, {"set", "remove"}, where)
    for name in edits.get("remove", []):
        if name not in target:
            raise NotRun(Why.CLAIM, name)
        del target[name]
    for name, value in edits.get("set", {}).items():
        target[name] = forge.filled(value)


def _edit_claims(forge: Forge, edits: Mapping[str, Any]) -> None:
    """Claims by the names of RFC 7519 and 8693; what ours hold one level further down is edited there."""
    closed(edits, {"set", "remove"}, "claims")
    inner = forge.claims.get("urn:carnet:delegation", {})
    for name in [*edits.get("set", {}), *edits.get("remove", [])]:
        if name in FOREIGN:
            raise NotRun(Why.CLAIM, name)
    for place, names in ((inner, INSIDE), (forge.claims, None)):
        part = {
            "set": {k: v for k, v in edits.get("set", {}).items() if (k in INSIDE) == (names is not None)},
            "remove": [k for k in edits.get("remove", []) if (k in INSIDE) == (names is not None)],
        }
        _edit(place, part, forge, "claims")


def _before(world: World, action: Any, child: Child) -> None:
    if action == "revoke":
        world.revoke(f"dlg:{child.id}")
    elif action == "revoke_jti":
        world.revoke(f"token:{world.jti(child)}")
    elif action == "revoke_parent":
        world.revoke(f"dlg:{child.run}")
    elif action == "rotate_key":
        world.broker.keys.rotate(world.clock.now())
    elif isinstance(action, Mapping) and set(action) == {"advance"}:
        world.advance(float(action["advance"]))
    else:
        raise CaseFailed(f"unknown action {action!r} before verifying")


def _mutated(token: str, mutate: Any) -> str:
    if mutate is None:
        return token
    way, colon, what = str(mutate).partition(":")
    if way == "append" and colon:
        return token + what
    if way == "prepend" and colon:
        return what + token
    raise CaseFailed(f"unknown mutation {mutate!r}")


def _known(world: World) -> tuple[KeySet, Mapping[str, int]]:
    """What a guard knows: the published keys, and every mark of the feed."""
    keys = parse_jwks(world.request("GET", "/.well-known/jwks.json").json())
    if isinstance(keys, Refusal):
        raise CaseFailed(f"the published keys cannot be read: {keys.detail}")
    params = {"epoch": "", "after": 0, "wait": 0, "system_epoch": "", "system_after": 0}
    feed = world.request("GET", "/v1/feed", bearer=world.guard_token(), params=params)
    expect(feed.status_code == 200, f"the feed answered {feed.status_code}: {feed.text[:200]}")
    return keys, {entry["mark"]: entry["until"] for entry in feed.json()["entries"]}


def _unwrapped(value: str) -> str | Refusal:
    """The token of an Authorization value, as the broker's doors read it."""
    headers = [(b"authorization", value.encode("latin-1", "replace"))]
    return bearer(Request({"type": "http", "headers": headers}))
