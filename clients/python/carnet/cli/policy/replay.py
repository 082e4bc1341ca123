"""`carnet policy replay`: a candidate policy over decisions that were really made."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carnet.cli.output import print_json, say
from carnet.cli.policy.sources import loaded, records_of
from carnet.cli.problems import Exit, Problem
from carnet_policy import PolicyError
from carnet_policy.excerpt import label
from carnet_policy.explain import shown_args

if TYPE_CHECKING:
    from carnet_policy.recorded import Recorded
    from carnet_policy.replay import Flip, Replay

__all__ = ["register"]


def register(group: typer.Typer) -> None:
    group.command("replay")(replay_export)


def replay_export(
    new: Annotated[Path, typer.Argument(help="The candidate: a policy, or a carnet.yaml.")],
    audit: Annotated[Path, typer.Option(metavar="FILE", help="What `carnet audit export` wrote.")],
    max_flips: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Exit 1 when more decisions than this change.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Which recorded decisions the candidate would have made otherwise. What records do not show is called unknown."""
    from carnet_policy.replay import replay

    policy = loaded(new)
    try:
        found = replay(policy, records_of(audit))
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None
    if as_json:
        print_json(_json(found))
    else:
        _print(found)
    if max_flips is not None and found.flipped > max_flips:
        raise typer.Exit(int(Exit.REFUSED))


def _print(found: "Replay") -> None:
    for flip in found.flips:
        say(f"{flip.word}  {label(flip.tool)}  {flip.count} times", "red")
        say(f"    was {flip.old_rule or 'no rule'}; is {_by(flip)}")
        say(f"    first: record {flip.example.seq} of run {flip.example.run or '-'}: {_call(flip.example)}")
    for (tool, hidden), count in sorted(found.unknown.items()):
        why = f"the records hide {', '.join(hidden)}" if hidden else "the records do not show all it depends on"
        say(f"unknown  {label(tool)}  {count} times: {why}", "yellow")
    unknown, elsewhere = sum(found.unknown.values()), sum(found.elsewhere.values())
    say(f"{found.flipped} flips, {found.same} the same, {unknown} unknown, {elsewhere} not decided by a policy")


def _by(flip: "Flip") -> str:
    return f"{flip.rule or 'no rule'} ({flip.reason})" if flip.reason else "certain, though not by which rule"


def _call(call: "Recorded") -> str:
    hidden = [f"{label(name)}: (hidden)" for name in sorted(call.hidden)]
    return f"{label(call.tool)}({', '.join([*(f'{n}: {v}' for n, v in shown_args(call.known).items()), *hidden])})"


def _json(found: "Replay") -> dict[str, Any]:
    return {
        "flipped": found.flipped,
        "same": found.same,
        "unknown": sum(found.unknown.values()),
        "elsewhere": dict(found.elsewhere),
        "flips": [_flip(flip) for flip in found.flips],
        "unknown_by_tool": [
            {"tool": tool, "hidden": list(hidden), "count": count} for (tool, hidden), count in found.unknown.items()
        ],
    }


def _flip(flip: "Flip") -> dict[str, Any]:
    example = flip.example
    return {
        "tool": flip.tool,
        "before": flip.before.value,
        "after": sorted(flip.after),
        "old_rule": flip.old_rule,
        "rule": flip.rule,
        "reason": flip.reason,
        "count": flip.count,
        "example": {
            "seq": example.seq,
            "run": example.run,
            "call": example.call,
            "args": dict(example.known),
            "hidden": sorted(example.hidden),
        },
    }
