"""One request to the broker, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """repeatable: a second sending changes nothing (a read, a keyed act, an idempotent end), so a retry is safe.

    wait: seconds for which the broker may hold its answer back; they are added to the time-out."""

    method: str
    path: str
    bearer: str | None = field(default=None, repr=False)
    json: Mapping[str, Any] | None = field(default=None, repr=False)
    form: Mapping[str, str] | None = field(default=None, repr=False)
    query: Mapping[str, str | int | float] = field(default_factory=dict)
    key: str | None = None  # Idempotency-Key
    traceparent: str | None = None
    repeatable: bool = False
    wait: float = 0.0
    timeout: float | None = None  # seconds; None: the owner's

    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        made = {"accept": "application/json"}
        if self.bearer is not None:
            made["authorization"] = f"Bearer {self.bearer}"
        if self.key is not None:
            made["idempotency-key"] = self.key
        if self.traceparent is not None:
            made["traceparent"] = self.traceparent
        return made
