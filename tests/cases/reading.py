"""Reading case files: strict YAML, generators expanded, and mappings whose unknown keys fail the case."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.cases.verdict import CaseFailed

__all__ = ["Case", "Collection", "closed", "collect", "expand", "words"]

CASE_KEYS = frozenset({"id", "kind", "title", "needs", "input", "expected", "why", "source", "notes"})
FILE_KEYS = frozenset({"kind", "cases", "notes"})


@dataclass(frozen=True, slots=True)
class Case:
    """One case as it stands in its file. fault: why it cannot even be read."""

    id: str
    kind: str
    input: Mapping[str, Any] = field(repr=False)
    expected: Mapping[str, Any] = field(repr=False)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Collection:
    """A directory of cases: cases, scenarios, and the policies that cases name."""

    cases: tuple[Case, ...]
    policies: Mapping[str, Any]


class _Strict(yaml.SafeLoader):
    """A safe loader for which a repeated key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise CaseFailed(f"line {key_node.start_mark.line + 1}: key {key!r} stands twice")
            seen.add(key)
        return super().construct_mapping(node, deep)


def collect(folder: Path) -> Collection:
    """Every *.yaml below the folder, in the order of names."""
    cases: list[Case] = []
    policies: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.yaml")):
        name = str(path.relative_to(folder))
        try:
            document = yaml.load(path.read_text(encoding="utf-8"), _Strict)  # noqa: S506 (a safe loader)
        except (CaseFailed, yaml.YAMLError, UnicodeDecodeError) as error:
            cases.append(Case(name, "file", {}, {}, f"cannot be read: {error}"))
            continue
        if isinstance(document, dict) and set(document) == {"policies"}:
            policies |= document["policies"]
        else:
            cases += _cases(document, name)
    return Collection(tuple(cases), policies)


def _cases(document: Any, name: str) -> Iterator[Case]:
    if not isinstance(document, dict):
        yield Case(name, "file", {}, {}, "is no mapping")
    elif "cases" in document:
        unknown = set(document) - FILE_KEYS
        if unknown:
            yield Case(name, "file", {}, {}, f"unknown keys {sorted(unknown)}")
        for entry in document["cases"]:
            yield _case(entry, str(document.get("kind", "")), name)
    elif "tasks" in document:
        yield Case(str(document.get("id", name)), "scenario", document, {})
    else:
        yield Case(name, "file", {}, {}, "holds neither cases nor policies nor a scenario")


def _case(entry: Any, kind: str, name: str) -> Case:
    if not isinstance(entry, dict) or "id" not in entry:
        return Case(name, "file", {}, {}, "a case has no id")
    fault = ""
    if unknown := set(entry) - CASE_KEYS:
        fault = f"unknown keys {sorted(unknown)}"
    given, expected = entry.get("input", {}), entry.get("expected", {})
    if not isinstance(given, dict) or not isinstance(expected, dict) or not expected:
        return Case(str(entry["id"]), kind, {}, {}, fault or "input or expected is no mapping")
    return Case(str(entry["id"]), str(entry.get("kind", kind)), expand(given), expand(expected), fault)


def expand(value: Any) -> Any:
    """Fill in the generators: `{$repeat: [x, n]}` = x repeated n times, `{$nest: n}` = n nested arrays."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$repeat"}:
        what, times = value["$repeat"]
        return expand(what) * times if isinstance(what, str | list) else [expand(what)] * times
    if set(value) == {"$nest"}:
        nested: list[Any] = []
        for _ in range(value["$nest"] - 1):
            nested = [nested]
        return nested
    return {key: expand(item) for key, item in value.items()}


def closed(value: Any, keys: frozenset[str] | set[str], where: str, required: frozenset[str] = frozenset()) -> Any:
    """The mapping itself, if it is one, has no key beside `keys` and all of `required`."""
    if not isinstance(value, Mapping):
        raise CaseFailed(f"{where} is no mapping")
    unknown = sorted(str(key) for key in set(value) - keys)
    if unknown:
        raise CaseFailed(f"{where} has keys that the runner does not know: {', '.join(unknown)}")
    missing = sorted(required - set(value))
    if missing:
        raise CaseFailed(f"{where} lacks {', '.join(missing)}")
    return value


def words(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CaseFailed(f"{where} is no list of words")
    return value
