"""A real broker process on loopback: mints per second at 32 connections, and how soon a revocation is obeyed."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.timing import Figure, percentile
from carnet import Broker, Credential, Guard, Task
from carnet.cli.broker import Operator
from carnet.guard.case import verified
from carnet.reasons import Refusal

__all__ = ["measure"]

_CONNECTIONS = 32
_SECONDS = 4.0
_ROUNDS = 40
_READS = Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=0)


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder, _broker(Path(folder)) as dev:
        return [*_mints(dev), *_revocations(dev, 1), *_revocations(dev, 50)]


@contextmanager
def _broker(folder: Path) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "carnet.cli", "dev", "--folder", str(folder), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not (folder / "dev.json").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the broker did not start")
            time.sleep(0.05)
        yield json.loads((folder / "dev.json").read_text())
    finally:
        process.terminate()
        process.wait(10)


def _parent(dev: dict[str, Any]) -> Broker:
    return Broker(dev["url"], credential=Credential.secret(dev["client_id"], dev["secret"]))


def _mints(dev: dict[str, Any]) -> list[Figure]:
    """32 runs, one connection each: every request re-issues the tokens of a child, then: spawns a child with tokens."""
    with _parent(dev) as broker, ExitStack() as open_runs:
        runs = [open_runs.enter_context(broker.run()) for _ in range(_CONNECTIONS)]
        children = [run.spawn("summarizer", _READS) for run in runs]
        roots = [run._bearer() for run in runs]
        host, prefix = dev["url"].split("/")[2], "/dev/v1/delegations"
        tokens = [
            _request(host, f"{prefix}/{child.id}/tokens", root, {}) for child, root in zip(children, roots, strict=True)
        ]
        body = {"target": "summarizer", "task": _READS.to_wire(), "hosts": ["*"]}
        spawns = [_request(host, prefix, root, body) for root in roots]
        figures = []
        for name, requests in (("tokens of a child", tokens), ("spawn with tokens", spawns)):
            rate, waits = asyncio.run(_load(dev["url"], requests))
            figures.append(Figure(name=f"mint/s over HTTP, 32 connections: {name}", value=rate, floor=None, unit="/s"))
            figures.append(Figure(name=f"  p99: {name}", value=percentile(waits, 0.99) * 1e3, floor=None, unit="ms"))
        return figures


def _request(host: str, path: str, bearer: str, body: dict[str, Any]) -> bytes:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {bearer}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data


async def _load(url: str, requests: Sequence[bytes]) -> tuple[float, list[float]]:
    port = int(url.split(":")[2].split("/")[0])
    deadline = time.perf_counter() + _SECONDS
    waits = await asyncio.gather(*(_connection(port, request, deadline) for request in requests))
    return sum(map(len, waits)) / _SECONDS, [wait for part in waits for wait in part]


async def _connection(port: int, request: bytes, deadline: float) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    waits: list[float] = []
    while (begun := time.perf_counter()) < deadline:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        answer = await reader.readexactly(int(length.split(b":")[1]))
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(answer.decode())
        waits.append(time.perf_counter() - begun)
    writer.close()
    return waits


def _revocations(dev: dict[str, Any], count: int) -> list[Figure]:
    """From the operator's request until every guard refuses the token."""
    client = dev["hosts"]["desk"]
    secret = Path(client["secret_file"]).read_text()
    door = Operator(dev["url"])
    session = door.post("/v1/sessions", {"operator": dev["operator"], "passphrase": dev["passphrase"]})
    operator = Operator(dev["url"], session["access_token"])
    with _parent(dev) as broker, broker.run() as run, ExitStack() as open_guards:
        made = (Guard(url=dev["url"], credential=Credential.secret(client["client_id"], secret)) for _ in range(count))
        guards = [open_guards.enter_context(guard) for guard in made]
        _await_ready(guards)
        waits = [_revoked(run, operator, guards) for _ in range(_ROUNDS if count == 1 else 10)]
    door.close()
    operator.close()
    name = f"revoke -> refused at {count} guard{'s' * (count > 1)}"
    return [
        Figure(name=f"{name}, p50", value=percentile(waits, 0.5) * 1e3, floor=None, unit="ms"),
        Figure(name=f"{name}, p99", value=percentile(waits, 0.99) * 1e3, floor=None, unit="ms"),
    ]


def _await_ready(guards: Sequence[Guard]) -> None:
    deadline = time.monotonic() + 20
    while not all(guard.ready() for guard in guards):
        if time.monotonic() > deadline:
            raise RuntimeError("the guards did not get ready")
        time.sleep(0.02)


def _revoked(run: Any, operator: Operator, guards: Sequence[Guard]) -> float:
    child = run.spawn("summarizer", _READS)
    token = child.token("desk")
    states = [guard.started().state for guard in guards]
    if any(isinstance(verified(state, token), Refusal) for state in states):
        raise RuntimeError("a guard refuses a living token")
    begun = time.perf_counter()
    operator.post("/v1/revocations", {"mark": f"dlg:{child.id}", "reason": "bench"})
    deadline = begun + 5
    while not all(isinstance(verified(state, token), Refusal) for state in states):
        if time.perf_counter() > deadline:
            raise RuntimeError("a guard still accepts a revoked token")
        time.sleep(0.0002)
    return time.perf_counter() - begun
