"""What a token says, as a value: `Claims`, its JSON form and back. The set of claims is closed.

A root token is the token of a run: no scope, no act, audience = issuer; it calls no tool. A child token is for one
delegation and one host. Claims by RFC 7519, 8693 (act, client_id, scope), 8417 (txn), 9396 (authorization_details),
7800 (cnf); one private object `urn:carnet:delegation` names every ancestor, so a verifier sees a revoked one alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from carnet.reasons import Refusal
from carnet.token._fields import Fault
from carnet.token.marks import tool_mark
from carnet.token.names import DELEGATION, TOOL_DETAIL

if TYPE_CHECKING:
    from carnet_policy import Compiled

__all__ = [
    "Chain",
    "Claims",
    "DelegationClaim",
    "actors",
    "ceilings",
    "child_jti",
    "detail",
    "from_payload",
    "root_jti",
    "to_payload",
]

Chain = tuple[tuple[str, str, str], ...]  # (delegation id, agent, client): the run first, the delegation itself last


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationClaim:
    """The private object. approval_id, payload_sha256 and resource_limit are None at a root; payload_sha256 also for a
    delegation without a payload."""

    id: str
    chain: Chain
    level: int
    depth: int
    agent: str
    approval_id: str | None
    policy_id: str
    policy_version: int
    policy_digest: str
    payload_sha256: str | None
    resource_limit: int | None
    trace_id: str


@dataclass(frozen=True, kw_only=True)
class Claims:
    """All claims of one token. Times are Unix seconds. `act` is what `actors(chain)` gives: None at a root."""

    iss: str
    sub: str
    aud: str
    client_id: str
    act: Mapping[str, Any] | None
    scope: tuple[str, ...]
    authorization_details: tuple[Mapping[str, Any], ...]
    jkt: str | None
    jti: str
    iat: int
    nbf: int
    exp: int
    txn: str
    tenant: str
    delegation: DelegationClaim
    _tool_marks: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_root(self) -> bool:
        return self.delegation.depth == 0

    @cached_property
    def tools(self) -> frozenset[str]:
        return frozenset(self.scope)

    def tool_marks(self, tool: str) -> tuple[str, ...] | None:
        """The marks that take a tool away, from this delegation or from one above it; None for one out of scope."""
        found = self._tool_marks.get(tool)
        if found is None and tool in self.scope:
            found = tuple([tool_mark(delegation, tool) for delegation, _, _ in self.delegation.chain])
            self._tool_marks[tool] = found
        return found

    @cached_property
    def limits(self) -> "Mapping[str, Compiled | None]":
        """Each tool's ceiling, compiled once per token; None where it cannot be read: no call fits that."""
        return {tool: _compiled(tool, ceiling["args"]) for tool, ceiling in ceilings(self).items()}


def actors(chain: Chain) -> dict[str, Any] | None:
    """The act claim of a chain (RFC 8693 section 4.1): the delegation as current actor, its parent's agent before."""
    if len(chain) < 2:
        return None
    return {"sub": chain[-1][0], "act": {"sub": f"agent:{chain[-2][1]}"}}


def child_jti(delegation: str, host: str, jkt: str | None) -> str:
    """The same for every re-issue, so a repeat signs the same claims; it names its delegation."""
    parts = (part.encode() for part in (host, jkt or ""))
    framed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return f"{delegation}.{sha256(framed).hexdigest()[:16]}"


def root_jti(run: str, iat: int) -> str:
    return f"{run}.{iat}"


def detail(aud: str, tool: str, args: Mapping[str, Any], max_calls: int | None = None) -> dict[str, Any]:
    """The authorization_details entry of one tool's ceiling."""
    entry: dict[str, Any] = {"type": TOOL_DETAIL, "locations": [aud], "actions": [tool], "constraints": _plain(args)}
    if max_calls is not None:
        entry["max_calls"] = max_calls
    return entry


def ceilings(claims: Claims) -> dict[str, dict[str, Any]]:
    """{tool: {"args": {argument: constraints}, "max_calls"?: n}}: the form that an envelope has."""
    made: dict[str, dict[str, Any]] = {}
    for entry in claims.authorization_details:
        ceiling: dict[str, Any] = {"args": entry["constraints"]}
        if "max_calls" in entry:
            ceiling["max_calls"] = entry["max_calls"]
        made[entry["actions"][0]] = ceiling
    return made


def to_payload(claims: Claims) -> dict[str, Any]:
    """The JSON object that is signed. What is None or empty is left out, but for the private object's nulls."""
    payload: dict[str, Any] = {
        "iss": claims.iss,
        "sub": claims.sub,
        "aud": claims.aud,
        "client_id": claims.client_id,
        "jti": claims.jti,
        "iat": claims.iat,
        "nbf": claims.nbf,
        "exp": claims.exp,
        "txn": claims.txn,
        "tenant": claims.tenant,
        DELEGATION: _private(claims.delegation),
    }
    if claims.act is not None:
        payload["act"] = dict(claims.act)
    if claims.scope:
        payload["scope"] = " ".join(claims.scope)
    if claims.authorization_details:
        payload["authorization_details"] = [dict(entry) for entry in claims.authorization_details]
    if claims.jkt is not None:
        payload["cnf"] = {"jkt": claims.jkt}
    return payload


def from_payload(payload: Mapping[str, Any]) -> Claims | Refusal:
    """Read a payload. Refused: a claim unknown, missing or mistyped, and claims that contradict each other."""
    from carnet.token._reading import read_claims  # it builds on the classes above

    try:
        return read_claims(payload)
    except Fault as fault:
        return fault.refusal


def _plain(value: Any) -> Any:
    """Frozen mappings and tuples as the dicts and lists that JSON has."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _compiled(tool: str, args: Mapping[str, Any]) -> "Compiled | None":
    from carnet_policy import PolicyError, compile_constraints  # loaded only where a ceiling is judged

    try:
        return compile_constraints(args, f"the ceiling of {tool}")
    except PolicyError:
        return None


def _private(claim: DelegationClaim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "chain": [list(link) for link in claim.chain],
        "level": claim.level,
        "depth": claim.depth,
        "agent": claim.agent,
        "approval_id": claim.approval_id,
        "policy": {"id": claim.policy_id, "version": claim.policy_version, "digest": claim.policy_digest},
        "payload_sha256": claim.payload_sha256,
        "resource_limit": claim.resource_limit,
        "trace_id": claim.trace_id,
    }
