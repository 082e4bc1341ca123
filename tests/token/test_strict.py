"""Strict JSON: the same values as Python's parser for every plain text, nothing that two parsers could read apart."""

import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.token.strict import DuplicateMember, NotStrict, TooDeep, loads

plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=15,
)


def read(text: str | bytes, max_depth: int = 12, max_members: int = 256) -> Any:
    return loads(text.encode() if isinstance(text, str) else text, max_depth=max_depth, max_members=max_members)


@given(plain, st.booleans())
def test_plain_values_are_read_as_they_are(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert repr(read(text, max_depth=100)) == repr(value)


@given(st.text(max_size=60) | st.text('{}[]":,\\ue0159.-+ \n', max_size=60))
def test_what_it_reads_the_plain_parser_reads_too(text: str) -> None:
    try:
        value = read(text.encode("utf-8", "surrogatepass"))
    except NotStrict:
        return
    assert repr(value) == repr(json.loads(text))


def test_depth_and_members_have_exact_limits() -> None:
    assert read("[" * 12 + "]" * 12) is not None
    with pytest.raises(TooDeep):
        read("[" * 13 + "]" * 13)
    assert read('{"a":"' + "[{" * 50 + '\\"[["}') == {"a": "[{" * 50 + '"[['}
    assert len(read(json.dumps({str(n): 0 for n in range(256)}))) == 256
    with pytest.raises(TooDeep):
        read(json.dumps({str(n): 0 for n in range(257)}))
    with pytest.raises(TooDeep):
        read(json.dumps([{str(n): 0 for n in range(200)}, {str(n): 0 for n in range(57)}]))


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"a":{"b":1,"b":2}}', '[{"":1,"":2}]', '{"a":1,"\\u0061":2}'])
def test_a_member_named_twice_is_refused(text: str) -> None:
    with pytest.raises(DuplicateMember):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "-Infinity",
        "1e400",
        "-0",
        "01",
        "1.",
        ".5",
        "+1",
        "0x1",
        "'a'",
        '"a',
        '"\t"',
        '"\\x"',
        '"\\ud800"',
        '"\\ude00\\ud83d"',
        "{a:1}",
        "[1,]",
        '{"a":1,}',
        "\ufeff{}",
        "{} {}",
        "tru",
        "9" * 401,
        "0." + "9" * 401,
        b"\xff",
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        b"\xff\xfe{\x00}\x00",
    ],
)
def test_what_is_no_strict_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(NotStrict):
        read(text)


HOSTILE = {
    "a string of escaped quotes that never ends": '"' + '\\"' * 32_000,
    "quotes": '"' * 65_000,
    "backslashes": "\\" * 65_000,
    "open brackets": "[" * 65_000,
    "brackets by turns": "[]" * 32_000,
    "a long integer": "9" * 65_000,
    "a long float": "0." + "9" * 65_000,
    "a long exponent": "1e" + "9" * 65_000,
    "many long integers": "[" + ",".join(["9" * 399] * 160) + "]",
    "many equal members": "{" + ",".join(['"a":0'] * 10_000) + "}",
    "many surrogate escapes": '["' + "\\ud83d\\ude00" * 5_000 + '"]',
    "commas": "," * 65_000,
    "blanks": " " * 65_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_of_64_kibibytes_costs_at_most_fifty_milliseconds(name: str) -> None:
    spent = []
    for _ in range(3):
        began = time.thread_time()
        with suppress(NotStrict):
            read(HOSTILE[name], max_depth=16, max_members=65_536)
        spent.append(time.thread_time() - began)
    assert min(spent) <= 0.050
