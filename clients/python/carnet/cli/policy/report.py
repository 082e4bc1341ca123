"""Findings as people, programs and code hosts read them."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from carnet.cli.output import say
from carnet.cli.visible import visible
from carnet_policy.lint import CODES, Finding, Severity

__all__ = ["FORMATS", "write"]

SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_TONES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: ""}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def write(findings: Sequence[Finding], form: str) -> None:
    """Print them in one of FORMATS."""
    FORMATS[form](findings)


def _text(findings: Sequence[Finding]) -> None:
    for found in findings:
        place = f"{found.file}:{found.line}:{found.column}"
        say(f"{place}: {found.severity} {found.code.id} {found.message}", _TONES[found.severity])
    counts = _counts(findings)
    say(", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items()))


def _json(findings: Sequence[Finding]) -> None:
    _print({"findings": [_entry(found) for found in findings], "summary": _counts(findings)})


def _entry(found: Finding) -> dict[str, Any]:
    place = {"file": found.file, "line": found.line, "column": found.column}
    told = {"severity": found.severity.value, "message": found.message, "rule": found.rule}
    return {"code": found.code.id, "name": found.code.name, **told, **place}


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    return {severity.value: sum(found.severity is severity for found in findings) for severity in Severity}


def _sarif(findings: Sequence[Finding]) -> None:
    """SARIF 2.1.0, for code scanning."""
    numbers = {id: number for number, id in enumerate(CODES)}
    rules = [
        {
            "id": code.id,
            "name": code.name,
            "shortDescription": {"text": code.about},
            "defaultConfiguration": {"level": code.severity.value},
        }
        for code in CODES.values()
    ]
    results = [
        {
            "ruleId": found.code.id,
            "ruleIndex": numbers[found.code.id],
            "level": found.severity.value,
            "message": {"text": visible(found.message)},
            "locations": [{"physicalLocation": _location(found)}],
        }
        for found in findings
    ]
    run = {"tool": {"driver": {"name": "carnet policy check", "rules": rules}}, "results": results}
    _print({"$schema": SARIF, "version": "2.1.0", "runs": [{**run, "columnKind": "unicodeCodePoints"}]})


def _location(found: Finding) -> dict[str, Any]:
    path = PurePath(found.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    region = {"startLine": found.line, "startColumn": found.column}
    return {"artifactLocation": {"uri": uri}, "region": region}


def _github(findings: Sequence[Finding]) -> None:
    """Workflow commands: each becomes an annotation of its line. What they hold can start no other command."""
    for found in findings:
        place = f"file={_property(found.file)},line={found.line},col={found.column}"
        title = _property(f"{found.code.id} {found.code.name}")
        sys.stdout.write(f"::{_COMMANDS[found.severity]} {place},title={title}::{_data(visible(found.message))}\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")


def _print(value: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")


FORMATS: Mapping[str, Callable[[Sequence[Finding]], None]] = {
    "text": _text,
    "json": _json,
    "sarif": _sarif,
    "github": _github,
}
