"""From a JSON payload to `Claims`: every member typed, every pair of members that must agree compared."""

import re
from collections.abc import Mapping
from typing import Any

from carnet.reasons import Reason
from carnet.token._fields import ID, Fault, Texts, members, number, optional_text, record, text
from carnet.token.claims import Chain, Claims, DelegationClaim, actors, root_jti
from carnet.token.names import DELEGATION, MAX_COUNT, MAX_TIME, TOOL_DETAIL

__all__ = ["read_claims", "read_details"]

_DLG = re.compile(r"dlg_[A-Za-z0-9_-]{1,64}")
_APR = re.compile(r"apr_[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[\x21-\x7e]{1,128}")
_TENANT = re.compile(r"[a-z0-9-]{1,63}")
_THUMBPRINT = re.compile(r"[A-Za-z0-9_-]{43}")
_HEX_64 = re.compile(r"[0-9a-f]{64}")
_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
_JTI_TAIL = re.compile(r"[0-9a-f]{16}")
_SCOPE_TOKEN = r"[\x21\x23-\x5b\x5d-\x7e]{1,128}"  # RFC 6749 section 3.3
_SCOPE = re.compile(f"{_SCOPE_TOKEN}(?: {_SCOPE_TOKEN})*+")
_LINK = re.compile(f"{_DLG.pattern}\n{_NAME.pattern}\n{ID.pattern}")

_COMMON = frozenset({"iss", "sub", "aud", "client_id", "jti", "iat", "nbf", "exp", "txn", "tenant", DELEGATION})
_CHILD = _COMMON | {"act", "scope"}
_PRIVATE = frozenset(
    {
        "id",
        "chain",
        "level",
        "depth",
        "agent",
        "approval_id",
        "policy",
        "payload_sha256",
        "resource_limit",
        "trace_id",
    }
)
_DETAIL = frozenset({"type", "locations", "actions", "constraints"})
_POLICY = frozenset({"id", "version", "digest"})
_JKT = frozenset({"jkt"})
_NONE: frozenset[str] = frozenset()
_CLAIM_TEXTS = Texts(iss=ID, sub=ID, aud=ID, client_id=ID, jti=ID, txn=_DLG, tenant=_TENANT)
_DELEGATION_TEXTS = Texts(id=_DLG, agent=_NAME, trace_id=_TRACE)
_POLICY_TEXTS = Texts(id=ID, digest=ID)
_LINK_TYPES = [str, str, str]


def read_claims(payload: Mapping[str, Any]) -> Claims:
    """Raises Fault."""
    if payload.keys() != _CHILD:
        members(payload, _COMMON, frozenset({"act", "scope", "cnf", "authorization_details"}), "the token")
    delegation = _delegation(record(payload[DELEGATION], DELEGATION))
    root = delegation.depth == 0
    if root:
        members(payload, _COMMON, frozenset({"cnf"}), "a root token")
    else:
        members(payload, _CHILD, frozenset({"cnf", "authorization_details"}), "a child token")
    iss, sub, aud, client_id, jti, txn, tenant = _CLAIM_TEXTS.of(payload)
    scope = () if root else _scope(payload)
    claims = Claims(
        iss=iss,
        sub=sub,
        aud=aud,
        client_id=client_id,
        act=None if root else record(payload["act"], "act"),
        scope=scope,
        authorization_details=_details(payload, aud, scope),
        jkt=_jkt(payload),
        jti=jti,
        iat=number(payload, "iat", 1, MAX_TIME),
        nbf=number(payload, "nbf", 1, MAX_TIME),
        exp=number(payload, "exp", 1, MAX_TIME),
        txn=txn,
        tenant=tenant,
        delegation=delegation,
    )
    _agree(claims)
    return claims


def _delegation(obj: Mapping[str, Any]) -> DelegationClaim:
    members(obj, _PRIVATE, _NONE, "the delegation claim")
    policy = record(obj["policy"], "policy")
    members(policy, _POLICY, _NONE, "the policy claim")
    depth = number(obj, "depth", 0, MAX_COUNT)
    if depth > 1:
        raise Fault("the depth of the delegation is more than one level", Reason.TOKEN_CHAIN)
    limit = obj["resource_limit"]
    id, agent, trace_id = _DELEGATION_TEXTS.of(obj)
    policy_id, policy_digest = _POLICY_TEXTS.of(policy)
    return DelegationClaim(
        id=id,
        chain=_chain(obj["chain"]),
        level=number(obj, "level", 0, 2),
        depth=depth,
        agent=agent,
        approval_id=optional_text(obj, "approval_id", _APR),
        policy_id=policy_id,
        policy_version=number(policy, "version", 0, MAX_COUNT),
        policy_digest=policy_digest,
        payload_sha256=optional_text(obj, "payload_sha256", _HEX_64),
        resource_limit=None if limit is None else number(obj, "resource_limit", 0, MAX_COUNT),
        trace_id=trace_id,
    )


