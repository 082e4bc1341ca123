"""What the broker's documents say to a parent: runs, delegations, tokens."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from carnet.errors import Unavailable
from carnet.reasons import Reason
from carnet.wire.answer import reason_of

__all__ = ["State", "Status", "Token", "agent_of", "status", "tokens"]

State = Literal["pending", "active", "ended"]


@dataclass(frozen=True, slots=True)
class Token:
    """A child's token for one host."""

    text: str = field(repr=False)
    audience: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A delegation as the broker last described it."""

    id: str
    agent: str
    level: int
    tools: frozenset[str]
    state: State
    reason: Reason | None
    expires_at: int | None
    approval_id: str | None
    tokens: Mapping[str, Token] | None


def status(document: Mapping[str, Any]) -> Status:
    """Read a delegation document. Unavailable if it is none."""
    try:
        envelope, approval = document["envelope"], document["approval"]
        reason = document["reason"]
        found = document.get("tokens")
        state = document["state"]
        if state not in ("pending", "active", "ended"):
            raise ValueError(state)
        return Status(
            id=str(document["id"]),
            agent=str(document["agent"]),
            level=int(envelope["level"]),
            tools=frozenset(map(str, envelope["tools"])),
            state=cast(State, state),
            reason=None if reason is None else reason_of(reason),
            expires_at=document["expires_at"],
            approval_id=None if approval is None else str(approval["id"]),
            tokens=tokens(found) if found else None,
        )
    except (KeyError, TypeError, ValueError):
        raise Unavailable("the broker's answer is no delegation") from None


def tokens(document: Mapping[str, Any]) -> dict[str, Token]:
    """Read the tokens of an answer, by host."""
    try:
        return {
            str(host): Token(str(given["access_token"]), str(given["audience"])) for host, given in document.items()
        }
    except (KeyError, TypeError, AttributeError):
        raise Unavailable("the broker's answer holds no tokens") from None


def agent_of(token: str) -> str:
    """The agent that our own root token names. Read for display only, so nothing is verified."""
    try:
        body = token.split(".")[1]
        payload = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return str(payload["urn:carnet:delegation"]["agent"])
    except (IndexError, KeyError, TypeError, ValueError):
        raise Unavailable("the broker's answer is no run") from None
