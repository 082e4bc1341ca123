"""What a guard owes the broker and can do later: journal lines to ship, reports that could not be made at once."""

import logging
import threading
from collections import deque
from collections.abc import Callable

from carnet.errors import CarnetError, Refused, Unavailable
from carnet.guard.shipper import Shipper

__all__ = ["Upkeep"]

_EVERY = 0.5  # seconds
_MOST = 10_000  # reports kept; the broker calls an outcome unknown by itself when none comes
_log = logging.getLogger("carnet.guard")


class Upkeep:
    """One thread. shipper None: there is no journal."""

    def __init__(self, shipper: Shipper | None) -> None:
        self._shipper = shipper
        self._owed: deque[Callable[[], object]] = deque(maxlen=_MOST)
        self._stopped = threading.Event()
        self._round = threading.Lock()
        self._problem = ""
        self._thread = threading.Thread(target=self._run, name="carnet-upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def later(self, tell: Callable[[], object]) -> None:
        """Tell the broker this as soon as it can be asked; tried again while that raises Unavailable."""
        self._owed.append(tell)

    def stop(self, seconds: float) -> None:
        """End the thread after a last round; return after so many seconds at most, whatever the broker does."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(seconds)

    def once(self) -> None:
        """One round: ship and report what there is."""
        with self._round:
            try:
                self._reports()
                if self._shipper is not None:
                    self._shipper.run()
                self._problem = ""
            except (CarnetError, OSError) as fault:
                self._tell(fault)

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY):
            self._try()
        self._try()

    def _try(self) -> None:
        try:
            self.once()
        except Exception:  # noqa: BLE001 - whatever it was, records wait, and the next round tries again
            _log.exception("a round of shipping failed")

    def _reports(self) -> None:
        while self._owed:
            try:
                self._owed[0]()
            except Refused as refused:
                _log.info("the broker answered a late report: %s", refused)
            except Unavailable:
                raise
            except Exception:  # noqa: BLE001 - a report that can't be made must not keep the others, and the journal, back
                _log.exception("a report could not be made and is given up")
            self._owed.popleft()

    def _tell(self, fault: Exception) -> None:
        if str(fault) != self._problem:
            self._problem = str(fault)
            _log.warning("records wait for the broker: %s", fault)