def _chain(value: object) -> Chain:
    if type(value) is not list:
        raise Fault("the chain is no array", Reason.TOKEN_CHAIN)
    return tuple(_link(link) for link in value)


def _link(value: object) -> tuple[str, str, str]:
    if type(value) is not list or len(value) != 3:
        raise Fault("a link of the chain is not [delegation, agent, client]", Reason.TOKEN_CHAIN)
    if [*map(type, value)] != _LINK_TYPES or _LINK.fullmatch("\n".join(value)) is None:
        raise Fault("a link of the chain holds no ids", Reason.TOKEN_CHAIN)
    return value[0], value[1], value[2]


def _scope(payload: Mapping[str, Any]) -> tuple[str, ...]:
    value = payload["scope"]
    if type(value) is not str:
        raise Fault("the claim scope is no string")
    tools = tuple(value.split(" "))
    if _SCOPE.fullmatch(value) is None or len(set(tools)) != len(tools):
        raise Fault("the claim scope is no list of distinct tools")
    return tools


def _details(payload: Mapping[str, Any], aud: str, scope: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
    return read_details(payload["authorization_details"], aud, scope) if "authorization_details" in payload else ()


def read_details(value: object, aud: str, scope: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
    """The ceilings of a token for `aud` with this scope. Raises Fault."""
    if type(value) is not list or not value:
        raise Fault("the claim authorization_details is no filled array")
    entries = tuple(_detail(record(entry, "authorization_details"), aud, scope) for entry in value)
    if len({entry["actions"][0] for entry in entries}) != len(entries):
        raise Fault("the claim authorization_details has two ceilings for one tool")
    return entries


def _detail(entry: Mapping[str, Any], aud: str, scope: tuple[str, ...]) -> Mapping[str, Any]:
    members(entry, _DETAIL, frozenset({"max_calls"}), "an entry of authorization_details")
    if entry["type"] != TOOL_DETAIL:
        raise Fault("an entry of authorization_details is of an unknown type")
    if entry["locations"] != [aud]:
        raise Fault("an entry of authorization_details is not for the aud of the token")
    actions = entry["actions"]
    if type(actions) is not list or len(actions) != 1 or actions[0] not in scope:
        raise Fault("an entry of authorization_details does not name one tool of the scope")
    for constraints in record(entry["constraints"], "constraints").values():
        record(constraints, "constraints")
    if "max_calls" in entry:
        number(entry, "max_calls", 0, MAX_COUNT)
    return entry


def _jkt(payload: Mapping[str, Any]) -> str | None:
    if "cnf" not in payload:
        return None
    cnf = record(payload["cnf"], "cnf")
    members(cnf, _JKT, _NONE, "the cnf claim")
    return text(cnf, "jkt", _THUMBPRINT)


def _agree(claims: Claims) -> None:
    if not claims.iat <= claims.nbf < claims.exp:
        raise Fault("iat, nbf and exp are not in this order")
    _agree_on_chain(claims)
    if claims.is_root:
        _agree_on_root(claims)
        return
    if claims.delegation.approval_id is None or claims.delegation.resource_limit is None:
        raise Fault("a child token names its approval and its resource limit")
    owner, _, tail = claims.jti.partition(".")
    if owner != claims.delegation.id or _JTI_TAIL.fullmatch(tail) is None:
        raise Fault("the jti is not one of the delegation")


def _agree_on_chain(claims: Claims) -> None:
    claim = claims.delegation
    if len(claim.chain) != claim.depth + 1 or len({link[0] for link in claim.chain}) != len(claim.chain):
        raise Fault("the chain is not as long as the depth says", Reason.TOKEN_CHAIN)
    if claim.chain[0][0] != claims.txn:
        raise Fault("the chain does not begin at the run of txn", Reason.TOKEN_CHAIN)
    if claim.chain[-1][:2] != (claim.id, claim.agent):
        raise Fault("the chain does not end at the delegation", Reason.TOKEN_CHAIN)
    if claims.act != actors(claim.chain):
        raise Fault("the act claim is not the chain's delegation and its parent", Reason.TOKEN_CHAIN)


def _agree_on_root(claims: Claims) -> None:
    claim = claims.delegation
    if claims.aud != claims.iss:
        raise Fault("a root token is for its issuer alone: aud is not iss", Reason.TOKEN_AUD)
    if claim.level != 0 or (claim.approval_id, claim.payload_sha256, claim.resource_limit) != (None, None, None):
        raise Fault("a root token has level 0 and no approval, payload or resource limit")
    if claims.jti != root_jti(claim.id, claims.iat):
        raise Fault("the jti is not one of the run")
