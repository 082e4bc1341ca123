"""The writer's bounded queue: two lanes, so that a revocation never waits behind a flood of other changes."""

import asyncio
import os
import threading
from collections import deque

from carnet_broker.store.base import Unavailable
from carnet_broker.store.job import Job

__all__ = ["Lanes"]


class Lanes:
    """Filled by event loops, drained by one thread. What is put during one turn of a loop is shown to the drainer at
    the end of that turn, so that callers who were answered together are committed together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pid = os.getpid()
        self._wake = threading.Condition()
        self._plain: deque[Job] = deque()
        self._urgent: deque[Job] = deque()
        self._turning: set[asyncio.AbstractEventLoop] = set()
        self._closed = False
        self._shown = False

    def __len__(self) -> int:
        return len(self._plain) + len(self._urgent)

    def put(self, job: Job) -> None:
        """Queue the job or raise Unavailable."""
        if os.getpid() != self._pid:
            raise Unavailable("The store was opened before a fork; open it in the process that uses it.")
        lane = self._urgent if job.urgent else self._plain
        with self._wake:
            if self._closed:
                raise Unavailable("The store is closed.")
            if len(lane) >= self._limit:
                raise Unavailable("Too many changes wait for the store; try again.")
            lane.append(job)
            first = job.loop not in self._turning
            self._turning.add(job.loop)
        if first:
            job.loop.call_soon(self._show, job.loop)

    def _show(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._wake:
            self._turning.discard(loop)
            self._shown = True
            self._wake.notify()

    def take(self, limit: int, idle: float) -> list[Job] | None:
        """The next jobs, urgent ones first; [] after `idle` seconds without any, None when closed and empty."""
        with self._wake:
            if not self._shown and not self._closed:
                self._wake.wait(idle)
            jobs: list[Job] = []
            while len(jobs) < limit and self._urgent:
                jobs.append(self._urgent.popleft())
            while len(jobs) < limit and self._plain:
                jobs.append(self._plain.popleft())
            self._shown = len(self) > 0
            if not jobs and self._closed:
                return None
        return jobs

    def close(self) -> None:
        """Take nothing more; what is queued is still drained."""
        with self._wake:
            self._closed = True
            self._wake.notify()
