"""The command `carnet dev`. What it starts is imported when it runs, so that no other command waits for it."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("dev")(dev)


def dev(
    listen: Annotated[str, typer.Option(help="A loopback address and port.")] = "127.0.0.1:8420",
    folder: Annotated[Path | None, typer.Option(help="Keep everything here; a temporary folder when omitted.")] = None,
    audience: Annotated[
        list[str] | None, typer.Option(help="HOST=URL: where the tool server desk or orders is reached.")
    ] = None,
    approval_timeout: Annotated[int, typer.Option(min=1, max=3600, help="Seconds to answer an approval.")] = 120,
) -> None:
    """A broker for this machine: loopback, demo registry, fresh secrets, all gone at exit. Not for production."""
    from carnet_broker.dev.running import run

    run(listen=listen, folder=folder, audiences=audience or (), approval_timeout=approval_timeout)
