"""One HTTP server on one socket of ours: started, told to stop, and stopped without cutting anybody short."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from uvicorn import Server
from uvicorn.loops.auto import auto_loop_factory

from carnet_broker.http.limits import DEFAULT, Limits
from carnet_broker.http.protocol import LimitedConfig

__all__ = ["HttpServer", "run"]

_GRACE_SECONDS = 10


def run(main: Coroutine[Any, Any, None], loop: Callable[[asyncio.AbstractEventLoop], None] | None = None) -> None:
    """Run to the end on the fastest event loop that is installed. loop: is told the loop before anything runs on it."""
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        if loop is not None:
            loop(runner.get_loop())
        runner.run(main)


class HttpServer(Server):
    """SIGTERM and SIGINT end it in order, when it runs in the main thread; a second SIGINT does not wait."""

    def __init__(
        self,
        app: FastAPI,
        *,
        limits: Limits = DEFAULT,
        trusted_proxies: Sequence[str] = (),
        on_started: Callable[[], None] | None = None,
    ) -> None:
        self._app = app
        self._on_started = on_started
        super().__init__(
            LimitedConfig(
                app,
                limits,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=bool(trusted_proxies),
                forwarded_allow_ips=list(trusted_proxies),
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._on_started is not None:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.stopping.set()  # waits and streams end at once, so that nobody has to be cut off
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        # uvicorn raises the signal again once it has stopped, which would end the process before the store is closed.
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before: dict[signal.Signals, Any] = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
