"""`replay`: a candidate policy over decisions that were made, and which of them it would have made otherwise.

The past of each call is what was recorded, in order, run by run and client by client; what the candidate would have
stopped earlier still counts. Where the record shows only digests, the answer may be "unknown".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from carnet_policy.decision import Call, Effect
from carnet_policy.engine import evaluate
from carnet_policy.partial import possible_effects
from carnet_policy.policy import Policy
from carnet_policy.reconstructing import Pasts
from carnet_policy.recorded import Recorded, in_order, recorded_call

__all__ = ["Flip", "Replay", "replay"]


@dataclass(frozen=True, slots=True)
class Flip:
    """Decisions that the candidate turns alike: how many, and the first of them. `after` holds more than one effect
    where it is certain that the decision changes, and not to which. `rule` is the candidate's, where known."""

    tool: str
    before: Effect
    after: frozenset[Effect]
    old_rule: str | None
    rule: str | None
    reason: str | None
    count: int
    example: Recorded

    @property
    def word(self) -> str:
        """`allow -> deny`."""
        return f"{self.before} -> {' or '.join(sorted(self.after))}"


@dataclass(frozen=True, slots=True)
class Replay:
    """`same` decisions stay; `unknown` can not be told, per tool and hidden arguments; `elsewhere` were not the
    policy's, per reason."""

    same: int
    flips: tuple[Flip, ...]
    unknown: Mapping[tuple[str, tuple[str, ...]], int]
    elsewhere: Mapping[str, int]

    @property
    def flipped(self) -> int:
        return sum(flip.count for flip in self.flips)


@dataclass(slots=True)
class _Counts:
    same: int = 0
    flips: dict[tuple[object, ...], Flip] = field(default_factory=dict)
    unknown: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)


def replay(policy: Policy, records: Iterable[Mapping[str, object]]) -> Replay:
    """The candidate `policy` over the records of an export, in any order: they are sorted by time and number."""
    ordered = in_order(records)
    pins = _Pins()
    for record in ordered:
        pins.note(record)
    pasts, counts, asked = Pasts(policy), _Counts(), set[str]()
    for record in ordered:
        call = recorded_call(record)
        if call is None:
            pasts.settle(record)
            continue
        # A call that waits is on record again each time it is asked for, and when its approval is spent.
        if not (call.call and call.call in asked):
            _judge(policy, pasts, pins.of(call), call, counts)
        asked.add(call.call)
        pasts.put(call)
    flips = sorted(counts.flips.values(), key=lambda flip: (-flip.count, flip.word, flip.tool))
    return Replay(counts.same, tuple(flips), dict(counts.unknown), dict(counts.elsewhere))


def _judge(policy: Policy, pasts: Pasts, pinned: bool | None, call: Recorded, counts: _Counts) -> None:
    if not call.by_policy:
        counts.elsewhere[call.reason] += 1
        return
    bounds = pasts.bounds(call)
    found = possible_effects(policy, call.tool, call.known, call.hidden, bounds, pinned)
    if found == {call.effect}:
        counts.same += 1
    elif call.effect in found:
        counts.unknown[call.tool, tuple(sorted(call.hidden))] += 1
    else:
        _flip(found, _why(policy, call, found, bounds), call, counts)


def _flip(found: frozenset[Effect], why: tuple[str | None, str | None], call: Recorded, counts: _Counts) -> None:
    rule, reason = why
    key = (call.tool, call.effect, found, call.rule, rule)
    known = counts.flips.get(key)
    if known is not None:
        counts.flips[key] = replace(known, count=known.count + 1)
        return
    counts.flips[key] = Flip(call.tool, call.effect, found, call.rule, rule, reason, 1, call)


def _why(
    policy: Policy, call: Recorded, found: frozenset[Effect], bounds: Sequence[frozenset[Effect | None]]
) -> tuple[str | None, str | None]:
    """The candidate's rule and reason, where one alone is enough for what it says."""
    if not call.hidden:
        decision = evaluate(policy, Call(call.tool, call.known), None)
        if found == {decision.effect}:
            return decision.rule, decision.reason
    for rule, bound in zip(policy.bounding(call.tool), bounds, strict=True):
        if bound == found:
            return rule.name, "history_limit"
    return None, None


class _Pins:
    """Which delegations may pin which tools, from the records of their spawning. Whether a ceiling bounds enough to pin
    depends on the policy in force, so only "no" is certain."""

    def __init__(self) -> None:
        self._maybe: dict[str, frozenset[str]] = {}

    def note(self, record: Mapping[str, object]) -> None:
        facts, id = record.get("facts"), record.get("delegation")
        envelope = facts.get("envelope") if record.get("kind") == "spawned" and isinstance(facts, dict) else None
        if isinstance(envelope, dict) and isinstance(id, str):
            ceilings = envelope.get("ceilings") if envelope.get("approval_required") is True else None
            entries = ceilings.items() if isinstance(ceilings, dict) else ()
            self._maybe[id] = frozenset(tool for tool, one in entries if isinstance(one, dict) and "max_calls" in one)

    def of(self, call: Recorded) -> bool | None:
        """False, or None where it can not be told."""
        tools = self._maybe.get(call.delegation)
        return False if call.reason == "irreversible_floor" or (tools is not None and call.tool not in tools) else None
