"""The outcome of test files as text for people, as JSON, and as JUnit XML for build servers."""

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from carnet.cli.output import say
from carnet.cli.policy.outcome import Covered, FileOutcome
from carnet.cli.visible import visible
from carnet_policy.tables import Result

__all__ = ["as_json", "as_junit", "print_text"]


def print_text(outcomes: Sequence[FileOutcome], covered: Sequence[Covered], least: float | None) -> None:
    for outcome in outcomes:
        _print_file(outcome)
    for one in covered:
        _print_coverage(one, least)
    count = sum(len(outcome.results) for outcome in outcomes)
    failed = sum(1 for outcome in outcomes for result in outcome.results if result.problems)
    broken = sum(1 for outcome in outcomes if outcome.error)
    words = [f"{count - failed} passed", *([f"{failed} failed"] if failed else [])]
    words += [f"{broken} not loaded"] if broken else []
    say(", ".join(words), "red" if failed or broken else "green")


def _print_file(outcome: FileOutcome) -> None:
    if outcome.error is not None:
        say(f"not loaded: {outcome.error}", "red")
        return
    for result in outcome.results:
        if result.problems:
            say(f"{outcome.file}:{result.case.line}: {result.case.name}", "red")
            for problem in result.problems:
                say(f"    {problem}")
            say(f"    {_said(result)}", "dim")
    cells = sum(1 for result in outcome.results if result.case.cell)
    bad = sum(1 for result in outcome.results if result.problems)
    parts = f"{len(outcome.results) - cells} cases, {cells} matrix cells"
    say(f"{outcome.file}: {parts}, {bad} failed", "red" if bad else "")


def _said(result: Result) -> str:
    found = result.decision
    return f"it is {found.effect} by {found.rule or 'no rule'} ({found.reason}): {found.detail}"


def _print_coverage(one: Covered, least: float | None) -> None:
    found = one.coverage
    floor = "no floor" if found.floor is None else f"floor hit {found.floor} times"
    text = f"{one.policy.ref.id}: {found.percent:.1f} % of {len(found.rules)} rules hit"
    low = least is not None and found.percent < least
    say(
        f"{text}{f', {least:g} % wanted' if low else ''}; {floor}, default hit {found.default} times",
        "red" if low else "",
    )
    if found.missed:
        say(f"    never hit: {', '.join(found.missed)}", "red" if low else "yellow")


def as_json(
    outcomes: Sequence[FileOutcome], covered: Sequence[Covered], least: float | None, *, ok: bool
) -> dict[str, Any]:
    return {
        "ok": ok,
        "files": [_file_json(outcome) for outcome in outcomes],
        "coverage": [
            {
                "policy": one.policy.ref.id,
                "digest": one.policy.ref.digest,
                "percent": round(one.coverage.percent, 2),
                "wanted": least,
                "rules": dict(one.coverage.rules),
                "missed": list(one.coverage.missed),
                "floor": one.coverage.floor,
                "default": one.coverage.default,
            }
            for one in covered
        ],
    }


def _file_json(outcome: FileOutcome) -> dict[str, Any]:
    ref = outcome.policy
    return {
        "file": str(outcome.file),
        "policy": None if ref is None else {"id": ref.id, "version": ref.version, "digest": ref.digest},
        "error": outcome.error,
        "results": [
            {
                "name": result.case.name,
                "kind": "cell" if result.case.cell else "case",
                "line": result.case.line,
                "ok": not result.problems,
                "problems": list(result.problems),
                "decision": result.decision.effect.value,
                "rule": result.decision.rule,
                "reason": result.decision.reason,
                "detail": result.decision.detail,
            }
            for result in outcome.results
        ],
    }


def as_junit(outcomes: Sequence[FileOutcome], covered: Sequence[Covered], least: float | None) -> str:
    """One suite per file; a file that does not load is an error, coverage that is too low a failure of its own."""
    suites = [_suite(outcome) for outcome in outcomes]
    if least is not None:
        suites.append(_coverage_suite(covered, least))
    totals = [sum(counts) for counts in zip(*(counts for _, counts in suites), strict=True)]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuites {_counts(totals)}>"]
    return "\n".join([*lines, *(text for text, _ in suites), "</testsuites>", ""])


def _suite(outcome: FileOutcome) -> tuple[str, tuple[int, int, int]]:
    name = str(outcome.file)
    cases = [_testcase(outcome, result) for result in outcome.results]
    failures = sum(1 for result in outcome.results if result.problems)
    if outcome.error is not None:
        cases = [_element(name, "load", f"<error message={_attribute(outcome.error)}/>")]
    counts = (len(cases), failures, int(outcome.error is not None))
    head = f'  <testsuite name={_attribute(name)} {_counts(counts)} time="{outcome.seconds:.3f}">'
    return "\n".join([head, *cases, "  </testsuite>"]), counts


def _testcase(outcome: FileOutcome, result: Result) -> str:
    inner = ""
    if result.problems:
        message = _attribute("; ".join(result.problems))
        place = f"{outcome.file}:{result.case.line}: {_said(result)}"
        inner = f"<failure message={message}>{escape(visible(place))}</failure>"
    return _element(str(outcome.file), result.case.name, inner)


def _coverage_suite(covered: Sequence[Covered], least: float) -> tuple[str, tuple[int, int, int]]:
    cases, failures = [], 0
    for one in covered:
        low = one.coverage.percent < least
        failures += low
        message = f"{one.coverage.percent:.1f} %, {least:g} % wanted; never hit: {', '.join(one.coverage.missed)}"
        inner = f"<failure message={_attribute(message)}/>" if low else ""
        cases.append(_element("coverage", one.policy.ref.id, inner))
    counts = (len(cases), failures, 0)
    return "\n".join([f'  <testsuite name="coverage" {_counts(counts)}>', *cases, "  </testsuite>"]), counts


def _element(owner: str, name: str, inner: str) -> str:
    return f"    <testcase classname={_attribute(owner)} name={_attribute(name)}>{inner}</testcase>"


def _counts(counts: Sequence[int]) -> str:
    tests, failures, errors = counts
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _attribute(text: str) -> str:
    """What XML 1.0 can not hold is shown as an escape."""
    return quoteattr(visible(text))
