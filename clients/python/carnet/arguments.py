"""Arguments of a tool call: strict JSON in, one canonical form (`carnet-args-1`), one digest that approvals bind to.

Canonical form: UTF-8 JSON, members sorted by code point, no white space, minimal escapes; strings unchanged (no Unicode
normalisation); integers as decimals below 2^53; floats finite, shortest round-trip form, always with "." or "e" (as
Python's repr writes them), so 1 and 1.0 differ; minus zero, lone surrogates and what is not of JSON's own types are
refused; depth at most 16, at most 64 KiB. Two calls have one digest only if the tool gets the very same values.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from math import copysign, isfinite
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet.token.strict import DuplicateMember, NotStrict, TooDeep, loads

__all__ = ["MAX_BYTES", "MAX_DEPTH", "canonical", "digest", "parse"]

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16  # of nested objects and arrays, the arguments themselves being the first
_SAFE = 2**53
_LABEL = b"carnet-args-1\x00"


def parse(raw: bytes | str) -> dict[str, Any] | Refusal:
    """The arguments as they arrive on the wire: one strict JSON object."""
    try:
        data = raw.encode("utf-8", "strict") if isinstance(raw, str) else raw
    except UnicodeEncodeError:
        return Refusal(Reason.ARGUMENTS_INVALID, "a string holds half a surrogate pair")
    if len(data) > MAX_BYTES:
        return Refusal(Reason.ARGUMENTS_TOO_LARGE)
    try:
        value = loads(data, max_depth=MAX_DEPTH, max_members=MAX_BYTES)
    except DuplicateMember:
        return Refusal(Reason.ARGUMENTS_DUPLICATE)
    except TooDeep as fault:
        return Refusal(Reason.ARGUMENTS_TOO_LARGE, f"the arguments are {fault}")
    except NotStrict as fault:
        return Refusal(Reason.ARGUMENTS_INVALID, f"the arguments are malformed: {fault}")
    if type(value) is not dict:
        return Refusal(Reason.ARGUMENTS_INVALID, "the arguments are no JSON object")
    return value


def canonical(args: Mapping[str, Any]) -> bytes | Refusal:
    """The canonical bytes. Only dict, list, str, int, float, bool and None, exactly these types, are JSON values."""
    if type(args) is not dict:
        return Refusal(Reason.ARGUMENTS_INVALID, "the arguments are no JSON object")
    refused = _Walk().object(args, 1)
    if refused is not None:
        return refused
    try:
        made = json.dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return Refusal(Reason.ARGUMENTS_INVALID, "a string holds half a surrogate pair")
    return made if len(made) <= MAX_BYTES else Refusal(Reason.ARGUMENTS_TOO_LARGE)


def digest(
    tenant: str, run: str, delegation: str, host: str, tool: str, policy_digest: str, args: Mapping[str, Any]
) -> str | Refusal:
    """Hex SHA-256 over `carnet-args-1`, NUL and the seven parts, each after its length in 4 bytes, big-endian."""
    body = canonical(args)
    if isinstance(body, Refusal):
        return body
    summed = sha256(_LABEL)
    try:
        parts = [part.encode() for part in (tenant, run, delegation, host, tool, policy_digest)]
    except UnicodeEncodeError:
        return Refusal(Reason.ARGUMENTS_INVALID, "a name holds half a surrogate pair")
    for part in (*parts, body):
        summed.update(len(part).to_bytes(4, "big"))
        summed.update(part)
    return summed.hexdigest()


class _Walk:
    """One pass over a value, bounded in depth (so a cycle ends) and in number of values."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_BYTES  # each value has at least one byte

    def object(self, value: Mapping[Any, Any], depth: int) -> Refusal | None:
        if depth > MAX_DEPTH:
            return Refusal(Reason.ARGUMENTS_TOO_LARGE, "the arguments are nested too deep")
        for name, member in value.items():
            if type(name) is not str:
                return Refusal(Reason.ARGUMENTS_INVALID, "a member's name is no string")
            refused = self.value(member, depth)
            if refused is not None:
                return refused
        return None

    def array(self, value: list[Any], depth: int) -> Refusal | None:
        if depth > MAX_DEPTH:
            return Refusal(Reason.ARGUMENTS_TOO_LARGE, "the arguments are nested too deep")
        for member in value:
            refused = self.value(member, depth)
            if refused is not None:
                return refused
        return None

    def value(self, value: Any, depth: int) -> Refusal | None:
        self.left -= 1
        if self.left < 0:
            return Refusal(Reason.ARGUMENTS_TOO_LARGE)
        kind = type(value)
        if kind is dict:
            return self.object(value, depth + 1)
        if kind is list:
            return self.array(value, depth + 1)
        return _scalar(value, kind)


def _scalar(value: Any, kind: type) -> Refusal | None:
    if kind is int and not -_SAFE < value < _SAFE:
        return Refusal(Reason.ARGUMENTS_INVALID, "an integer is not below 2^53")
    if kind is float and not isfinite(value):
        return Refusal(Reason.ARGUMENTS_INVALID, "a number is not finite")
    if kind is float and value == 0 and copysign(1, value) < 0:
        return Refusal(Reason.ARGUMENTS_INVALID, "minus zero is refused")
    if kind in (str, int, float, bool) or value is None:
        return None
    return Refusal(Reason.ARGUMENTS_INVALID, f"a value of type {kind.__name__} is no JSON value")
