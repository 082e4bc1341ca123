"""The sizes and times that bound one request, in one place. None of them can be switched off."""

from dataclasses import dataclass

__all__ = ["DEFAULT", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes, counts and seconds. `body` is the most that any route takes; a route may name less."""

    head_bytes: int = 16 * 1024
    head_lines: int = 100
    body: int = 1024 * 1024
    body_default: int = 64 * 1024
    body_call: int = 96 * 1024
    pipelined: int = 8
    connections: int = 2000
    request_seconds: float = 5.0  # from the first byte of a request to its last
    idle_seconds: float = 75.0  # between requests; longer than the keep-alive of usual clients and proxies
    linger_seconds: float = 0.5  # how long a refused sender may go on sending, so that it can read the answer
    handling_seconds: float = 60.0  # longer than the longest wait
    tokens_burst: int = 2000  # token requests of one client at once
    tokens_rate: float = 1000.0  # and a second in the long run: a client in a loop, not a fleet at work
    write_seconds: float = 5.0  # one event to a follower that does not read


DEFAULT = Limits()
