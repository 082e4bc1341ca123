"""Tokens that must be refused although, where it matters, the real key signed them. Each names its reason."""

import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims, to_payload
from carnet.token.verify import verify
from carnet_broker.keys import KeyRing
from tests.token.making import (
    AUD,
    HOST,
    ISS,
    NOW,
    RING,
    b64,
    child,
    compact,
    forged,
    hs256,
    minted,
    payload_of,
    root,
    with_delegation,
)

R = Reason
GOOD = minted(child())
PAYLOAD = json.dumps(to_payload(child()))
HEADER = json.dumps({"alg": "ES256", "kid": RING.active.kid, "typ": "at+jwt"})
STRANGER = KeyRing.ephemeral()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def check(token: object, **changes: Any) -> Claims | Refusal:
    settings: dict[str, Any] = {"keys": RING.keyset(), "issuer": ISS, "audience": AUD, "revoked": {}, "now": NOW}
    return verify(token, host=HOST, **(settings | changes))


def public_key() -> Any:
    jwk = RING.active.public_jwk()
    x, y = (int.from_bytes(_decoded(jwk[name]), "big") for name in ("x", "y"))
    return EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()


def _decoded(text: str) -> bytes:
    from base64 import urlsafe_b64decode

    return urlsafe_b64decode(text + "=")


PEM = public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
DER = public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def claim(**changes: Any) -> str:
    return forged(payload_of(child(), **changes))


def delegation(**changes: Any) -> str:
    return forged(with_delegation(child(), **changes))


def spliced(text: str) -> str:
    """The payload with a member appended as text, which a parser may read over an earlier one."""
    return forged(PAYLOAD[:-1] + "," + text + "}")


def signature_with(change: Any) -> str:
    signed, _, signature = GOOD.rpartition(".")
    return f"{signed}.{b64(change(_decoded(signature + '=')))}"


def deep(levels: int) -> Any:
    return {"amount": json.loads("[" * levels + "]" * levels)}


