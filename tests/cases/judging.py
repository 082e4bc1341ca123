"""What cases of several kinds expect in the same words: reasons, times, alternatives."""

from collections.abc import Callable, Mapping
from typing import Any

from carnet.arguments import parse
from carnet.reasons import CATALOGUE, Reason, Refusal
from tests.cases.reading import words
from tests.cases.verdict import CaseFailed, expect
from tests.cases.writing import to_json

__all__ = ["alternatives", "arguments", "as_text", "check_reason", "check_time", "refusal_text"]


def refusal_text(refusal: Refusal) -> str:
    """A reason's code and detail, as an audit record holds them."""
    return f"{refusal.reason.value} {refusal.detail or CATALOGUE[refusal.reason].sentence}"


def as_text(reason: str | None, detail: str | None) -> str:
    if reason and not detail and reason in set(Reason):
        detail = CATALOGUE[Reason(reason)].sentence
    return f"{reason or ''} {detail or ''}"


def check_reason(expected: Mapping[str, Any], said: str) -> None:
    """`reason_any`: one of the words occurs. `reason_contains`: this text does. `reason_is_not`: this code does not."""
    low = said.lower()
    if "reason_any" in expected:
        wanted = words(expected["reason_any"], "reason_any")
        expect(any(word.lower() in low for word in wanted), f"the reason {said.strip()!r} has none of {wanted}")
    if "reason_contains" in expected:
        expect(str(expected["reason_contains"]).lower() in low, f"the reason {said.strip()!r} lacks the text")
    if "reason_is_not" in expected:
        expect(str(expected["reason_is_not"]) != said.split(" ")[0], f"the reason is {said.strip()!r}")


def check_time(expected: Mapping[str, Any], seconds: float) -> None:
    if "max_ms" in expected:
        expect(seconds * 1000 <= expected["max_ms"], f"took {seconds * 1000:.0f} ms, at most {expected['max_ms']}")


def alternatives(expected: Mapping[str, Any], judge: Callable[[Mapping[str, Any]], None]) -> None:
    """Judge what is expected in any case, and then one of `any_of`."""
    fixed = {key: value for key, value in expected.items() if key != "any_of"}
    if fixed:
        judge(fixed)
    if "any_of" not in expected:
        return
    said: list[str] = []
    for one in expected["any_of"]:
        try:
            judge(one)
        except CaseFailed as failure:
            said.append(str(failure))
        else:
            return
    raise CaseFailed("none of the alternatives: " + " | ".join(said))


def arguments(call: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """A call's arguments as they arrive: raw text, or values that are written as JSON first."""
    if "args_json" in call:
        return parse(str(call["args_json"]))
    args = call.get("args", {})
    try:
        text = to_json(args)
    except (TypeError, ValueError) as error:
        raise CaseFailed(f"args are not JSON values: {error}") from error
    return parse(text)
