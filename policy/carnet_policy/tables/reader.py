"""Test files, read as strictly as policies: an unknown key is an error with its place, never a test that tests less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from carnet_policy.decision import Call, Effect
from carnet_policy.errors import PolicyError
from carnet_policy.excerpt import excerpt
from carnet_policy.reading import Part
from carnet_policy.strictyaml import MAX_BYTES, load_yaml
from carnet_policy.tables.case import FREES, HOLDS, REASONS, WAITS, Case, Expected, Past, Table

__all__ = ["SUFFIXES", "load_table", "policy_beside", "read_pasts", "read_table"]

SUFFIXES = (".test.yaml", ".test.yml")
MAX_AGE = 366 * 86400 + 1
MAX_CASES = 100_000
_OUTCOMES = (*HOLDS, *WAITS, "failed", *FREES)


def load_table(path: Path) -> Table:
    """The table of a file. Errors: PolicyError, also for a file that can not be read."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PolicyError(f"the file is larger than {MAX_BYTES} bytes; split it", str(path), 1, 1)
        return read_table(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise PolicyError(f"can not be read: {error.strerror or error}; check path and rights", str(path)) from None
    except UnicodeDecodeError:
        raise PolicyError("is no UTF-8 text; save it as UTF-8", str(path), 1, 1) from None


def policy_beside(path: Path) -> Path:
    """The policy that a test file is about when it names none: `tools.yaml` for `tools.test.yaml`."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.with_name(path.name.removesuffix(suffix) + ".yaml")
    return path


def read_table(text: str, name: str) -> Table:
    """The table of a text. Errors: PolicyError with the place."""
    document = load_yaml(text, name)
    given = Part(document, document.value).mapping(("policy", "cases", "matrix"))
    cases = [_case(part) for part in given["cases"].sequence()] if "cases" in given else []
    seen: dict[str, Case] = {}
    for case, part in zip(cases, given["cases"].sequence() if cases else (), strict=True):
        if case.name in seen:
            raise part.error(f"two cases are called {excerpt(case.name)}; rename one, since -k picks cases by name")
        seen[case.name] = case
    if "matrix" in given:
        for part in given["matrix"].sequence() if type(given["matrix"].value) is list else [given["matrix"]]:
            cases += _matrix(part, MAX_CASES - len(cases))
    if not cases:
        raise document.error((), "the file tests nothing; add cases: or matrix:")
    return Table(name, _policies(given["policy"]) if "policy" in given else (), tuple(cases))


def read_pasts(text: str, name: str) -> tuple[Past, ...]:
    """Past calls of a text that holds nothing else: the list of a case's `history`. Errors: PolicyError."""
    document = load_yaml(text, name)
    return _pasts(Part(document, document.value))


def _policies(part: Part) -> tuple[str, ...]:
    parts = part.sequence() if type(part.value) is list else [part]
    if not parts:
        raise part.error("policy names no file; write one, or leave the key out for the file beside this one")
    return tuple(inner.text(4096) for inner in parts)


def _case(part: Part) -> Case:
    given = _closed(part, ("name", "call", "history", "client_history", "expect"), ("name", "call", "expect"))
    call = given["call"]
    said = _closed(call, ("tool", "args", "pinned"), ("tool",))
    return Case(
        name=given["name"].text(200),
        call=Call(said["tool"].tool(), _args(said), "pinned" in said and said["pinned"].boolean()),
        expected=_expected(given["expect"]),
        line=part.document.at(part.path)[0],
        history=_pasts(given.get("history")),
        client_history=_pasts(given.get("client_history")),
    )


def _matrix(part: Part, most: int) -> Iterator[Case]:
    keys = ("name", "tools", "args", "pinned", "history", "client_history", "expect")
    given = _closed(part, keys, ("tools", "args", "expect"))
    tools, rows = given["tools"].sequence(), given["args"].sequence()
    if not tools or not rows:
        raise part.error(f"{part.name} has no tools or no args, so it tests nothing; name some")
    if len(tools) * len(rows) > most:
        raise part.error(f"{part.name} has {len(tools) * len(rows)} cells; {most} more are the most")
    title = f"{given['name'].text(200)}: " if "name" in given else ""
    expected, pinned = _expected(given["expect"]), "pinned" in given and given["pinned"].boolean()
    history, other = _pasts(given.get("history")), _pasts(given.get("client_history"))
    for tool in tools:
        for row in rows:
            args, line = _mapping(row), row.document.at(row.path)[0]
            name = f"{title}{tool.tool()} {excerpt(args)}"
            yield Case(name, Call(tool.tool(), args, pinned), expected, line, history, other, True)


def _expected(part: Part) -> Expected:
    given = _closed(part, ("decision", "rule", "reason", "reason_code", "reason_contains"), ("decision",))
    if "reason" in given and "reason_code" in given:
        raise given["reason_code"].error("reason and reason_code are the same thing; keep one of the two")
    code = given.get("reason", given.get("reason_code"))
    return Expected(
        decision=Effect(given["decision"].word_of([str(word) for word in Effect])),
        rule=given["rule"].text(200) if "rule" in given else None,
        reason=code.word_of(REASONS) if code is not None else None,
        contains=given["reason_contains"].text() if "reason_contains" in given else None,
    )


def _pasts(part: Part | None) -> tuple[Past, ...]:
    return () if part is None else tuple(past for inner in part.sequence() for past in _past(inner))


def _past(part: Part) -> list[Past]:
    given = _closed(part, ("tool", "args", "outcome", "age", "times"), ("tool",))
    past = Past(
        tool=given["tool"].tool(),
        args=_args(given),
        outcome=given["outcome"].word_of(_OUTCOMES) if "outcome" in given else "ok",
        age=given["age"].integer(0, MAX_AGE) if "age" in given else 60,
    )
    return [past] * (given["times"].integer(1, 10_000) if "times" in given else 1)


def _args(given: Mapping[str, Part]) -> Mapping[str, object]:
    return _mapping(given["args"]) if "args" in given else {}


def _mapping(part: Part) -> dict[str, object]:
    return {name: inner.value for name, inner in part.mapping().items()}


def _closed(part: Part, known: tuple[str, ...], needed: tuple[str, ...]) -> Mapping[str, Part]:
    given = part.mapping(known)
    for key in needed:
        if key not in given:
            raise part.error(f"{part.name} has no {key}; add it")
    return given
