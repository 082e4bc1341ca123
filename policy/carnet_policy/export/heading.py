"""What an exported policy says of itself first: where it comes from, and what it does not carry."""

from __future__ import annotations

from collections.abc import Iterator

from carnet_policy.policy import Policy

__all__ = ["heading"]


def heading(policy: Policy) -> Iterator[str]:
    """Lines without a mark of comment. Text of the policy stands in them only as what can not break a line."""
    ref = policy.ref
    yield f"Exported by carnet from the policy {ref.id}, version {ref.version}, digest {ref.digest}."
    yield "Do not edit: change the policy and export it again."
    yield "Numbers are held against bounds in units of 1/10,000."
    yield ""
    yield "Not in here, because it decides no call:"
    approvals = policy.approvals
    groups = ", ".join(sorted(approvals.approvers)) or "anyone with the role"
    yield f"- approvals time out after {approvals.timeout} s; a denial means {approvals.on_denial}; approvers: {groups}"
    tools: set[str] = {*(policy.catalog or ()), *policy.tools}
    for tool in sorted(tools):
        facts = policy.facts(tool)
        about = [f"data_class {', '.join(sorted(facts.data_class))}"] if facts.data_class else []
        about += [f"resource_arg {facts.resource_arg!a}"] if facts.resource_arg is not None else []
        if about:
            yield f"- {tool}: {'; '.join(about)}"
    yield ""
