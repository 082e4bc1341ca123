"""The calls whose tool is running now. When a mark kills one, its flag is set and an async tool is cancelled."""

import threading
from collections.abc import Callable

from carnet.guard.state import State
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.token.marks import dead, marks, tool_mark
from carnet.wire.answer import reason_of

__all__ = ["Running", "RunningCalls", "killed", "told"]


class Running:
    """One running call. `killed` is the reason once its delegation fell. cancel: wakes the tool's own event loop."""

    __slots__ = ("cancel", "claims", "killed", "tool")

    def __init__(self, claims: Claims, tool: str, cancel: Callable[[], None] | None) -> None:
        self.claims, self.tool, self.cancel = claims, tool, cancel
        self.killed: Reason | None = None


class RunningCalls:
    """Thread-safe: calls come and go in their threads, the follower looks them through after each change."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = threading.Lock()
        self._calls: set[Running] = set()

    def add(self, call: Running) -> None:
        """From now on the call is watched; look at marks only after this, so that no revocation falls between."""
        with self._lock:
            self._calls.add(call)

    def remove(self, call: Running) -> None:
        with self._lock:
            self._calls.discard(call)

    def sweep(self) -> None:
        """Cancel what no longer lives."""
        with self._lock:
            calls = [call for call in self._calls if call.killed is None]
        for call in calls:
            refusal = killed(self._state, call.claims, call.tool)
            if refusal is not None:
                call.killed = refusal.reason
                if call.cancel is not None:
                    call.cancel()


def killed(state: State, claims: Claims, tool: str) -> Refusal | None:
    """Which mark kills the token, or takes this tool from it, with the reason that was given for the mark."""
    stream = state.feed.tenant
    host = state.book.host if state.book is not None else None
    carried = (*marks(claims, host), *(tool_mark(link[0], tool) for link in claims.delegation.chain))
    mark = dead(carried, claims.iat, stream.until)
    if mark is None:
        return None
    # The entry's reason is a code; whatever else stands there is an operator's note and no child's business.
    given = reason_of(stream.reasons.get(mark))
    reason = Reason.REVOKED if given is Reason.FORBIDDEN else given
    return Refusal(reason, f"{mark} is revoked")


def told(state: State, claims: Claims, tool: str, refusal: Refusal) -> Refusal:
    """The refusal with the reason of the mark that kills the token, where one does: why it ended says more."""
    found = killed(state, claims, tool)
    return refusal if found is None else found
