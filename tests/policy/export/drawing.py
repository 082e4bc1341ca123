"""Policies, pasts and calls drawn from a seed, at and around the bounds that exports can say."""

import random
from typing import Any

from carnet_policy import Call, Folds, Ledger, PastCall, Policy, PolicyError, from_mapping
from carnet_policy.probing import probe_calls

__all__ = ["STRANGE", "TOOLS", "calls_for", "draw_past", "draw_policy"]

TOOLS = ("pay", "note")
NUMBERS = (0, 1, 2, -1, 50, 0.01, 2.5, 1.0, 50.01, -0.5, 0.0001, 899_999_999_999)
WORDS = ("", "x", "xy", "Cust_1", "é", "漢字", "a*b", 'q"\\', "\n", "1", "true", "\u017f", "\u212a", "a\u2028b", "😀")
PATTERNS = (
    "^cust_[0-9]{6}$", "x*", "x|y", "(?i)cust_", "(?s).*", "(?s)a.*b", "[a-c]{1,3}", r"\d+", r"\w+-\w{2}",
    r"\s*x",
    "[^/]+", "(?i:k)x", "é|漢字", "[é-ë]x", r"a\*b", "(ab|cd)?e", "", r"\n?", "[^a]*b[^c]*", "abc|abd", r"[\w.-]+@x\.y",
    "(?:a{2}){3}", "x??", "(?is)k[^s]*", r"[\]\\^-]+", r"(?s)é.*",
)  # fmt: skip
PATHS = ("/", "/data", "/data/a", "/漢")
HOSTS = ("a.example", "b.example:8443")
STRANGE: tuple[Any, ...] = (
    None, True, False, 0, 1, 1.0, -0.0, 10**30, -(10**30), 2**53 + 1, 1e300, 5e-324, 0.1 + 0.2, 50.010000000000005, "",
    "x", "1", "é", "e\u0301", "😀", "\ud800", "\u2028", [], [1], [1, "x"], [None], {}, {"a": 1}, {"a": 1, "b": 2},
    {"__extn": {"fn": "decimal", "arg": "1.0"}}, {"\ud800": 1}, [[[[[[[[[[[[1]]]]]]]]]]]], float("nan"), float("inf"),
    (1,),
    "/data/../x", "/data//a/.", "/data/\ud800", "/database", "/漢/x", "https://a.example/", "https://A.example:443/x",
    "https://b.example:8443", "https://u@a.example/", "http://a.example/",
)  # fmt: skip


def draw_policy(draw: random.Random) -> Policy | None:
    """A policy of both tools; None where the draw is none that loads."""
    document: dict[str, Any] = {"version": 1, "tools": {tool: _rules(draw) for tool in TOOLS}}
    if draw.random() < 0.8:
        effects = [{"effect": draw.choice(("read", "write", "irreversible"))} for _ in TOOLS]
        document["catalog"] = dict(zip(TOOLS, effects, strict=True))
    if draw.random() < 0.2:
        document |= {"defaults": {"decision": draw.choice(("allow", "require_approval"))}, "i_accept_fail_open": True}
    if draw.random() < 0.6:
        document["history"] = [_history(draw) for _ in range(draw.randint(1, 2))]
    try:
        return from_mapping(document)
    except PolicyError:
        return None


def _rules(draw: random.Random) -> list[dict[str, Any]]:
    found = []
    for _ in range(draw.randint(1, 3)):
        rule: dict[str, Any] = {"decision": draw.choice(("allow", "allow", "deny", "require_approval"))}
        names = draw.sample(("a", "b", "odd name"), draw.randint(0, 2))
        rule["args"] = {name: _constraint(draw, 0) for name in names}
        if rule["decision"] == "allow" and draw.random() < 0.3:
            rule["extra_args"] = True
        found.append(rule)
    return found


def _constraint(draw: random.Random, depth: int) -> dict[str, Any]:
    kinds = [_bounds, _text, _places, _members, _typed, _nothing] + ([_list, _object] if depth < 2 else [])
    rule = draw.choice(kinds)(draw, depth)
    if draw.random() < 0.4:
        rule["required"] = draw.random() < 0.4
    return rule


