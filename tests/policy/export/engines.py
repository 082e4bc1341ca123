"""The engines that run exported policies here, each behind the one question that matters."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from carnet_policy import Policy
from carnet_policy.export import ACTIONS, Unmapped, cedar_request, to_cedar, to_rego

__all__ = ["ENGINES", "Cedar", "Rego", "engine"]


class Rego:
    """rego-cpp through regopy."""

    package = "regopy"

    def __init__(self, text: str) -> None:
        regopy = importlib.import_module(self.package)
        builder = regopy.Interpreter()
        builder.add_module("carnet.policy", text)
        self._bundle = builder.build("x=data.carnet.policy.decision", ["carnet/policy/decision"])
        self._asked = regopy.Interpreter()

    @staticmethod
    def export(policy: Policy) -> str | tuple[Unmapped, ...]:
        return to_rego(policy)

    def ask(self, facts: Mapping[str, Any]) -> str:
        self._asked.set_input(facts)
        output = self._asked.query_bundle_entrypoint(self._bundle, "carnet/policy/decision")
        return str(output.results[0].expressions[0])


class Cedar:
    """The Cedar engine through cedarpy."""

    package = "cedarpy"

    def __init__(self, text: str) -> None:
        self._cedar = importlib.import_module(self.package)
        self._policies = self._cedar.PolicySet.from_str(text)
        self._entities = self._cedar.Entities.from_json_str("[]")

    @staticmethod
    def export(policy: Policy) -> str | tuple[Unmapped, ...]:
        return to_cedar(policy)

    def ask(self, facts: Mapping[str, Any]) -> str:
        requests = [cedar_request(facts, action) for action in ACTIONS]
        runs, asks = self._cedar.is_authorized_batch(requests, self._policies, self._entities)
        assert not runs.diagnostics.errors + asks.diagnostics.errors
        return "allow" if runs.allowed else "require_approval" if asks.allowed else "deny"


ENGINES: tuple[type[Rego] | type[Cedar], ...] = (Rego, Cedar)


@cache
def _missing(package: str) -> bool:
    if importlib.util.find_spec(package) is not None:
        return False
    sys.stderr.write(f"{package} is not installed, so policies exported for it are not run\n")
    return True


def engine(kind: type[Rego] | type[Cedar], text: str) -> Rego | Cedar:
    """Ready to be asked; skips the test where the package has no wheel for this machine."""
    if _missing(kind.package):
        pytest.skip(f"{kind.package} is not installed")
    return kind(text)
