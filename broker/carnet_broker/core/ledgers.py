"""The ledger of one run, and of one client: built from store rows as they arrive, asked in constant time.

A question costs the same after 10,000 calls. Only calls that wait for a person and open questions are walked through,
and people bound their number. Every answer is a function of the rows and of `now` alone: a slot that a time-out frees
is free by the clock, whether or not the time-out was written yet.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush

from carnet.reasons import Reason, Refusal
from carnet_broker.core.resources import exceeds
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState, Delegation, Row
from carnet_policy import Folds, Ledger, PastCall, Policy

__all__ = ["MAX_RUN_CALLS", "ClientLedger", "RunLedger", "slot"]

MAX_RUN_CALLS = 10_000  # of one run; beyond it `run_full`
_FREED_BY_FAILURE = frozenset({"read", "write"})  # a failed call of an irreversible or unknown tool may have acted


def slot(call: Call) -> PastCall | None:
    """What the call holds of every bound that outlives it; None when it holds nothing."""
    if call.state is CallState.REFUSED or (call.state is CallState.FAILED and call.effect in _FREED_BY_FAILURE):
        return None
    return PastCall(call.tool, call.args, call.at, call.hold_until if call.state is CallState.WAITING else None)


class RunLedger:
    """One run. Mutable, owned by one task at a time; `version` is the ledger version of the rows applied so far."""

    def __init__(self, run: str, policy: Policy) -> None:
        self.run = run
        self.version = 0
        self._policy = policy
        self._folds = Folds(policy)
        self._beside: Folds | None = None
        self._calls: dict[str, Call] = {}
        self._approvals: dict[str, Approval] = {}
        self._delegations: dict[str, Delegation] = {}
        self._waiting: dict[str, Call] = {}  # calls that wait, by id
        self._by_digest: dict[str, dict[str, Call]] = {}  # the same, by digest
        self._open: dict[str, Approval] = {}  # approvals that are pending, by id
        self._spent: Counter[tuple[str, str]] = Counter()  # (delegation, tool): calls that hold for good
        self._touched: dict[str, Counter[str]] = {}  # delegation: resource ids of those calls
        self._made: Counter[str] = Counter()  # delegation: calls, refused ones left out
        self._granted: dict[str, int] = {}  # delegation: resource_count
        self._granted_total = 0
        self._denied_calls: set[str] = set()
        self._denied_tools: set[str] = set()
        self._denied_digests: set[str] = set()
        self._denied_delegations: set[str] = set()

    def apply(self, rows: Iterable[Row], version: int) -> None:
        """Take in what is newer. Rows may come in any order and more than once; an older one changes nothing."""
        ordered = list(rows)
        for row in ordered:
            if isinstance(row, Delegation) and row.parent is not None:
                self._delegations[row.id] = row
                self._weigh(row.id)
        for row in ordered:
            if isinstance(row, Call):
                self._put_call(row)
            elif isinstance(row, Approval):
                self._put_approval(row)
        self.version = max(self.version, version)

    def use(self, policy: Policy) -> None:
        """Go over to another policy: its rules' folds are made anew from the calls at hand."""
        if policy.ref.digest == self._policy.ref.digest:
            return
        self._policy, self._folds = policy, Folds(policy)
        for call in self._calls.values():
            self._folds.put(call.id, slot(call))

    def beside(self, shadow: Policy) -> Folds:
        """The folds of a policy that is not in force, over the same calls; kept up to date from now on."""
        if self._beside is None or self._beside.ref != shadow.ref:
            self._beside = _folded(Folds(shadow), self._calls.values())
        return self._beside

    @property
    def count(self) -> int:
        """Calls of the run, refused ones left out."""
        return self._made[self.run]

    def full(self, refused: int) -> Refusal | None:
        """refused: calls of the run that hold nothing; they count toward its cap too."""
        total = self.count + refused
        if total < MAX_RUN_CALLS:
            return None
        return Refusal(Reason.RUN_FULL, f"The run holds {total} calls, refused ones included; open another run.")

    def calls_of(self, delegation: str) -> int:
        """Calls of a delegation and what is below it, refused ones left out."""
        return self._made[delegation]

    def history(
        self,
        now: int,
        *,
        opened: int,
        since: Mapping[str, int],
        client: "ClientLedger | None" = None,
        skip: str | None = None,
    ) -> Ledger:
        """What `evaluate` asks. opened: the run's opening. since: of the policy's history rules. skip: the waiting call
        that is asked again, which does not count itself."""
        other = None if client is None else client.folds
        return Ledger(run=self._folds, client=other, now=now, opened=opened, since=since, skip=skip)

    def used(self, delegation: str, tool: str, now: int, skip: str | None = None) -> int:
        """Slots of a tool's `max_calls` that are taken, by this delegation and all below it."""
        held = sum(1 for call in self._held(now, skip) if call.tool == tool and delegation in self._above(call))
        return self._spent[delegation, tool] + held

    def call_bound(
        self, bounds: Mapping[str, Mapping[str, object]], tool: str, now: int, skip: str | None = None
    ) -> Refusal | None:
        """bounds: the ceilings of the delegation and of each of its ancestors, by id. Refused when one `max_calls` of
        this tool is used up."""
        for delegation, ceilings in bounds.items():
            entry = ceilings.get(tool)
            most = entry.get("max_calls") if isinstance(entry, Mapping) else None
            if type(most) is int and self.used(delegation, tool, now, skip) >= most:
                return Refusal(Reason.MAX_CALLS, f"All {most} calls of {tool} are used up.")
        return None

    def resource_bound(
        self, delegation: str, limit: int | None, ids: tuple[str, ...], now: int, skip: str | None = None
    ) -> Refusal | None:
        """Whether touching these ids too stays within the delegation's limit; None as limit: no bound."""
        for_good = self._touched.get(delegation, Counter())
        held = {
            item
            for call in self._held(now, skip)
            if call.resources and delegation in self._above(call)
            for item in call.resources
            if item not in for_good
        }
        new = tuple(item for item in ids if item not in held)
        return exceeds(limit, for_good, len(for_good) + len(held), new)

    def counted(self, now: int) -> int:
        """Sum of `resource_count` of the delegations granted so far, ended ones included. One that still waits for its
        answer counts too: it may be granted yet."""
        waits = (row for row in self._open.values() if row.subject == row.delegation and row.deadline > now)
        asked = sum(
            self._delegations[row.delegation].resource_count for row in waits if row.delegation in self._delegations
        )
        return self._granted_total + asked

    def questions(self, now: int) -> int:
        """Open questions of the run: calls and spawns."""
        return sum(1 for row in self._open.values() if row.deadline > now)

    def questions_of(self, delegation: str, now: int) -> int:
        """Open questions about calls of one delegation."""
        return sum(
            1 for row in self._open.values() if row.delegation == delegation != row.subject and row.deadline > now
        )

    def overdue(self, now: int, delegation: str | None = None) -> tuple[Approval, ...]:
        """Questions whose deadline has passed and whose time-out is not written yet, oldest first."""
        late = [row for row in self._open.values() if row.deadline <= now and delegation in (None, row.delegation)]
        return tuple(sorted(late, key=lambda row: (row.deadline, row.id)))

    def waiting(self, digest: str, now: int) -> Call | None:
        """The call of this digest that waits: the same call again continues it."""
        live = [call for call in self._by_digest.get(digest, {}).values() if _holds(call, now)]
        return max(live, key=lambda call: (call.at, call.id), default=None)

    def asked(self, digest: str, now: int) -> Delegation | None:
        """The delegation of this digest that waits: the same spawn again is answered with it."""
        live = [
            row
            for row in self._open.values()
            if row.subject == row.delegation and row.digest == digest and row.deadline > now
        ]
        first = min(live, key=lambda row: (row.created_at, row.id), default=None)
        return None if first is None else self._delegations.get(first.delegation)

    def tool_denied(self, tool: str) -> bool:
        """A person denied a call of this tool in this run: it is not asked again."""
        return tool in self._denied_tools

    def spawn_denied(self, digest: str) -> bool:
        """A person denied this very delegation in this run."""
        return digest in self._denied_digests

    def spawns_denied(self, target: str) -> int:
        """How many delegations to this agent a person denied in this run."""
        found = (self._delegations.get(id) for id in self._denied_delegations)
        return sum(1 for row in found if row is not None and row.agent == target)

    def approval(self, id: str) -> Approval | None:
        return self._approvals.get(id)

    def _above(self, call: Call) -> tuple[str, ...]:
        row = self._delegations.get(call.delegation)
        if row is not None:
            return tuple(dlg for dlg, _, _ in row.chain)
        return (self.run,) if call.delegation == self.run else (self.run, call.delegation)

    def _held(self, now: int, skip: str | None) -> Iterator[Call]:
        return (call for call in self._waiting.values() if call.id != skip and _holds(call, now))

    def _put_call(self, row: Call) -> None:
        before = self._calls.get(row.id)
        if before is not None:
            if before.version >= row.version:
                return
            self._count(before, -1)
        self._calls[row.id] = row
        self._count(row, 1)
        self._folds.put(row.id, slot(row))
        self._beside = _put_beside(self._beside, row.id, slot(row))
        if row.id in self._denied_calls or (row.state is CallState.REFUSED and row.reason == Reason.APPROVAL_DENIED):
            self._denied_tools.add(row.tool)

    def _count(self, row: Call, sign: int) -> None:
        """Add a row to the counts (1) or take it out again (-1)."""
        if row.state is CallState.WAITING:
            self._place_waiting(row, sign)
        held = slot(row)
        for delegation in self._above(row):
            if row.state is not CallState.REFUSED:
                self._made[delegation] += sign
            if held is None or row.state is CallState.WAITING:
                continue
            self._spent[delegation, row.tool] += sign
            touched = self._touched.setdefault(delegation, Counter())
            for item in row.resources:
                touched[item] += sign
                if not touched[item]:
                    del touched[item]

    def _place_waiting(self, row: Call, sign: int) -> None:
        same = self._by_digest.setdefault(row.digest, {})
        if sign > 0:
            self._waiting[row.id] = same[row.id] = row
            return
        del self._waiting[row.id], same[row.id]
        if not same:
            del self._by_digest[row.digest]

    def _put_approval(self, row: Approval) -> None:
        before = self._approvals.get(row.id)
        if before is not None and before.version >= row.version:
            return
        self._approvals[row.id] = row
        if row.state is ApprovalState.PENDING:
            self._open[row.id] = row
        else:
            self._open.pop(row.id, None)
        if row.subject == row.delegation:
            if row.state is ApprovalState.DENIED:
                self._denied_digests.add(row.digest)
                self._denied_delegations.add(row.delegation)
            self._weigh(row.delegation)
        elif row.state is ApprovalState.DENIED:
            self._denied_calls.add(row.subject)
            if row.subject in self._calls:
                self._denied_tools.add(self._calls[row.subject].tool)

    def _weigh(self, delegation: str) -> None:
        """Bring a delegation's share of `counted` up to date: granted once approved, and for good."""
        row = self._delegations.get(delegation)
        if row is None:
            return
        approval = self._approvals.get(row.approval or "")
        never = (ApprovalState.PENDING, ApprovalState.DENIED, ApprovalState.TIMED_OUT, ApprovalState.SUPERSEDED)
        share = 0 if approval is not None and approval.state in never else row.resource_count
        self._granted_total += share - self._granted.get(delegation, 0)
        self._granted[delegation] = share


