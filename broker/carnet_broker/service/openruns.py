"""How many runs a client has open, so that a client in a loop cannot fill the store."""

from carnet_broker.core.registry import MAX_RUN_TTL
from carnet_broker.core.rows import Delegation
from carnet_broker.core.standing import marks_of
from carnet_broker.core.status import State, status
from carnet_broker.service.paging import walk
from carnet_broker.store.base import Index, Store, Where

__all__ = ["OpenRuns"]


class OpenRuns:
    """Runs of each client; read from the store once per process, then kept up by who opens."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], dict[str, Delegation]] = {}

    async def count(self, store: Store, tenant: str, client: str, limit: int, now: int) -> int:
        """How many are open. What a mark has ended is looked for only when the limit is reached."""
        runs = self._runs.get((tenant, client))
        if runs is None:
            runs = self._runs.setdefault((tenant, client), await _read(store, tenant, client, now))
        for run in [run for run in runs.values() if run.live_until <= now]:
            del runs[run.id]
        if len(runs) >= limit:
            await _drop_ended(store, tenant, runs, now)
        return len(runs)

    def opened(self, run: Delegation) -> None:
        self._runs.setdefault((run.tenant, run.client), {})[run.id] = run


async def _read(store: Store, tenant: str, client: str, now: int) -> dict[str, Delegation]:
    found: dict[str, Delegation] = {}
    async for row in walk(store, Delegation, tenant, Where(index=Index.DELEGATIONS_BY_CLIENT, value=client)):
        if row.created_at < now - MAX_RUN_TTL:  # newest first: what follows has ended
            break
        if row.parent is None and row.live_until > now:
            found[row.id] = row
    return found


async def _drop_ended(store: Store, tenant: str, runs: dict[str, Delegation], now: int) -> None:
    marks = frozenset[str]().union(*(marks_of(run) for run in runs.values()))
    revoked = await store.revoked(tenant, tuple(marks))
    for run in list(runs.values()):
        if status(run, None, revoked, now).state is State.ENDED:
            runs.pop(run.id, None)
