"""The group `carnet policy`. Each command lives in its own module and registers itself."""

import typer

from carnet.cli.policy import check, diff, explain, export, init, replay, test

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Write, check and try policies; needs no broker.", no_args_is_help=True)
    for part in (check, init, test, explain, diff, replay, export):
        part.register(group)
    app.add_typer(group, name="policy")
