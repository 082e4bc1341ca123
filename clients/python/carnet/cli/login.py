"""`carnet login`: prove who you are once; the session that it leaves can view, deny and revoke."""

import os
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from carnet.cli.broker import Operator
from carnet.cli.output import say
from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, save
from carnet.cli.terminal import ask_secret
from carnet.errors import ConfigError
from carnet.wire.place import base

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("login")(login)


def login(
    operator: Annotated[str, typer.Option(help="Your name in carnet.yaml.", prompt="Operator")],
    url: Annotated[str | None, typer.Option(help="The broker; CARNET_URL when omitted.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Needed where a broker serves several tenants.")] = None,
) -> None:
    """Log in as an operator; the passphrase is typed at the terminal."""
    address = url or os.environ.get("CARNET_URL")
    if not address:
        raise Problem("Which broker? Give --url or set CARNET_URL.", Exit.USAGE)
    _check_private(address)
    body = {"operator": operator, "passphrase": ask_secret(f"Passphrase of {operator}: "), "tenant": tenant}
    answer = _proved(address, body)
    save(Session(url=address, operator=operator, tenant=answer["tenant"], token=answer["access_token"]), os.environ)
    say(f"Logged in at {address} as {operator} ({answer['role']}) for {answer['expires_in'] // 60} minutes.", "green")


def _check_private(address: str) -> None:
    """A passphrase is sent to an https address, or to this machine."""
    try:
        base(address)
    except ConfigError as fault:
        raise Problem(str(fault), Exit.USAGE) from None


def _proved(address: str, body: Mapping[str, Any]) -> dict[str, Any]:
    broker = Operator(address)
    try:
        return broker.post("/v1/sessions", body)
    except Problem as problem:
        if problem.code is not Exit.LOGIN:
            raise
        raise Problem(
            "The name, the passphrase or the tenant is wrong. (operator_authentication)", Exit.LOGIN
        ) from None
    finally:
        broker.close()
