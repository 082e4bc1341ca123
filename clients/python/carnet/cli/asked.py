"""What a delegation is asked for, in words. A value that is not as expected is shown as it came, never passed over."""

from collections.abc import Mapping
from typing import Any

from carnet.cli.visible import compact

__all__ = ["envelope_words", "task_words"]

_FACTS = ("resource_count", "reversible", "touches_pii", "touches_secrets")
_SHOWN = ("level", "tools", "credential_ttl_seconds", "resource_limit")
_ELSEWHERE = (
    "ceilings",
    "approval_required",
    "tenant",
    "trace_id",
)  # shown on lines of their own, or told by the asking


def task_words(task: Any) -> str:
    """`1 resource, cannot be undone, touches no personal data, no secrets`."""
    if not isinstance(task, Mapping) or any(type(task.get(name)) is not bool for name in _FACTS[1:]):
        return compact(task)
    if type(task.get("resource_count")) is not int:
        return compact(task)
    undone = "can be undone" if task["reversible"] else "cannot be undone"
    words = [_resources(task["resource_count"]), undone, _touched(task["touches_pii"], task["touches_secrets"])]
    if task.get("tools") is not None:
        words.append(f"for the tools {_names(task['tools'])}")
    return ", ".join(words + _further(task, (*_FACTS, "tools")))


def envelope_words(envelope: Any) -> str:
    """`level 2: tools refund for 300 s, at most 1 resource`."""
    if not isinstance(envelope, Mapping) or any(name not in envelope for name in _SHOWN):
        return compact(envelope)
    limit = envelope["resource_limit"]
    bound = "any number of resources" if limit is None else f"at most {_resources(limit)}"
    text = f"level {compact(envelope['level'])}: tools {_names(envelope['tools'])}"
    text += f" for {compact(envelope['credential_ttl_seconds'])} s"
    return ", ".join([text, bound, *_further(envelope, (*_SHOWN, *_ELSEWHERE))])


def _resources(count: Any) -> str:
    return "1 resource" if count == 1 else f"{compact(count)} resources"


def _touched(pii: bool, secrets: bool) -> str:
    if pii and secrets:
        return "touches personal data and secrets"
    if pii or secrets:
        return "touches personal data, no secrets" if pii else "touches no personal data, but secrets"
    return "touches no personal data, no secrets"


def _names(tools: Any) -> str:
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, str) for tool in tools):
        return compact(tools)
    return " ".join(compact(tool) for tool in tools) or "none"


def _further(given: Mapping[str, Any], told: tuple[str, ...]) -> list[str]:
    """What a newer broker may add: a person must see everything that is asked."""
    return [f"{compact(name)} {compact(value)}" for name, value in given.items() if name not in told]