def _bounds(draw: random.Random, depth: int) -> dict[str, Any]:
    rule: dict[str, Any] = {draw.choice(("min", "max")): draw.choice(NUMBERS)}
    if draw.random() < 0.5:
        rule |= {"min": draw.choice((0, -1, 0.01)), "max": draw.choice((50, 50.01, 2))}
    return rule | ({"type": "integer"} if draw.random() < 0.3 else {})


def _text(draw: random.Random, depth: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"pattern": draw.choice(PATTERNS)} if draw.random() < 0.8 else {"max_length": 3}
    return rule | ({"min_length": draw.randint(0, 2)} if draw.random() < 0.3 else {})


def _places(draw: random.Random, depth: int) -> dict[str, Any]:
    if draw.random() < 0.5:
        return {"path_within": draw.sample(PATHS, draw.randint(1, 2))}
    return {"url_host": draw.sample(HOSTS, draw.randint(1, 2))}


def _members(draw: random.Random, depth: int) -> dict[str, Any]:
    pool = (*NUMBERS, *WORDS, True, False, None, [1])
    if draw.random() < 0.2:
        return {"const": draw.choice(pool)}
    return {"enum": draw.sample(pool, draw.randint(1, 4))}


def _typed(draw: random.Random, depth: int) -> dict[str, Any]:
    return {"type": draw.choice(("string", "number", "integer", "boolean", "array", "object", "null"))}


def _nothing(draw: random.Random, depth: int) -> dict[str, Any]:
    return {}


def _list(draw: random.Random, depth: int) -> dict[str, Any]:
    rule: dict[str, Any] = {"max_items": draw.randint(0, 2)} if draw.random() < 0.5 else {}
    return rule | ({"items": _constraint(draw, depth + 1)} if draw.random() < 0.7 else {"min_items": 1})


def _object(draw: random.Random, depth: int) -> dict[str, Any]:
    names = draw.sample(("a", "b", "é"), draw.randint(0, 2))
    return {"properties": {name: _constraint(draw, depth + 1) for name in names}}


def _history(draw: random.Random) -> dict[str, Any]:
    match: Any = "irreversible" if draw.random() < 0.4 else {"tool": draw.choice(TOOLS)}
    rule: dict[str, Any] = {"match": match, "decision": draw.choice(("deny", "require_approval"))}
    kind = draw.choice(("max", "sum", "distinct"))
    rule |= {"max": draw.choice((0, 1, 2, 3.5) if kind == "sum" else (0, 1, 2))}
    rule |= {kind: draw.choice("ab")} if kind != "max" else {}
    return rule | ({"over": "client", "window": 100} if draw.random() < 0.3 else {})


def calls_for(draw: random.Random, policy: Policy, most: int) -> list[Call]:
    """Calls at the edges of the rules, then of anything, of tools known and unknown."""
    found = []
    for tool, rules in policy.tools.items():
        probes = probe_calls(rules.rules)
        found += [Call(tool, args) for args in probes.bases]
        some = draw.sample(probes.calls, min(len(probes.calls), most))
        found += [Call(tool, args, draw.random() < 0.2) for args in some]
    for _ in range(most // 4):
        names = draw.sample(("a", "b", "odd name", "é", "__extn", "\ud800", "more"), draw.randint(0, 3))
        args = {name: draw.choice((*STRANGE, *WORDS, *NUMBERS)) for name in names}
        found.append(Call(draw.choice((*TOOLS, "other", "t\ud800")), args))
    return found


def draw_past(draw: random.Random, policy: Policy) -> Ledger | None:
    """Some calls of the past, a row of the caller's own, rules that are younger than the run; or no past at all."""
    if draw.random() < 0.3:
        return None
    run, client = Folds(policy), Folds(policy, "client")
    for number in range(draw.randint(0, 3)):
        args = {name: draw.choice((1, 0.5, 2, "x", [1, 2])) for name in draw.sample("ab", draw.randint(0, 2))}
        past = PastCall(draw.choice(TOOLS), args, draw.randint(850, 1000), draw.choice((None, None, 990, 1200)))
        run.put(str(number), past)
        client.put(str(number), past)
    since = {rule.id: draw.choice((0, 700, 950)) for rule in policy.history}
    return Ledger(run, client if draw.random() < 0.9 else None, 1000, 800, since, draw.choice((None, "0")))
