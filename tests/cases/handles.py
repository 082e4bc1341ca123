"""What the steps of a sequence name: a run, a child, a question."""

from dataclasses import dataclass, field

from carnet.errors import ApprovalPending, Refused, Unavailable
from carnet.trace import Trace
from tests.cases.registering import HOST

__all__ = ["Child", "Outcome", "Run"]


@dataclass(slots=True)
class Run:
    """An open run. token: its root token, replaced when it is renewed."""

    id: str
    agent: str
    token: str = field(repr=False)


@dataclass(slots=True)
class Child:
    """A delegation and its token for the one host; what a guard needs of the current child."""

    id: str
    run: str
    agent: str
    level: int
    tools: frozenset[str]
    approval: str | None
    bearer: str | None = field(repr=False)  # None while it is pending
    expires_at: int | None = None
    max_wait: float | None = 0.0
    trace: Trace | None = None

    def token(self, host: str) -> str:
        if self.bearer is None or host != HOST:
            raise LookupError(f"no token for {host}")
        return self.bearer


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call ended: allow, deny or pending, and with which words."""

    kind: str
    said: str = ""
    approval: str | None = None
    call: str | None = None

    @classmethod
    def of(cls, refused: Refused | Unavailable) -> "Outcome":
        if isinstance(refused, Unavailable):
            return cls("deny", f"unavailable {refused}")
        kind = "pending" if isinstance(refused, ApprovalPending) else "deny"
        return cls(kind, f"{refused.reason.value} {refused.detail}", refused.approval_id, refused.call_id)