CASES: dict[str, tuple[object, set[Reason]]] = {
    # what is no compact JWS
    "empty": ("", {R.TOKEN_MALFORMED}),
    "not a string": (b"a.b.c", {R.TOKEN_MALFORMED}),
    "none": (None, {R.TOKEN_MALFORMED}),
    "two segments": (GOOD.rpartition(".")[0], {R.TOKEN_MALFORMED}),
    "four segments": (GOOD + ".AAAA", {R.TOKEN_MALFORMED}),
    "five segments (JWE)": ("a.b.c.d.e", {R.TOKEN_MALFORMED}),
    "only dots": ("..", {R.TOKEN_MALFORMED}),
    "padding": (GOOD + "==", {R.TOKEN_MALFORMED}),
    "padding inside": (GOOD.replace(".", "=.", 1), {R.TOKEN_MALFORMED}),
    "trailing newline": (GOOD + "\n", {R.TOKEN_MALFORMED}),
    "trailing space": (GOOD + " ", {R.TOKEN_MALFORMED}),
    "leading space": (" " + GOOD, {R.TOKEN_MALFORMED}),
    "Bearer in front": ("Bearer " + GOOD, {R.TOKEN_MALFORMED}),
    "standard alphabet": (GOOD[:-3] + "+/A", {R.TOKEN_MALFORMED}),
    "not ASCII": (GOOD[:-1] + "é", {R.TOKEN_MALFORMED}),
    "fullwidth letter": (GOOD[:-1] + "\uff21", {R.TOKEN_MALFORMED}),
    "NUL at the end": (GOOD + "\x00", {R.TOKEN_MALFORMED}),
    "JSON serialisation": (json.dumps({"payload": "e30", "signatures": []}), {R.TOKEN_MALFORMED}),
    "unused bits set": (GOOD[:-1] + "B", {R.TOKEN_MALFORMED}),
    "4097 bytes": ("a" * 4097, {R.TOKEN_SIZE}),
    "20 MB": ("a" * 20_000_000, {R.TOKEN_SIZE}),
    "a claim of 200 kB": (claim(pad="a" * 200_000), {R.TOKEN_SIZE}),
    # header
    "alg none": (forged(PAYLOAD, {"alg": "none"}), {R.TOKEN_ALG}),
    "alg NONE, no signature": (f"{b64(HEADER.replace('ES256', 'NONE'))}.{b64(PAYLOAD)}.", {R.TOKEN_MALFORMED}),
    "alg nOnE": (forged(PAYLOAD, {"alg": "nOnE"}), {R.TOKEN_ALG}),
    "alg empty": (forged(PAYLOAD, {"alg": ""}), {R.TOKEN_ALG}),
    "alg null": (forged(PAYLOAD, HEADER.replace('"ES256"', "null")), {R.TOKEN_ALG}),
    "alg a list": (forged(PAYLOAD, {"alg": ["ES256"]}), {R.TOKEN_ALG}),
    "alg lower case": (forged(PAYLOAD, {"alg": "es256"}), {R.TOKEN_ALG}),
    "alg ES384": (forged(PAYLOAD, {"alg": "ES384"}), {R.TOKEN_ALG}),
    "alg RS256": (forged(PAYLOAD, {"alg": "RS256"}), {R.TOKEN_ALG}),
    "HS256 with the public PEM": (forged(PAYLOAD, {"alg": "HS256"}, hs256(PEM)), {R.TOKEN_ALG}),
    "HS256 with the public DER": (forged(PAYLOAD, {"alg": "HS256"}, hs256(DER)), {R.TOKEN_ALG}),
    "HS256 with the JWKS": (
        forged(PAYLOAD, {"alg": "HS256"}, hs256(json.dumps(RING.jwks()).encode())),
        {R.TOKEN_ALG},
    ),
    "ES256 named, HMAC made": (forged(PAYLOAD, None, hs256(PEM)), {R.TOKEN_SIGNATURE}),
    "alg missing": (forged(PAYLOAD, {"alg": None}), {R.TOKEN_HEADER}),
    "kid missing": (forged(PAYLOAD, {"kid": None}), {R.TOKEN_HEADER}),
    "typ missing": (forged(PAYLOAD, {"typ": None}), {R.TOKEN_HEADER}),
    "typ JWT": (forged(PAYLOAD, {"typ": "JWT"}), {R.TOKEN_TYP}),
    "typ dpop+jwt": (forged(PAYLOAD, {"typ": "dpop+jwt"}), {R.TOKEN_TYP}),
    "typ logout+jwt": (forged(PAYLOAD, {"typ": "logout+jwt"}), {R.TOKEN_TYP}),
    "typ in capitals": (forged(PAYLOAD, {"typ": "at+JWT"}), {R.TOKEN_TYP}),
    "typ with application/": (forged(PAYLOAD, {"typ": "application/at+jwt"}), {R.TOKEN_TYP}),
    "typ with a newline": (forged(PAYLOAD, {"typ": "at+jwt\n"}), {R.TOKEN_TYP}),
    "kid like a path": (forged(PAYLOAD, {"kid": "../../../../dev/null"}, hs256(b"")), {R.TOKEN_KEY}),
    "kid with SQL": (forged(PAYLOAD, {"kid": "' OR 1=1 --"}), {R.TOKEN_KEY}),
    "kid a number": (forged(PAYLOAD, {"kid": 1}), {R.TOKEN_KEY}),
    "kid a list": (forged(PAYLOAD, {"kid": [RING.active.kid]}), {R.TOKEN_KEY}),
    "kid an object": (forged(PAYLOAD, {"kid": {}}), {R.TOKEN_KEY}),
    "kid with a newline": (forged(PAYLOAD, {"kid": RING.active.kid + "\n"}), {R.TOKEN_KEY}),
    "kid of a stranger": (minted(child(), STRANGER.active), {R.TOKEN_KEY}),
    "our kid, a stranger's key": (forged(PAYLOAD, None, STRANGER.active.sign), {R.TOKEN_SIGNATURE}),
    "another of our keys' kid": (forged(PAYLOAD, {"kid": RING.states[1].kid}), {R.TOKEN_SIGNATURE}),
    "jwk in the header": (
        forged(PAYLOAD, {"jwk": STRANGER.active.public_jwk()}, STRANGER.active.sign),
        {R.TOKEN_HEADER},
    ),
    "jku": (forged(PAYLOAD, {"jku": "http://127.0.0.1:9/jwks.json"}), {R.TOKEN_HEADER}),
    "x5u": (forged(PAYLOAD, {"x5u": "http://127.0.0.1:9/cert.pem"}), {R.TOKEN_HEADER}),
    "x5c": (forged(PAYLOAD, {"x5c": ["AAAA"]}), {R.TOKEN_HEADER}),
    "crit": (forged(PAYLOAD, {"crit": ["x-policy"], "x-policy": "mfa"}), {R.TOKEN_HEADER}),
    "crit empty": (forged(PAYLOAD, {"crit": []}), {R.TOKEN_HEADER}),
    "b64 false": (forged(PAYLOAD, {"b64": False, "crit": ["b64"]}), {R.TOKEN_HEADER}),
    "zip": (forged(PAYLOAD, {"zip": "DEF"}), {R.TOKEN_HEADER}),
    "cty": (forged(PAYLOAD, {"cty": "JWT"}), {R.TOKEN_HEADER}),
    "alg twice": (forged(PAYLOAD, '{"alg":"none",' + HEADER[1:]), {R.TOKEN_DUPLICATE}),
    "header an array": (forged(PAYLOAD, "[]"), {R.TOKEN_MALFORMED}),
    "header no JSON": (forged(PAYLOAD, "alg=ES256"), {R.TOKEN_MALFORMED}),
    "header with a byte order mark": (forged(PAYLOAD, "\ufeff" + HEADER), {R.TOKEN_MALFORMED}),
    "header 500 deep": (forged(PAYLOAD, "[" * 500 + "]" * 500), {R.TOKEN_MALFORMED}),
    # signature
    "signature flipped": (signature_with(lambda s: bytes([s[0] ^ 1]) + s[1:]), {R.TOKEN_SIGNATURE}),
    "signature of zeros": (signature_with(lambda s: bytes(64)), {R.TOKEN_SIGNATURE}),
    "r and s swapped": (signature_with(lambda s: s[32:] + s[:32]), {R.TOKEN_SIGNATURE}),
    "s out of range": (
        signature_with(lambda s: s[:32] + ((int.from_bytes(s[32:], "big") + ORDER) % 2**256).to_bytes(32, "big")),
        {R.TOKEN_SIGNATURE},
    ),
    "signature too short": (signature_with(lambda s: s[:63]), {R.TOKEN_SIGNATURE}),
    "signature too long": (signature_with(lambda s: s + b"\x00"), {R.TOKEN_SIGNATURE}),
    "payload exchanged": (
        ".".join((GOOD.split(".")[0], b64(json.dumps(payload_of(child(), tenant="globex"))), GOOD.split(".")[2])),
        {R.TOKEN_SIGNATURE},
    ),
    # payload as JSON
    "payload empty object": (forged("{}"), {R.TOKEN_CLAIM}),
    "payload an array": (forged("[]"), {R.TOKEN_MALFORMED}),
    "payload no JSON": (forged("foo"), {R.TOKEN_MALFORMED}),
    "payload with a byte order mark": (forged("\ufeff" + PAYLOAD), {R.TOKEN_MALFORMED}),
    "payload in UTF-16": (forged(PAYLOAD.encode("utf-16")), {R.TOKEN_MALFORMED}),
    "payload not UTF-8": (forged(PAYLOAD.encode().replace(b"acme", b"ac\xffe")), {R.TOKEN_MALFORMED}),
    "sub twice": (spliced('"sub":"agent:operator"'), {R.TOKEN_DUPLICATE}),
    "a nested member twice": (
        forged(PAYLOAD.replace('"level": 0', '"level": 2, "level": 0')),
        {R.TOKEN_DUPLICATE},
    ),
    "a member twice, once escaped": (spliced('"\\u0073ub":"agent:operator"'), {R.TOKEN_DUPLICATE}),
    "NaN": (forged(PAYLOAD.replace(str(NOW + 900), "NaN")), {R.TOKEN_MALFORMED}),
    "Infinity": (forged(PAYLOAD.replace(str(NOW + 900), "Infinity")), {R.TOKEN_MALFORMED}),
    "1e999": (forged(PAYLOAD.replace(str(NOW + 900), "1e999")), {R.TOKEN_MALFORMED}),
    "trailing garbage": (forged(PAYLOAD + "x"), {R.TOKEN_MALFORMED}),
    "a second object": (forged(PAYLOAD + PAYLOAD[:20] + "}"), {R.TOKEN_MALFORMED}),
    "comment": (forged("/**/" + PAYLOAD), {R.TOKEN_MALFORMED}),
    "lone surrogate": (forged(PAYLOAD.replace("agent:support", "agent:\\ud800")), {R.TOKEN_MALFORMED}),
    "13 deep": (forged(PAYLOAD[:-1] + ',"x":' + "[" * 12 + "]" * 12 + "}"), {R.TOKEN_MALFORMED}),
    "1300 deep": (forged('{"x":' + "[" * 1300 + "]" * 1300 + "}"), {R.TOKEN_MALFORMED}),
    "257 members": (
        forged(json.dumps({f"k{i}": 0 for i in range(257)}, separators=(",", ":"))),
        {R.TOKEN_MALFORMED},
    ),
    "5000 digits": (forged('{"exp":' + "9" * 2500 + "}"), {R.TOKEN_MALFORMED}),
    # claims
    "unknown claim": (claim(role="admin"), {R.TOKEN_CLAIM}),
    "status claim": (claim(status={"status_list": {"idx": 0, "uri": "http://127.0.0.1:9"}}), {R.TOKEN_CLAIM}),
    "may_act": (claim(may_act={"sub": "agent:x"}), {R.TOKEN_CLAIM}),
    "exp a string": (claim(exp=str(NOW + 300)), {R.TOKEN_CLAIM}),
    "exp a float": (claim(exp=NOW + 300.5), {R.TOKEN_CLAIM}),
    "exp a whole float": (claim(exp=float(NOW + 300)), {R.TOKEN_CLAIM}),
    "exp true": (claim(exp=True), {R.TOKEN_CLAIM}),
    "exp 10^30": (claim(exp=10**30), {R.TOKEN_CLAIM}),
    "exp negative": (claim(exp=-1), {R.TOKEN_CLAIM}),
    "exp zero": (claim(exp=0), {R.TOKEN_CLAIM}),
    "exp before iat": (claim(exp=NOW - 1), {R.TOKEN_CLAIM}),
    "iat in the far future": (claim(iat=NOW + 60, nbf=NOW + 60, exp=NOW + 900), {R.TOKEN_NOT_YET}),
    "nbf before iat": (claim(nbf=NOW - 1), {R.TOKEN_CLAIM}),
    "nbf in 10 minutes": (claim(nbf=NOW + 600), {R.TOKEN_NOT_YET}),
    "ten years": (claim(exp=NOW + 10 * 365 * 86400), {R.TOKEN_LIFETIME}),
    "a day": (claim(exp=NOW + 86400), {R.TOKEN_LIFETIME}),
    "a late nbf that hides a long life": (claim(exp=NOW + 905, nbf=NOW + 5), {R.TOKEN_LIFETIME}),
    "one second more than level 0": (claim(exp=NOW + 901), {R.TOKEN_LIFETIME}),
    "level 1 for 900 s": (delegation(level=1), {R.TOKEN_LIFETIME}),
    "level 2 for 900 s": (delegation(level=2), {R.TOKEN_LIFETIME}),
    "iss a prefix": (claim(iss=ISS[:4]), {R.TOKEN_ISS}),
    "iss with a slash": (claim(iss=ISS + "/"), {R.TOKEN_ISS}),
    "iss in capitals": (claim(iss=ISS.upper()), {R.TOKEN_ISS}),
    "iss a list": (claim(iss=[ISS]), {R.TOKEN_CLAIM}),
    "aud of another host": (
        forged(payload_of(child(), aud="https://pay.example", authorization_details=None)),
        {R.TOKEN_AUD},
    ),
    "aud a superstring": (forged(payload_of(child(), aud="x-" + AUD, authorization_details=None)), {R.TOKEN_AUD}),
    "aud with a slash": (forged(payload_of(child(), aud=AUD + "/", authorization_details=None)), {R.TOKEN_AUD}),
    "aud a list": (claim(aud=[AUD]), {R.TOKEN_CLAIM}),
    "aud a star": (claim(aud=["*"]), {R.TOKEN_CLAIM}),
    "aud empty": (claim(aud=""), {R.TOKEN_CLAIM}),
    "sub empty": (claim(sub=""), {R.TOKEN_CLAIM}),
    "sub with NUL": (claim(sub="agent:\x00"), {R.TOKEN_CLAIM}),
    "sub an object": (claim(sub={"a": 1}), {R.TOKEN_CLAIM}),
    "sub with a newline": (claim(sub="agent:support\n"), {R.TOKEN_CLAIM}),
    "sub with a homoglyph": (claim(sub="agent:supp\u043ert"), {R.TOKEN_CLAIM}),
    "sub of 300 characters": (claim(sub="a" * 300), {R.TOKEN_CLAIM}),
    "jti empty": (claim(jti=""), {R.TOKEN_CLAIM}),
    "jti of another delegation": (claim(jti="dlg_other." + "0" * 16), {R.TOKEN_CLAIM}),
    "jti without a tail": (claim(jti=child().delegation.id), {R.TOKEN_CLAIM}),
    "tenant in capitals": (claim(tenant="ACME"), {R.TOKEN_CLAIM}),
    "tenant _system": (claim(tenant="_system"), {R.TOKEN_CLAIM}),
    "scope an object": (claim(scope={"refund": True}), {R.TOKEN_CLAIM}),
    "scope a list": (claim(scope=["refund"]), {R.TOKEN_CLAIM}),
    "scope empty": (claim(scope=""), {R.TOKEN_CLAIM}),
    "scope with two spaces": (claim(scope="read_ticket  refund"), {R.TOKEN_CLAIM}),
    "scope with a tab": (claim(scope="read_ticket\trefund"), {R.TOKEN_CLAIM}),
    "scope with a quote": (claim(scope='read_ticket refund "'), {R.TOKEN_CLAIM}),
    "scope names a tool twice": (claim(scope="read_ticket refund refund"), {R.TOKEN_CLAIM}),
    "a tool of 129 characters": (claim(scope="refund " + "t" * 129), {R.TOKEN_CLAIM}),
    "cnf with two members": (claim(cnf={"jkt": "A" * 43, "x5t#S256": "A" * 43}), {R.TOKEN_CLAIM}),
    "cnf with a key": (claim(cnf={"jwk": RING.active.public_jwk()}), {R.TOKEN_CLAIM}),
    "jkt of 42 characters": (claim(cnf={"jkt": "A" * 42}), {R.TOKEN_CLAIM}),
    # delegation
    "act missing": (claim(act=None), {R.TOKEN_CLAIM}),
    "act one deeper": (
        claim(act={"sub": "dlg_c", "act": {"sub": "agent:p", "act": {"sub": "agent:q"}}}),
        {R.TOKEN_CHAIN},
    ),
    "act of another agent": (
        claim(act={"sub": child().delegation.id, "act": {"sub": "agent:operator"}}),
        {R.TOKEN_CHAIN},
    ),
    "act a string": (claim(act="agent:support"), {R.TOKEN_CLAIM}),
    "act with iss": (claim(act={**(child().act or {}), "iss": ISS}), {R.TOKEN_CHAIN}),
    "depth 2": (delegation(depth=2), {R.TOKEN_CHAIN}),
    "depth true": (delegation(depth=True), {R.TOKEN_CLAIM}),
    "depth 0 with a chain of two": (delegation(depth=0), {R.TOKEN_CLAIM, R.TOKEN_CHAIN}),
    "chain empty": (delegation(chain=[]), {R.TOKEN_CHAIN}),
    "chain of three": (
        delegation(chain=[*map(list, child().delegation.chain), ["dlg_x", "a", "c"]]),
        {R.TOKEN_CHAIN},
    ),
    "chain cut": (delegation(chain=[list(child().delegation.chain[1])]), {R.TOKEN_CHAIN}),
    "chain reversed": (delegation(chain=[list(link) for link in child().delegation.chain[::-1]]), {R.TOKEN_CHAIN}),
    "chain without clients": (delegation(chain=[["dlg_a", "a"], ["dlg_b", "b"]]), {R.TOKEN_CHAIN}),
    "chain of numbers": (delegation(chain=[[1, 2, 3], [4, 5, 6]]), {R.TOKEN_CHAIN}),
    "a run that is its own child": (
        forged(
            with_delegation(child(), chain=[[child().delegation.id, "support", "c"], list(child().delegation.chain[1])])
            | {"txn": child().delegation.id}
        ),
        {R.TOKEN_CHAIN},
    ),
    "txn of another run": (claim(txn="dlg_other"), {R.TOKEN_CHAIN}),
    "agent of another delegation": (delegation(agent="writer"), {R.TOKEN_CHAIN}),
    "level 3": (delegation(level=3), {R.TOKEN_CLAIM}),
    "level -1": (delegation(level=-1), {R.TOKEN_CLAIM}),
    "no approval": (delegation(approval_id=None), {R.TOKEN_CLAIM}),
    "no resource limit": (delegation(resource_limit=None), {R.TOKEN_CLAIM}),
    "resource limit a float": (delegation(resource_limit=3.0), {R.TOKEN_CLAIM}),
    "unknown member": (delegation(max_depth=9), {R.TOKEN_CLAIM}),
    "policy a string": (delegation(policy="support-tools@3"), {R.TOKEN_CLAIM}),
    "trace id of zeros": (delegation(trace_id="0" * 32), {R.TOKEN_CLAIM}),
    # ceilings
    "ceilings an object": (claim(authorization_details={}), {R.TOKEN_CLAIM}),
    "ceilings empty": (claim(authorization_details=[]), {R.TOKEN_CLAIM}),
    "ceiling of an unknown type": (
        claim(authorization_details=[{**child().authorization_details[0], "type": "x"}]),
        {R.TOKEN_CLAIM},
    ),
    "ceiling for another host": (
        claim(authorization_details=[{**child().authorization_details[0], "locations": [AUD, ISS]}]),
        {R.TOKEN_CLAIM},
    ),
    "ceiling for a foreign tool": (
        claim(authorization_details=[{**child().authorization_details[0], "actions": ["send_email"]}]),
        {R.TOKEN_CLAIM},
    ),
    "two ceilings for a tool": (claim(authorization_details=list(child().authorization_details) * 2), {R.TOKEN_CLAIM}),
    "ceiling without constraints": (
        claim(authorization_details=[{**child().authorization_details[0], "constraints": None}]),
        {R.TOKEN_CLAIM},
    ),
    "ceiling nested too deep": (
        claim(authorization_details=[{**child().authorization_details[0], "constraints": deep(10)}]),
        {R.TOKEN_MALFORMED},
    ),
    "max_calls negative": (
        claim(authorization_details=[{**child().authorization_details[0], "max_calls": -1}]),
        {R.TOKEN_CLAIM},
    ),
    # root tokens
    "a root token at a guard": (minted(root()), {R.ROOT_TOKEN}),
    "a root token for a host": (forged(payload_of(root(), aud=AUD)), {R.TOKEN_AUD}),
    "a root token with a scope": (forged(payload_of(root(), scope="refund")), {R.TOKEN_CLAIM}),
    "a root token with act": (forged(payload_of(root(), act=dict(child().act or {}))), {R.TOKEN_CLAIM}),
    "a root token of level 2": (forged(with_delegation(root(), level=2)), {R.TOKEN_CLAIM}),
    "a root token with an approval": (forged(with_delegation(root(), approval_id="apr_1")), {R.TOKEN_CLAIM}),
    "a root token's jti of another time": (forged(payload_of(root(), jti=f"{root().txn}.1")), {R.TOKEN_CLAIM}),
}


