"""W3C Trace Context: `traceparent` in, a child span out. For correlation only: nothing is ever authorised by it.

Ids that callers send are untrusted; a malformed header is ignored and never echoed, and then a new trace starts. Random
ids are arguments.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Trace", "child", "extract", "parse", "start"]

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
_LENGTH = 55
_SAMPLED, _RANDOM = 1, 2
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]")
_MAX_MEMBERS = 32
_MAX_STATE = 512  # characters that are passed on; the oldest members go first
_LONG_MEMBER = 128


@dataclass(frozen=True, slots=True)
class Trace:
    """One span's place: trace id (32 hex), span id (16 hex), the two flags that we know, vendors' state."""

    trace_id: str
    span_id: str
    sampled: bool = True
    random: bool = False
    state: str = ""

    def header(self) -> str:
        """The traceparent to send, version 00. Flags that we do not know are sent as 0."""
        flags = (_SAMPLED if self.sampled else 0) | (_RANDOM if self.random else 0)
        return f"00-{self.trace_id}-{self.span_id}-{flags:02x}"


def start(trace_id: str, span_id: str, *, sampled: bool = True, random: bool = False) -> Trace:
    """A new trace. random: the trace id's last 7 bytes are uniformly random. Raises ValueError for ids of bad form."""
    if _TRACE_ID.fullmatch(trace_id) is None or _SPAN_ID.fullmatch(span_id) is None:
        raise ValueError("a trace id has 32 and a span id 16 lowercase hex digits, not all zero")
    return Trace(trace_id, span_id, sampled, random)


def child(trace: Trace, span_id: str) -> Trace:
    """The next span of the same trace. Raises ValueError for an id of bad form."""
    if _SPAN_ID.fullmatch(span_id) is None:
        raise ValueError("a span id has 16 lowercase hex digits, not all zero")
    return replace(trace, span_id=span_id)


def parse(header: str | None, state: str | None = None) -> Trace | None:
    """The sender's span, or None: then a new trace starts. A bad tracestate is dropped and spoils nothing."""
    if header is None:
        return None
    text = header.strip(" \t")
    match = _PARENT.match(text)
    if match is None:
        return None
    version, trace_id, span_id, flags = match.groups()
    known = len(text) == _LENGTH if version == "00" else text[_LENGTH : _LENGTH + 1] in ("", "-")
    if version == "ff" or not known or not _TRACE_ID.fullmatch(trace_id) or not _SPAN_ID.fullmatch(span_id):
        return None
    bits = int(flags, 16)
    return Trace(trace_id, span_id, bool(bits & _SAMPLED), bool(bits & _RANDOM), _state(state or ""))


def extract(parents: Sequence[str], states: Sequence[str] = ()) -> Trace | None:
    """From all headers of these names, in order: several traceparent headers restart, several tracestate are joined."""
    return parse(parents[0], ",".join(states)) if len(parents) == 1 else None


def _state(text: str) -> str:
    members = [member for member in (part.strip(" \t") for part in text.split(",")) if member]
    keys = {member.partition("=")[0] for member in members}
    if len(members) > _MAX_MEMBERS or len(keys) != len(members):
        return ""
    if any(_MEMBER.fullmatch(member) is None for member in members):
        return ""
    return ",".join(_fitting(members))


def _fitting(members: list[str]) -> list[str]:
    """Whole members only: long ones go first, then the oldest, which stand last."""
    if sum(map(len, members)) + len(members) > _MAX_STATE:
        members = [member for member in members if len(member) <= _LONG_MEMBER]
    while sum(map(len, members)) + len(members) > _MAX_STATE:
        members = members[:-1]
    return members
