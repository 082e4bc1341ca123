"""One token has one spelling: base64url without padding, without foreign characters, with unused bits that are zero."""

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.reasons import Refusal
from carnet.token.gate import split

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def spelled(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def opened(segment: str) -> bytes | None:
    found = [split(f"{segment}.YQ.YQ"), split(f"YQ.{segment}.YQ"), split(f"YQ.YQ.{segment}")]
    if any(isinstance(one, Refusal) for one in found):
        assert all(isinstance(one, Refusal) for one in found)
        return None
    values = {one[index] for index, one in enumerate(found) if not isinstance(one, Refusal)}
    assert len(values) == 1
    return values.pop()


@given(st.binary(min_size=1, max_size=70))
def test_what_was_encoded_is_decoded(raw: bytes) -> None:
    assert opened(spelled(raw)) == raw
    parts = split(f"{spelled(raw)}.{spelled(raw)}.YQ")
    assert not isinstance(parts, Refusal)
    assert parts.signed == f"{spelled(raw)}.{spelled(raw)}".encode()


@pytest.mark.parametrize("length", range(1, 10))
def test_only_the_spelling_that_encoding_gives_is_taken(length: int) -> None:
    usual = spelled(bytes(range(250, 250 - length, -1)))
    taken = [last for last in ALPHABET if opened(usual[:-1] + last) is not None]
    assert len(taken) == {0: 64, 1: 4, 2: 16}[length % 3]
    for last in taken:
        raw = opened(usual[:-1] + last)
        assert raw is not None
        assert spelled(raw) == usual[:-1] + last


@pytest.mark.parametrize("length", range(1, 12))
def test_one_foreign_character_anywhere_is_refused(length: int) -> None:
    usual = ("QUJD" * 3)[:length]
    foreign = [chr(code) for code in range(0x180) if chr(code) not in ALPHABET] + ["\u2028", "\ud800", "\uff21", "😀"]
    for at in range(length + 1):
        for char in foreign:
            assert opened(usual[:at] + char + usual[at:]) is None
            assert opened(usual[:at] + char + usual[at + 1 :]) is None


@pytest.mark.parametrize("segment", ["", "A", "QUJDR", "QUI=", "QQ==", "=", "QUJD=", "QU==", " QQ", "QQ\n"])
def test_empty_torn_and_padded_segments_are_refused(segment: str) -> None:
    assert opened(segment) is None
