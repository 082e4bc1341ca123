"""The bearer of a request as the current child of the server's code."""

from carnet.token.claims import Claims
from carnet.trace import Trace

__all__ = ["Bearer"]


class Bearer:
    """A verified token that came with a request. Nobody waits behind an HTTP request for a person: max_wait is 0."""

    __slots__ = ("_claims", "_text", "trace")

    def __init__(self, text: str, claims: Claims, trace: Trace | None) -> None:
        self._text, self._claims = text, claims
        self.trace = trace

    @property
    def max_wait(self) -> float | None:
        return 0.0

    @property
    def id(self) -> str:
        return self._claims.delegation.id

    @property
    def agent(self) -> str:
        return self._claims.delegation.agent

    @property
    def level(self) -> int:
        return self._claims.delegation.level

    @property
    def tools(self) -> frozenset[str]:
        return self._claims.tools

    @property
    def expires_at(self) -> int | None:
        return self._claims.exp

    def token(self, host: str) -> str:  # noqa: ARG002 - a request brings one token, for this host or for none
        return self._text

    def __repr__(self) -> str:
        return f"<Bearer {self.id} {self.agent}>"
