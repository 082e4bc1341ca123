"""Wrong passphrases per operator and minute: guessing is slow, and what it writes to the audit is bounded.

Logging in and approving are counted apart: whoever can reach the broker may fail to log in under any name, and must not
be able to keep that person from answering.
"""

__all__ = ["MOST", "WINDOW", "Attempts"]

MOST = 10
WINDOW = 60  # seconds


class Attempts:
    def __init__(self) -> None:
        self._failures: dict[tuple[str, str], list[int]] = {}

    def may_try(self, tenant: str, operator: str, now: int) -> bool:
        kept = [at for at in self._failures.get((tenant, operator), ()) if at > now - WINDOW]
        if kept:
            self._failures[tenant, operator] = kept
        else:
            self._failures.pop((tenant, operator), None)
        return len(kept) < MOST

    def failed(self, tenant: str, operator: str, now: int) -> None:
        """Only for operators that exist, so that made-up names take no memory."""
        self._failures.setdefault((tenant, operator), []).append(now)
