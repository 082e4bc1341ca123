"""`carnet login`: prove who you are once; the session that it leaves can view, deny and revoke."""

import os
from typing import Annotated

import typer

from carnet.cli.broker import Operator
from carnet.cli.output import say
from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, save
from carnet.cli.terminal import ask_secret

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
    broker = Operator(address)
    body = {"operator": operator, "passphrase": ask_secret(f"Passphrase of {operator}: "), "tenant": tenant}
    answer = broker.post("/v1/sessions", body)
    broker.close()
    save(Session(url=address, operator=operator, tenant=answer["tenant"], token=answer["access_token"]), os.environ)
    say(f"Logged in at {address} as {operator} ({answer['role']}) for {answer['expires_in'] // 60} minutes.", "green")