class ClientLedger:
    """What one client did in all its runs, for rules `over: client`. Only calls inside the longest window are kept."""

    def __init__(self, client: str, policy: Policy) -> None:
        self.client = client
        self.version = 0
        self._policy = policy
        self._versions: dict[str, Call] = {}
        self._by_time: list[tuple[int, str]] = []  # a heap of the same calls, the oldest first
        self.folds = Folds(policy, "client")
        self._beside: Folds | None = None

    def beside(self, shadow: Policy) -> Folds:
        """As of a run. Calls outside the window of the policy in force are not there."""
        if self._beside is None or self._beside.ref != shadow.ref:
            self._beside = _folded(Folds(shadow, "client"), self._versions.values())
        return self._beside

    def apply(self, rows: Iterable[Row], version: int) -> None:
        for row in rows:
            before = self._versions.get(row.id) if isinstance(row, Call) else None
            if isinstance(row, Call) and (before is None or before.version < row.version):
                if before is None:
                    heappush(self._by_time, (row.at, row.id))
                self._versions[row.id] = row
                self.folds.put(row.id, slot(row))
                self._beside = _put_beside(self._beside, row.id, slot(row))
        self.version = max(self.version, version)

    def use(self, policy: Policy) -> None:
        if policy.ref.digest == self._policy.ref.digest:
            return
        self._policy, self.folds = policy, Folds(policy, "client")
        for call in self._versions.values():
            self.folds.put(call.id, slot(call))

    def forget(self, before: int) -> None:
        """Drop calls made before this time; it must lie outside the window of every rule in force."""
        while self._by_time and self._by_time[0][0] < before:
            _, id = heappop(self._by_time)
            self.folds.put(id, None)
            self._beside = _put_beside(self._beside, id, None)
            del self._versions[id]


def _holds(call: Call, now: int) -> bool:
    return call.hold_until is None or call.hold_until > now


def _folded(folds: Folds, calls: Iterable[Call]) -> Folds:
    for call in calls:
        folds.put(call.id, slot(call))
    return folds


def _put_beside(folds: Folds | None, id: str, past: PastCall | None) -> Folds | None:
    """None where a policy that is not in force can not take the row in: it is built anew when it is asked for, and what
    is in force goes on."""
    if folds is None:
        return None
    try:
        folds.put(id, past)
    except Exception:  # noqa: BLE001 - nothing of a shadow may fail a call
        return None
    return folds
