"""`carnet approve` and `carnet deny`: show all that is asked, then answer once."""

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from carnet.cli.asked import envelope_words, task_words
from carnet.cli.broker import Operator, connect, segment
from carnet.cli.output import duration, fields, print_json, say
from carnet.cli.problems import Exit, Problem
from carnet.cli.terminal import ask_secret

__all__ = ["register", "show_approval"]

Id = Annotated[str, typer.Argument(metavar="ID", help="apr_…, or dlg_… whose approval is asked.")]
Note = Annotated[str | None, typer.Option(help="Kept in the audit record.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answered approval as JSON.")]


def register(app: typer.Typer) -> None:
    app.command("approve")(approve)
    app.command("deny")(deny)


def approve(id: Id, note: Note = None, as_json: AsJson = False) -> None:
    """Approve a delegation or one exact call. Asks for your passphrase each time."""
    with connect(os.environ) as broker:
        approval = _find(broker, id)
        if not as_json:
            show_approval(approval)
        passphrase = ask_secret("Passphrase to approve exactly this: ")
        _answer(broker, approval["id"], {"verdict": "approve", "note": note, "passphrase": passphrase}, as_json)


def deny(id: Id, note: Note = None, as_json: AsJson = False) -> None:
    """Deny what is asked. The delegation ends with it; after a call it goes on where the policy says so (on_denial)."""
    with connect(os.environ) as broker:
        _answer(broker, _find(broker, id)["id"], {"verdict": "deny", "note": note}, as_json)


def _find(broker: Operator, id: str) -> dict[str, Any]:
    if id.startswith("dlg_"):
        document = broker.get(f"/v1/delegations/{segment(id)}")
        if not document.get("approval"):
            raise Problem(f"{id} is a run: it has no approval.", Exit.USAGE)
        id = document["approval"]["id"]
    if not id.startswith("apr_"):
        raise Problem(f"{id} is no approval: ids of approvals begin with apr_ (`carnet list approvals`).", Exit.USAGE)
    return broker.get(f"/v1/approvals/{segment(id)}")


def _answer(broker: Operator, id: str, body: dict[str, Any], as_json: bool) -> None:
    answered = broker.post(f"/v1/approvals/{segment(id)}/answer", body)
    if as_json:
        print_json(answered)
        return
    say(f"{id} is {answered['state']}.", "green" if answered["state"] in ("approved", "spent") else "yellow")


def show_approval(approval: dict[str, Any]) -> None:
    """Everything a person must see before answering: every argument, not only those a rule names."""
    asked = "call" if approval.get("kind") == "call" else "delegation"
    lines = {
        name: approval.get(name)
        for name in (
            "state",
            "agent",
            "target",
            "tool",
            "task",
            "payload",
            "envelope",
            "rule",
            "reason",
            "answered_by",
            "note",
            "run",
            "delegation",
        )
    }
    for name, words in (("task", task_words), ("envelope", envelope_words)):
        if approval.get(name):
            lines[name] = words(approval[name])
    if approval.get("state") == "pending":
        lines["time left"] = duration(approval.get("seconds_left") or 0)
    fields(f"{approval['id']}  approval of a {asked}", lines)
    if approval.get("args"):
        fields("  arguments", approval["args"])
    if asked == "delegation" and approval.get("envelope"):
        _show_bounds(approval["envelope"])
        if approval.get("state") == "pending":
            _show_unasked(approval.get("unasked_tools") or ())


def _show_bounds(envelope: dict[str, Any]) -> None:
    """Within which bounds each call must be."""
    ceilings = envelope.get("ceilings") or {}
    fields(
        "  bounds of single calls",
        {
            tool: {
                "max_calls": ceilings.get(tool, {}).get("max_calls", "no bound"),
                "args": ceilings.get(tool, {}).get("args") or "no bound",
            }
            for tool in envelope.get("tools", ())
        },
    )


def _show_unasked(unasked: Sequence[str]) -> None:
    """What a yes would let happen without anybody being asked again."""
    if unasked:
        say(f"  After a yes these tools run WITHOUT a further question: {', '.join(unasked)}", "yellow")
    else:
        say("  After a yes each call still asks, or is denied.")
