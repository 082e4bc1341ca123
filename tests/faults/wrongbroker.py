"""`carnet serve` with one known mistake: commits are acknowledged before they are made. The suite must find it.

python -m tests.faults.wrongbroker serve
"""

import time

from carnet.cli import main
from carnet_broker.store.base import Unavailable
from carnet_broker.store.faults import unavailable
from carnet_broker.store.job import Job
from carnet_broker.store.sqlite import SqliteStore
from carnet_broker.store.writer import Writer

__all__: list[str] = []

_LATE = 0.05  # seconds between the answer and the commit


class _EarlyWriter(Writer):
    def _commit(self, jobs: list[Job]) -> Unavailable | None:
        try:
            self._begin()
            now = self._tick()
            for job in jobs:
                self._run(job, now)
            self._publish(jobs)
            time.sleep(_LATE)
            self._conn.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - as the right one does
            self._rollback()
            return unavailable(error)
        return None


if __name__ == "__main__":
    SqliteStore.writer_type = _EarlyWriter
    main()
