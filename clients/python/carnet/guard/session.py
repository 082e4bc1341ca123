"""The guard's conversation with the broker: who it is there, and each request that it makes."""

import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from carnet.clock import Clock
from carnet.errors import Refused, Unavailable
from carnet.reasons import CATALOGUE, Reason
from carnet.wire.ask import Ask
from carnet.wire.channel import Channel
from carnet.wire.credential import Credential
from carnet.wire.issuer import METADATA, issuer_of

__all__ = ["Bearer", "ChildBearer", "OwnBearer", "Session"]

_RENEW = 60.0  # seconds of life left at which a guard token is renewed


class Bearer(ABC):
    """What the guard shows at the guard routes. owned: whether it is a client's own, for all that the guard does."""

    owned = True

    @abstractmethod
    def token(self) -> str:
        """Raises Refused or Unavailable when there is none."""

    def of_call(self, child: str) -> str:  # noqa: ARG002 - only a guard that speaks for children looks at it
        """What is shown for a call of this child's token."""
        return self.token()

    @abstractmethod
    def spoiled(self, token: str) -> bool:
        """The broker did not take this token; whether it is worth asking again with a new one."""


class OwnBearer(Bearer):
    """A client of its own: `client_credentials` with `scope=guard`, renewed before it ends."""

    def __init__(self, channel: Channel, credential: Credential, clock: Clock) -> None:
        self._channel, self._credential, self._clock = channel, credential, clock
        self._lock = threading.Lock()
        self._issuer: str | None = None
        self._held: tuple[str, float] | None = None  # token, monotonic time at which to renew it

    def token(self) -> str:
        with self._lock:
            if self._held is None or self._clock.mono() >= self._held[1]:
                self._held = self._fetched()
            return self._held[0]

    def spoiled(self, token: str) -> bool:
        with self._lock:
            if self._held is not None and self._held[0] == token:
                self._held = None
            return True

    def _fetched(self) -> tuple[str, float]:
        if self._issuer is None:
            found = self._channel.send(Ask(method="GET", path=METADATA, repeatable=True))
            self._issuer = issuer_of(found)
        asked = self._clock.mono()
        proof = self._credential.proof(self._issuer, self._clock.now(), secrets.token_hex(16))
        form = {"grant_type": "client_credentials", "scope": "guard", **proof}
        answer = self._channel.send(Ask(method="POST", path="/oauth2/token", form=form))
        token, life = answer.get("access_token"), answer.get("expires_in")
        if type(token) is not str or type(life) is not int or life <= 0:
            raise Unavailable("the broker's answer to the guard's credential carries no token with an end")
        return token, asked + max(life - _RENEW, life / 2)


class ChildBearer(Bearer):
    """No client of its own (`guard: self`): the token of the child that called last speaks for the guard."""

    owned = False  # a dead child's token says nothing more, and another's must not speak of it

    def __init__(self) -> None:
        self._token: str | None = None

    def offer(self, token: str) -> bool:
        """A child is current; whether its token is another than the last."""
        changed, self._token = token != self._token, token
        return changed

    def of_call(self, child: str) -> str:
        return child

    def token(self) -> str:
        if self._token is None:
            raise Refused(
                Reason.NOT_READY, "a guard without a client of its own is ready only while a child is current"
            )
        return self._token

    def spoiled(self, token: str) -> bool:
        if self._token == token:
            self._token = None
        return False


class Session:
    """Every request of one guard. Each raises Refused or Unavailable."""

    def __init__(self, channel: Channel, bearer: Bearer, instance: str) -> None:
        self.channel, self.bearer, self.instance = channel, bearer, instance

    def decide(
        self, token: str, tool: str, args: Mapping[str, Any], *, key: str | None, traceparent: str | None
    ) -> dict[str, Any]:
        """Decide, reserve and record one call at the broker; without a key only tell what it would decide."""
        body: dict[str, Any] = {"token": token, "tool": tool, "args": args}
        if key is None:
            body["preview"] = True
        return self._send(
            lambda bearer: Ask(
                method="POST",
                path="/v1/calls",
                bearer=bearer,
                json=body,
                key=key,
                traceparent=traceparent,
                repeatable=True,
            ),
            token,
        )

    def state_of(self, token: str, call: str, wait: float = 0.0) -> dict[str, Any]:
        """A call of this child's, as the broker sees it now, or once it changed within `wait` seconds."""
        return self._send(
            lambda bearer: Ask(
                method="GET",
                path=f"/v1/calls/{call}",
                bearer=bearer,
                query={"wait": wait} if wait else {},
                wait=wait,
                repeatable=True,
            ),
            token,
        )

    def outcome(self, token: str, call: str, outcome: str, detail: str) -> None:
        """Report how a call of this child's ended."""
        body = {"outcome": outcome, "detail": detail[:500]}
        self._send(
            lambda bearer: Ask(
                method="POST", path=f"/v1/calls/{call}/outcome", bearer=bearer, json=body, repeatable=True
            ),
            token,
        )

    def records(self, journal: str, first: int, lines: list[Mapping[str, Any]]) -> int:
        """Ship journal lines; the number that the broker waits for next."""
        body = {"journal": journal, "first": first, "lines": lines}
        answer = self._send(
            lambda bearer: Ask(method="POST", path="/v1/records", bearer=bearer, json=body, repeatable=True)
        )
        return int(answer.get("next", first + len(lines)))

    def policy(self) -> dict[str, Any]:
        """The policy in force and what is known of the guard's host."""
        return self._send(lambda bearer: Ask(method="GET", path="/v1/policy", bearer=bearer, repeatable=True))

    def keys(self) -> dict[str, Any]:
        """The issuer's public keys (RFC 7517)."""
        return self.channel.send(Ask(method="GET", path="/.well-known/jwks.json", repeatable=True))

    def poll(self, position: Mapping[str, str | int], wait: float) -> dict[str, Any]:
        """One round of the feed; `after` acknowledges what this process applied. Not retried: a round is short."""
        query = {**position, "wait": wait, "instance": self.instance}
        return self._send(
            lambda bearer: Ask(method="GET", path="/v1/feed", bearer=bearer, query=query, wait=wait, timeout=2.0)
        )

    def acknowledge(self, epoch: str, seq: int) -> None:
        """Tell what this process applied (a stream has no `after` to tell it with)."""
        body = {"instance": self.instance, "epoch": epoch, "seq": seq}
        self._send(lambda bearer: Ask(method="POST", path="/v1/feed", bearer=bearer, json=body, timeout=1.0))

    def _send(self, ask: Callable[[str], Ask], child: str | None = None) -> dict[str, Any]:
        token = self.bearer.token() if child is None else self.bearer.of_call(child)
        try:
            return self.channel.send(ask(token))
        except Refused as refused:
            if not _unauthorised(refused) or not self.bearer.spoiled(token):
                raise
        return self.channel.send(ask(self.bearer.token()))


def _unauthorised(refused: Refused) -> bool:
    """The bearer itself was not taken: it ended, was revoked, or its key is gone."""
    return CATALOGUE[refused.reason].status == 401
