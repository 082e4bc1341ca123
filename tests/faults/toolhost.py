"""A guarded tool server as a user would write one, whose tools leave a durable trace of every real run.

python -m tests.faults.toolhost PORT LEDGER [VARIANT]. VARIANT names a guard of tests.faults.wrongguard.
"""

import os
import sys
import time
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from carnet import Guard

__all__ = ["Ledger", "build", "ran"]


class Search(BaseModel):
    query: str


class Tag(BaseModel):
    ticket: str


class Ledger:
    """A file with one line per run, on the disk before the tool returns: `<monotonic seconds> <name of the call>`."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, name: str) -> None:
        os.write(self._fd, f"{time.monotonic():.6f} {name}\n".encode())
        os.fsync(self._fd)


def ran(path: Path) -> dict[str, float]:
    """What really ran, and when."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: float(at) for at, name in (line.split() for line in lines)}


def build(ledger: Ledger) -> FastAPI:
    guard = Guard("desk")
    app = guard.install(FastAPI(), unguarded=["/up"])

    @app.get("/up")
    def up() -> dict[str, bool]:
        return {"up": True}

    @app.post("/search")
    @guard.tool(name="search")
    def search(ask: Search) -> dict[str, str]:
        ledger.note(ask.query)
        return {"found": ask.query}

    @app.post("/tag")
    @guard.tool(name="tag")
    async def tag(ask: Tag) -> dict[str, str]:
        ledger.note(ask.ticket)
        return {"tagged": ask.ticket}

    return app


def main(port: str, ledger: str, variant: str = "") -> None:
    if variant:
        from tests.faults import wrongguard

        getattr(wrongguard, variant)()
    uvicorn.run(build(Ledger(Path(ledger))), host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
