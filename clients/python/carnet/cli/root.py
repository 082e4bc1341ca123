"""The command tree. Commands of the server join through the entry point group `carnet.commands`."""

import sys
from importlib.metadata import entry_points

import typer

from carnet.cli import answering, auditing, listing, login, revoking, tokens
from carnet.cli.demo import command as demo
from carnet.cli.policy import app as policy
from carnet.cli.problems import Exit, Problem
from carnet.cli.visible import visible

__all__ = ["build", "run"]


def build() -> typer.Typer:
    """The whole application, with what is installed."""
    app = typer.Typer(
        name="carnet",
        help="Credentials for agents that delegate: spawn, approve, revoke, audit.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for part in (login, listing, answering, revoking, auditing, tokens, policy, demo):
        part.register(app)
    for entry in entry_points(group="carnet.commands"):
        try:
            entry.load()(app)
        except ModuleNotFoundError as missing:
            _explain(app, missing)
    return app


def _explain(app: typer.Typer, missing: ModuleNotFoundError) -> None:
    def serve() -> None:
        raise Problem(f"This needs the server ({missing.name} is missing): pip install 'carnet[server]'", Exit.USAGE)

    for name in ("serve", "dev", "init"):
        app.command(name, help="Needs carnet[server].")(serve)


def run() -> None:
    """Run the command of sys.argv; every failure is one sentence on stderr and a documented exit code."""
    try:
        build()()
    except Problem as problem:
        sys.stderr.write(f"carnet: {visible(str(problem))}\n")
        raise SystemExit(int(problem.code)) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:
        raise SystemExit(int(Exit.DONE)) from None
