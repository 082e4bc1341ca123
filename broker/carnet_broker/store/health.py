"""What an operator must know of the store: problems as sentences with the fix, and facts."""

import os
import sqlite3
from pathlib import Path

from carnet_broker.store.base import Health, Unavailable
from carnet_broker.store.clock import BACKWARD, HighWater
from carnet_broker.store.connect import Readers
from carnet_broker.store.migrate import SCHEMA
from carnet_broker.store.reads import epoch
from carnet_broker.store.reserve import Reserve

__all__ = ["examine"]


def examine(
    path: Path, readers: Readers, clock: HighWater, reserve: Reserve, waiting: int, answer: str | None
) -> Health:
    """`answer`: what the writer said when it was asked, None when it is well."""
    problems = [answer] if answer else []
    behind = clock.behind()
    if behind > BACKWARD:
        problems.append(
            f"The system clock is {behind} s behind the time that this store has seen; set it right. "
            "Until then the store's time stands still."
        )
    if not reserve.held and not answer:
        problems.append("The disk has no room for the reserve of revocations; free space on it.")
    life = ""
    try:
        life = readers.read(epoch)
    except (sqlite3.Error, Unavailable) as error:
        problems.append(f"The store cannot be read ({error}); check its disk.")
    return Health(now=clock.now(), epoch=life, problems=tuple(problems), facts=_facts(path, waiting))


def _facts(path: Path, waiting: int) -> dict[str, str]:
    facts = {"store": "sqlite", "sqlite": sqlite3.sqlite_version, "schema": str(SCHEMA), "waiting": str(waiting)}
    try:
        space = os.statvfs(path.parent)
        facts["bytes"] = str(path.stat().st_size)
        facts["free_bytes"] = str(space.f_bavail * space.f_frsize)
    except OSError as error:
        facts["bytes"] = f"unknown ({error.strerror})"
    return facts
