"""Running a broker: in a thread of a process that needs one (tests, development), or as the process itself."""

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Self

from carnet_broker import logs
from carnet_broker.composition import Broker
from carnet_broker.http.app import create_app
from carnet_broker.http.descriptors import connections_that_fit
from carnet_broker.http.limits import DEFAULT, Limits
from carnet_broker.http.sockets import Address, address, is_loopback, listen, url
from carnet_broker.main import StartRefused, open_broker
from carnet_broker.server import HttpServer, run
from carnet_broker.service.facade import Service
from carnet_broker.settings import Settings, ignored_names
from carnet_broker.store.base import Unavailable
from carnet_broker.supervisor import Supervisor

__all__ = ["BrokerServer", "serve"]

_LOG = logging.getLogger("carnet.serve")
_START_SECONDS = 30
# The writer thread of the store and the event loop share one interpreter lock; at the default of 5 ms each hand-over
# costs a mint more than its own work does.
_SWITCH_INTERVAL = 0.0005


class BrokerServer:
    """A broker on a loopback port, in a thread of its own with an event loop of its own.

    make: the broker for a given issuer, made in the caller's thread once the port is known. path: of the issuer, for
    example "/dev". Only loopback addresses are taken: what is served here has no TLS and may have throw-away keys.
    """

    def __init__(
        self,
        make: Callable[[str], Broker],
        *,
        where: Address = ("127.0.0.1", 0),
        path: str = "",
        limits: Limits = DEFAULT,
    ) -> None:
        if not is_loopback(where[0]):
            raise ValueError(f"{where[0]} is not a loopback address")
        self._socket = listen(where)
        self._make, self._path, self._limits = make, path, limits
        self._broker: Broker | None = None
        self._server: HttpServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="carnet-broker", daemon=True)
        self._url = url(self._socket)

    @property
    def url(self) -> str:
        """The base URL, which is also the issuer."""
        return self._url + self._path

    @property
    def broker(self) -> Broker:
        if self._broker is None:
            raise RuntimeError("the broker has not been started")
        return self._broker

    @property
    def service(self) -> Service:
        return self.broker.service

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the broker's thread, for `asyncio.run_coroutine_threadsafe`."""
        if self._loop is None:
            raise RuntimeError("the broker has not been started")
        return self._loop

    def start(self) -> Self:
        """Serve; returns once requests are answered. What keeps the broker from starting is raised here. A second call
        does nothing more."""
        if self._broker is not None:
            return self
        try:
            self._broker = self._make(self.url)
        except BaseException:
            self._socket.close()
            raise
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            raise TimeoutError("the broker did not start in time")
        if self._fault is not None:
            raise self._fault
        return self

    def stop(self) -> None:
        """Stop in order and close the store. Calling it twice does nothing more."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_START_SECONDS)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        supervisor = Supervisor(self.broker.chores())
        app = create_app(
            self.service,
            issuer=self.url,
            limits=self._limits,
            fallen=supervisor.fallen,
            notices=self.broker.notices,
            hosts=self._hosts(),
        )
        self._server = server = HttpServer(app, limits=self._limits, on_started=self._started.set)
        try:
            run(self._serve(server, supervisor), self._take_loop)
        except BaseException as fault:  # noqa: BLE001 - it belongs to the thread that waits in start()
            self._fault = fault
        finally:
            self._started.set()

    async def _serve(self, server: HttpServer, supervisor: Supervisor) -> None:
        try:
            await self.broker.start()
            async with supervisor.running():
                await server.serve([self._socket])
        finally:
            await self.broker.close()

    def _hosts(self) -> frozenset[str]:
        port = self._socket.getsockname()[1]
        return frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))

    def _take_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop


def serve(settings: Settings, environ: Mapping[str, str] = os.environ) -> None:
    """Serve until SIGTERM or SIGINT, then stop in order. Raises StartRefused."""
    logs.configure(settings.log)
    for name in ignored_names(environ):
        _LOG.warning("ignored a service link of Kubernetes", extra={"fields": {"name": name}})
    sys.setswitchinterval(_SWITCH_INTERVAL)
    run(_serve(settings))


async def _serve(settings: Settings) -> None:
    broker = await open_broker(settings)
    try:
        await _serve_broker(broker, settings)
    except Unavailable as fault:
        raise StartRefused(str(fault)) from None
    finally:
        await broker.close()


async def _serve_broker(broker: Broker, settings: Settings) -> None:
    supervisor = Supervisor(broker.chores())
    limits = replace(DEFAULT, connections=connections_that_fit(DEFAULT.connections))
    app = create_app(
        broker.service,
        issuer=settings.issuer,
        limits=limits,
        fallen=supervisor.fallen,
        notices=broker.notices,
    )
    server = HttpServer(app, limits=limits, trusted_proxies=settings.trusted_proxies)
    try:
        sock = listen(address(settings.listen))
    except OSError as fault:
        raise StartRefused(f"cannot listen on {settings.listen}: {fault.strerror}; set CARNET_LISTEN") from None
    with sock:
        await broker.start()
        gc.collect()
        gc.freeze()  # what lives as long as the process need not be looked at again by every collection
        async with supervisor.running():
            _LOG.info("serving", extra={"fields": {"listen": url(sock), "issuer": settings.issuer}})
            await server.serve([sock])
    _LOG.info("stopped")
