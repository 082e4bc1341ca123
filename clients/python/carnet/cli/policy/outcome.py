"""What came of a run of test files."""

from dataclasses import dataclass
from pathlib import Path

from carnet_policy import Policy, PolicyRef
from carnet_policy.tables import Coverage, Result

__all__ = ["Covered", "FileOutcome"]


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """`error`: why nothing could be run: the test file or its policy does not load. `seconds`: how long it took."""

    file: Path
    policy: PolicyRef | None
    results: tuple[Result, ...]
    error: str | None
    seconds: float

    @property
    def ok(self) -> bool:
        return self.error is None and not any(result.problems for result in self.results)


@dataclass(frozen=True, slots=True)
class Covered:
    """One policy and what all its test files together hit."""

    policy: Policy
    coverage: Coverage
