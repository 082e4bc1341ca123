"""Proof of a person: the passphrase against its stored form. Slow by intent: few at once, never on the event loop."""

import anyio
import anyio.to_thread

from carnet_broker.config.passphrase import check_passphrase

__all__ = ["AT_ONCE", "Proofs"]

AT_ONCE = 2  # each takes 32 MiB and some 60 ms of a core


class Proofs:
    def __init__(self) -> None:
        self._few = anyio.CapacityLimiter(AT_ONCE)

    async def holds(self, passphrase: str, stored: str | None) -> bool:
        """Takes the same time when nothing is stored (None)."""
        return await anyio.to_thread.run_sync(check_passphrase, passphrase, stored, limiter=self._few)
