"""`carnet audit`: search, export and verify what was decided."""

import os
import sys
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from carnet.cli.broker import connect
from carnet.cli.output import more, print_json, say, table
from carnet.cli.problems import Exit, Problem
from carnet.reasons import Reason

__all__ = ["register"]

_COLUMNS = ("seq", "time (UTC)", "event", "actor", "tool", "decision", "reason", "rule")
_REASONS = tuple(code.value for code in Reason)
_DECISIONS = ("allow", "deny", "require_approval", "approve", "withdraw")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Search, export and verify the audit log.", no_args_is_help=True)
    group.command("search")(search)
    group.command("export")(export)
    group.command("verify")(verify)
    app.add_typer(group, name="audit")


def search(
    run: Annotated[str | None, typer.Option(help="dlg_… of a run: it and everything below it.")] = None,
    delegation: Annotated[str | None, typer.Option(help="dlg_… of one delegation.")] = None,
    agent: Annotated[str | None, typer.Option(help="Name of an agent.")] = None,
    tool: Annotated[str | None, typer.Option(help="Name of a tool.")] = None,
    call: Annotated[str | None, typer.Option(help="call_… of one call.")] = None,
    decision: Annotated[str | None, typer.Option(help=f"{', '.join(_DECISIONS)}.")] = None,
    reason: Annotated[str | None, typer.Option(help="A reason code, such as scope_missing.")] = None,
    trace: Annotated[str | None, typer.Option(help="32 hex digits of a trace.")] = None,
    since: Annotated[int | None, typer.Option(help="Unix seconds, inclusive.")] = None,
    until: Annotated[int | None, typer.Option(help="Unix seconds, exclusive.")] = None,
    after: Annotated[str | None, typer.Option(help="Go on where an answer that was cut ended.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Records in one answer.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Records that match every given filter, oldest first."""
    filters = {
        "run": run, "delegation": delegation, "agent": agent, "tool": tool, "call": call, "decision": decision,
        "reason": reason, "trace": trace, "since": since, "until": until, "after": after, "limit": limit,
    }  # fmt: skip
    with connect(os.environ) as broker:
        answer = broker.get("/v1/audit", filters)
    if not answer["records"]:
        _check_words(decision, reason)
    if as_json:
        print_json(answer)
        return
    table("Audit", _COLUMNS, [_row(record) for record in answer["records"]])
    more(answer)


def _check_words(decision: str | None, reason: str | None) -> None:
    """Nothing was found: a word that no record can hold must not read as all is quiet."""
    if decision is not None and decision not in _DECISIONS:
        raise Problem(f"{decision} is no decision: {', '.join(_DECISIONS)}.", Exit.USAGE)
    if reason is not None and reason not in _REASONS:
        close = get_close_matches(reason, _REASONS, 1)
        hint = f"did you mean {close[0]}?" if close else "docs/reasons.md lists them."
        raise Problem(f"{reason} is no reason code; {hint}", Exit.USAGE)


def _row(record: dict[str, Any]) -> list[Any]:
    when = datetime.fromtimestamp(record["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
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


def verify(as_json: AsJson = False) -> None:
    """Check every link and every signed checkpoint of the log."""
    with connect(os.environ) as broker:
        answer = broker.get("/v1/audit/verify")
    if as_json:
        print_json(answer)
    elif answer["ok"]:
        say(f"The chain holds: {answer['sealed']} records sealed, {answer['unsealed']} not sealed yet.", "green")
    if not answer["ok"]:
        raise Problem(f"The log was changed: {answer.get('problem')}")
