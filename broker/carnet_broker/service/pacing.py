"""Refusals of a run's calls cost an audit line each, and a child in a loop may make as many as it likes. So they count
toward the run's cap of calls; beyond it they are counted and no longer written one by one."""

from collections import OrderedDict
from dataclasses import dataclass, replace

from carnet.audit import Record
from carnet.reasons import Reason, Refusal
from carnet_broker.core.ledgers import MAX_RUN_CALLS
from carnet_broker.core.rows import Call, CallState
from carnet_broker.service.paging import walk
from carnet_broker.service.settling import note, refuse
from carnet_broker.store.base import Index, Store, Where

__all__ = ["EACH", "Refusals", "refuse_call", "refuse_full"]

EACH = 1000  # refusals of a full run that share one line
_KEEP = 65_536  # runs; far more than can be open, so nobody gets a count dropped by opening others


@dataclass(slots=True)
class _Run:
    written: int  # lines about calls that hold nothing: refused ones, previews that deny, looks at an open question
    told: bool = False  # the first refusal of the full run is on record
    untold: int = 0


class Refusals:
    """Counts by run: the refused calls that are on record are read once per process, the rest is this process's own."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str], _Run] = OrderedDict()

    async def count(self, store: Store, tenant: str, run: str) -> int:
        found = self._runs.get((tenant, run))
        if found is None:
            found = self._runs.setdefault((tenant, run), _Run(await _read(store, tenant, run)))
            while len(self._runs) > _KEEP:
                self._runs.popitem(last=False)
        self._runs.move_to_end((tenant, run))
        return found.written

    def add(self, tenant: str, run: str) -> None:
        """One more line was written; the run was counted before."""
        if (found := self._runs.get((tenant, run))) is not None:
            found.written += 1

    def untold(self, tenant: str, run: str) -> int:
        """One more refusal that the full run has no line for: how many of them are to be told now, 0 = none yet."""
        found = self._runs.setdefault((tenant, run), _Run(0))
        found.untold += 1
        if found.told and found.untold < EACH:
            return 0
        count, found.told, found.untold = found.untold, True, 0
        return count


async def _read(store: Store, tenant: str, run: str) -> int:
    rows = walk(store, Call, tenant, Where(index=Index.CALLS_BY_RUN, value=run))
    return sum([row.state is CallState.REFUSED async for row in rows])


async def refuse_call(store: Store, refusals: Refusals, line: Record, no: Refusal) -> Refusal:
    """Refuse what never became a call of the run that the line names."""
    if line.run is None:
        return await refuse(store, line, no)
    count = await refusals.count(store, line.tenant, line.run)
    if count >= MAX_RUN_CALLS:
        full = Refusal(Reason.RUN_FULL, f"The run holds {count} refused calls; open another run.")
        return await refuse_full(store, refusals, line, full)
    refusals.add(line.tenant, line.run)
    return await refuse(store, line, no)


async def refuse_full(store: Store, refusals: Refusals, line: Record, full: Refusal) -> Refusal:
    """Refuse a call of a full run. The first has a line of its own, then one line tells of EACH of them."""
    count = refusals.untold(line.tenant, line.run or "")
    if count:
        told = replace(line, decision="deny", reason=full.reason.value, facts={"count": count})
        await note(store, replace(told, detail=full.detail or line.detail))
    return full
