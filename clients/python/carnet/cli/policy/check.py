"""`carnet policy check`: what is wrong with a policy, or worth a second look, before it comes into force."""

import typer

__all__ = ["register"]


def register(group: typer.Typer) -> None:
    del group
