"""What an agent wrote can neither move the cursor nor reorder or hide anything on an operator's screen."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.cli.output import table
from carnet.cli.visible import compact, visible


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
        ("pay\u202e05", "pay\\u{202e}05"),
        ("x\u200by", "x\\u{200b}y"),
        ("line\nbreak", "line\\u{a}break"),
        ("plain ä 漢 🙂", "plain ä 漢 🙂"),
    ],
)
def test_tricks_are_shown_as_escapes(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_containers_are_shown_as_json_with_escapes() -> None:
    assert compact({"b": [1, "\x07"], "a": None}) == '{"a": null, "b": [1, "\\u0007"]}'


def test_a_table_never_reads_markup_from_outside(capsys: pytest.CaptureFixture[str]) -> None:
    table("T", ["name"], [["[bold red]deny[/]"]])
    assert "[bold red]deny[/]" in capsys.readouterr().out


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table("Approvals", ["id"], [])
    assert capsys.readouterr().out == "Approvals: none\n"
