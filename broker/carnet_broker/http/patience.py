"""How many requests may be held open at once: waits and streams. The other connections stay free for who has something
to say, above all for whoever revokes.

Whoever is beyond a bound is answered at once instead: nothing is lost but the waiting.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from carnet.token.claims import Claims
from carnet_broker.service.principals import Kind, Principal

__all__ = ["Patience"]


class Patience:
    """connections: the most that the server holds. All who are held use at most three quarters of them; the guards of
    one client a half, the runs and children of one client, or one operator, a quarter."""

    def __init__(self, connections: int) -> None:
        self._connections = connections
        self._held: Counter[str] = Counter()
        self._all = 0

    @contextmanager
    def held(self, caller: Claims | Principal) -> Iterator[bool]:
        """Whether this request may be held open; if so it is counted inside the block."""
        name, most = _share(caller, self._connections)
        granted = self._all < self._connections * 3 // 4 and self._held[name] < most
        if not granted:
            yield False
            return
        self._all += 1
        self._held[name] += 1
        try:
            yield True
        finally:
            self._all -= 1
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]

    def __len__(self) -> int:
        return self._all


def _share(caller: Claims | Principal, connections: int) -> tuple[str, int]:
    """The name that a caller is counted under, and how many of it may be held."""
    if isinstance(caller, Claims):
        return f"{caller.tenant} client {caller.client_id}", connections // 4
    if caller.kind is Kind.HOST:
        return f"{caller.tenant} guard {caller.client}", connections // 2
    return f"{caller.tenant} operator {caller.name}", connections // 4
