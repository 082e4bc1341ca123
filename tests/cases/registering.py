"""The registry of one world: what is in carnet.yaml and in the policy file, made from what a case names."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

__all__ = [
    "AUDIENCE",
    "FACTS",
    "GUARD_CLIENT",
    "HOST",
    "PASSPHRASE",
    "TENANT",
    "Agent",
    "Setup",
    "catalog_of",
    "secret_of",
    "stand_in",
]

TENANT = "acme"
HOST = "tools"
AUDIENCE = "https://tools.example"
PASSPHRASE = "correct horse battery staple"
GUARD_CLIENT = "tools-server"

# The facts that cases of the kinds derive and api take for granted; any other name is unknown.
FACTS: Mapping[str, Mapping[str, Any]] = {
    "search_tickets": {"effect": "read"},
    "read_ticket": {"effect": "read"},
    "read_customer_record": {"effect": "read", "data_class": ["pii"]},
    "tag_ticket": {"effect": "write"},
    "refund": {"effect": "irreversible"},
    "send_email": {"effect": "irreversible"},
}


def secret_of(client: str) -> str:
    """The secret of a client of the world; the registry wants each to have its own."""
    return sha256(f"case runner {client}".encode()).hexdigest()


def stand_in(operator: str, number: int) -> str:
    """The operator's own name, or that of a stand-in."""
    return f"{operator}-{number}" if number else operator


def catalog_of(tools: Iterable[str]) -> dict[str, Any]:
    return {tool: dict(FACTS[tool]) for tool in tools if tool in FACTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    tools: frozenset[str] = frozenset()
    grants: frozenset[str] = frozenset()
    callable_agents: frozenset[str] = frozenset()
    min_level: int = 0

    def document(self) -> dict[str, Any]:
        return {
            "owner": "owner-of-agents",
            "tools": sorted(self.tools),
            "grants": sorted(self.grants),
            "callable_agents": sorted(self.callable_agents),
            "min_level": self.min_level,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """policy: the whole policy file as a mapping. operators: name -> role. stand_ins: how many more of each operator
    there are, since one person may not type passphrases as fast as a runner does. run_ttl: seconds."""

    agents: Mapping[str, Agent]
    policy: Mapping[str, Any]
    operators: Mapping[str, str] = field(default_factory=lambda: {"runner": "admin"})
    stand_ins: int = 0
    run_ttl: int = 3600
    tenant: str = TENANT

    @property
    def tools(self) -> frozenset[str]:
        """Every tool that anybody holds: all are served by the one host of the world."""
        held: frozenset[str] = frozenset().union(*(agent.tools | agent.grants for agent in self.agents.values()))
        return held

    def document(self, passphrase: str) -> dict[str, Any]:
        """carnet.yaml as a mapping. Each agent has the client `<agent>-app`; the host's guard is one client more."""
        holders = {f"{name}-app": {"agent": name} for name in self.agents} | {GUARD_CLIENT: {"host": HOST}}
        clients = {
            client: {**holder, "secret_sha256": sha256(secret_of(client).encode()).hexdigest()}
            for client, holder in holders.items()
        }
        return {
            "format": 1,
            "tenant": self.tenant,
            "policies": ["case.policy.yaml"],
            "hosts": {HOST: {"audience": AUDIENCE, "tools": sorted(self.tools)}},
            "agents": {name: agent.document() for name, agent in self.agents.items()},
            "clients": clients,
            "operators": {
                stand_in(name, number): {"role": role, "passphrase": passphrase}
                for name, role in self.operators.items()
                for number in range(self.stand_ins + 1)
            },
            "limits": {"run_ttl": self.run_ttl},
        }
