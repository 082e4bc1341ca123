"""`carnet revoke`: one record, and everything below it falls."""

import os
from typing import Annotated, Any

import typer

from carnet.cli.broker import Operator, connect, segment
from carnet.cli.output import print_json, say
from carnet.cli.problems import Exit, Problem

__all__ = ["mark_of", "register"]

_KINDS = {"dlg", "apr", "token", "tool", "agent", "client", "host", "policy", "tenant", "key"}
_NAMED = {"agent", "client", "host", "tenant"}  # by names that a person types


def register(app: typer.Typer) -> None:
    app.command("revoke")(revoke)


def mark_of(text: str) -> str:
    """The mark that a person means: `kind:id`, or an id whose prefix says its kind, or a token's jti."""
    if ":" in text:
        if text.split(":", 1)[0] in _KINDS:
            return text
        raise Problem(f"{text}: known kinds are {', '.join(sorted(_KINDS))}.", Exit.USAGE)
    if text.startswith("dlg_"):
        return f"token:{text}" if "." in text else f"dlg:{text}"
    if text.startswith("apr_"):
        return f"apr:{text}"
    raise Problem(f"{text} is neither an id nor a mark such as agent:summarizer.", Exit.USAGE)


def revoke(
    mark: Annotated[
        str, typer.Argument(metavar="MARK|ID", help="dlg_…, apr_…, or kind:id such as agent:clerk, tenant:acme.")
    ],
    reason: Annotated[
        str, typer.Option(help="Kept in the audit record and told to nobody else.")
    ] = "revoked by an operator",
    until: Annotated[str | None, typer.Option(help="Unix seconds, or 'forever'. Default: by the mark's kind.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would fall.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Revoke a delegation, agent, client, host, policy or tenant, with everything below it."""
    target = mark_of(mark)
    with connect(os.environ) as broker:
        if target.startswith("tenant:") and not dry_run:
            _confirm(target)
        answer = _send(broker, target, reason, until, dry_run)
    if as_json:
        print_json(answer)
        return
    verb = "would fall" if dry_run else "fell"
    say(
        f"{target}: {answer['count']} live delegation{'s' * (answer['count'] != 1)} {verb}.",
        "yellow" if dry_run else "green",
    )
    if answer["count"] == 0 and target.split(":", 1)[0] in _NAMED:
        say("Nothing that lives carries this name: is it spelt as in carnet.yaml?", "yellow")
    for id in answer.get("falls", ()):
        say(f"  {id}")
    guards = answer.get("guards")
    if guards and not dry_run:
        say(f"{guards['applied']} of {guards['total']} guards have applied it.")


def _send(broker: Operator, mark: str, reason: str, until: str | None, dry_run: bool) -> dict[str, Any]:
    if mark.startswith("apr:") and not dry_run:
        id = mark.removeprefix("apr:")
        answered = broker.post(f"/v1/approvals/{segment(id)}/answer", {"verdict": "withdraw", "note": reason})
        return {"mark": mark, "count": 1, "falls": [answered["delegation"]]}
    end: int | str | None = until
    if until is not None and until != "forever":
        if not until.isdigit():
            raise Problem("--until is Unix seconds or 'forever'.", Exit.USAGE)
        end = int(until)
    return broker.post("/v1/revocations", {"mark": mark, "reason": reason, "until": end, "dry_run": dry_run or None})


def _confirm(mark: str) -> None:
    name = mark.split(":", 1)[1]
    if typer.prompt(f"This stops every agent of {name}. Type its name to go on") != name:
        raise Problem("The name differs: nothing was revoked.")
