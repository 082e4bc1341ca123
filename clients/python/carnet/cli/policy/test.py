"""`carnet policy test`: the table tests beside a policy, and which of its rules they hit."""

import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from carnet.cli.output import print_json
from carnet.cli.policy.outcome import Covered, FileOutcome
from carnet.cli.policy.outcome_forms import as_json, as_junit, print_text
from carnet.cli.policy.sources import open_policy
from carnet.cli.problems import Exit, Problem
from carnet_policy import Policy, PolicyError
from carnet_policy.tables import Case, Hits, Table, load_table, run_table
from carnet_policy.tables.reader import SUFFIXES, policy_beside

__all__ = ["register"]


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"


def register(group: typer.Typer) -> None:
    group.command("test")(run_tests)


def run_tests(
    path: Annotated[Path, typer.Argument(metavar="[FILE|FOLDER]", help="A test file, a policy, or a folder.")] = Path(),
    keyword: Annotated[str, typer.Option("-k", metavar="NAME", help="Only cases whose name contains it.")] = "",
    coverage: Annotated[
        float | None, typer.Option(min=0, max=100, metavar="N", help="Fail when less than N % of the rules are hit.")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the results.")] = Format.TEXT,
) -> None:
    """Run the tests of `*.test.yaml` files. Exit 1 when one fails, or when too few rules are hit."""
    outcomes, policies, hits = [], dict[str, Policy](), dict[str, Hits]()
    for file in _test_files(path):
        outcome, policy = _run(file, keyword.lower(), hits)
        outcomes.append(outcome)
        if policy is not None:
            policies[policy.ref.digest] = policy
    covered = [Covered(policies[digest], found.coverage()) for digest, found in hits.items()]
    short = [one for one in covered if coverage is not None and one.coverage.percent < coverage]
    if not any(one.results or one.error for one in outcomes):
        raise Problem(f"No case has a name that contains {keyword}.", Exit.USAGE)
    failed = bool(short) or not all(one.ok for one in outcomes)
    if form is Format.JSON:
        print_json(as_json(outcomes, covered, coverage, ok=not failed))
    elif form is Format.JUNIT:
        sys.stdout.write(as_junit(outcomes, covered, coverage))
    else:
        print_text(outcomes, covered, coverage)
    if failed:
        raise typer.Exit(int(Exit.REFUSED))


def _test_files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}") if file.is_file())
        if not files:
            raise Problem(f"{path} holds no *{SUFFIXES[0]} file; write one beside the policy.", Exit.USAGE)
        return files
    if not path.is_file():
        raise Problem(f"There is no file {path}.", Exit.USAGE)
    if path.name.endswith(SUFFIXES):
        return [path]
    beside = [path.with_name(path.stem + suffix) for suffix in SUFFIXES]
    found = [file for file in beside if file.is_file()]
    if not found:
        raise Problem(f"{path} has no tests: there is no {beside[0]}.", Exit.USAGE)
    return found


def _run(file: Path, keyword: str, hits: dict[str, Hits]) -> tuple[FileOutcome, Policy | None]:
    began = time.perf_counter()
    try:
        table = load_table(file)
        policy = _policy(file, table)
    except PolicyError as error:
        return FileOutcome(file, None, (), str(error), 0.0), None
    seen = hits.setdefault(policy.ref.digest, Hits(policy))

    def chosen(case: Case) -> bool:
        return keyword in case.name.lower()

    results = run_table(policy, table, seen, chosen)
    return FileOutcome(file, policy.ref, results, None, time.perf_counter() - began), policy


def _policy(file: Path, table: Table) -> Policy:
    names = list(_named(file, table.policies))
    if len(names) == 1:
        return open_policy(names[0])
    from carnet_policy import load

    return load(names)


def _named(file: Path, names: Sequence[str]) -> Iterator[Path]:
    if not names:
        yield policy_beside(file)
    for name in names:
        yield file.parent / name
