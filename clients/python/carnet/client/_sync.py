"""The parent's side, blocking: `Broker` opens runs, `Run` spawns, `Child` holds the tokens.

Made from `_async.py` by `scripts/make_sync.py`; change that file and run the script.
"""

import logging
import secrets
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from carnet import trace
from carnet.client import _io_sync as io
from carnet.client.documents import State, Status, Token, agent_of, status, tokens
from carnet.current import entered
from carnet.errors import ApprovalPending, CarnetError, ConfigError, Refused
from carnet.reasons import Reason
from carnet.task import Task
from carnet.wire.ask import Ask
from carnet.wire.credential import Credential
from carnet.wire.issuer import METADATA, issuer_of
from carnet.wire.settings import read

if TYPE_CHECKING:
    import httpx2

__all__ = ["Broker", "Child", "Run"]

_log = logging.getLogger("carnet.client")
_END = 2.0  # seconds that leaving a context may take
_RENEW = 60.0  # seconds of life left at which a root token is renewed
_LONGEST = 50.0  # seconds for which a broker lets one request wait
_PAUSE = 0.25  # seconds before asking a broker again that does not let it wait (it stops, or too many wait already)


class Broker:
    """The broker, as one client sees it. Connects on first use; may be shared.

    url, credential: from CARNET_URL and CARNET_CLIENT_* when omitted. timeout: seconds for one request.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        credential: Credential | None = None,
        timeout: float = 5.0,
        transport: io.Transport | None = None,
    ) -> None:
        self._url, self._credential = url, credential
        self._timeout, self._transport = timeout, transport
        self._channel: io.Channel | None = None
        self._issuer: str | None = None

    def run(self, *, run_id: str | None = None) -> "Run":
        """A run, opened when its context is entered or it first spawns. run_id: join one that this client opened."""
        return Run(self, run_id)

    def close(self) -> None:
        """Close the connections. Runs are not ended."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, ask: Ask) -> dict[str, Any]:
        if self._channel is None:
            url = self._url or read().url
            if url is None:
                raise ConfigError("there is no broker: set CARNET_URL or pass its url")
            self._channel = io.Channel(url, timeout=self._timeout, transport=self._transport)
        return self._channel.send(ask)

    def _token(self, run_id: str | None, traceparent: str) -> dict[str, Any]:
        """Open a run, or renew its root token. Not repeated as it is: an assertion is good for one sending."""
        if self._credential is None:
            self._credential = Credential.from_env()
        if self._issuer is None:
            self._issuer = issuer_of(self._send(Ask(method="GET", path=METADATA, repeatable=True)))
        form = {"grant_type": "client_credentials"}
        if run_id is not None:
            form["run_id"] = run_id
        form |= self._credential.proof(self._issuer, int(time.time()), secrets.token_hex(16))
        return self._send(Ask(method="POST", path="/oauth2/token", form=form, traceparent=traceparent))


