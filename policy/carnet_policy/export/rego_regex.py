"""A pattern for `regex.match` of Rego engines.

OPA matches with RE2 over characters, rego-cpp with the C++ library over the bytes of UTF-8. Both give the same answer
where each single item is ASCII or a fixed text, and where an item that takes letters outside ASCII is repeated without
end: then it does not matter whether it takes a letter or its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from carnet_policy.export.regex import Cat, Chars, Choice, Node, Repeat
from carnet_policy.export.unmapped import CanNotMap

__all__ = ["check_rego_text", "rego_regex"]

MOST_LETTERS = 64  # of a class outside ASCII, written out one by one
MOST_TIMES = 1000  # all repetitions together; engines refuse or exhaust themselves beyond
_CONTROLS = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\f": r"\f", "\v": r"\v"}


def rego_regex(regex: Node) -> str:
    """Errors: CanNotMap."""
    wide = sum(1 for _ in _wide(regex))
    times = sum(found.high or found.low for found in _repeats(regex))
    if times > MOST_TIMES:
        raise CanNotMap(f"the repetitions of its pattern go beyond {MOST_TIMES} together; use max_length", "pattern")
    return f"^(?:{_text(regex, lone=wide == 1)})$"


def check_rego_text(text: str) -> None:
    """Errors: CanNotMap for what not all engines compare alike: rego-cpp holds these characters in two spellings."""
    if any(char in '"\\' or char < " " or char == "\x7f" for char in text):
        raise CanNotMap('a text with ", \\ or control characters does not map: Rego engines compare it differently')


def _text(node: Node, *, lone: bool) -> str:
    """lone: the one wide item is not inside of a repetition so far."""
    if isinstance(node, Cat):
        return "".join(_grouped(part, lone=lone) for part in node.parts)
    if isinstance(node, Choice):
        return "|".join(_text(branch, lone=lone) for branch in node.branches)
    if isinstance(node, Repeat):
        if isinstance(node.part, Chars) and node.part.negated:
            return _endless(node, node.part, lone=lone)
        return f"{_grouped(node.part, lone=False, single=True)}{_times(node)}"
    if node.negated:
        raise CanNotMap(
            "its pattern takes a letter outside ASCII one at a time, which engines count differently; "
            "repeat it with * or list the characters",
            "pattern",
        )
    return _chars(node)


def _endless(node: Repeat, part: Chars, *, lone: bool) -> str:
    if node.high is not None or node.low > (1 if lone else 0):
        raise CanNotMap(
            "its pattern counts letters outside ASCII, which engines do differently; use * and max_length",
            "pattern",
        )
    if any(high > 0x7F for _, high in part.ranges):
        raise CanNotMap(
            "its pattern excludes letters outside ASCII, which does not map; list what may stand", "pattern"
        )
    inner = "".join(_range(low, high) for low, high in part.ranges)
    return (f"[^{inner}]" if inner else r"[\s\S]") + ("+" if node.low else "*")


def _grouped(node: Node, *, lone: bool, single: bool = False) -> str:
    text = _text(node, lone=lone)
    whole = isinstance(node, Chars) or (isinstance(node, Repeat | Cat) and not single)
    return text if whole else f"(?:{text})"


def _times(node: Repeat) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.low, node.high))
    if short is not None:
        return short
    if node.high is None:
        return f"{{{node.low},}}"
    return f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{node.high}}}"


def _chars(node: Chars) -> str:
    if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        text = _char(node.ranges[0][0])
        return text if node.ranges[0][0] < 0x80 else f"(?:{text})"
    letters = sum(max(0, high - max(low, 0x80) + 1) for low, high in node.ranges)
    if letters > MOST_LETTERS:
        raise CanNotMap("a class in its pattern holds many letters outside ASCII, which does not map", "pattern")
    plain = "".join(_range(low, min(high, 0x7F)) for low, high in node.ranges if low < 0x80)
    others = [_char(point) for low, high in node.ranges for point in range(max(low, 0x80), high + 1)]
    return f"[{plain}]" if not others else f"(?:{'|'.join([f'[{plain}]'] * bool(plain) + others)})"


def _range(low: int, high: int) -> str:
    """A range of ASCII, split around the control characters that can not be written."""
    return _char(low) if low == high else f"{_char(low)}-{_char(high)}"


def _char(point: int) -> str:
    char = chr(point)
    if char in _CONTROLS:
        return _CONTROLS[char]
    if point < 0x20 or point == 0x7F or 0xD800 <= point <= 0xDFFF:
        raise CanNotMap("a control character in its pattern does not map", "pattern")
    return char if point > 0x7F or char.isalnum() or char in "_ " else f"\\{char}"


def _wide(node: Node) -> Iterator[Chars]:
    if isinstance(node, Chars):
        if node.negated:
            yield node
        return
    parts = node.parts if isinstance(node, Cat) else node.branches if isinstance(node, Choice) else (node.part,)
    for part in parts:
        yield from _wide(part)


def _repeats(node: Node) -> Iterator[Repeat]:
    if isinstance(node, Repeat):
        yield node
    parts: tuple[Node, ...] = ()
    if isinstance(node, Cat):
        parts = node.parts
    elif isinstance(node, Choice):
        parts = node.branches
    elif isinstance(node, Repeat):
        parts = (node.part,)
    for part in parts:
        yield from _repeats(part)
