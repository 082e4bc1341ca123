"""`carnet policy init`: a strict policy to start from."""

import typer

__all__ = ["register"]


def register(group: typer.Typer) -> None:
    del group
