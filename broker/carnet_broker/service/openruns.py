"""How many runs a client has open, so that a client in a loop cannot fill the store. Counted per process."""

from anyio.lowlevel import checkpoint

from carnet_broker.core.rows import Delegation
from carnet_broker.store.base import Index, Store, Where

__all__ = ["OpenRuns"]

_PAGE = 100
_LONGEST = 28_800  # seconds: an older run has ended


class OpenRuns:
    """Runs of each client with their fixed ends; read from the store once, then kept up by who opens."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], dict[str, int]] = {}

    async def count(self, store: Store, tenant: str, client: str, limit: int, now: int) -> int:
        """How many are open; closed ones are looked for only when the limit is reached."""
        runs = self._runs.get((tenant, client))
        if runs is None:
            runs = self._runs.setdefault((tenant, client), await _read(store, tenant, client, now))
        for run in [run for run, end in runs.items() if end <= now]:
            del runs[run]
        if len(runs) >= limit:
            for mark in await store.revoked(tenant, [f"dlg:{run}" for run in runs]):
                runs.pop(mark.removeprefix("dlg:"), None)
        return len(runs)

    def opened(self, run: Delegation) -> None:
        self._runs.setdefault((run.tenant, run.client), {})[run.id] = run.live_until


async def _read(store: Store, tenant: str, client: str, now: int) -> dict[str, int]:
    found: dict[str, int] = {}
    after: str | None = None
    while True:
        where = Where(index=Index.DELEGATIONS_BY_CLIENT, value=client)
        page = await store.find(Delegation, tenant, where, after, _PAGE)
        found |= {row.id: row.live_until for row in page.rows if row.parent is None and row.live_until > now}
        oldest = page.rows[-1].created_at if page.rows else now
        if page.next is None or oldest < now - _LONGEST:
            return found
        after = page.next
        await checkpoint()
