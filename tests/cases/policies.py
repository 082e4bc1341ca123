"""Kind `policy`: one call, or several, against a policy and a past."""

import time
from collections.abc import Mapping
from typing import Any

from carnet.reasons import Refusal
from carnet_policy import Call, Decision, Effect, Folds, Ledger, PastCall, Policy, PolicyError, evaluate, from_mapping
from tests.cases.asking import shown_arguments, unavailable
from tests.cases.judging import alternatives, arguments, check_reason, check_time, refusal_text
from tests.cases.reading import Collection, closed, words
from tests.cases.verdict import CaseFailed, expect

__all__ = ["load", "play"]

NOW = 1_800_000_000
INPUT = frozenset({"policy", "call", "calls", "history", "remembered"})
CALL = frozenset({"tool", "args", "args_json", "expect", "reason_any", "reason_contains"})
PAST = frozenset({"tool", "args", "args_json", "outcome", "run"})
EXPECTED = frozenset(
    {
        "decision",
        "reason_any",
        "reason_contains",
        "approval_shows_args",
        "max_ms",
        "any_of",
        "load_error_any",
        "no_crash",
    }
)
# What a past call does to the ledger: it holds a slot for ever, while its question is open, or not at all.
HOLDS = {"executed": True, "running": True, "unknown": True, "pending_approval": True, "pending": True}
FREES = {"denied", "refused", "timed_out", "withdrawn", "superseded", "lapsed"}


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, INPUT, "input", frozenset({"policy"}))
    _closed_expectations(expected)
    for entry in given.get("remembered", []):
        # Carnet remembers no approval: each one is for one exact call and is spent by it. So what somebody approved
        # before stands nowhere that a decision could read.
        closed(entry, PAST | {"decision", "by", "approved"}, "a remembered approval")
    try:
        policy = load(given["policy"], files)
    except PolicyError as error:
        message = str(error)
        alternatives(expected, lambda one: _judge_load_error(one, message))
        return
    if ("call" in given) == ("calls" in given):
        raise CaseFailed("input names exactly one of call and calls")
    if "call" in given:
        closed(given["call"], CALL - {"expect"}, "call", frozenset({"tool"}))
        alternatives(expected, lambda one: _judge(one, policy, given["call"], given.get("history")))
        return
    expect(expected.get("decision") == "per_call", "several calls are judged per_call")
    for number, call in enumerate(given["calls"], 1):
        closed(call, CALL, f"call {number}", frozenset({"tool", "expect"}))
        wanted = {"decision": call["expect"], **{k: call[k] for k in ("reason_any", "reason_contains") if k in call}}
        _judge({**wanted, **{k: expected[k] for k in ("max_ms",) if k in expected}}, policy, call, given.get("history"))


def load(named: Any, files: Collection) -> Policy:
    """A policy by its name in the collection, or as a mapping."""
    if isinstance(named, str):
        if named not in files.policies:
            raise CaseFailed(f"there is no policy {named!r}")
        return from_mapping(files.policies[named], named)
    return from_mapping(named, "inline")


def _closed_expectations(expected: Mapping[str, Any]) -> None:
    closed(expected, EXPECTED, "expected")
    for one in expected.get("any_of", []):
        closed(one, EXPECTED - {"any_of"}, "an alternative")


def _judge_load_error(expected: Mapping[str, Any], message: str) -> None:
    expect("load_error_any" in expected, f"the policy does not load: {message}")
    wanted = words(expected["load_error_any"], "load_error_any")
    expect(any(word.lower() in message.lower() for word in wanted), f"the load error {message!r} has none of {wanted}")


def _judge(expected: Mapping[str, Any], policy: Policy, call: Mapping[str, Any], history: Any) -> None:
    expect("load_error_any" not in expected, "the policy loads")
    ledger = None if history == "unavailable" else _ledger(policy, history or [])
    began = time.perf_counter()
    args = arguments(call)
    if isinstance(args, Refusal):
        effect, said = Effect.DENY, refusal_text(args)
    elif history == "unavailable":
        effect, said = Effect.DENY, unavailable(policy, str(call["tool"]), args)
    else:
        decision = evaluate(policy, Call(str(call["tool"]), args), ledger)
        effect, said = decision.effect, _said(decision)
    took = time.perf_counter() - began
    if "decision" in expected:
        expect(effect == expected["decision"], f"{effect.value} ({said}), expected {expected['decision']}")
    check_reason(expected, said)
    check_time(expected, took)
    if "approval_shows_args" in expected:
        wanted = set(words(expected["approval_shows_args"], "approval_shows_args"))
        shown = shown_arguments(policy, str(call["tool"]), args if isinstance(args, dict) else {})
        expect(wanted <= shown, f"the approver sees {sorted(shown)}, expected {sorted(wanted)}")


def _said(decision: Decision) -> str:
    return f"{decision.reason} {decision.detail}"


def _ledger(policy: Policy, history: Any) -> Ledger:
    """The run's past calls as rows of a ledger; calls of another run are in that run's ledger and not in this one."""
    run = Folds(policy, "run")
    client = Folds(policy, "client") if policy.over_client else None
    for number, entry in enumerate(history):
        closed(entry, PAST, "a past call", frozenset({"tool", "outcome"}))
        args = arguments(entry)
        if isinstance(args, Refusal):
            raise CaseFailed(f"a past call has arguments that cannot have been: {refusal_text(args)}")
        if not _holds(policy, str(entry["tool"]), str(entry["outcome"])):
            continue
        waiting = entry["outcome"] in ("pending_approval", "pending")
        past = PastCall(str(entry["tool"]), args, NOW - 60, NOW + 60 if waiting else None)
        if client is not None:
            client.put(f"call_{number}", past)
        if entry.get("run", "this") in ("this", "same"):
            run.put(f"call_{number}", past)
    return Ledger(run, client, NOW, NOW - 600)


def _holds(policy: Policy, tool: str, outcome: str) -> bool:
    """Whether a call that ended so still counts: a failed one does where it cannot be undone."""
    if outcome == "failed":
        return policy.irreversible(tool)
    if outcome in FREES:
        return False
    if outcome not in HOLDS:
        raise CaseFailed(f"unknown outcome {outcome!r} of a past call")
    return True
