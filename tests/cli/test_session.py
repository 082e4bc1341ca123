"""The operator's session lies in a private file and is used for its own broker only."""

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carnet.cli.problems import Exit, Problem
from carnet.cli.revoking import mark_of
from carnet.cli.root import build
from carnet.cli.session import Session, load, save
from carnet.cli.terminal import ask_secret

SESSION = Session(url="http://127.0.0.1:1", operator="ada", tenant="acme", token="canary-session-token")


def environ(folder: Path, **more: str) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder), **more}


def test_what_is_saved_is_loaded_and_private(tmp_path: Path) -> None:
    path = save(SESSION, environ(tmp_path))
    assert load(environ(tmp_path)) == SESSION
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_token_is_in_no_repr() -> None:
    assert "canary" not in repr(SESSION)


def test_without_a_session_the_fix_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="carnet login") as caught:
        load(environ(tmp_path))
    assert caught.value.code is Exit.LOGIN


@pytest.mark.parametrize("text", ["", "[]", '{"url": 1', '{"url": "x", "extra": 1}'])
def test_a_broken_session_file_is_one_sentence(tmp_path: Path, text: str) -> None:
    save(SESSION, environ(tmp_path)).write_text(text)
    with pytest.raises(Problem, match="unreadable"):
        load(environ(tmp_path))


def test_another_broker_never_gets_the_session(tmp_path: Path) -> None:
    save(SESSION, environ(tmp_path))
    with pytest.raises(Problem, match="CARNET_URL"):
        load(environ(tmp_path, CARNET_URL="http://127.0.0.1:2"))


@pytest.mark.parametrize(
    ("typed", "mark"),
    [
        ("dlg_abc", "dlg:dlg_abc"),
        ("dlg_abc.0123456789abcdef", "token:dlg_abc.0123456789abcdef"),
        ("apr_abc", "apr:apr_abc"),
        ("agent:clerk", "agent:clerk"),
        ("tool:dlg_abc/refund", "tool:dlg_abc/refund"),
    ],
)
def test_ids_carry_their_kind(typed: str, mark: str) -> None:
    assert mark_of(typed) == mark


@pytest.mark.parametrize("typed", ["clerk", "root:x", "", "call_abc"])
def test_what_is_no_mark_is_a_usage_error(typed: str) -> None:
    with pytest.raises(Problem) as caught:
        mark_of(typed)
    assert caught.value.code is Exit.USAGE


def test_a_passphrase_is_never_read_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(*_: object) -> int:
        raise OSError

    monkeypatch.setattr("os.open", no_terminal)
    with pytest.raises(Problem, match="person"):
        ask_secret("Passphrase: ")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "must be https"),
        ("ftp://x", "must be https"),
        ("http://[", "malformed"),
        ("http://carnet.example", "not https"),
        ("http://localhost.example:8420", "not https"),
    ],
)
def test_no_passphrase_is_asked_for_an_address_that_must_not_get_it(url: str, sentence: str) -> None:
    done = CliRunner().invoke(build(), ["login", "--operator", "ada", "--url", url])
    assert isinstance(done.exception, Problem)
    assert sentence in str(done.exception)
    assert done.exception.code is Exit.USAGE
