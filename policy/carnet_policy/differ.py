"""`diff`: the calls that two policies answer differently, found among calls at the edges of both.

It is a search, not a proof: a change between two edges that neither policy names is not seen. What could not be probed
is told. Beside decisions it compares the facts that decide elsewhere: effects, data classes, approvals.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from carnet_policy.decision import Call, Decision, Effect
from carnet_policy.engine import evaluate
from carnet_policy.facts_diff import FactChange, compare_facts
from carnet_policy.folds import Ledger
from carnet_policy.policy import NO_RULES, Policy
from carnet_policy.probing import ProbePast, probe_calls, probe_pasts
from carnet_policy.tables.run import ledger_of

__all__ = ["Change", "Difference", "diff"]

STRICTNESS = {Effect.ALLOW: 0, Effect.REQUIRE_APPROVAL: 1, Effect.DENY: 2}
NOBODY = "a_tool_that_no_policy_names"

Schema = Mapping[str, Sequence[object]]


@dataclass(frozen=True, slots=True)
class Change:
    """Calls of one tool whose decision changes alike: how many of those tried, and the smallest of them."""

    tool: str
    before: Decision
    after: Decision
    count: int
    call: Call
    past: ProbePast

    @property
    def wider(self) -> bool:
        """Whether the new policy is less strict."""
        return STRICTNESS[self.after.effect] < STRICTNESS[self.before.effect]

    @property
    def word(self) -> str:
        """`deny -> allow`."""
        return f"{self.before.effect} -> {self.after.effect}"


@dataclass(frozen=True, slots=True)
class Difference:
    """`tried` calls were compared; of `alike` tools nothing that decides differs, so none were; `blind` tells what
    could not be tried."""

    changes: tuple[Change, ...]
    facts: tuple[FactChange, ...]
    tried: int
    alike: int
    blind: tuple[str, ...]

    @property
    def wider(self) -> bool:
        """Whether anything got less strict."""
        return any(change.wider for change in self.changes) or any(fact.wider for fact in self.facts)


def diff(old: Policy, new: Policy, schemas: Mapping[str, Schema] | None = None, only: Iterable[str] = ()) -> Difference:
    """Compare two policies. `schemas`: per tool further arguments with values worth trying; `only`: these tools."""
    schemas = schemas or {}
    chosen = frozenset(only)
    tools = [tool for tool in _tools(old, new, schemas) if not chosen or tool in chosen]
    changes: list[Change] = []
    blind: list[str] = []
    tried = 0
    probed = [tool for tool in tools if not _alike(old, new, tool)]
    for tool in probed:
        search = _Search(old, new, tool)
        tried += search.run(schemas.get(tool, {}))
        changes += search.changes()
        blind += [f"{tool}: {words}" for words in search.blind]
    changes.sort(key=lambda change: (-int(change.wider), change.word, change.tool))
    alike = len(tools) - len(probed)
    return Difference(tuple(changes), compare_facts(old, new, tools), tried, alike, tuple(dict.fromkeys(blind)))


def _alike(old: Policy, new: Policy, tool: str) -> bool:
    """Whether everything that a decision about the tool depends on is the same text."""
    return _ground(old, tool) == _ground(new, tool)


def _ground(policy: Policy, tool: str) -> tuple[object, ...]:
    rules = [json.dumps(rule.part.value, sort_keys=True) for rule in policy.tools.get(tool, NO_RULES).rules]
    catalog = policy.catalog
    bounds = [rule.id for rule in policy.bounding(tool)]
    # A bound over irreversible tools counts other tools too, so which those are matters.
    unsafe = None if catalog is None or not bounds else frozenset(name for name in catalog if policy.irreversible(name))
    return rules, bounds, unsafe, catalog is None, policy.irreversible(tool), policy.default


def _tools(old: Policy, new: Policy, schemas: Mapping[str, Schema]) -> list[str]:
    found: dict[str, None] = {}
    for policy in (old, new):
        found |= dict.fromkeys([*policy.tools, *(policy.catalog or {})])
        found |= dict.fromkeys(rule.tool for rule in policy.history if rule.tool is not None)
    return [*dict.fromkeys([*found, *schemas]), NOBODY]


class _Search:
    """One tool. Collects per kind of change the number of calls and the smallest call."""

    def __init__(self, old: Policy, new: Policy, tool: str) -> None:
        self.old, self.new, self.tool = old, new, tool
        self.blind: tuple[str, ...] = ()
        self._found: dict[tuple[object, ...], Change] = {}
        self._sizes: dict[tuple[object, ...], tuple[int, int]] = {}

    def run(self, schema: Schema) -> int:
        """How many calls were compared."""
        rules = [rule for policy in (self.old, self.new) for rule in policy.tools.get(self.tool, NO_RULES).rules]
        probes = probe_calls(rules, schema)
        self.blind = probes.blind
        tried = 0
        for args in probes.calls:
            tried += self._compare(args, False, ProbePast(), None)
        for args in probes.bases if self._floored() else ():
            tried += self._compare(args, True, ProbePast(), None)
        return tried + self._with_pasts(probes.bases)

    def _floored(self) -> bool:
        return self.old.irreversible(self.tool) or self.new.irreversible(self.tool)

    def _with_pasts(self, bases: Sequence[Mapping[str, object]]) -> int:
        bounds = [rule for policy in (self.old, self.new) for rule in policy.bounding(self.tool)]
        tried = 0
        for base in bases if bounds else ():
            pasts, blind = probe_pasts(self.tool, bounds, base)
            self.blind = (*self.blind, *blind)
            for past in pasts:
                ledgers = (ledger_of(self.old, past.run, past.client), ledger_of(self.new, past.run, past.client))
                for pinned in (False, True) if self._floored() else (False,):
                    tried += self._compare(base, pinned, past, ledgers)
        return tried

    def _compare(
        self, args: Mapping[str, object], pinned: bool, past: ProbePast, ledgers: tuple[Ledger, Ledger] | None
    ) -> int:
        call = Call(self.tool, args, pinned)
        mine, theirs = (None, None) if ledgers is None else ledgers
        before, after = evaluate(self.old, call, mine), evaluate(self.new, call, theirs)
        if before.effect is not after.effect:
            self._keep(Change(self.tool, before, after, 1, call, past))
        return 1

    def _keep(self, change: Change) -> None:
        key = (change.before.effect, change.after.effect, change.before.rule, change.after.rule)
        size = (change.past.size + change.call.pinned, len(json.dumps(change.call.args)))
        known = self._found.get(key)
        if known is None or size < self._sizes[key]:
            self._sizes[key] = size
            self._found[key] = replace(change, count=1 if known is None else known.count + 1)
        else:
            self._found[key] = replace(known, count=known.count + 1)

    def changes(self) -> Iterator[Change]:
        yield from self._found.values()
