"""The usual spelling of a child token, read by one regular expression: much quicker than JSON and then its members.

Minting writes members sorted and without white space, so this is what nearly all genuine tokens look like. What is
spelled in another way, or has any fault, is not read here (None): strict JSON and `read_claims` then answer. Both ways
give one answer, because the expression leaves nothing open: every string in it is free of quotes and backslashes, so
its text is its value, and members that must agree are references to each other.
"""

import re
from typing import Any

from carnet.token._fields import Fault
from carnet.token._reading import read_details
from carnet.token.claims import Claims, DelegationClaim
from carnet.token.names import MAX_DEPTH, MAX_MEMBERS, MAX_TIME
from carnet.token.strict import NotStrict, loads

__all__ = ["read_usual"]

_CHARACTER = r"[\x21\x23-\x5b\x5d-\x7e]"
_ID, _NAME = _CHARACTER + "{1,256}", _CHARACTER + "{1,128}"
_DLG, _APR = "dlg_[A-Za-z0-9_-]{1,64}", "apr_[A-Za-z0-9_-]{1,64}"
_TIME, _COUNT = "[1-9][0-9]{0,9}", "0|[1-9][0-9]{0,8}"
_USUAL = re.compile(
    rf'{{"act":{{"act":{{"sub":"agent:(?P<parent>{_NAME})"}},"sub":"(?P<id>{_DLG})"}},'
    rf'"aud":"({_ID})",(?:"authorization_details":(\[.+\]),)?"client_id":"({_ID})",'
    r'(?:"cnf":{"jkt":"([A-Za-z0-9_-]{43})"},)?'
    rf'"exp":({_TIME}),"iat":({_TIME}),"iss":"({_ID})","jti":"((?P=id)\.[0-9a-f]{{16}})","nbf":({_TIME}),'
    rf'"scope":"({_NAME}(?: {_NAME})*+)","sub":"({_ID})","tenant":"([a-z0-9-]{{1,63}})",'
    rf'"txn":"(?P<run>(?!(?P=id)"){_DLG})",'
    rf'"urn:carnet:delegation":{{"agent":"(?P<agent>{_NAME})","approval_id":"({_APR})",'
    rf'"chain":\[\["(?P=run)","(?P=parent)","({_ID})"\],\["(?P=id)","(?P=agent)","({_ID})"\]\],"depth":1,'
    r'"id":"(?P=id)","level":([0-2]),"payload_sha256":(?:null|"([0-9a-f]{64})"),'
    rf'"policy":{{"digest":"({_ID})","id":"({_ID})","version":({_COUNT})}},"resource_limit":({_COUNT}),'
    r'"trace_id":"((?!0{32})[0-9a-f]{32})"}}'
)
_BESIDE = 40  # more than the members of a child token beside authorization_details


def read_usual(raw: bytes) -> Claims | None:
    """The claims that the JSON text says, exactly as `read_claims` reads them, or None: read it that way."""
    try:
        match = _USUAL.fullmatch(raw.decode("ascii"))
    except UnicodeDecodeError:
        return None
    return None if match is None else _claims(*match.groups())


def _claims(
    parent: str, id: str, aud: str, ceilings: str | None, client_id: str, jkt: str | None, exp: str, iat: str,
    iss: str, jti: str, nbf: str, scope: str, sub: str, tenant: str, run: str, agent: str, approval: str,
    run_client: str, client: str, level: str, payload: str | None, digest: str, policy: str, version: str, limit: str,
    trace: str,
) -> Claims | None:  # fmt: skip
    tools = tuple(scope.split(" "))
    issued, begins, ends = int(iat), int(nbf), int(exp)
    if not issued <= begins < ends <= MAX_TIME or len(set(tools)) != len(tools):
        return None
    try:
        details = () if ceilings is None else read_details(_parsed(ceilings), aud, tools)
    except (Fault, NotStrict):
        return None
    return Claims(
        iss=iss, sub=sub, aud=aud, client_id=client_id, act={"sub": id, "act": {"sub": f"agent:{parent}"}},
        scope=tools, authorization_details=details, jkt=jkt, jti=jti, iat=issued, nbf=begins, exp=ends, txn=run,
        tenant=tenant,
        delegation=DelegationClaim(
            id=id, chain=((run, parent, run_client), (id, agent, client)), level=int(level), depth=1, agent=agent,
            approval_id=approval, policy_id=policy, policy_version=int(version), policy_digest=digest,
            payload_sha256=payload, resource_limit=int(limit), trace_id=trace,
        ),
    )  # fmt: skip


def _parsed(text: str) -> Any:
    """An array that stands one level deep in the payload."""
    return loads(text.encode(), max_depth=MAX_DEPTH - 1, max_members=MAX_MEMBERS - _BESIDE)
