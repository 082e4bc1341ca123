"""How a command fails: one sentence with the fix, and an exit code that scripts can rely on."""

from enum import IntEnum

__all__ = ["Exit", "Problem"]


class Exit(IntEnum):
    """0 done · 1 refused or found wanting · 2 wrong usage · 3 nobody could be asked · 4 not logged in."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNAVAILABLE = 3
    LOGIN = 4


class Problem(Exception):
    """Ends a command. The message is shown to a person as it is."""

    def __init__(self, sentence: str, code: Exit = Exit.REFUSED) -> None:
        super().__init__(sentence)
        self.code = code
