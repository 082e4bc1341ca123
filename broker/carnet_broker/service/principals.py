"""Who asks: an agent's client, the guard of a host, or an operator. The tenant is always the credential's."""

from dataclasses import dataclass
from enum import StrEnum

from carnet_broker.core.registry import Role

__all__ = ["Bearer", "Kind", "Principal"]


class Kind(StrEnum):
    AGENT = "agent"
    HOST = "host"
    OPERATOR = "operator"


class Bearer(StrEnum):
    """The kinds of bearer token that a route accepts."""

    ROOT = "root"  # a run's own token
    CHILD = "child"  # a delegation's token for one host
    ENDED = "ended"  # a child's token too whose delegation has ended: it may only learn why
    GUARD = "guard"
    SESSION = "session"  # an operator who logged in


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """name: the agent, the host or the operator; client: the client id, "" for operators."""

    kind: Kind
    tenant: str
    name: str
    client: str = ""
    role: Role | None = None

    @property
    def actor(self) -> str:
        """How audit records name the principal."""
        return f"guard:{self.client}" if self.kind is Kind.HOST else f"{self.kind.value}:{self.name}"
