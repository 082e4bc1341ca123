"""The guarded tool host of a world: the real guard, and tools whose only body is a count."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from carnet.clock import ManualClock
from carnet.current import entered
from carnet.errors import Refused, Unavailable
from carnet.guard.case import verified
from carnet.guard.guard import Guard
from carnet.guard.setup import Setup
from carnet.reasons import Reason, Refusal
from carnet.testing.clock import GuardClock
from carnet.token.names import TYP_ACCESS
from carnet.token.sign import sign
from carnet.wire.credential import Credential
from carnet_broker.keys.secrets import new_signer
from tests.cases.answering import Answer
from tests.cases.handles import Child, Outcome
from tests.cases.judging import refusal_text
from tests.cases.registering import GUARD_CLIENT, secret_of
from tests.cases.verdict import CaseFailed
from tests.cases.wiring import Held, Wire, naming

__all__ = ["ToolHost"]

READY = 5.0
UNKNOWN = {Reason.STALE, Reason.NOT_READY}


class _Renamed:
    """A signer under another kid: what a forger can put into a header."""

    alg = "ES256"

    def __init__(self, kid: str) -> None:
        self.kid = kid
        self._inner = new_signer()

    def sign(self, data: bytes) -> bytes:
        return self._inner.sign(data)

    def public_jwk(self) -> dict[str, Any]:
        return self._inner.public_jwk()


class ToolHost:
    def __init__(self, url: str, clock: ManualClock) -> None:
        self.wire = Wire()
        self.wire.broker = url
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self.executions = 0
        self.guard = Guard()
        credential = Credential.secret(GUARD_CLIENT, secret_of(GUARD_CLIENT))
        self.guard.placed(
            Setup(url=url, credential=credential, max_wait=0.0, transport=self.wire, clock=GuardClock(clock.now))
        )
        self.settled(lambda: self.guard.started().state.lacking(1) is None)

    @property
    def fetched_keys(self) -> int:
        return self.wire.fetched_keys

    def settled(self, done: Callable[[], bool]) -> None:
        """Give the world a moment to become so."""
        deadline = time.monotonic() + READY
        while not done():
            if time.monotonic() > deadline:
                lacking = self.guard.started().state.lacking(1)
                raise CaseFailed(f"the world did not settle: {lacking if lacking is not None else 'the guard is well'}")
            time.sleep(0.02)

    def hears_of(self, now: int) -> None:
        """Wait until the guard, too, has this time: it takes it from the broker's feed."""
        self.settled(lambda: self.guard.started().state.now() >= now)

    def catch_up(self, seq: int, seconds: float) -> None:
        """Give the guard the time that it may take to hear of a revocation."""
        state = self.guard.started().state
        state.await_change(lambda: state.feed.tenant.seq >= seq, seconds)

    def call(self, child: Child, tool: str, args: Mapping[str, Any], approval: str | None) -> Outcome:
        """One call through the guard, naming an approval if there is one to name."""
        named = naming.set(approval)
        try:
            with entered(child):
                call_id = self.guard.call(tool, args, self._tool)
        except (Refused, Unavailable) as refused:
            return Outcome.of(refused)
        finally:
            naming.reset(named)
        return Outcome("allow", "", call=str(call_id))

    def _tool(self, **_: Any) -> str:
        with self._lock:
            self.executions += 1
        return "done"

    def verify(self, child: Child) -> Answer:
        """What the guard says, if the broker says the same."""
        told = self.verify_token(child.bearer or "")
        proof = {"client_id": GUARD_CLIENT, "client_secret": secret_of(GUARD_CLIENT), "token": child.bearer or ""}
        with httpx2.Client(base_url=self._url) as http:
            answer = http.post("/oauth2/introspect", data=proof)
        if answer.is_success and answer.json()["active"] != (told.kind == "valid") and told.kind != "unknown":
            return Answer("disagreeing", f"the guard says {told.kind}, the broker active: {answer.json()['active']}")
        return told

    def verify_token(self, token: str) -> Answer:
        works = self.guard.started()
        found = verified(works.state, token)
        if isinstance(found, Refusal) and found.reason is Reason.TOKEN_KEY and works.follower.want_keys():
            found = verified(works.state, token)
        if not isinstance(found, Refusal):
            return Answer("valid")
        return Answer("unknown" if found.reason in UNKNOWN else "invalid", refusal_text(found))

    def verify_forged(self, kid: str) -> Answer:
        """A token of our form, signed by a stranger under this kid, or under a random one."""
        name = secrets.token_urlsafe(32) if kid == "random" else kid
        now = self._clock.now()
        forged = sign({"iat": now, "exp": now + 60}, _Renamed(name), TYP_ACCESS)
        return self.verify_token(forged) if isinstance(forged, str) else Answer("invalid", refusal_text(forged))

    def hold(self) -> Held:
        """Stop the next call that the broker answers, before its tool."""
        self.wire.held = Held()
        return self.wire.held

    def close(self) -> None:
        self.guard.close()
        self.wire.close()
