"""The one error of loading: what is wrong, how to mend it, and where it stands."""

from __future__ import annotations

__all__ = ["PolicyError"]


class PolicyError(ValueError):
    """A document that must not come into force. The last good one stays.

    `message` is one sentence with the fix; `line` and `column` count from 1, and are 0 where there is no text
    (a mapping made by a program).
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message, file, line, column)
        self.message = message
        self.file = file
        self.line = line
        self.column = column

    def __str__(self) -> str:
        if self.line:
            return f"{self.file}:{self.line}:{self.column}: {self.message}"
        return f"{self.file}: {self.message}" if self.file else self.message