def test_the_control_token_is_accepted() -> None:
    assert check(GOOD) == child()


@pytest.mark.parametrize("name", CASES)
def test_a_forgery_is_refused_for_its_reason(name: str) -> None:
    token, reasons = CASES[name]
    refused = check(token)
    assert isinstance(refused, Refusal), name
    assert refused.reason in reasons, refused


@pytest.mark.parametrize("missing", sorted(to_payload(child()).keys() - {"authorization_details"}))
def test_each_claim_is_needed(missing: str) -> None:
    refused = check(claim(**{missing: None}))
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.TOKEN_CLAIM
    assert missing in refused.detail


def test_no_forgery_costs_more_than_fifty_milliseconds() -> None:
    check(GOOD)  # what is loaded once is not the forgery's cost
    for name, (token, _) in CASES.items():
        spent = []
        for _ in range(3):
            began = time.thread_time()
            check(token)
            spent.append(time.thread_time() - began)
        assert min(spent) <= 0.050, name


def test_a_refusal_repeats_nothing_of_the_token() -> None:
    canary = "canary-7f3a"
    for token in (
        claim(**{canary: 1}),
        claim(sub=f"{canary}\n"),
        forged(PAYLOAD, {"kid": canary}),
        canary,
        GOOD + canary,
    ):
        assert canary not in str(check(token))


def test_the_malleable_twin_of_a_signature_is_the_same_token_by_its_ids() -> None:
    twin = signature_with(lambda s: s[:32] + (ORDER - int.from_bytes(s[32:], "big")).to_bytes(32, "big"))
    assert twin != GOOD
    assert check(twin) == check(GOOD) == child()
    dead = {f"dlg:{child().delegation.id}": NOW}
    for token in (twin, GOOD):
        refused = check(token, revoked=dead)
        assert isinstance(refused, Refusal)
        assert refused.reason is Reason.REVOKED


def test_a_signed_text_with_blanks_between_members_is_still_ours() -> None:
    assert check(compact(HEADER, json.dumps(to_payload(child()), indent=1))) == child()
