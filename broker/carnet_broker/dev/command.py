"""The command `carnet dev`."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from carnet.cli.broker import Operator
from carnet.cli.output import say
from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, config_dir, save
from carnet_broker import __version__, logs
from carnet_broker.composition import Broker, compose
from carnet_broker.config.load import load_registries
from carnet_broker.dev.folder import OPERATOR, Hand, deal, describe, environment, write_private
from carnet_broker.http.sockets import address, is_loopback
from carnet_broker.keys import KeyRing
from carnet_broker.runner import BrokerServer
from carnet_broker.store.sqlite import SqliteStore

__all__ = ["register"]

_AUDIENCES = {"desk": "http://127.0.0.1:8421", "orders": "http://127.0.0.1:8422"}


def register(app: typer.Typer) -> None:
    app.command("dev")(dev)


def dev(
    listen: Annotated[str, typer.Option(help="A loopback address and port.")] = "127.0.0.1:8420",
    folder: Annotated[Path | None, typer.Option(help="Keep everything here; a temporary folder when omitted.")] = None,
    audience: Annotated[list[str] | None, typer.Option(help="HOST=URL of a tool server (desk, orders).")] = None,
    approval_timeout: Annotated[int, typer.Option(min=1, max=3600, help="Seconds to answer an approval.")] = 120,
) -> None:
    """A broker for this machine: loopback, demo registry, fresh secrets, all gone at exit. Not for production."""
    where = address(listen)
    if not is_loopback(where[0]):
        raise Problem("`carnet dev` listens on loopback only; use `carnet serve` elsewhere.", Exit.USAGE)
    audiences = _AUDIENCES | dict(_pair(text) for text in audience or ())
    logs.configure("warning")
    with _own_folder(folder) as home:
        hand = deal(home, audiences=audiences, approval_timeout=approval_timeout)
        with _serving(hand, where) as server:
            described = describe(hand, server.url, audiences)
            _leave_notes(hand, server.url, described, announce=folder is None)
            _wait_for_the_end()
    say("Stopped; keys and secrets are gone." if folder is None else f"Stopped; {folder} is kept.", "dim")


@contextmanager
def _serving(hand: Hand, where: tuple[str, int]) -> Iterator[BrokerServer]:
    """The running broker. A port that is taken is told in one sentence."""

    def make(issuer: str) -> Broker:
        store = SqliteStore.open(hand.folder / "carnet.db")
        registries = load_registries(hand.config)
        return compose(store=store, keys=KeyRing.ephemeral(), registries=registries, issuer=issuer)

    try:
        server = BrokerServer(make, where=where, path="/dev")
    except OSError as fault:
        raise Problem(f"Cannot listen on {where[0]}:{where[1]} ({fault.strerror}); try --listen 127.0.0.1:0") from None
    with server:
        yield server


def _leave_notes(hand: Hand, url: str, described: str, *, announce: bool) -> None:
    """Write what other terminals need, log the operator in, and say how to go on."""
    session = _log_in(hand, url)
    write_private(hand.folder / "dev.env", environment(hand, url))
    if announce:
        notes = config_dir(os.environ)
        save(session, os.environ)
        write_private(notes / "dev.env", environment(hand, url))
        write_private(notes / "dev.json", described)
    write_private(hand.folder / "dev.json", described)
    _greet(hand, url)


def _log_in(hand: Hand, url: str) -> Session:
    door = Operator(url)
    answer = door.post("/v1/sessions", {"operator": OPERATOR, "passphrase": hand.passphrase})
    door.close()
    return Session(url=url, operator=OPERATOR, tenant=answer["tenant"], token=answer["access_token"])


def _greet(hand: Hand, url: str) -> None:
    blank = partial(say, "")
    blank()
    say(f"  carnet {__version__}  development mode: loopback only, keys lost on exit. Not for production.", "bold")
    blank()
    for name, value in _addresses(hand, url).items():
        say(f"  {name:<10} {value}")
    blank()
    say("  Next, in a second terminal:", "bold")
    say(f"    . {config_dir(os.environ)}/dev.env    be the parent agent (CARNET_URL, CARNET_CLIENT_ID, …)")
    say("    carnet demo                     watch the whole story")
    say("    carnet list delegations         you are logged in as dev; approving asks for the passphrase")
    blank()
    say("  Ctrl-C ends it.", "dim")
    blank()
    sys.stdout.flush()


def _addresses(hand: Hand, url: str) -> Mapping[str, str]:
    return {
        "API": f"{url}    (OpenAPI at {url}/openapi.json)",
        "JWKS": f"{url}/.well-known/jwks.json",
        "Policy": "support-tools v3: 14 tools, default deny",
        "Parent": "agent support, client support-app",
        "Operator": f"dev, passphrase {hand.passphrase}",
        "Folder": str(hand.folder),
    }


def _pair(text: str) -> tuple[str, str]:
    name, sign, url = text.partition("=")
    if not sign or name not in _AUDIENCES:
        raise Problem(f"--audience {text}: give desk=URL or orders=URL.", Exit.USAGE)
    return name, url


@contextmanager
def _own_folder(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given.absolute()
        return
    made = Path(tempfile.mkdtemp(prefix="carnet-dev-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _wait_for_the_end() -> None:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    stop.wait()
