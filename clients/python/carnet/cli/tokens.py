"""`carnet token inspect`: read a token without trusting it."""

import base64
import json
import sys
from typing import Annotated, Any

import typer

from carnet.cli.output import fields, print_json
from carnet.cli.problems import Problem

__all__ = ["register"]

_STDIN = "-"
_LONGEST = 4096  # bytes: what the verifier accepts


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Look into tokens.", no_args_is_help=True)
    group.callback()(lambda: None)
    group.command("inspect")(inspect)
    app.add_typer(group, name="token")


def inspect(
    token: Annotated[
        str, typer.Argument(help="'-' reads standard input, so that the token stays out of the shell's history.")
    ] = _STDIN,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show header and claims. Nothing is verified: the signature is not looked at."""
    text = (sys.stdin.readline() if token == _STDIN else token).strip()
    if len(text) > _LONGEST or text.count(".") != 2:
        raise Problem("This is no compact JWT of at most 4096 bytes.")
    header, claims = (_part(piece) for piece in text.split(".")[:2])
    if as_json:
        print_json({"verified": False, "header": header, "claims": claims})
        return
    fields("header (not verified)", header)
    fields("claims (not verified)", claims)


def _part(piece: str) -> dict[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)))
    except ValueError:
        raise Problem("A part of the token is no base64url JSON.") from None
    if not isinstance(value, dict):
        raise Problem("A part of the token is no JSON object.")
    return value
