"""A token in the hands of somebody it was not given to, presented as if it were the current child's."""

from carnet.trace import Trace

__all__ = ["Stolen"]


class Stolen:
    id = "dlg_stolen"
    agent = "mallory"
    level = 0
    tools: frozenset[str] = frozenset()
    expires_at: int | None = None
    max_wait: float | None = 0.0
    trace: Trace | None = None

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self, host: str) -> str:
        return self._token