class Run:
    """One run of the parent. Leaving its context ends it and all its children (`run_closed`)."""

    def __init__(self, broker: Broker, run_id: str | None) -> None:
        self._broker = broker
        self._id = run_id
        self._trace = trace.start(secrets.token_hex(16), secrets.token_hex(8), random=True)
        self._lock = io.Lock()
        self._root: tuple[str, float] | None = None  # token, monotonic time at which to renew it
        self._expires_at = 0
        self._agent = ""

    @property
    def id(self) -> str:
        """The run's id. ConfigError before it is opened."""
        if self._id is None:
            raise ConfigError("the run is not open yet: enter its context first")
        return self._id

    @property
    def agent(self) -> str:
        """The agent that the run is of; empty before it is opened."""
        return self._agent

    @property
    def expires_at(self) -> int:
        """Unix seconds at which the run ends for good; 0 before it is opened."""
        return self._expires_at

    def spawn(
        self,
        target: str,
        task: Task,
        payload: Mapping[str, Any] | None = None,
        *,
        ttl: int | None = None,
        wait: float | None = None,
        idempotency_key: str | None = None,
    ) -> "Child":
        """A child of agent `target` for this task, with every token in hand.

        wait: seconds to wait for a person where one must approve; None = until the approval's own deadline, 0 = answer
        a pending child at once. idempotency_key: the same key again answers the same child (after a crash).
        Raises Refused; ApprovalPending when `wait` is over; Unavailable.
        """
        body: dict[str, Any] = {"target": target, "task": task.to_wire(), "hosts": ["*"]}
        if payload is not None:
            body["payload"] = dict(payload)
        if ttl is not None:
            body["ttl"] = ttl
        key = idempotency_key or secrets.token_hex(16)
        document = self._ask("POST", "/v1/delegations", json=body, key=key)
        child = Child(self, str(document.get("id", "")))
        child._learn(status(document))
        if child.state != "pending" or wait != 0:
            child.wait(wait)
        return child

    def child(self, child_id: str) -> "Child":
        """A handle on a child that was spawned before (by a process that is gone); `wait()` fetches its state."""
        return Child(self, child_id)

    def close(self) -> None:
        """End the run and everything below it (`run_closed`)."""
        if self._root is not None:
            self._ask("POST", f"/v1/delegations/{self.id}/end", json={"reason": "run_closed"}, seconds=_END)
            self._root = None

    def __enter__(self) -> Self:
        self._bearer()
        return self

    def __exit__(self, *_: object) -> None:
        _on_the_way_out(self.close)

    def _bearer(self) -> str:
        """The root token, opened or renewed where that is due."""
        with self._lock:
            if self._root is None or time.monotonic() >= self._root[1]:
                asked = time.monotonic()
                answer = self._broker._token(self._id, self._span())
                token, life = str(answer["access_token"]), float(answer["expires_in"])
                self._id, self._expires_at = str(answer["run_id"]), int(answer["run_expires_at"])
                self._agent = agent_of(token)
                self._root = token, asked + max(life - _RENEW, life / 2)
            return self._root[0]

    def _ask(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        key: str | None = None,
        wait: float = 0.0,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Ask with the root token; one that ended early (the broker's clock ran ahead) is renewed once."""
        ask = Ask(
            method=method,
            path=path,
            bearer=self._bearer(),
            json=json,
            key=key,
            query={"wait": wait} if wait else {},
            wait=wait,
            timeout=seconds,
            repeatable=seconds is None,  # what must be over soon is tried once
            traceparent=self._span(),
        )
        try:
            return self._broker._send(ask)
        except Refused as refused:
            if refused.reason is not Reason.TOKEN_EXPIRED:
                raise
        self._root = None
        return self._broker._send(replace(ask, bearer=self._bearer()))

    def _span(self) -> str:
        return trace.child(self._trace, secrets.token_hex(8)).header()


class Child:
    """A delegation to one agent. Entering its context makes it the current child; leaving ends it (`completed`)."""

    max_wait: float | None = None

    def __init__(self, run: Run, child_id: str) -> None:
        self._run = run
        self.id = child_id
        self._status: Status | None = None
        self._tokens: dict[str, Token] = {}
        self._entered: ExitStack | None = None

    @property
    def agent(self) -> str:
        """The agent that the child is; empty before the child's state is known."""
        return self._status.agent if self._status is not None else ""

    @property
    def level(self) -> int:
        """0 reads, 1 writes, 2 needed a person. 2, the strictest, before the child's state is known."""
        return self._status.level if self._status is not None else 2

    @property
    def tools(self) -> frozenset[str]:
        """The tools that the child may call."""
        return self._status.tools if self._status is not None else frozenset()

    @property
    def expires_at(self) -> int | None:
        """Unix seconds at which all its tokens end; None while it is pending."""
        return self._status.expires_at if self._status is not None else None

    @property
    def approval_id(self) -> str | None:
        """The approval that lets it exist."""
        return self._status.approval_id if self._status is not None else None

    @property
    def state(self) -> State:
        """As last heard: pending, active or ended."""
        return self._status.state if self._status is not None else "pending"

    @property
    def reason(self) -> Reason | None:
        """Why it ended."""
        return self._status.reason if self._status is not None else None

    @property
    def trace(self) -> trace.Trace | None:
        """The trace that its calls belong to (W3C Trace Context)."""
        return self._run._trace

    def wait(self, timeout: float | None = None) -> Self:
        """Wait until the child is active, with every token in hand. timeout: seconds, None = the approval's deadline.

        Raises Refused with the reason when it ended instead, ApprovalPending when the time is over.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.state == "pending":
            begun = time.monotonic()
            left = _LONGEST if until is None else max(0.0, min(_LONGEST, until - begun))
            heard = self._look(left)
            if heard == "pending" and until is not None and time.monotonic() >= until:
                detail = f"{self.id} waits for a person's answer; run.child({self.id!r}).wait() goes on waiting"
                raise ApprovalPending(Reason.APPROVAL_PENDING, detail, approval_id=self.approval_id)
            if heard == "pending" and time.monotonic() - begun < left / 2:
                io.sleep(min(_PAUSE, left))
        if self.state == "ended":
            raise Refused(self.reason or Reason.TOKEN_ENDED, approval_id=self.approval_id)
        if not self._tokens and self.tools:
            self._mint()
        return self

    def use(self) -> AbstractContextManager[None]:
        """Make it the current child inside a block, without ending it afterwards."""
        return entered(self)

    def token(self, host: str) -> str:
        """Its token for one host. Refused when it has no tool there; ConfigError while it has no tokens at all."""
        return self._held(host).text

    def auth(self, host: str, *, origin: str | None = None) -> "httpx2.Auth":
        """Authentication for an httpx2 client that calls this host's tools. The token is sent to the origin of the
        host's audience, or to `origin` where the host is reached under another address; else ConfigError."""
        from carnet.client.auth import ChildAuth, allowed_origin

        allowed = allowed_origin(self._held(host).audience, origin)

        def renew() -> str:
            self._mint()
            return self.token(host)

        return ChildAuth(lambda: self.token(host), renew, allowed, self._run._span)

    def end(self) -> None:
        """End it now (`completed`): its tokens die everywhere."""
        if self.state != "ended":
            path = f"/v1/delegations/{self.id}/end"
            self._learn(status(self._run._ask("POST", path, json={"reason": "completed"}, seconds=_END)))

    def __enter__(self) -> Self:
        self._entered = ExitStack()
        self._entered.enter_context(entered(self))
        return self

    def __exit__(self, *_: object) -> None:
        if self._entered is not None:
            self._entered.close()
        _on_the_way_out(self.end)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.agent} {self.state}>"

    def _held(self, host: str) -> Token:
        found = self._tokens.get(host)
        if found is not None:
            return found
        if not self._tokens:
            raise ConfigError(f"{self.id} has no tokens yet: it is {self.state}, and wait() brings them")
        raise Refused(Reason.SCOPE_MISSING, f"{self.id} has no tool at host {host}")

    def _learn(self, heard: Status) -> None:
        self._status = heard
        if heard.tokens is not None:
            self._tokens.update(heard.tokens)

    def _look(self, wait: float) -> State:
        self._learn(status(self._run._ask("GET", f"/v1/delegations/{self.id}", wait=wait)))
        return self.state

    def _mint(self) -> None:
        document = self._run._ask("POST", f"/v1/delegations/{self.id}/tokens", json={})
        self._tokens.update(tokens(document.get("tokens", {})))


def _on_the_way_out(end: Any) -> None:
    """End something when its context is left: shielded, briefly, and never instead of an exception that is on its way.
    What can't be ended now ends by itself, with its tokens."""
    try:
        io.shielded(end, _END)
    except Refused:
        return  # it had ended before
    except CarnetError as fault:
        _log.warning("a context was left without ending what it stands for: %s", fault)
