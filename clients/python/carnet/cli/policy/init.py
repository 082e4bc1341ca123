"""`carnet policy init`: a strict policy to start from."""

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from carnet.cli.output import say
from carnet.cli.policy.definitions import read_tools
from carnet.cli.problems import Exit, Problem
from carnet_policy import PolicyError

__all__ = ["register"]


def register(group: typer.Typer) -> None:
    group.command("init")(init)


def init(
    tools: Annotated[
        list[Path], typer.Option("--tools", help="Tool definitions (MCP tools/list, OpenAI, Anthropic); repeatable.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file; standard output when omitted.")
    ] = None,
) -> None:
    """Write a policy that asks a person about every call, with a catalog to fill in. Never overwrites a file."""
    from carnet_policy.tooldefs import starting_policy

    definitions = read_tools(tools)
    try:
        text = starting_policy(definitions, _id(output))
    except PolicyError as error:
        raise Problem(f"{error}.", Exit.USAGE) from None
    for file, problem in definitions.problems:
        sys.stderr.write(f"carnet: {file}: {problem}\n")
    if output is None:
        sys.stdout.write(text)
        return
    try:
        with output.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise Problem(f"{output} exists already; name a new file.", Exit.USAGE) from None
    except OSError as error:
        raise Problem(f"{output} can not be written: {error.strerror or error}.", Exit.USAGE) from None
    say(f"{len(definitions.tools)} tools written to {output}. Next: carnet policy check {output}")


def _id(output: Path | None) -> str:
    """A policy's id from the name of its file."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", "" if output is None else output.stem).strip("-._")
    return stem[:128] or "policy"
