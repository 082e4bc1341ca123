"""The audit record: one line per decision, allow and deny alike, and the hash that links lines into a chain.

Arguments appear as HMAC digests under a key of the host; only fields on the host's allow-list appear in clear. The
record is made by whoever decides and is stored in the commit of the thing that it records.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from json.encoder import encode_basestring
from typing import Any

__all__ = ["GENESIS", "ArgumentKey", "Kind", "Record", "argument_digests", "canonical", "clear_fields", "link"]

GENESIS = "0" * 64  # what the first record of a tenant is linked to
# Made once, because making it costs more than encoding a small value.
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_BLOCK = 64  # bytes of a SHA-256 block


class Kind:
    """Event words of records. Constants, so that a typo is an error and not a new event."""

    RUN_OPENED = "run_opened"
    RUN_RENEWED = "run_renewed"
    SPAWNED = "spawned"
    SPAWN_REFUSED = "spawn_refused"
    MINTED = "minted"
    MINT_REFUSED = "mint_refused"
    ANSWERED = "answered"
    ANSWER_REFUSED = "answer_refused"
    CALL_DECIDED = "call_decided"
    CALL_INTENT = "call_intent"
    CALL_OUTCOME = "call_outcome"
    REVOKED = "revoked"
    REVOKE_REFUSED = "revoke_refused"
    ENDED = "ended"
    TIMED_OUT = "timed_out"
    LAPSED = "lapsed"
    SUPERSEDED = "superseded"
    OUTCOME_UNKNOWN = "outcome_unknown"
    POLICY_CHANGED = "policy_changed"
    KEY_ROTATED = "key_rotated"
    INTROSPECTED = "introspected"
    LOGGED_IN = "logged_in"
    LOGIN_REFUSED = "login_refused"
    JOURNAL_GAP = "journal_gap"
    UNGUARDED = "unguarded"
    INITIALISED = "initialised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One audit line. seq is contiguous per tenant and given by the store; 0 = not stored yet. at: Unix seconds."""

    at: int
    tenant: str
    kind: str
    actor: str  # "agent:<name>", "operator:<name>", "guard:<client>", "policy:<id>@<version>", "broker"
    seq: int = 0
    run: str | None = None
    delegation: str | None = None
    chain: tuple[tuple[str, str, str], ...] = ()
    agent: str | None = None
    client: str | None = None
    host: str | None = None
    guard: str | None = None
    target: str | None = None  # the agent a spawn named
    tool: str | None = None
    args: Mapping[str, str] = field(default_factory=dict)  # argument name -> HMAC digest
    clear: Mapping[str, Any] = field(default_factory=dict)
    resource: tuple[str, ...] = ()
    policy: Mapping[str, Any] | None = None  # {id, version, digest}
    rule: str | None = None
    decision: str | None = None  # allow | deny | require_approval | approve | withdraw | ...
    reason: str | None = None
    detail: str = ""
    approval: str | None = None
    call: str | None = None
    mark: str | None = None
    cause: str | None = None  # the mark or event that made this happen
    level: int | None = None
    trace_id: str = ""
    outcome: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # event-specific: stated and known facts, counts, ids


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no white space: what is hashed and signed."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value).encode()
    return b"%d" % value if kind is int else _encode(value).encode()


def link(previous: str, record: Record | Mapping[str, Any]) -> str:
    """Hash of a record with the hash before it (hex SHA-256). Any edit, gap or swap changes every later hash."""
    body = asdict(record) if isinstance(record, Record) else record
    return hashlib.sha256(previous.encode() + b"\x00" + canonical(body)).hexdigest()


class ArgumentKey:
    """A host's key for the digests of arguments: HMAC-SHA256 (RFC 2104) with the two blocks of the key hashed once and
    for all, which halves what a digest of a short value costs. Its repr says nothing."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\x00")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def digest(self, name: str, value: Any) -> str:
        """The digest of one argument, as in `argument_digests`."""
        inner, outer = self._inner.copy(), self._outer.copy()
        if type(value) is str:  # canonical(value) without a call: most arguments are strings
            inner.update(f"{name}\x00{encode_basestring(value)}".encode())
        else:
            inner.update(b"%b\x00%b" % (name.encode(), canonical(value)))
        outer.update(inner.digest())
        return outer.hexdigest()[:32]


def argument_digests(key: bytes, args: Mapping[str, Any]) -> dict[str, str]:
    """Per argument the first 128 bits of HMAC-SHA256(key, name NUL canonical value), in hex: equal values compare equal
    inside one host, and nobody without the key can test a guess."""
    digest = ArgumentKey(key).digest
    return {name: digest(name, value) for name, value in args.items()}


def clear_fields(allowed: Collection[str], tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the host's allow-list lets stand in clear: an entry is `argument`, for each tool of the host,
    or `tool.argument`. An argument with a dot in its name needs the second form: so none is another tool's."""
    return {
        name: value
        for name, value in args.items()
        if f"{tool}.{name}" in allowed or (name in allowed and "." not in name)
    }
