"""The package's public face: names, lazy imports, settings, credentials, answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

import carnet
from carnet import ApprovalPending, Broker, ConfigError, Credential, Guard, Interrupted, Refused, Unavailable
from carnet.errors import refused
from carnet.reasons import Reason, Refusal
from carnet.wire import answer, place, retry, settings
from carnet.wire.ask import Ask

HEAVY = ("jwt", "httpx2", "jsonschema_rs", "yaml", "fastapi", "pydantic", "redis", "anyio", "cryptography")


def in_fresh_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_loads_nothing_heavy() -> None:
    code = f"import sys, carnet, carnet_policy; print([m for m in {HEAVY} if m in sys.modules])"
    assert in_fresh_python(code) == "[]"


def test_a_guard_and_a_broker_are_made_without_loading_anything_heavy() -> None:
    code = (
        "import sys, carnet; carnet.Guard('x').tool(lambda a: a, name='t'); carnet.Broker('http://127.0.0.1:1'); "
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    assert in_fresh_python(code) == "[]"


def test_importing_is_quick() -> None:
    code = "import time; t = time.perf_counter(); import carnet, carnet_policy; print(time.perf_counter() - t)"
    quickest = min(float(in_fresh_python(code)) for _ in range(5))
    print(f"import carnet, carnet_policy: {quickest * 1000:.0f} ms")
    assert quickest < 0.150


def test_every_public_name_is_there() -> None:
    for name in carnet.__all__:
        assert getattr(carnet, name) is not None
    with pytest.raises(AttributeError):
        carnet.nothing  # noqa: B018


def test_unknown_settings_are_refused_and_service_links_are_not() -> None:
    with pytest.raises(ConfigError, match="CARNET_URLL"):
        settings.read({"CARNET_URLL": "x"})
    found = settings.read({"CARNET_PORT_8420_TCP": "x", "CARNET_SERVICE_HOST": "x", "CARNET_URL": "u", "HOME": "h"})
    assert (found.url, found.host) == ("u", None)
    assert settings.read({"CARNET_STORE": "sqlite:///x", "CARNET_JOURNAL": "j"}).journal == "j"


@pytest.mark.parametrize(
    "environ",
    [
        {"CARNET_CLIENT_KEY": "k"},
        {"CARNET_CLIENT_ID": "a"},
        {"CARNET_CLIENT_ID": "a", "CARNET_CLIENT_KEY": "k", "CARNET_CLIENT_SECRET_FILE": "s"},
        {"CARNET_CLIENT_ID": "a", "CARNET_CLIENT_KEY": "/nowhere"},
    ],
)
def test_half_a_credential_is_a_config_error(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        Credential.of(settings.read(environ))


def test_a_key_signs_an_assertion_for_the_issuer_alone(tmp_path: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    (tmp_path / "key.pem").write_text(pem)
    for credential in (Credential.key("app", pem), Credential.key("app", tmp_path / "key.pem")):
        form = credential.proof("https://issuer", 1000, "j")
        claims = jwt.decode(
            form["client_assertion"],
            private.public_key(),
            algorithms=["ES256"],
            audience="https://issuer",
            options={"verify_exp": False, "verify_iat": False},
        )
        assert claims == {"iss": "app", "sub": "app", "aud": "https://issuer", "jti": "j", "iat": 1000, "exp": 1060}
        assert "BEGIN" not in repr(credential)
    with pytest.raises(ConfigError):
        Credential.key("app", "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----").proof("i", 1, "j")


def test_a_secret_is_long_and_never_shown() -> None:
    with pytest.raises(ConfigError):
        Credential.secret("app", "short")
    assert "s" * 32 not in repr(Credential.secret("app", "s" * 32))


def body(**members: Any) -> bytes:
    return json.dumps(members).encode()


def test_answers_become_documents_refusals_or_unavailable() -> None:
    assert answer.document(200, {}, b'{"a": 1}') == {"a": 1}
    assert answer.document(204, {}, b"") == {}
    told = answer.problem(403, {}, body(reason="approval_pending", detail="d", call_id="c", approval_id="apr_1"))
    assert isinstance(told, ApprovalPending)
    assert told.as_dict() == {
        "decision": "require_approval",
        "reason": "approval_pending",
        "detail": "d",
        "call_id": "c",
        "approval_id": "apr_1",
    }
    client = answer.problem(401, {}, body(error="invalid_client", error_description="d"))
    assert isinstance(client, Refused)
    assert client.reason is Reason.CLIENT_AUTH
    hidden = answer.problem(401, {}, body(reason="invalid_token", detail="d"))
    assert isinstance(hidden, Refused)
    assert hidden.reason is Reason.TOKEN_ENDED
    for status, sent in ((503, body(reason="contended")), (500, b"<html>"), (429, b"")):
        found = answer.problem(status, {"retry-after": "2"}, sent)
        assert isinstance(found, Unavailable)
        assert found.retry_after == 2.0
    with pytest.raises(Unavailable):
        answer.document(200, {}, b"[]")


def test_only_what_is_repeatable_is_repeated_and_not_for_long() -> None:
    once = Ask(method="POST", path="/x")
    assert list(retry.pauses(once, lambda: 1.0)) == []
    again = Ask(method="POST", path="/x", repeatable=True)
    assert list(retry.pauses(again, lambda: 1.0)) == [0.1, 0.2, 0.4]
    assert "secret" not in repr(Ask(method="GET", path="/x", bearer="secret", form={"a": "secret"}))


def test_refusals_and_interruptions_say_what_they_are() -> None:
    plain = refused(Refusal(Reason.REVOKED), call_id="call_1")
    assert type(plain) is Refused
    assert "approval_id" not in plain.as_dict()
    assert plain.as_dict()["decision"] == "deny"
    stopped = Interrupted(Reason.REVOKED, "call_1")
    assert (stopped.reason, stopped.call_id) == (Reason.REVOKED, "call_1")


@pytest.mark.parametrize("url", ["ftp://x", "http://", "https://u:p@x", "https://x?a=1", "https://x:nan", "carnet"])
def test_a_url_that_is_none_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError):
        place.base(url)


@pytest.mark.parametrize(
    "host", ["carnet.example", "localhost.example:8420", "127.0.0.1.example", "10.0.0.7", "0.0.0.0"]
)
def test_plain_http_leaves_this_machine_with_nothing(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[httpx2.Request] = []

    def record(request: httpx2.Request) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(500)

    transport, credential, url = httpx2.MockTransport(record), Credential.secret("app", "s" * 43), f"HTTP://{host}"
    with pytest.raises(ConfigError, match="not https"):
        Broker(url, credential=credential, transport=transport).run().__enter__()
    with pytest.raises(ConfigError, match="not https"):
        Guard("desk", url=url, credential=credential, transport=transport).ready()
    monkeypatch.setenv("CARNET_URL", url)
    with pytest.raises(ConfigError, match="not https"):
        Broker(credential=credential, transport=transport).run().__enter__()
    with pytest.raises(ConfigError, match="not https"):
        Guard("desk", credential=credential, transport=transport).ready()
    assert sent == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8420", "http://localhost", "http://[::1]:1", "https://carnet.example"]
)
def test_a_broker_is_reached_over_https_or_on_this_machine(url: str) -> None:
    assert place.base(url + "/") == url


def test_a_development_issuer_may_be_given_as_the_url() -> None:
    assert place.base("http://127.0.0.1:8420/dev") == "http://127.0.0.1:8420"
    assert place.base("https://carnet.example/dev") == "https://carnet.example/dev"
    assert place.origin("https://a.example/x") == ("https", "a.example", 443)
    assert place.origin("urn:a") is None
