"""Log lines are JSON and hold no secret, whatever is logged."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from carnet_broker import logs

JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlLWNhbmFyeQ"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    lines = io.StringIO()
    logs.configure("debug", lines)
    yield lines
    root.handlers[:], root.level = handlers, level


@pytest.mark.parametrize(
    ("message", "args"),
    [
        ("token %s refused", (JWT,)),
        (f"header Authorization: Bearer {JWT}", ()),
        ("header %r", ("Basic Y2FuYXJ5OmNhbmFyeS1zZWNyZXQ=",)),
        ("form %s", ("grant_type=x&client_secret=canary-secret",)),
        ("secret %s", (SecretStr("canary-secret"),)),
        ("bytes %s", (b"canary-secret",)),
        ("form %s", ({"passphrase": SecretStr("canary-secret")},)),
    ],
)
def test_a_secret_does_not_reach_the_log(stream: io.StringIO, message: str, args: tuple[object, ...]) -> None:
    logging.getLogger("carnet.test").warning(message, *args)
    text = stream.getvalue()
    assert "canary" not in text
    assert JWT not in text
    assert "Y2FuYXJ5" not in text
    assert json.loads(text)["level"] == "warning"


def test_a_fault_is_logged_by_type_and_place_not_by_message(stream: io.StringIO) -> None:
    try:
        raise ValueError("canary-secret in a message")
    except ValueError:
        logging.getLogger("carnet.test").exception("fault", extra={"fields": {"path": "/v1/x"}})
    line = json.loads(stream.getvalue())
    assert line["fault"] == "ValueError"
    assert line["path"] == "/v1/x"
    assert "test_logs.py" in line["places"][-1]
    assert "canary" not in stream.getvalue()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)))
def test_any_value_can_be_redacted_and_written(value: object) -> None:
    json.dumps(logs.redact(value))


def test_a_value_of_an_unknown_type_is_named_and_not_shown() -> None:
    class Credential:
        def __repr__(self) -> str:
            return "canary"

    assert logs.redact([Credential()]) == ["[Credential]"]
