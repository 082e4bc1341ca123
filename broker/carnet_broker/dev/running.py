"""A development broker from start to end: what it serves, what it tells other terminals, what it leaves."""

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from carnet.cli.broker import Operator
from carnet.cli.output import say
from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, config_dir
from carnet.errors import ConfigError
from carnet_broker import __version__, logs
from carnet_broker.composition import Broker, compose
from carnet_broker.config.load import load_registries
from carnet_broker.dev.folder import OPERATOR, Hand, deal, describe, environment, write_private
from carnet_broker.dev.notes import left_for_others
from carnet_broker.http.sockets import address, is_loopback
from carnet_broker.keys import KeyRing
from carnet_broker.runner import BrokerServer
from carnet_broker.store.sqlite import SqliteStore

__all__ = ["run"]

_AUDIENCES = {"desk": "http://127.0.0.1:8421", "orders": "http://127.0.0.1:8422"}


def run(*, listen: str, folder: Path | None, audiences: Sequence[str], approval_timeout: int) -> None:
    """Serve until Ctrl-C. folder: kept, and the only place with notes; None: a temporary one, and notes for the user's
    other terminals while the broker runs. Raises Problem."""
    where, reached = _loopback(listen), _AUDIENCES | dict(_pair(text) for text in audiences)
    logs.configure("warning")
    stop = _told_to_stop()
    with _own_folder(folder) as home:
        hand = _dealt(home, reached, approval_timeout)
        with _serving(hand, where) as server, _notes(hand, server.url, reached, announce=folder is None):
            stop.wait()
    say("Stopped; keys and secrets are gone." if folder is None else f"Stopped; {folder} is kept.", "dim")


def _loopback(listen: str) -> tuple[str, int]:
    try:
        where = address(listen)
    except ValueError as fault:
        raise Problem(f"--listen: {fault}", Exit.USAGE) from None
    if not is_loopback(where[0]):
        raise Problem("`carnet dev` listens on loopback only; use `carnet serve` elsewhere.", Exit.USAGE)
    return where


def _dealt(home: Path, audiences: Mapping[str, str], approval_timeout: int) -> Hand:
    try:
        hand = deal(home, audiences=audiences, approval_timeout=approval_timeout)
        load_registries(hand.config)
    except OSError as fault:
        raise Problem(f"Cannot write to {home} ({fault.strerror}); give another --folder.") from None
    except ConfigError as fault:
        raise Problem(str(fault), Exit.USAGE) from None
    return hand


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


@contextmanager
def _notes(hand: Hand, url: str, audiences: Mapping[str, str], *, announce: bool) -> Iterator[None]:
    """What other terminals need: in the folder always, and in the user's own where the folder is a temporary one."""
    files = {"dev.env": environment(hand, url), "dev.json": describe(hand, url, audiences)}
    with left_for_others(_log_in(hand, url), files) if announce else nullcontext():
        for name, text in files.items():
            write_private(hand.folder / name, text)
        _greet(hand, url, announce=announce)
        yield


def _log_in(hand: Hand, url: str) -> Session:
    door = Operator(url)
    answer = door.post("/v1/sessions", {"operator": OPERATOR, "passphrase": hand.passphrase})
    door.close()
    return Session(url=url, operator=OPERATOR, tenant=answer["tenant"], token=answer["access_token"])


def _greet(hand: Hand, url: str, *, announce: bool) -> None:
    say("")
    say(f"  carnet {__version__}  development mode: loopback only, keys lost on exit. Not for production.", "bold")
    say("")
    for name, value in _addresses(hand, url).items():
        say(f"  {name:<10} {value}")
    say("")
    say("  Next, in a second terminal:", "bold")
    steps = _steps(hand, announce=announce)
    width = max(map(len, steps))
    for command, what in steps.items():
        say(f"    {command:<{width}}  {what}")
    say("")
    say("  Ctrl-C ends it.", "dim")
    say("")
    sys.stdout.flush()


def _steps(hand: Hand, *, announce: bool) -> Mapping[str, str]:
    folder = config_dir(os.environ) if announce else hand.folder
    parent = {f". {folder}/dev.env": "be the parent agent (CARNET_URL, CARNET_CLIENT_ID, …)"}
    if announce:
        listing = "you are logged in as dev; approving asks for the passphrase"
        return parent | {"carnet demo": "watch the whole story", "carnet list delegations": listing}
    return parent | {f"carnet login --operator {OPERATOR}": "with the passphrase above"}


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


def _told_to_stop() -> threading.Event:
    """Set by Ctrl-C from now on, however early it comes."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
