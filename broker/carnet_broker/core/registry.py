"""What one tenant has registered: agents, hosts, clients, operators and limits. Frozen; every look-up is exact.

A registry is made by `carnet_broker.config` from `carnet.yaml`, or directly in tests. It holds no rule of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from carnet.token.names import LEVEL_TTL

if TYPE_CHECKING:
    from carnet_policy import Policy, Schema

__all__ = ["MAX_RUN_TTL", "Agent", "Client", "Host", "Limits", "Operator", "Registry", "Role"]

Chain = Sequence[tuple[str, str, str]]  # (delegation, agent, client), the run first
MAX_RUN_TTL = 28_800  # seconds: an older run has ended


class Role(IntEnum):
    """What an operator may do; each role may do what the lower ones may."""

    VIEWER = 1
    APPROVER = 2
    OPERATOR = 3
    ADMIN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A kind of agent. tools: may call; grants: may hand out and not call. min_level: the least level of a delegation
    to it. ceilings: `{tool: {"args": {arg: constraints}, "max_calls": n}}`, bounding it as target and as parent."""

    name: str
    owner: str | None = None  # an operator, or a group of operators: they cannot approve for the agent
    tools: frozenset[str] = frozenset()
    grants: frozenset[str] = frozenset()
    callable_agents: frozenset[str] = frozenset()
    handoff: "Schema | None" = None  # what a payload for it must fit
    handoff_document: Mapping[str, Any] | None = None
    returns_document: Mapping[str, Any] | None = None
    ceilings: Mapping[str, Any] = field(default_factory=dict)
    min_level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A tool server: one audience and the tools it serves. clear_fields: arguments that audit shows in clear."""

    name: str
    audience: str
    tools: frozenset[str]
    clear_fields: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What authenticates: as an agent, or as the guard of a host. Exactly one of agent and host, of jwks and secret."""

    id: str
    agent: str | None = None
    host: str | None = None
    jwks: tuple[Mapping[str, Any], ...] = ()
    secret_sha256: str | None = field(default=None, repr=False)  # hex, of a secret of 32 or more random bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A person (passphrase) or automation (jwks) with a role. groups: what a policy's `approvers` names."""

    name: str
    role: Role
    groups: frozenset[str] = frozenset()
    passphrase: str | None = field(default=None, repr=False)  # scrypt$n$r$p$salt$hash
    jwks: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a deployment may tighten. Seconds, but for bind_from_level (3 = never) and the counts."""

    ttl: Mapping[int, int] = field(default_factory=lambda: MappingProxyType(LEVEL_TTL))
    run_ttl: int = 3600
    staleness: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({0: 1, 1: 1}))
    bind_from_level: int = 3
    max_open_runs: int = 256  # per client, so that a client in a loop cannot fill the store


@dataclass(frozen=True, kw_only=True)
class Registry:
    """Everything that is known about one tenant."""

    tenant: str
    agents: Mapping[str, Agent]
    hosts: Mapping[str, Host]
    clients: Mapping[str, Client]
    operators: Mapping[str, Operator]
    limits: Limits
    policy: "Policy"
    shadow: "Policy | None" = None  # a candidate that decides beside the policy, on record only

    @cached_property
    def _host_by_tool(self) -> Mapping[str, Host]:
        return {tool: host for host in self.hosts.values() for tool in host.tools}

    def agent(self, name: str) -> Agent | None:
        return self.agents.get(name)

    def strangers(self, chain: Chain) -> tuple[str, ...]:
        """The agents of a delegation's chain, and the client that opened its run, that are not registered any more."""
        _, opener, client = chain[0]
        known = self.clients.get(client)
        gone = [f"the agent {agent}" for _, agent, _ in chain if agent not in self.agents]
        return (*gone, *(() if known is not None and known.agent == opener else (f"the client {client}",)))

    def lost(self, chain: Chain, tools: Iterable[str]) -> tuple[str, ...]:
        """The tools of a delegation that its agent may not call any more, or that its parent may not give any more."""
        to, by = self.agents.get(chain[-1][1]), self.agents.get(chain[-2][1]) if len(chain) > 1 else None
        held = frozenset() if to is None or by is None else to.tools & (by.tools | by.grants)
        return tuple(sorted(set(tools) - held))

    def host_of(self, tool: str) -> Host | None:
        """The one host that serves this tool."""
        return self._host_by_tool.get(tool)

    def hosts_of(self, tools: Iterable[str]) -> tuple[Host, ...]:
        """The hosts that serve any of these tools, by name; unserved tools have none."""
        found = {host.name: host for tool in tools if (host := self.host_of(tool)) is not None}
        return tuple(found[name] for name in sorted(found))
