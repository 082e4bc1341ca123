"""Real processes: started with a log of their own, waited for, killed, always gone at the end."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from tests.faults.scene import ROOT, Scene

__all__ = ["Process", "broker", "running", "serve_command", "tool_server", "until"]

_PATIENCE = 40.0  # seconds; a busy machine is slow at imports
_NOT_YET = 0.005


class Process:
    """A child process that answers HTTP on `port` once it is up. ready: the path that says so."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path, port: int, ready: str) -> None:
        self._log, self._port, self._ready = log, port, ready
        self.started = time.monotonic()
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                list(command), cwd=ROOT, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_ready(self) -> float:
        """Seconds from the start to the first 200. AssertionError when it ends before."""
        assert self.comes_up(), f"it ended with {self._process.returncode}: {self.tail()}"
        return time.monotonic() - self.started

    def comes_up(self) -> bool:
        """Whether it gets ready before it ends."""
        while not self._answers():
            if self._process.poll() is not None:
                return False
            assert time.monotonic() - self.started < _PATIENCE, f"it does not get ready: {self.tail()}"
            time.sleep(_NOT_YET)
        return True

    def starved(self) -> float:
        """Seconds for which its main thread was ready to run and had no processor; 0 where the kernel does not say."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError):
            return 0.0

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()
        self._process.wait(30)

    def await_death(self, seconds: float = _PATIENCE) -> int:
        """The exit status of a process that ends by itself."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        """End it in order, or by force."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", self._ready)
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def running(process: Process) -> Iterator[Process]:
    """Ready in the body, gone after it."""
    try:
        process.await_ready()
        yield process
    finally:
        process.stop()


def serve_command(module: str = "carnet.cli") -> list[str]:
    """`carnet serve`. module: another program that serves, with a known mistake in it."""
    return [sys.executable, "-m", module, "serve"]


def broker(scene: Scene, command: Sequence[str] | None = None, ready: str = "/readyz", **more: str) -> Process:
    """Start the broker of a deployment."""
    environ = scene.environment(**more)
    return Process(command or serve_command(), environ, scene.folder / "broker.log", scene.port, ready)


def tool_server(scene: Scene, port: int, ledger: Path, variant: str = "", **more: str) -> Process:
    """Start the guarded tool server of the host `desk`. ledger: where its tools write what really ran."""
    command = [sys.executable, "-m", "tests.faults.toolhost", str(port), str(ledger), variant]
    environ = scene.host_environment("desk-server", **more)
    return Process(command, environ, scene.folder / "tools.log", port, "/up")


def until(done: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for something that must come. AssertionError when it does not."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
