"""Policies, calls and pasts that Hypothesis draws: small alphabets, so that rules and calls meet often."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from carnet_policy import Folds, Ledger, PastCall, Policy, PolicyError, from_mapping

__all__ = ["ARGS", "NOW", "POLICIES", "RULES", "VALUES", "past_of", "policies"]

NOW = 1_000_000
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 5, -1, 1.0, 2.5, 10**30, float("nan"), "", "x", "xy", "/srv/a"])
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2)
ARGS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)

_NUMBER = st.fixed_dictionaries({}, optional={"min": st.sampled_from([0, 1, 1.5]), "max": st.sampled_from([2, 2.5])})
_TEXT = st.fixed_dictionaries({}, optional={"max_length": st.integers(0, 2), "pattern": st.sampled_from(["x*", "x|y"])})
_ENUM = st.fixed_dictionaries({"enum": st.lists(st.sampled_from([None, True, 0, 1, 2.5, 1.0, "x"]), min_size=1)})
_TYPED = st.fixed_dictionaries({"type": st.sampled_from(["number", "integer", "string", "boolean", "null", "array"])})
_PLACE = st.just({"path_within": "/srv"}) | st.just({"url_host": "a.example"})
_LEAF = _NUMBER | _TEXT | _ENUM | _TYPED | _PLACE
_INNER = st.fixed_dictionaries({"items": _LEAF}) | st.fixed_dictionaries(
    {"properties": st.dictionaries(st.sampled_from("ab"), _LEAF, max_size=2)}
)
_MAYBE = st.fixed_dictionaries({}, optional={"required": st.booleans()})
CONSTRAINTS = st.tuples(_LEAF | _INNER, _MAYBE).map(lambda parts: parts[0] | parts[1])
_BOUNDS = st.dictionaries(st.sampled_from("ab"), CONSTRAINTS, max_size=2)
RULES = st.one_of(
    st.fixed_dictionaries({"decision": st.just("allow")}, optional={"args": _BOUNDS, "extra_args": st.booleans()}),
    st.fixed_dictionaries({"decision": st.sampled_from(["deny", "require_approval"])}, optional={"args": _BOUNDS}),
)
_BOUND = st.fixed_dictionaries(
    {
        "match": st.sampled_from(["irreversible", {"tool": "t"}, {"tool": "u"}]),
        "max": st.integers(0, 3),
        "decision": st.sampled_from(["deny", "require_approval"]),
    }
)
HISTORY = st.tuples(
    _BOUND,
    st.sampled_from([{}, {"sum": "a"}, {"distinct": "a"}]),
    st.sampled_from([{}, {"over": "client", "window": 100}]),
).map(lambda parts: parts[0] | parts[1] | parts[2])
CATALOGS = st.none() | st.dictionaries(
    st.sampled_from("tu"), st.sampled_from([{"effect": "read"}, {"effect": "irreversible"}, {}]), max_size=2
)
_DEFAULTS = st.sampled_from(["deny", "deny", "deny", "allow", "require_approval"])


@st.composite
def policies(draw: Callable[[Any], Any]) -> Policy:
    """Policies over the tools `t` and `u`; what does not load is drawn again with fewer rules."""
    rules = {name: draw(st.lists(RULES, max_size=3)) for name in "tu"}
    default, catalog = draw(_DEFAULTS), draw(CATALOGS)
    history: list[Any] = []
    for rule in draw(st.lists(HISTORY, max_size=2)):
        if rule not in history:
            history.append(rule)
    document: dict[str, Any] = {"version": 1, "tools": rules, "history": history}
    document["defaults"] = {"decision": default}
    document["i_accept_fail_open"] = True
    if catalog is not None:
        document["catalog"] = catalog
    try:
        return from_mapping(document)
    except PolicyError:
        kept = {name: [rule for rule in found if not rule.get("args")] for name, found in rules.items()}
        return from_mapping({**document, "tools": kept})


POLICIES = policies()
PASTS = st.lists(st.tuples(st.sampled_from("tu"), ARGS, st.integers(0, 200), st.booleans()), max_size=4)


def past_of(policy: Policy, drawn: list[tuple[str, dict[str, Any], int, bool]], **more: Any) -> Ledger:
    """A ledger of (tool, args, age, waits) rows that count for the run and for the client."""
    run, client = Folds(policy), Folds(policy, "client")
    for number, (tool, args, age, waits) in enumerate(drawn):
        row = PastCall(tool, args, NOW - age, NOW + 50 - age if waits else None)
        run.put(str(number), row)
        client.put(str(number), row)
    return Ledger(run, client, NOW, NOW - 500, **more)
