"""What a guard has loaded from the broker: the policy in force and what is known of its own host. Immutable."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from carnet.audit import ArgumentKey
from carnet.errors import Unavailable

if TYPE_CHECKING:
    from carnet_policy import Decision, Policy

__all__ = ["Book", "read_book"]

_BUDGETS = {0: 30.0, 1: 1.0, 2: 1.0}  # the widest that a deployment may set, in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """local: the host's tools that may be decided in process, as far as policy and catalog say."""

    policy: "Policy"
    digest: str  # of the policy
    host: str
    tenant: str
    issuer: str
    audience: str
    tools: frozenset[str]
    local: frozenset[str]
    resources: Mapping[str, str]  # tool -> the argument that names its resource
    budgets: Mapping[int, float]
    audit_key: ArgumentKey = field(repr=False)
    clear: frozenset[str]
    judges: Mapping[str, Callable[[Mapping[str, Any]], "Decision"]] = field(repr=False)  # of the local tools
    begun: dict[tuple[str | None, ...], str] = field(default_factory=dict, repr=False, compare=False)  # see `records`


def read_book(document: Mapping[str, Any]) -> Book:
    """The book of an answer of `GET /v1/policy`. Unavailable if it can't be read: a guard without a book refuses."""
    from carnet_policy import PolicyError, judge_of, loads

    try:
        policy = loads([(str(part["name"]), str(part["text"])) for part in document["documents"]])
        host = document["host"]
        effects: Mapping[str, Mapping[str, Any]] = host["effects"]
        tools = frozenset(map(str, host["tools"]))
        local = frozenset(tool for tool in tools if _local(policy, tool, effects.get(tool, {})))
        made = Book(
            policy=policy,
            digest=policy.ref.digest,
            host=str(host["name"]),
            tenant=str(host["tenant"]),
            issuer=str(host["issuer"]),
            audience=str(host["audience"]),
            tools=tools,
            local=local,
            resources={tool: str(known["resource_arg"]) for tool, known in effects.items() if known["resource_arg"]},
            budgets=_budgets(host["staleness"]),
            audit_key=ArgumentKey(_bytes(host["audit_key"])),
            clear=frozenset(map(str, host["clear_fields"])),
            judges={tool: judge_of(policy, tool) for tool in local},
        )
    except (KeyError, TypeError, ValueError, PolicyError) as fault:
        raise Unavailable(f"the broker's policy can't be loaded ({type(fault).__name__}: {fault})") from None
    if made.digest != document.get("digest"):
        raise Unavailable("the policy that the broker sent has another digest than the one it names")
    return made


def _local(policy: "Policy", tool: str, known: Mapping[str, Any]) -> bool:
    """A reading tool without any bound that outlives a call and without any way to end in a question."""
    reads = known.get("effect") == "read" and known.get("resource_arg") is None
    return reads and not policy.bounds(tool) and not policy.asks(tool)


def _budgets(given: Mapping[str, Any]) -> dict[int, float]:
    found = {level: min(widest, float(given.get(str(level), 1.0))) for level, widest in _BUDGETS.items()}
    return {**found, 2: 1.0}


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
