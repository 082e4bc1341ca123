"""The policy engine of Carnet: pure, and usable alone.

`load` a policy, then `evaluate` a call against it and its past. Ceilings of delegations use the same grammar
(`compile_constraints`, `satisfies`, `narrower`, `intersect`). Nothing here reads a clock, a network or the environment;
only `load` reads files.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from carnet_policy.catalog import ToolFacts as ToolFacts
    from carnet_policy.ceilings import Compiled as Compiled
    from carnet_policy.ceilings import compile_constraints as compile_constraints
    from carnet_policy.ceilings import satisfies as satisfies
    from carnet_policy.decision import Call as Call
    from carnet_policy.decision import Decision as Decision
    from carnet_policy.decision import Effect as Effect
    from carnet_policy.decision import PolicyRef as PolicyRef
    from carnet_policy.engine import evaluate as evaluate
    from carnet_policy.engine import judge_of as judge_of
    from carnet_policy.errors import PolicyError as PolicyError
    from carnet_policy.folds import Folds as Folds
    from carnet_policy.folds import Ledger as Ledger
    from carnet_policy.folds import PastCall as PastCall
    from carnet_policy.intersection import intersect as intersect
    from carnet_policy.loader import from_mapping as from_mapping
    from carnet_policy.loader import load as load
    from carnet_policy.loader import loads as loads
    from carnet_policy.marked import Marked as Marked
    from carnet_policy.narrowing import narrower as narrower
    from carnet_policy.policy import Approvals as Approvals
    from carnet_policy.policy import Policy as Policy
    from carnet_policy.schema import Schema as Schema
    from carnet_policy.strictyaml import load_yaml as load_yaml

_HOMES = {
    "Approvals": "policy",
    "Call": "decision",
    "Compiled": "ceilings",
    "Decision": "decision",
    "Effect": "decision",
    "Folds": "folds",
    "Ledger": "folds",
    "Marked": "marked",
    "PastCall": "folds",
    "Policy": "policy",
    "PolicyError": "errors",
    "PolicyRef": "decision",
    "Schema": "schema",
    "ToolFacts": "catalog",
    "compile_constraints": "ceilings",
    "evaluate": "engine",
    "from_mapping": "loader",
    "intersect": "intersection",
    "judge_of": "engine",
    "load": "loader",
    "load_yaml": "strictyaml",
    "loads": "loader",
    "narrower": "narrowing",
    "satisfies": "ceilings",
}

__all__ = [
    "Approvals",
    "Call",
    "Compiled",
    "Decision",
    "Effect",
    "Folds",
    "Ledger",
    "Marked",
    "PastCall",
    "Policy",
    "PolicyError",
    "PolicyRef",
    "Schema",
    "ToolFacts",
    "compile_constraints",
    "evaluate",
    "from_mapping",
    "intersect",
    "judge_of",
    "load",
    "load_yaml",
    "loads",
    "narrower",
    "satisfies",
]


def __getattr__(name: str) -> object:
    """Names are imported when first used, so that importing the package costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
