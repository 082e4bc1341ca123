"""What a parent states about the work it hands out. Four facts, all required and typed; nothing is coerced.

A stated fact can raise the level of a delegation and never lowers it: the catalog's knowledge is added by the broker.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from carnet.reasons import Reason, Refusal
from carnet.token.names import MAX_COUNT

__all__ = ["MAX_TOOLS", "TOOL_NAME", "Task", "parse_task"]

TOOL_NAME = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,128}")  # RFC 6749 section 3.3 scope-token; use fullmatch
MAX_TOOLS = 128
_FACTS = ("touches_pii", "touches_secrets", "reversible")
_REQUIRED = frozenset((*_FACTS, "resource_count"))
_MEMBERS = _REQUIRED | {"tools"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The facts of one task.

    resource_count: how many distinct business objects (customers, buckets) the child may touch; 0 = none. It becomes a
    bound. tools: the tools the child needs; None = whatever of the target's tools fits the level of the facts.
    Raises TypeError for a value of another type, ValueError for one out of range.
    """

    touches_pii: bool
    touches_secrets: bool
    reversible: bool
    resource_count: int
    tools: Collection[str] | None = None  # kept as a tuple, so that a task stays as it was stated

    def __post_init__(self) -> None:
        for name in _FACTS:
            if type(getattr(self, name)) is not bool:
                raise TypeError(f"{name} must be True or False, not {_shown(getattr(self, name))}")
        if type(self.resource_count) is not int:
            raise TypeError(f"resource_count must be an integer, not {_shown(self.resource_count)}")
        if not 0 <= self.resource_count <= MAX_COUNT:
            raise ValueError(f"resource_count must be 0 or more and at most {MAX_COUNT}, not {self.resource_count}")
        if self.tools is not None:
            object.__setattr__(self, "tools", _tool_names(self.tools))

    def to_wire(self) -> dict[str, Any]:
        """The task as JSON values; `tools` is left out when none were named."""
        wire: dict[str, Any] = {name: getattr(self, name) for name in (*_FACTS, "resource_count")}
        if self.tools is not None:
            wire["tools"] = list(self.tools)
        return wire


def parse_task(value: object) -> Task | Refusal:
    """Read a task from parsed JSON. A missing, null, mistyped or unknown member refuses it with `task_invalid`; a
    `tenant` member with `tenant_mismatch`, because the tenant is taken from the credential alone."""
    if not isinstance(value, Mapping):
        return Refusal(Reason.TASK_INVALID, f"The task must be an object, not {_shown(value)}.")
    if "tenant" in value:
        return Refusal(Reason.TENANT_MISMATCH, "A task names no tenant: it comes from the credential.")
    unknown = sorted(repr(name)[:40] for name in value if name not in _MEMBERS)
    if unknown:
        return Refusal(Reason.TASK_INVALID, f"The task has unknown members: {', '.join(unknown[:5])}.")
    missing = sorted(_REQUIRED - value.keys())
    if missing:
        return Refusal(Reason.TASK_INVALID, f"The task does not state {', '.join(missing)}.")
    tools = value.get("tools")
    if "tools" in value and not isinstance(tools, list):
        return Refusal(Reason.TASK_INVALID, "tools must be a list of tool names; leave it out to name none.")
    try:
        return Task(**{str(name): item for name, item in value.items()})
    except (TypeError, ValueError) as error:
        return Refusal(Reason.TASK_INVALID, f"{error}.")


def _tool_names(tools: object) -> tuple[str, ...]:
    if isinstance(tools, str) or not isinstance(tools, list | tuple | set | frozenset):
        raise TypeError(f"tools must be a list of tool names, not {_shown(tools)}")
    names = sorted(tools, key=repr) if isinstance(tools, set | frozenset) else list(tools)
    if not names:
        raise ValueError("tools must name at least one tool; leave it out to take what fits the facts")
    if len(names) > MAX_TOOLS:
        raise ValueError(f"tools must name at most {MAX_TOOLS} tools, not {len(names)}")
    for name in names:
        if type(name) is not str:
            raise TypeError(f"a tool's name must be a string, not {_shown(name)}")
        if TOOL_NAME.fullmatch(name) is None:
            raise ValueError(
                f'{name[:40]!r} is no tool name: 1 to 128 printable ASCII characters without space, " and \\'
            )
    if len(set(names)) != len(names):
        raise ValueError("tools must name each tool once")
    return tuple(names)


def _shown(value: object) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
