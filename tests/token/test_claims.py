"""Claims and their JSON form: one way there, one way back, a closed set."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Refusal
from carnet.token.claims import (
    Chain,
    Claims,
    DelegationClaim,
    actors,
    ceilings,
    child_jti,
    detail,
    from_payload,
    root_jti,
    to_payload,
)
from carnet.token.names import DELEGATION
from tests.token.making import AUD, ISS, NOW, child, minted, root, with_delegation

ids = st.text("ABCDEFGHabcdefgh0123456789_-", min_size=1, max_size=32).map(lambda text: f"dlg_{text}")
names = st.text([chr(code) for code in range(0x21, 0x7F)], min_size=1, max_size=40)
tools = st.lists(
    st.text([chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"\\'], min_size=1, max_size=128),
    min_size=1,
    max_size=6,
    unique=True,
)
constraints = st.dictionaries(
    st.text(max_size=8),
    st.dictionaries(st.sampled_from(["max", "min", "enum"]), st.integers(-5, 5) | st.lists(st.text(max_size=4))),
    max_size=3,
)


@st.composite
def claims(draw: st.DrawFn) -> Claims:
    is_root = draw(st.booleans())
    run, dlg = draw(st.lists(ids, min_size=2, max_size=2, unique=True))
    chain: Chain = ((run, draw(names), draw(names)),)
    if not is_root:
        chain = (*chain, (dlg, draw(names), draw(names)))
    iat = draw(st.integers(1, 2**32))
    nbf = iat + draw(st.integers(0, 100))
    iss = draw(names)
    aud = iss if is_root else draw(names)
    scope = () if is_root else tuple(draw(tools))
    limited = draw(st.lists(st.sampled_from(scope), unique=True)) if scope else []
    jkt = draw(st.none() | st.just("A" * 43))
    return Claims(
        iss=iss,
        sub=draw(names),
        aud=aud,
        client_id=draw(names),
        act=actors(chain),
        scope=scope,
        authorization_details=tuple(
            detail(aud, tool, draw(constraints), draw(st.none() | st.integers(0, 9))) for tool in limited
        ),
        jkt=jkt,
        jti=root_jti(run, iat) if is_root else child_jti(dlg, "host", jkt),
        iat=iat,
        nbf=nbf,
        exp=nbf + draw(st.integers(1, 900)),
        txn=run,
        tenant=draw(st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True)),
        delegation=DelegationClaim(
            id=chain[-1][0],
            chain=chain,
            level=0 if is_root else draw(st.integers(0, 2)),
            depth=len(chain) - 1,
            agent=chain[-1][1],
            approval_id=None if is_root else "apr_1",
            policy_id=draw(names),
            policy_version=draw(st.integers(0, 99)),
            policy_digest=draw(names),
            payload_sha256=None if is_root else draw(st.none() | st.just("0" * 64)),
            resource_limit=None if is_root else draw(st.integers(0, 99)),
            trace_id="1" * 32,
        ),
    )


@given(claims())
def test_a_payload_reads_back_to_the_same_claims(made: Claims) -> None:
    assert from_payload(to_payload(made)) == made


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(to_payload(child()))), json_values)
def test_any_other_value_of_a_claim_is_refused_or_read_exactly(name: str, value: Any) -> None:
    payload = {**to_payload(child()), name: value}
    read = from_payload(payload)
    assert isinstance(read, Refusal) or to_payload(read) == payload


@given(st.sampled_from(sorted(to_payload(child())[DELEGATION])), json_values)
def test_any_other_value_in_the_private_object_is_refused_or_read_exactly(name: str, value: Any) -> None:
    payload = with_delegation(child(), **{name: value})
    read = from_payload(payload)
    assert isinstance(read, Refusal) or to_payload(read) == payload


@given(json_values)
def test_reading_never_raises(value: Any) -> None:
    assert isinstance(from_payload(value if isinstance(value, dict) else {"x": value}), Refusal)


def test_the_members_of_a_child_token_are_exactly_these() -> None:
    payload = to_payload(child(jkt="A" * 43))
    assert sorted(payload) == [
        "act",
        "aud",
        "authorization_details",
        "client_id",
        "cnf",
        "exp",
        "iat",
        "iss",
        "jti",
        "nbf",
        "scope",
        "sub",
        "tenant",
        "txn",
        "urn:carnet:delegation",
    ]
    assert sorted(payload[DELEGATION]) == [
        "agent",
        "approval_id",
        "chain",
        "depth",
        "id",
        "level",
        "payload_sha256",
        "policy",
        "resource_limit",
        "trace_id",
    ]
    assert payload["act"] == {"sub": child().delegation.id, "act": {"sub": "agent:support"}}
    assert payload["scope"] == "read_ticket refund"


def test_a_root_token_has_no_scope_no_actor_and_is_for_the_issuer() -> None:
    payload = to_payload(root())
    assert not {"scope", "act", "authorization_details"} & payload.keys()
    assert payload["aud"] == ISS
    assert root().is_root
    assert not child().is_root


def test_a_jti_names_its_delegation_and_depends_on_host_and_key() -> None:
    plain = child_jti("dlg_1", "crm", None)
    assert plain.startswith("dlg_1.")
    assert len({plain, child_jti("dlg_1", "pay", None), child_jti("dlg_1", "crm", "A" * 43)}) == 3
    assert child_jti("dlg_1", "ab", "c") != child_jti("dlg_1", "a", "bc")


def test_ceilings_have_the_form_of_an_envelope() -> None:
    assert ceilings(child()) == {"refund": {"args": {"amount": {"max": 20}}, "max_calls": 1}}
    unlimited = replace(child(), authorization_details=(detail(AUD, "refund", {}),))
    assert ceilings(unlimited) == {"refund": {"args": {}}}


def test_a_full_token_takes_less_than_half_of_the_size_limit() -> None:
    assert len(minted(child(jkt="A" * 43, now=NOW))) < 2048
