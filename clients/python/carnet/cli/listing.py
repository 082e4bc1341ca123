"""`carnet list`, `show` and `tree`: what runs, what waits, who listens."""

import os
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from carnet.cli.answering import show_approval
from carnet.cli.broker import Operator, connect, segment
from carnet.cli.growing import draw_tree
from carnet.cli.output import duration, fields, moment, more, print_json, table
from carnet.cli.problems import Exit, Problem

__all__ = ["register"]

_TIMES = ("at", "created_at", "start", "expires_at")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


class What(StrEnum):
    APPROVALS = "approvals"
    DELEGATIONS = "delegations"
    GUARDS = "guards"
    KEYS = "keys"


def register(app: typer.Typer) -> None:
    app.command("list")(list_)
    app.command("show")(show)
    app.command("tree")(tree)


def list_(
    what: What,
    state: Annotated[
        str | None, typer.Option(help="approvals: pending, all. delegations: active, pending, ended.")
    ] = None,
    run: Annotated[str | None, typer.Option(help="Only delegations of this run.")] = None,
    after: Annotated[str | None, typer.Option(help="Go on where an answer that was cut ended.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Approvals or delegations in one answer.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List approvals, delegations, guards or keys."""
    filters = _filters(what, {"state": state, "run": run, "after": after, "limit": limit})
    with connect(os.environ) as broker:
        answer = broker.get(f"/v1/{what.value}", filters)
    if as_json:
        print_json(answer)
        return
    _TABLES[what](answer[what.value], answer)
    more(answer)


def _filters(what: What, given: dict[str, Any]) -> dict[str, Any]:
    """What this listing takes; a filter that it does not have is said, for the answer would be another one."""
    known = {What.APPROVALS: ("state", "after", "limit"), What.DELEGATIONS: ("state", "run", "after", "limit")}
    taken = {name: value for name, value in given.items() if name in known.get(what, ())}
    if foreign := [name for name in ("state", "run", "after") if given[name] is not None and name not in taken]:
        raise Problem(f"--{foreign[0]} does not go with {what.value}.", Exit.USAGE)
    return taken


def _approvals(rows: list[dict[str, Any]], _answer: dict[str, Any]) -> None:
    rows = sorted(rows, key=lambda row: row.get("seconds_left") or 0)
    cells = [
        [
            row["id"],
            row["state"],
            row.get("tool") or row.get("target") or row.get("agent"),
            _asked(row),
            duration(row.get("seconds_left") or 0) if row["state"] == "pending" else None,
            row.get("answered_by"),
        ]
        for row in rows
    ]
    columns = ["id", "state", "asked", "for", "time left", "by"]
    if not any(row.get("answered_by") for row in rows):
        columns, cells = columns[:-1], [cell[:-1] for cell in cells]
    table("Approvals", columns, cells)


def _asked(row: dict[str, Any]) -> Any:
    """A call's arguments, or what a delegation would be able to do."""
    if row.get("kind") == "call":
        return row.get("args")
    envelope = row.get("envelope")
    if not envelope:
        return None
    unasked = f"; runs unasked: {' '.join(row['unasked_tools'])}" if row.get("unasked_tools") else ""
    return f"level {envelope.get('level')}: {' '.join(envelope.get('tools', ()))}{unasked}"


def _delegations(rows: list[dict[str, Any]], _answer: dict[str, Any]) -> None:
    now = time.time()
    cells = [
        [row["id"], row["agent"], row["state"], row.get("reason"), row["envelope"]["level"],
         " ".join(row["envelope"]["tools"]), duration(row["expires_at"] - now) if _lives(row) else None]
        for row in rows
    ]  # fmt: skip
    table("Delegations", ["id", "agent", "state", "reason", "level", "tools", "time left"], cells)


def _lives(row: dict[str, Any]) -> bool:
    return row["state"] == "active" and bool(row.get("expires_at"))


def _guards(rows: list[dict[str, Any]], answer: dict[str, Any]) -> None:
    cells = [[row["guard"], row["seq"], row["lag"], "lost" if row["lost"] else "follows"] for row in rows]
    table(f"Guards (feed at {answer.get('seq')})", ["guard", "applied", "lag", "state"], cells)


def _keys(rows: list[dict[str, Any]], _answer: dict[str, Any]) -> None:
    # keys that live in memory only have no time of birth
    cells = [[row["kid"], row["state"], moment(row["since"]) if row["since"] else None] for row in rows]
    table("Signing keys", ["kid", "state", "since"], cells)


_TABLES = {
    What.APPROVALS: _approvals,
    What.DELEGATIONS: _delegations,
    What.GUARDS: _guards,
    What.KEYS: _keys,
}


def show(id: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
    """Show one delegation, approval or call; the prefix of the id says which."""
    with connect(os.environ) as broker:
        document = _fetch(broker, id)
    if as_json:
        print_json(document)
    elif id.startswith("apr_"):
        show_approval(document)
    else:
        fields(id, _dated(document))


def _dated(document: dict[str, Any]) -> dict[str, Any]:
    """The same for a person: Unix seconds as dates."""
    return {name: moment(value) if name in _TIMES and value else value for name, value in document.items()}


def _fetch(broker: Operator, id: str) -> dict[str, Any]:
    if id.startswith("dlg_"):
        return broker.get(f"/v1/delegations/{segment(id)}")
    if id.startswith("apr_"):
        return broker.get(f"/v1/approvals/{segment(id)}")
    if id.startswith("call_"):
        found = broker.get("/v1/audit", {"call": id, "limit": 50})
        if not found["records"]:
            raise Problem(f"Nothing is on record for {id}.")
        first: dict[str, Any] = found["records"][0]
        return first | {"records": len(found["records"])}
    raise Problem(f"{id} is no id: they begin with dlg_, apr_ or call_.", Exit.USAGE)


def tree(
    id: Annotated[str, typer.Argument(metavar="ID", help="A run or a delegation.")], as_json: AsJson = False
) -> None:
    """Draw a run: who was spawned, what each may do, what state it is in."""
    with connect(os.environ) as broker:
        document = broker.get(f"/v1/delegations/{segment(id)}/tree")
    if as_json:
        print_json(document)
    else:
        draw_tree(document, time.time())
