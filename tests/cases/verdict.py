"""How a case can end. A reason for not running one is a word of a closed list: everything else is a failure."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["CaseFailed", "Ending", "NotRun", "Result", "Why", "expect"]


class Ending(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


class Why(StrEnum):
    """The only reasons for which a case may be left out."""

    KIND = "this kind belongs to a later release"
    EXCHANGE = "token exchange belongs to a later release"
    RETURNS = "framing of returns belongs to a later release"
    CLAIM = "our tokens have no such claim or document"


class CaseFailed(Exception):
    """The product did something else than the case expects, or the case says something that the runner cannot read."""


class NotRun(Exception):
    def __init__(self, why: Why, detail: str = "") -> None:
        super().__init__(f"{why.value}{f': {detail}' if detail else ''}")


@dataclass(frozen=True, slots=True)
class Result:
    id: str
    kind: str
    ending: Ending
    detail: str = ""


def expect(condition: bool, sentence: str) -> None:
    """Fail the case unless the condition holds."""
    if not condition:
        raise CaseFailed(sentence)
