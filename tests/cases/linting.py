"""Kind `policy_lint`: a policy's text, whether it may load, and what lint must say of it."""

from collections.abc import Mapping
from typing import Any

from carnet_policy import PolicyError, loads
from carnet_policy.lint import Severity, check
from tests.cases.reading import Collection, closed, words
from tests.cases.verdict import CaseFailed, expect

__all__ = ["play"]

INPUT = frozenset({"policy_text"})
EXPECTED = frozenset({"load", "finding_any"})
LOADS = {"error": {False}, "warning": {True}, "error_or_warning": {False, True}}


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    del files
    closed(given, INPUT, "input", INPUT)
    closed(expected, EXPECTED, "expected", EXPECTED)
    if expected["load"] not in LOADS:
        raise CaseFailed(f"load must be one of {', '.join(LOADS)}")
    wanted = words(expected["finding_any"], "finding_any")
    text = ("policy.yaml", str(given["policy_text"]))
    loaded = _loads(text)
    expect(loaded in LOADS[expected["load"]], f"the policy {'loads' if loaded else 'does not load'}")
    findings = check([text])
    told = [f"{found.code.id} {found.code.name} {found.message}" for found in findings]
    expect(any(word in one for word in wanted for one in told), f"no finding has one of {wanted}: {told}")
    refused = any(found.code.name in ("unreadable", "does_not_load") for found in findings)
    expect(refused is not loaded, "lint and loader disagree on whether the policy loads")
    if not loaded:
        expect(findings[0].severity is Severity.ERROR, "what does not load is an error")


def _loads(text: tuple[str, str]) -> bool:
    try:
        loads([text])
    except PolicyError:
        return False
    return True
