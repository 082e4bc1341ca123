"""The server's part of the `carnet` command. Joins the command line through its entry point group.

The server is imported inside the commands: `carnet approve` on a broker's machine is not to wait for it.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carnet.cli.output import print_json, say, table
from carnet.cli.problems import Exit, Problem

if TYPE_CHECKING:
    from carnet_broker.checkup import Finding
    from carnet_broker.settings import Settings

__all__ = ["register"]

_MIN_PASSPHRASE = 12
_SECRET_FILE = "first-admin.passphrase"
Json = Annotated[bool, typer.Option("--json", help="For programs.")]


def register(app: typer.Typer) -> None:
    """Add the server's commands to the root application."""
    app.command("serve")(_serve)
    app.command("init")(_init)
    app.command("recover")(_recover)
    app.command("doctor")(_doctor)
    config = typer.Typer(help="Look at configuration files.", no_args_is_help=True)
    config.command("check")(_config_check)
    app.add_typer(config, name="config")
    keys = typer.Typer(help="Rotate and retire signing keys.", no_args_is_help=True)
    keys.command("rotate")(_keys_rotate)
    # the id of a key may begin with a dash, and is no option then
    keys.command("retire", context_settings={"ignore_unknown_options": True})(_keys_retire)
    app.add_typer(keys, name="keys")


def _serve() -> None:
    """Run the broker. Settings come from CARNET_* variables."""
    with _problems():
        from carnet_broker.runner import serve

        serve(_settings())


def _init(
    tenant: Annotated[str, typer.Option(help="Name of the first tenant.")] = "main",
    operator: Annotated[str, typer.Option(help="Name of the first admin.")] = "admin",
) -> None:
    """Make key directory, store and a starting carnet.yaml with the first admin."""
    with _problems():
        from carnet_broker.initialise import check_unused, initialise, new_passphrase, write_new

        settings = _settings()
        check_unused(settings)
        typed = sys.stdin.isatty()
        passphrase = _ask_passphrase(operator) if typed else new_passphrase()
        asyncio.run(initialise(settings, tenant=tenant, operator=operator, passphrase=passphrase))
        say(f"Made {settings.config}, its policy, the store, and the key directory {settings.keys}.", "green")
        if not typed:
            secret = settings.config.parent / _SECRET_FILE
            write_new(secret, passphrase + "\n")
            say(f"The passphrase of {operator} is in {secret} (mode 0600). Read it, keep it safe, delete the file.")
        say("Next: set CARNET_ISSUER to the public https URL, then `carnet doctor` and `carnet serve`.")


def _recover(
    accept_loss: Annotated[bool, typer.Option("--accept-loss", help="Revocations of the lost store are lost.")] = False,
) -> None:
    """Begin a new epoch after the store was lost, so that every guard reloads."""
    if not accept_loss:
        raise Problem(
            "What the lost store had revoked lives until it expires. Restore a backup if there is one; else repeat "
            "with --accept-loss, then run `carnet keys rotate` twice and retire the old keys.",
            Exit.USAGE,
        )
    with _problems():
        from carnet_broker.initialise import recover

        epoch = asyncio.run(recover(_settings()))
        say(f"The store has begun a new epoch ({epoch}); guards reload when they see it.", "green")


def _doctor(as_json: Json = False) -> None:
    """Look at everything that `carnet serve` needs, and change nothing."""
    with _problems():
        from carnet_broker.checkup import examine

        found = examine(_settings())
    if as_json:
        print_json([{"what": f.what, "fact": f.fact, "problem": f.problem, "warning": f.warning} for f in found])
    else:
        table("Doctor", ["", "what", "fact", "problem"], [_row(f) for f in found])
    if any(f.problem for f in found):
        raise typer.Exit(int(Exit.REFUSED))


def _row(found: "Finding") -> list[str]:
    mark = "✗" if found.problem else "!" if found.warning else "✓"
    return [mark, found.what, found.fact, found.problem or found.warning or ""]


def _config_check(
    path: Annotated[Path | None, typer.Argument(help="A carnet.yaml, or a folder with one per tenant.")] = None,
) -> None:
    """Say whether a configuration would load, and where not."""
    with _problems():
        from carnet_broker.config.load import load_registries

        where = path or _settings().config
        from carnet_broker.config.doubts import doubts

        registries = load_registries(where)
    rows = [[t, len(r.agents), len(r.hosts), len(r.clients), len(r.operators)] for t, r in sorted(registries.items())]
    table(f"{where} loads", ["tenant", "agents", "hosts", "clients", "operators"], rows)
    for tenant, registry in sorted(registries.items()):
        for doubt in doubts(registry):
            say(f"warning: {tenant}: {doubt}", "yellow")


def _keys_rotate() -> None:
    """Sign with the prepared key from now on and prepare another one. A running broker follows within seconds."""
    with _problems():
        from carnet.clock import SystemClock
        from carnet_broker.keys import KeyRing

        keys = KeyRing.open(_settings().keys)
        kid = keys.rotate(SystemClock().now())
        say(f"The active key is {kid}. The key before it verifies until you run `carnet keys retire` for it.", "green")


def _keys_retire(kid: Annotated[str, typer.Argument(help="A retiring key; `carnet list keys` names them.")]) -> None:
    """Publish a retiring key no longer: what it signed is refused from then on."""
    with _problems():
        from carnet_broker.keys import KeyRing

        KeyRing.open(_settings().keys).retire(kid)
        say(f"{kid} is retired.", "green")


def _settings() -> "Settings":
    from carnet_broker.settings import load_settings

    return load_settings(os.environ)


def _ask_passphrase(operator: str) -> str:
    first = getpass(f"Passphrase for {operator} ({_MIN_PASSPHRASE} characters or more): ")
    if len(first) < _MIN_PASSPHRASE:
        raise Problem(f"A passphrase needs {_MIN_PASSPHRASE} characters; four random words are a good one.")
    if getpass("Once more: ") != first:
        raise Problem("The two were not the same; nothing was made.")
    return first


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except Exception as fault:  # noqa: BLE001 - raised again, as a sentence where there is one
        raise _as_problem(fault) from None


def _as_problem(fault: Exception) -> Exception:
    """The sentence of a foreseen fault; what nobody foresaw stays what it is."""
    from carnet.errors import ConfigError
    from carnet_broker.keys import KeysError
    from carnet_broker.main import StartRefused
    from carnet_broker.settings import SettingsError
    from carnet_broker.store.base import Unavailable

    if isinstance(fault, SettingsError):
        return Problem(str(fault), Exit.USAGE)
    if isinstance(fault, Unavailable):
        return Problem(str(fault), Exit.UNAVAILABLE)
    if isinstance(fault, StartRefused | ConfigError | KeysError | ValueError):
        return Problem(str(fault))
    return fault
