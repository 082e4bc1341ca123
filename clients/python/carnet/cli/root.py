"""The command tree. Commands of the server join through the entry point group `carnet.commands`; they import the server
only when they run, so that an operator's commands do not wait for it."""

import sys
from importlib.metadata import entry_points, version
from typing import Annotated, NoReturn

import typer

from carnet.cli import answering, auditing, listing, login, revoking, tokens
from carnet.cli.demo import command as demo
from carnet.cli.output import say
from carnet.cli.policy import app as policy
from carnet.cli.problems import Exit, Problem
from carnet.cli.visible import visible

__all__ = ["build", "run"]

_OURS = ("carnet", "carnet_broker", "carnet_policy")  # of these, a missing module is a fault and no missing extra


def build() -> typer.Typer:
    """The whole application, with what is installed."""
    app = typer.Typer(
        name="carnet",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for part in (login, listing, answering, revoking, auditing, tokens, policy, demo):
        part.register(app)
    for entry in entry_points(group="carnet.commands"):
        entry.load()(app)
    return app


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"carnet {version('carnet')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Credentials for agents that delegate: spawn, approve, revoke, audit."""


def run() -> None:
    """Run the command of sys.argv; every failure is one sentence on stderr and a documented exit code."""
    try:
        build()()
    except Problem as problem:
        _fail(problem)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] in _OURS:
            raise
        _fail(Problem(f"This needs the server ({missing.name} is missing): pip install 'carnet[server]'", Exit.USAGE))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(int(Exit.DONE)) from None


def _fail(problem: Problem) -> NoReturn:
    sys.stderr.write(f"carnet: {visible(str(problem))}\n")
    raise SystemExit(int(problem.code)) from None
