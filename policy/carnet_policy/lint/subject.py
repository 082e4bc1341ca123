"""What is linted: a loaded policy with the places of its parts, and what is known about the world around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from carnet_policy.history import HistoryRule
from carnet_policy.lint.finding import Code, Finding, Place, Severity
from carnet_policy.marked import Marked
from carnet_policy.policy import Policy
from carnet_policy.rule import Rule
from carnet_policy.tooldefs import ToolDefinition

__all__ = ["Step", "Subject", "judged"]

Step = str | int


@dataclass(frozen=True, slots=True)
class Subject:
    """`tools` are definitions by name and `registered` the tools of all hosts; None = nobody told."""

    policy: Policy
    documents: tuple[Marked, ...]
    tools: Mapping[str, ToolDefinition] | None = None
    registered: frozenset[str] | None = None

    def find(self, *path: Step) -> Place:
        """Where the part at `path` stands: in the file that has it, else at the head of the first."""
        for document in self.documents:
            value: object = document.value
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                return (document.name, *document.at(path))
        return (self.documents[0].name, *self.documents[0].at())

    def of_history(self, rule: HistoryRule, *path: Step) -> Place:
        """Where a part of a history rule stands; rules are numbered through all files."""
        left = rule.index
        for document in self.documents:
            entries = document.value.get("history", []) if isinstance(document.value, dict) else []
            if left < len(entries):
                return (document.name, *document.at(("history", left, *path)))
            left -= len(entries)
        return self.find("history")


def judged(code: Code, rule: Rule, path: tuple[Step, ...], message: str, severity: Severity | None = None) -> Finding:
    """A finding at a part of a rule; `path` begins at the rule."""
    line, column = rule.part.document.at((*rule.part.path, *path))
    return Finding(code, severity or code.severity, message, rule.part.document.name, line, column, rule.name)
