"""`carnet policy explain`: one call, every rule that was tried, and why the answer is what it is."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from carnet.arguments import parse
from carnet.cli.output import print_json, say
from carnet.cli.policy.sources import loaded, read_text, records_of
from carnet.cli.problems import Exit, Problem
from carnet.reasons import CATALOGUE, Refusal
from carnet_policy import Call, Effect, Policy, PolicyError
from carnet_policy.excerpt import label
from carnet_policy.explain import Trace, explain, shown_args
from carnet_policy.tables.case import Past
from carnet_policy.tables.reader import read_pasts
from carnet_policy.tables.run import ledger_of

__all__ = ["register"]

TONES = {Effect.ALLOW: "green", Effect.DENY: "red", Effect.REQUIRE_APPROVAL: "yellow"}
ANSWERS = {True: "match", False: "no match", None: "unclear"}
MAX_TEXT = 1 << 20


def register(group: typer.Typer) -> None:
    group.command("explain")(explain_call)


def explain_call(
    file: Annotated[Path, typer.Argument(help="A policy, or a carnet.yaml.")],
    tool: Annotated[str, typer.Argument(help="The tool that is called.")] = "",
    args: Annotated[str, typer.Argument(help="JSON object; @FILE or - (standard input) reads it.")] = "{}",
    history: Annotated[
        str, typer.Option(help="Past calls of the run, as in test files: a list, YAML or JSON; @FILE reads it.")
    ] = "[]",
    client_history: Annotated[str, typer.Option(help="Past calls of the client in other runs, likewise.")] = "[]",
    pinned: Annotated[bool, typer.Option("--pinned", help="The approved envelope pins the tool.")] = False,
    audit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Expand a decision of this export instead.")
    ] = None,
    seq: Annotated[int | None, typer.Option(metavar="N", help="The number of its record.")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Every rule tried and why it matched or not, the history's part, the floor, the decision."""
    policy = loaded(file)
    if bool(tool) == (audit is not None and seq is not None) or (audit is None) != (seq is None):
        raise Problem("Name either a tool, or --audit and --seq.", Exit.USAGE)
    if audit is not None and seq is not None:
        trace = _recorded(policy, audit, seq)
    else:
        found = parse(_text(args))
        if isinstance(found, Refusal):
            raise Problem(f"ARGS: {found.detail or CATALOGUE[found.reason].sentence}", Exit.USAGE)
        ledger = ledger_of(policy, _pasts(history, "--history"), _pasts(client_history, "--client-history"))
        trace = explain(policy, Call(tool, found, pinned), ledger)
    if as_json:
        print_json(trace.as_dict())
    else:
        _print(policy, trace)


def _recorded(policy: Policy, audit: Path, seq: int) -> Trace:
    from carnet_policy.expanding import expand
    from carnet_policy.recorded import Unexplained

    try:
        found = expand(policy, records_of(audit), seq)
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None
    if isinstance(found, Unexplained):
        raise Problem(f"Record {seq} can not be expanded: {found.why}.")
    return found


def _text(given: str) -> str:
    if given == "-":
        return sys.stdin.read(MAX_TEXT)
    return read_text(Path(given[1:]), MAX_TEXT) if given.startswith("@") else given


def _pasts(given: str, name: str) -> tuple[Past, ...]:
    try:
        return read_pasts(_text(given), name)
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None


def _print(policy: Policy, trace: Trace) -> None:
    ref, decision = policy.ref, trace.decision
    args = ", ".join(f"{name}: {value}" for name, value in shown_args(trace.call.args).items())
    say(f"{label(trace.call.tool)}({args})  by {ref.id} version {ref.version} ({ref.digest[:12]})", "bold")
    width = max((len(one.name) for one in trace.rules), default=0)
    width = max([width, *(len(one.name) for one in trace.history)])
    if not trace.rules:
        say("  no rule names this tool")
    for rule in trace.rules:
        mark = ">" if rule.decides else " "
        line = f"{mark} {rule.name:<{width}}  {rule.effect:<16}  {ANSWERS[rule.matches]:<8}  {rule.why}"
        say(line, TONES[rule.effect] if rule.decides else "")
    for past in trace.history:
        mark = ">" if past.decides else " "
        line = f"{mark} {past.name:<{width}}  {past.effect:<16}  {past.state:<8}  {past.why}"
        say(line, TONES[decision.effect] if past.decides else "")
    if trace.by_rules.rule is None:
        say(f"  {'default':<{width}}  {policy.default:<16}  {'used':<8}  {trace.by_rules.detail}")
    mark = ">" if decision.rule == "floor" else " "
    say(f"{mark} {'floor':<{width}}  {'require_approval':<16}  {trace.floor}")
    say(f"{decision.effect}  {decision.reason}: {decision.detail}", TONES[decision.effect])
