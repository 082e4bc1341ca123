"""Short ways to write a policy and ask it."""

from collections.abc import Mapping, Sequence
from typing import Any

from carnet_policy import Call, Decision, Effect, Folds, Ledger, PastCall, Policy, evaluate, loads

NOW = 1_000_000


def policy_of(text: str, name: str = "test.yaml") -> Policy:
    """A policy whose text may omit the version."""
    return loads([(name, text if "version:" in text else f"version: 1\n{text}")])


def rules_for(*rules: str, tool: str = "tool", effect: str = "read", more: str = "") -> Policy:
    lines = "".join(f"    - {rule}\n" for rule in rules)
    return policy_of(f"catalog: {{{tool}: {{effect: {effect}}}}}\ntools:\n  {tool}:\n{lines}{more}")


def ask(policy: Policy, args: Mapping[str, Any], tool: str = "tool", **more: Any) -> Decision:
    return evaluate(policy, Call(tool, args), more.get("ledger"))


def effect(policy: Policy, args: Mapping[str, Any], tool: str = "tool") -> Effect:
    return ask(policy, args, tool).effect


def past(policy: Policy, calls: Sequence[PastCall], **more: Any) -> Ledger:
    """A ledger in which every call stands, in the run and, where the policy counts clients, there too."""
    run, client = Folds(policy), Folds(policy, "client")
    for number, call in enumerate(calls):
        run.put(str(number), call)
        client.put(str(number), call)
    return Ledger(run, client, more.pop("now", NOW), more.pop("opened", 0), **more)
