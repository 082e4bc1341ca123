"""`carnet audit`: search, export and verify what was decided."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from carnet.cli.broker import connect
from carnet.cli.output import print_json, say, table
from carnet.cli.problems import Problem

__all__ = ["register"]

Text = Annotated[str | None, typer.Option()]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Search, export and verify the audit log.", no_args_is_help=True)
    group.command("search")(search)
    group.command("export")(export)
    group.command("verify")(verify)
    app.add_typer(group, name="audit")


def search(
    run: Text = None,
    delegation: Text = None,
    agent: Text = None,
    tool: Text = None,
    decision: Text = None,
    reason: Text = None,
    trace: Text = None,
    since: Annotated[int | None, typer.Option(help="Unix seconds, inclusive.")] = None,
    until: Annotated[int | None, typer.Option(help="Unix seconds, exclusive.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 50,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Records that match every given filter."""
    filters = {
        "run": run, "delegation": delegation, "agent": agent, "tool": tool, "decision": decision, "reason": reason,
        "trace": trace, "since": since, "until": until, "limit": limit,
    }  # fmt: skip
    with connect(os.environ) as broker:
        answer = broker.get("/v1/audit", filters)
    if as_json:
        print_json(answer)
    else:
        table(
            "Audit",
            ["seq", "time", "event", "actor", "tool", "decision", "reason", "rule"],
            [_row(r) for r in answer["records"]],
        )


def _row(record: dict[str, Any]) -> list[Any]:
    when = datetime.fromtimestamp(record["at"], UTC).strftime("%H:%M:%S")
    names = ("kind", "actor", "tool", "decision", "reason", "rule")
    return [record["seq"], when, *(record.get(name) for name in names)]


def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file; standard output when omitted.")
    ] = None,
) -> None:
    """All records with their hashes, then the signed checkpoints, one JSON object a line."""
    with connect(os.environ) as broker:
        if output is None:
            for line in broker.lines("/v1/audit/export"):
                sys.stdout.write(line + "\n")
            return
        try:
            with output.open("x", encoding="utf-8") as out:
                count = sum(1 for line in broker.lines("/v1/audit/export") if out.write(line + "\n"))
        except FileExistsError:
            raise Problem(f"{output} exists already; name a new file.") from None
    say(f"{count} lines written to {output}.")


def verify(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Check every link and every signed checkpoint of the log."""
    with connect(os.environ) as broker:
        answer = broker.get("/v1/audit/verify")
    if as_json:
        print_json(answer)
    elif answer["ok"]:
        say(f"The chain holds: {answer['sealed']} records sealed, {answer['unsealed']} not sealed yet.", "green")
    if not answer["ok"]:
        raise Problem(f"The log was changed: {answer.get('problem')}")
