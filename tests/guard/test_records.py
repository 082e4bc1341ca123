"""The lines of the local lane: made from parts that were encoded before, and still the JSON that they say."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.audit import ArgumentKey, argument_digests, canonical, clear_fields
from carnet.guard.book import Book, read_book
from carnet.guard.journalfile import JournalFile, encode_line, read_lines
from carnet.guard.records import decided
from carnet_policy import loads
from tests.token.making import child

KEY = b"key" * 10
POLICY = "id: p\nversion: 1\ndefaults: {decision: deny}\ntools: {read_ticket: [{decision: allow}]}\n"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


def book(*clear: str) -> Book:
    digest = loads([("p.yaml", POLICY)]).ref.digest
    host = {
        "name": "crm", "tenant": "acme", "issuer": "https://broker.example", "audience": "https://crm.example",
        "tools": ["read_ticket"], "effects": {"read_ticket": {"effect": "read", "resource_arg": None}},
        "staleness": {"0": 1, "1": 1}, "clear_fields": list(clear), "audit_key": "a2V5" * 10,
    }  # fmt: skip
    return read_book({"digest": digest, "documents": [{"name": "p.yaml", "text": POLICY}], "host": host})


BOOK = book("note")


def line(args: dict[str, Any], detail: str = "read_ticket[0] allows it", rule: str | None = "read_ticket[0]") -> str:
    return decided(
        BOOK, child(), kind="call_intent", call="call_1", at=1_800_000_001, tool="read_ticket", args=args,
        decision="allow", reason="policy_allow", detail=detail, rule=rule, trace_id="",
    )  # fmt: skip


@given(ARGUMENTS, st.text(), st.none() | st.text())
def test_a_line_is_the_json_of_what_was_decided(args: dict[str, Any], detail: str, rule: str | None) -> None:
    about, ref = child().delegation, BOOK.policy.ref
    for _ in range(2):  # the second is made from what the first left
        said = json.loads(line(args, detail, rule))
        assert said["args"] == argument_digests(KEY, args)
        assert said["clear"] == {name: value for name, value in args.items() if name == "note"}
        assert (said["detail"], said["rule"], said["reason"]) == (detail, rule, "policy_allow")
        assert (said["kind"], said["call"], said["at"]) == ("call_intent", "call_1", 1_800_000_001)
        assert (said["run"], said["delegation"], said["agent"]) == (child().txn, about.id, about.agent)
        assert said["chain"] == [list(link) for link in about.chain]
        assert said["policy"] == {"id": ref.id, "version": ref.version, "digest": ref.digest}
        assert (said["host"], said["tool"], said["level"]) == ("crm", "read_ticket", about.level)
        assert said["trace_id"] == about.trace_id


def test_a_written_line_is_read_as_what_it_says(tmp_path: Path) -> None:
    file = JournalFile(tmp_path, "a" * 32)
    made = [line({"note": "ä\u2028\n", "n": 1}), line({})]
    records: list[dict[str, Any] | str] = [*made, {"kind": "call_outcome"}]
    file.write(records)
    read = list(read_lines(file.path))
    assert [(number, record) for number, record, _ in read] == [
        (1, json.loads(made[0])), (2, json.loads(made[1])), (3, {"kind": "call_outcome"}),
    ]  # fmt: skip
    lines = [encode_line(number, record) for number, record in enumerate(records, 1)]
    assert file.path.read_bytes() == b"".join(lines)
    file.close()


def test_one_line_never_shows_another_calls_decision() -> None:
    shown = [json.loads(line({}, detail, rule)) for detail in ("a", "b") for rule in ("r[0]", "r[1]", None)]
    assert [(one["detail"], one["rule"]) for one in shown] == [
        (detail, rule) for detail in ("a", "b") for rule in ("r[0]", "r[1]", None)
    ]


@given(VALUES)
def test_the_quick_ways_to_encode_give_the_same_bytes(value: Any) -> None:
    usual = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    assert canonical(value) == usual


@pytest.mark.parametrize("value", ["\ud800", float("nan"), float("inf"), {1, 2}, {"a": "\udfff"}])
def test_what_has_no_canonical_form_still_has_none(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical(value)


@given(st.binary(max_size=200), ARGUMENTS)
def test_digests_are_hmac_sha256(key: bytes, args: dict[str, Any]) -> None:
    made = ArgumentKey(key)
    for name, value in args.items():
        data = name.encode() + b"\x00" + canonical(value)
        assert made.digest(name, value) == hmac.new(key, data, hashlib.sha256).hexdigest()[:32]
    assert argument_digests(key, args) == {name: made.digest(name, value) for name, value in args.items()}


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(ArgumentKey(b"secret")) + repr(BOOK)


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ("note", {"note"}),
        ("read_ticket.note", {"note"}),
        ("read_ticket.a.b", {"a.b"}),
        ("write_ticket.note", set()),
        ("a.b", set()),  # of a tool a, not the argument of this name
        ("read_ticket", set()),
    ],
)
def test_an_argument_stands_in_clear_by_its_name_or_with_its_tool(entry: str, shown: set[str]) -> None:
    args = {"note": "x", "a.b": 1, "b": 2}
    made = decided(
        book(entry), child(), kind="call_intent", call="call_1", at=1_800_000_001, tool="read_ticket", args=args,
        decision="allow", reason="policy_allow", detail="", rule=None, trace_id="",
    )  # fmt: skip
    assert (
        json.loads(made)["clear"] == {name: args[name] for name in shown} == clear_fields({entry}, "read_ticket", args)
    )
