"""The real processes of the demo: one broker, one tool server per host, all on loopback, all stopped at the end."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from carnet.cli.problems import Exit, Problem

__all__ = ["APPROVAL_TIMEOUT", "Stage", "raise_stage"]

_PATIENCE = 20.0  # seconds until a process must be ready; a busy machine is slow at imports
APPROVAL_TIMEOUT = 3  # seconds: long enough for the story's own answers, short enough to watch one run out


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where everything runs, and what the broker wrote for its developer."""

    url: str
    hosts: Mapping[str, str]  # host -> base URL of its tool server
    ledger: Path  # one line per refund that really ran
    dev: Mapping[str, Any]
    http: httpx2.Client  # for requests that the SDK would not make


@contextmanager
def raise_stage(folder: Path) -> Iterator[Stage]:
    """Start everything; stop it however the body ends."""
    broker_port, *tool_ports = _free_ports(3)
    hosts = {name: f"http://127.0.0.1:{port}" for name, port in zip(("desk", "orders"), tool_ports, strict=True)}
    ledger = folder / "refunds.txt"
    ledger.touch()
    with ExitStack() as stack:
        dev = _start_broker(stack, folder, broker_port, hosts)
        for (name, base), port in zip(hosts.items(), tool_ports, strict=True):
            _start_tools(stack, folder, dev, name, port, ledger)
            _await_http(f"{base}/.well-known/oauth-protected-resource", f"the tool server {name}")
        http = stack.enter_context(httpx2.Client(timeout=10.0))
        yield Stage(url=dev["url"], hosts=hosts, ledger=ledger, dev=dev, http=http)


def _start_broker(stack: ExitStack, folder: Path, port: int, hosts: Mapping[str, str]) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "carnet.cli",
        "dev",
        "--folder",
        str(folder / "dev"),
        "--listen",
        f"127.0.0.1:{port}",
    ]
    for name, base in hosts.items():
        command += ["--audience", f"{name}={base}"]
    command += ["--approval-timeout", str(APPROVAL_TIMEOUT)]
    process = _spawn(stack, command, dict(os.environ), folder / "broker.log")
    path = folder / "dev" / "dev.json"
    deadline = time.monotonic() + _PATIENCE
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise Problem(f"The broker did not start: {_tail(folder / 'broker.log')}", Exit.UNAVAILABLE)
        time.sleep(0.02)
    dev: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return dev


def _start_tools(stack: ExitStack, folder: Path, dev: Mapping[str, Any], name: str, port: int, ledger: Path) -> None:
    client = dev["hosts"][name]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CARNET_")}
    journal = folder / f"journal-{name}"
    journal.mkdir(mode=0o700)
    environ = kept | {
        "CARNET_URL": dev["url"],
        "CARNET_CLIENT_ID": client["client_id"],
        "CARNET_CLIENT_SECRET_FILE": client["secret_file"],
        "CARNET_JOURNAL": str(journal),
    }
    command = [sys.executable, "-m", "carnet.cli.demo.toolserver", name, str(port), str(ledger)]
    _spawn(stack, command, environ, folder / f"{name}.log")


def _spawn(stack: ExitStack, command: list[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    out = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=out)  # noqa: S603
    stack.callback(_stop, process)
    return process


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_http(url: str, what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            if httpx2.get(url, timeout=2.0).status_code < 500:
                return
        except httpx2.HTTPError:
            time.sleep(0.05)
    raise Problem(f"{what} did not start.", Exit.UNAVAILABLE)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _tail(log: Path) -> str:
    return " / ".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:]) or "it said nothing"
