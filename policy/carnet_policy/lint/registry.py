"""The policy beside the registry: tools that only one of the two knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from carnet_policy.lint import codes
from carnet_policy.lint.finding import Code, Finding
from carnet_policy.lint.subject import Subject
from carnet_policy.marked import Marked

__all__ = ["nearest", "registered", "registered_policies", "registered_tools"]


def registered_policies(document: Marked) -> tuple[str, ...] | None:
    """The policy files that a registry names, relative to it; None for a document that is no registry."""
    value = document.value
    names = value.get("policies") if isinstance(value, dict) and "tenant" in value else None
    named = isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names)
    return tuple(names) if named and isinstance(names, list) else None


def registered_tools(document: Marked) -> frozenset[str]:
    """The tools of all hosts of a registry (`carnet.yaml`). Errors: PolicyError where hosts can not be read."""
    hosts = document.value.get("hosts") if isinstance(document.value, dict) else None
    if not isinstance(hosts, dict):
        raise document.error((), "this is no registry: it has no hosts; name the carnet.yaml of the tenant")
    found: set[str] = set()
    for name, host in hosts.items():
        tools = host.get("tools") if isinstance(host, dict) else None
        if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
            raise document.error(("hosts", name), f"the host {name} has no list of tools; write tools: [NAME, …]")
        found.update(tools)
    return frozenset(found)


def registered(subject: Subject) -> Iterator[Finding]:
    if subject.registered is None:
        return
    policy = subject.policy
    for tool in policy.tools:
        if tool not in subject.registered:
            message = f"no host in the registry serves {tool}{nearest(tool, subject.registered)}"
            yield _told(
                subject, codes.NOT_REGISTERED, f"{message}; correct the name or register the tool", "tools", tool
            )
    for tool in sorted(subject.registered - set(policy.tools)):
        message = f"the registry has {tool}, and no rule names it, so the default {policy.default} answers"
        near = nearest(tool, set(policy.tools) - subject.registered)
        yield _told(subject, codes.NOT_RULED, f"{message}{near}; add rules for it", "tools")


def nearest(name: str, known: Iterable[str]) -> str:
    """`, did you mean refund?`, or nothing."""
    found = get_close_matches(name, list(known), 1)
    return f", did you mean {found[0]}?" if found else ""


def _told(subject: Subject, code: Code, message: str, *path: str) -> Finding:
    return Finding(code, code.severity, message, *subject.find(*path))
