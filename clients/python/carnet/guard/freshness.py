"""How old is what a guard knows? Counted from the sending of the request that brought it, on a clock that counts
suspend: no wall clock, so neither a frozen link nor a machine that slept can look fresh."""

from dataclasses import dataclass

__all__ = ["DRIFT", "Anchor", "Freshness"]

_NEVER = float("-inf")
DRIFT = 0.25  # seconds: more than good clocks drift apart while one stream lasts


@dataclass(frozen=True, slots=True)
class Anchor:
    """A stream's two clocks tied together: our clock when the request was sent, the broker's at the first event.

    The first event was made after the request was sent, so `sent + (mono - first)` is never later than the truth."""

    sent: float
    first: float

    def as_of(self, mono: float) -> float:
        """Our time as of which an event with the broker's time `mono` is the truth."""
        return self.sent + (mono - self.first)

    def holds(self, mono: float, received: float) -> bool:
        """Whether an event with the broker's time `mono` can have been received at `received` of our clock. One from
        the future says that our clock stood still (a paused virtual machine) or that the broker's leapt: what is tied
        together by this anchor would look fresh for as long as that was, so a new one is needed."""
        return self.as_of(mono) <= received + DRIFT


class Freshness:
    """The newest moment as of which the guard's knowledge is known to be true, and the broker's wall clock then."""

    __slots__ = ("_wall", "as_of")

    def __init__(self) -> None:
        self.as_of = _NEVER  # of our clock
        self._wall: tuple[int, float] = (0, 0.0)

    def heard(self, as_of: float, wall: int, received: float) -> None:
        """Something was heard, true as of `as_of`. wall: the broker's Unix time, read at `received` of our clock."""
        if as_of > self.as_of:
            self.as_of = min(as_of, received)
        self._wall = (wall, received)

    def age(self, mono: float) -> float:
        """Seconds; infinite before anything was heard."""
        return mono - self.as_of

    def wall(self, mono: float) -> int:
        """The broker's Unix time now, as far as we can tell: tokens are judged by its clock, not by ours."""
        wall, received = self._wall
        return int(wall + (mono - received)) if mono > received else wall

    def lose(self) -> None:
        """Nothing is fresh until something is heard again."""
        self.as_of = _NEVER
