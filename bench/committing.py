"""Group commit of the embedded store: how many fsyncs per acknowledged change, and how much faster than one by one."""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.timing import Figure
from carnet.audit import Kind, Record
from carnet_broker.core.rows import Approval, ApprovalState, Delegation, Envelope
from carnet_broker.store.base import Change, Committed
from carnet_broker.store.sqlite import SqliteStore

__all__ = ["measure", "work"]

_SECONDS = 3.0
_CALLERS = 32


def measure() -> list[Figure]:
    single, grouped = asyncio.run(_rates())
    figures = [
        Figure(name="group commit: 32 callers / own single commits", value=grouped / single, floor=2.0),
        Figure(name="changes/s, 1 caller", value=single, floor=None, unit="/s"),
        Figure(name="changes/s, 32 callers", value=grouped, floor=None, unit="/s"),
    ]
    if shutil.which("strace") is None:
        sys.stdout.write("acknowledged changes per fsync: not measured, strace is not on PATH\n")
    else:
        figures.append(Figure(name="acknowledged changes per fsync at 32 callers", value=_traced(), floor=8.0))
    return figures


async def _rates() -> tuple[float, float]:
    return await _rate(1), await _rate(_CALLERS)


async def _rate(callers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore.open(Path(folder) / "carnet.sqlite3")
        begun = time.perf_counter()
        done = await _load(store, callers, _SECONDS)
        taken = time.perf_counter() - begun
        await store.close()
        return done / taken


async def _load(store: SqliteStore, callers: int, seconds: float) -> int:
    deadline = time.perf_counter() + seconds
    counts = await asyncio.gather(*(_caller(store, number, deadline) for number in range(callers)))
    return sum(counts)


async def _caller(store: SqliteStore, number: int, deadline: float) -> int:
    count = 0
    while time.perf_counter() < deadline:
        answer = await store.commit(_change(f"{number}-{count}", await store.now()))
        if not isinstance(answer, Committed):
            raise RuntimeError(f"a change was not made: {answer}")
        count += 1
    return count


def _change(name: str, now: int) -> Change:
    """What a spawn writes: a delegation, its approval and the audit record."""
    envelope = Envelope(
        level=0, tools=("search_tickets", "summarize"), ceilings={}, credential_ttl_seconds=900,
        approval_required=False,
        resource_limit=3, tenant="acme", trace_id="0" * 32,
    )  # fmt: skip
    chain = (("dlg_run", "support", "support-app"), (f"dlg_{name}", "summarizer", "support-app"))
    delegation = Delegation(
        id=f"dlg_{name}", tenant="acme", run=f"run-{name}", parent="dlg_run", chain=chain, depth=1, agent="summarizer",
        client="support-app", sub="agent:support", envelope=envelope, approval=f"apr_{name}", digest="0" * 64,
        policy_id="p", policy_version=1, policy_digest="0" * 64, payload_sha256=None, jkt=None, resource_count=3,
        facts={}, created_at=now, live_until=now + 3600, trace_id="0" * 32,
    )  # fmt: skip
    approval = Approval(
        id=f"apr_{name}", tenant="acme", run=f"run-{name}", delegation=f"dlg_{name}", client="support-app",
        subject=f"dlg_{name}", digest="0" * 64, state=ApprovalState.APPROVED, deadline=now, created_at=now,
        policy_digest="0" * 64, answered_at=now, answered_by="policy:p@1",
    )  # fmt: skip
    record = Record(
        at=now, tenant="acme", kind=Kind.SPAWNED, actor="agent:support", delegation=f"dlg_{name}", chain=chain
    )
    alive = frozenset({("dlg:dlg_run", now), ("tenant:acme", now)})
    return Change(tenant="acme", at=now, records=(record,), alive=alive, insert=(delegation, approval))


def _traced() -> float:
    """Acknowledged changes per fsync, the fsyncs counted by the kernel's own word."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        command = ["strace", "-f", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
        done = subprocess.run(
            [*command, sys.executable, "-m", "bench.committing", folder], check=True, capture_output=True, text=True
        )
        syncs = [line for line in trace.read_text().splitlines() if "sync(" in line]
        return int(done.stdout) / max(1, len(syncs))


async def work(folder: Path) -> int:
    """The traced process: 32 callers for a second."""
    store = SqliteStore.open(folder / "carnet.sqlite3")
    done = await _load(store, _CALLERS, 1.5)
    await store.close()
    return done


if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(work(Path(sys.argv[1])))}\n")
