"""A pattern as `like` patterns of Cedar, which know literal text and `*` for any text, and nothing else."""

from __future__ import annotations

from itertools import product

from carnet_policy.export.regex import Cat, Chars, Choice, Node, Repeat
from carnet_policy.export.unmapped import CanNotMap

__all__ = ["Like", "likes_of", "likes_of_text"]

MOST = 64  # patterns that one regex may be written out as
Like = tuple[str | None, ...]  # literal characters; None = any text


def likes_of(regex: Node) -> tuple[Like, ...]:
    """The patterns of which one must match. Errors: CanNotMap."""
    if isinstance(regex, Chars):
        found = _letters(regex)
    elif isinstance(regex, Choice):
        found = tuple(like for branch in regex.branches for like in likes_of(branch))
    elif isinstance(regex, Cat):
        found = _joined([likes_of(part) for part in regex.parts])
    else:
        found = _repeated(regex)
    if len(found) > MOST:
        raise _too_much()
    return tuple(dict.fromkeys(found))


def likes_of_text(text: str) -> tuple[Like, ...]:
    """The one pattern that is this text; Cedar can say every text."""
    return (tuple(text),)


def _letters(node: Chars) -> tuple[Like, ...]:
    if node.negated or sum(high - low + 1 for low, high in node.ranges) > MOST:
        raise _too_much()
    return tuple((chr(point),) for low, high in node.ranges for point in range(low, high + 1))


def _repeated(node: Repeat) -> tuple[Like, ...]:
    if node.part == Chars((), negated=True) and (node.low, node.high) == (0, None):
        return ((None,),)
    if node.high is None or node.high > MOST:
        raise _too_much()
    found: list[Like] = []
    once = likes_of(node.part)
    for count in range(node.low, node.high + 1):
        found += _joined([once] * count)
    return tuple(found)


def _joined(parts: list[tuple[Like, ...]]) -> tuple[Like, ...]:
    size = 1
    for part in parts:
        size *= len(part)
        if size > MOST:
            raise _too_much()
    return tuple(tuple(step for like in likes for step in like) for likes in product(*parts))


def _too_much() -> CanNotMap:
    return CanNotMap(
        "its pattern does not map: Cedar has no regular expressions, only like with literal text and * for (?s).*",
        "pattern",
    )
