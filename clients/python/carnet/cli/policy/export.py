"""`carnet policy export`: a policy for another engine, with the same answers or not at all."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from carnet.cli.policy.sources import loaded
from carnet.cli.problems import Exit, Problem
from carnet.cli.visible import visible

__all__ = ["register"]


class Language(StrEnum):
    """The languages that a policy can be written in."""

    REGO = "rego"
    CEDAR = "cedar"


def register(group: typer.Typer) -> None:
    group.command("export")(export)


def export(
    file: Annotated[Path, typer.Argument(help="A policy, or a carnet.yaml.")],
    to: Annotated[Language, typer.Option("--to", help="The language to write.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; standard output when omitted.")
    ] = None,
) -> None:
    """Write a policy for OPA (Rego) or Cedar. Exit 1, with nothing written: something in it does not map."""
    from carnet_policy.export import to_cedar, to_rego

    policy = loaded(file)
    found = to_rego(policy) if to is Language.REGO else to_cedar(policy)
    if not isinstance(found, str):
        for one in found:
            sys.stderr.write(f"{visible(str(one))}\n")
        raise Problem(f"Nothing was exported: {len(found)} part(s) of {file} do not map to {to}.")
    if output is None:
        sys.stdout.write(found)
        return
    try:
        output.write_text(found, "utf-8")
    except OSError as error:
        raise Problem(f"{output} can not be written: {error.strerror or error}.", Exit.USAGE) from None
