"""The bounds of the embedded store: every queue, page and wait in it ends somewhere."""

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    queue: int = 4096  # changes that wait; revocations have a queue of their own of the same length
    batch: int = 256  # changes in one transaction
    answer: float = 5.0  # seconds a caller waits for a commit before it is told Unavailable
    onces: int = 200_000  # keys that `once` holds per tenant
    reserve: int = 16 * 1024 * 1024  # bytes kept beside the database for revocations on a full disk
    page: int = 1000  # rows of a page at most
    feed: int = 10_000  # entries after which a follower gets the snapshot instead
    poll: float = 0.1  # seconds between two looks at what other processes wrote, while waiting
