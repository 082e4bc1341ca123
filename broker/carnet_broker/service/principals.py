"""Who asks: an agent's client, the guard of a host, or an operator. The tenant is always the credential's."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Bearer", "Kind", "Principal", "Role"]


class Kind(StrEnum):
    AGENT = "agent"
    HOST = "host"
    OPERATOR = "operator"


class Role(StrEnum):
    """Each role may do what the ones before it may: viewer < approver < operator < admin."""

    VIEWER = "viewer"
    APPROVER = "approver"
    OPERATOR = "operator"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        order = tuple(Role)
        return order.index(self) >= order.index(needed)


class Bearer(StrEnum):
    """The kinds of bearer token that a route accepts."""

    ROOT = "root"  # a run's own token
    CHILD = "child"  # a delegation's token for one host
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
