"""Carnet: child-bound, scope-minimised, revocable credentials for agents that delegate.

A parent opens a run with `Broker` (or `AsyncBroker`) and spawns children; a tool's owner wraps it with `Guard`. Names
are imported when first used, so that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carnet.client._async import AsyncBroker as AsyncBroker
    from carnet.client._async import AsyncChild as AsyncChild
    from carnet.client._async import AsyncRun as AsyncRun
    from carnet.client._sync import Broker as Broker
    from carnet.client._sync import Child as Child
    from carnet.client._sync import Run as Run
    from carnet.current import bind as bind
    from carnet.current import current_child as current_child
    from carnet.errors import ApprovalPending as ApprovalPending
    from carnet.errors import CarnetError as CarnetError
    from carnet.errors import ConfigError as ConfigError
    from carnet.errors import Interrupted as Interrupted
    from carnet.errors import Refused as Refused
    from carnet.errors import Unavailable as Unavailable
    from carnet.guard.guard import Guard as Guard
    from carnet.reasons import Reason as Reason
    from carnet.reasons import Refusal as Refusal
    from carnet.task import Task as Task
    from carnet.token.verify import verify as verify
    from carnet.wire.credential import Credential as Credential

_HOMES = {
    "ApprovalPending": "errors",
    "AsyncBroker": "client._async",
    "AsyncChild": "client._async",
    "AsyncRun": "client._async",
    "Broker": "client._sync",
    "CarnetError": "errors",
    "Child": "client._sync",
    "ConfigError": "errors",
    "Credential": "wire.credential",
    "Guard": "guard.guard",
    "Interrupted": "errors",
    "Reason": "reasons",
    "Refusal": "reasons",
    "Refused": "errors",
    "Run": "client._sync",
    "Task": "task",
    "Unavailable": "errors",
    "bind": "current",
    "current_child": "current",
    "verify": "token.verify",
}

__all__ = [
    "ApprovalPending",
    "AsyncBroker",
    "AsyncChild",
    "AsyncRun",
    "Broker",
    "CarnetError",
    "Child",
    "ConfigError",
    "Credential",
    "Guard",
    "Interrupted",
    "Reason",
    "Refusal",
    "Refused",
    "Run",
    "Task",
    "Unavailable",
    "bind",
    "current_child",
    "verify",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
