"""Plays one case after the other and says how each ended."""

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.cases import derivations, linting, policies, scenarios, sequences, tokens, traces
from tests.cases.reading import Case, Collection
from tests.cases.verdict import CaseFailed, Ending, NotRun, Result, Why

__all__ = ["KINDS", "LATER", "play"]

Play = Callable[[Mapping[str, Any], Mapping[str, Any], Collection], None]
KINDS: dict[str, Play] = {
    "policy": policies.play,
    "policy_lint": linting.play,
    "derive": derivations.play,
    "verify": tokens.play,
    "api": sequences.play,
    "trace": traces.play,
    "scenario": scenarios.play,
}
RETURNS = {"returned_text", "returned_expect", "handoff_return_schema"}
LATER = frozenset({"handoff", "framing", "manifest"})


def play(files: Collection, only: str | None = None) -> Iterator[Result]:
    """Results in the order of the files. only: cases whose id has this text."""
    for case in files.cases:
        if only is not None and only not in case.id:
            continue
        yield _play(case, files)
        if case.kind == "scenario" and any(RETURNS & set(task) for task in case.input.get("tasks", [])):
            yield Result(f"{case.id}/returned_text", "framing", Ending.NOT_RUN, Why.RETURNS.value)


def _play(case: Case, files: Collection) -> Result:
    if case.fault:
        return Result(case.id, case.kind, Ending.FAILED, case.fault)
    if case.kind in LATER:
        return Result(case.id, case.kind, Ending.NOT_RUN, f"{Why.KIND.value}: {case.kind}")
    kind = KINDS.get(case.kind)
    if kind is None:
        return Result(case.id, case.kind, Ending.FAILED, f"unknown kind {case.kind!r}")
    try:
        kind(case.input, case.expected, files)
    except NotRun as left_out:
        return Result(case.id, case.kind, Ending.NOT_RUN, str(left_out))
    except CaseFailed as failure:
        return Result(case.id, case.kind, Ending.FAILED, str(failure))
    except Exception as error:  # noqa: BLE001 - a crash of the product or the runner is a failed case, and the next one runs
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        return Result(case.id, case.kind, Ending.FAILED, f"crash at {where}: {type(error).__name__}: {error}")
    return Result(case.id, case.kind, Ending.PASSED)
