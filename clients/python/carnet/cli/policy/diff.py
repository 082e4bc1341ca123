"""`carnet policy diff`: the calls that two policies answer differently, with an example each."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from carnet.cli.output import print_json, say
from carnet.cli.policy.definitions import read_tools
from carnet.cli.policy.sources import loaded
from carnet.cli.problems import Exit
from carnet_policy.excerpt import label
from carnet_policy.explain import shown_args

if TYPE_CHECKING:
    from carnet_policy.differ import Change, Difference
    from carnet_policy.tables.case import Past
    from carnet_policy.tooldefs import Shape

__all__ = ["register"]

Policy = Annotated[Path, typer.Argument(help="A policy, or a carnet.yaml.")]


def register(group: typer.Typer) -> None:
    group.command("diff")(compare)


def compare(
    old: Policy,
    new: Policy,
    tools: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Tool definitions: their arguments are tried too.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--tool", metavar="NAME", help="Compare this tool only.")] = None,
    fail_on_widen: Annotated[
        bool, typer.Option("--fail-on-widen", help="Exit 1 when anything got less strict.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Compare two policies over calls at the edges of both. Exit 0 unless --fail-on-widen finds something wider."""
    from carnet_policy.differ import diff

    found = diff(loaded(old), loaded(new), _schemas(tools or []), only or ())
    if as_json:
        print_json(_json(found))
    else:
        _print(found)
    if fail_on_widen and found.wider:
        raise typer.Exit(int(Exit.REFUSED))


def _schemas(files: Sequence[Path]) -> dict[str, dict[str, tuple[object, ...]]]:
    if not files:
        return {}
    defined = read_tools(files).tools
    return {
        name: {arg: tuple(_values(shape)) for arg, shape in one.shape.properties.items()}
        for name, one in defined.items()
        if one.shape is not None
    }


def _values(shape: "Shape") -> Iterator[object]:
    """Values that the schema lets through, and its bounds."""
    yield from shape.enum or ()
    for bound in (shape.minimum, shape.maximum):
        if bound is not None:
            yield bound
    plain: Mapping[str, object] = {
        "string": "x",
        "integer": 1,
        "number": 0.5,
        "boolean": True,
        "array": [],
        "object": {},
    }
    yield from (value for kind, value in plain.items() if kind in shape.types)


def _print(found: "Difference") -> None:
    word = ""
    for change in found.changes:
        if change.word != word:
            word = change.word
            say(f"{word}{'  (wider)' if change.wider else ''}", "red" if change.wider else "yellow")
        args = ", ".join(f"{name}: {value}" for name, value in shown_args(change.call.args).items())
        pin = ", pinned by the envelope" if change.call.pinned else ""
        say(f"  {label(change.tool)}({args}){pin}")
        for title, rows in (("after", change.past.run), ("after, in other runs", change.past.client)):
            if rows:
                say(f"    {title}: {_rows(rows)}")
        say(f"    was {_by(change, old=True)}; is {_by(change, old=False)}; {change.count} of the calls tried")
    for fact in found.facts:
        say(
            f"{fact.what}: {fact.before} -> {fact.after}{'  (wider)' if fact.wider else ''}",
            "red" if fact.wider else "",
        )
    for words in found.blind:
        say(f"not probed: {words}", "yellow")
    calls = sum(change.count for change in found.changes)
    say(f"{calls} of {found.tried} calls tried are answered differently." if calls else _none(found))


def _none(found: "Difference") -> str:
    alike = f" {found.alike} tools have the same rules and bounds in both." if found.alike else ""
    return f"No decision changes in {found.tried} calls at the edges of both policies.{alike}"


def _by(change: "Change", *, old: bool) -> str:
    found = change.before if old else change.after
    return f"{found.effect} by {found.rule or 'no rule'} ({found.reason})"


def _rows(rows: "Sequence[Past]") -> str:
    first = rows[0]
    args = ", ".join(f"{name}: {value}" for name, value in shown_args(first.args).items())
    return f"{len(rows)} x {label(first.tool)}({args})"


def _json(found: "Difference") -> dict[str, Any]:
    return {
        "wider": found.wider,
        "tried": found.tried,
        "alike": found.alike,
        "changes": [_change(change) for change in found.changes],
        "facts": [
            {"what": fact.what, "before": fact.before, "after": fact.after, "wider": fact.wider} for fact in found.facts
        ],
        "not_probed": list(found.blind),
    }


def _change(change: "Change") -> dict[str, Any]:
    past = change.past
    return {
        "tool": change.tool,
        "change": change.word,
        "wider": change.wider,
        "count": change.count,
        "before": {"decision": change.before.effect.value, "rule": change.before.rule, "reason": change.before.reason},
        "after": {"decision": change.after.effect.value, "rule": change.after.rule, "reason": change.after.reason},
        "example": {
            "call": {"tool": change.tool, "args": change.call.args, "pinned": change.call.pinned},
            "history": [_past(row) for row in past.run],
            "client_history": [_past(row) for row in past.client],
        },
    }


def _past(row: "Past") -> dict[str, Any]:
    return {"tool": row.tool, "args": dict(row.args), "outcome": row.outcome, "age": row.age}
