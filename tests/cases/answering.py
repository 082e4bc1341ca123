"""What a step answered, and whether that is what the case expects of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carnet.reasons import Reason
from tests.cases.judging import check_reason
from tests.cases.verdict import CaseFailed, expect

__all__ = ["SUCCESS", "Answer", "holds", "judge"]

SUCCESS = frozenset({"ok", "allow", "valid", "approved"})
# The words of `expect`, and which answers they mean.
MEANING: Mapping[str, frozenset[str]] = {
    "allow": frozenset({"allow"}),
    "deny": frozenset({"deny"}),
    "pending": frozenset({"pending"}),
    "approved": frozenset({"approved"}),
    "denied": frozenset({"denied"}),
    "valid": frozenset({"valid"}),
    "invalid": frozenset({"invalid", "unknown"}),
    "refused": frozenset({"refused", "deny"}),
    "invalid_or_not_issued": frozenset({"invalid", "unknown", "not_issued"}),
    "refused_or_namespaced": frozenset({"refused", "namespaced"}),
    "ok": frozenset({"ok"}),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """kind: one word. said: reason code and detail. status: of the HTTP answer, where there was one. value: what a
    later step may name."""

    kind: str
    said: str = ""
    status: int | None = None
    value: object = None

    @property
    def lagging(self) -> bool:
        """The guard does not know enough yet: after a movement of the world it may, a moment later."""
        return self.said.startswith((Reason.STALE.value, Reason.NOT_READY.value))


def holds(step: Mapping[str, Any], answer: Answer, *, free: bool) -> bool:
    """Whether the answer is of the expected kind. free: beside others, a step that expects nothing may be refused."""
    if "expect_status_in" in step:
        return answer.status in step["expect_status_in"]
    if "expect" not in step:
        return answer.kind in SUCCESS or (free and answer.kind in ("refused", "deny"))
    meant = MEANING.get(str(step["expect"]))
    if meant is None:
        raise CaseFailed(f"unknown expectation {step['expect']!r}")
    return answer.kind in meant


def judge(step: Mapping[str, Any], answer: Answer, number: str, *, free: bool) -> None:
    wanted = step.get("expect", step.get("expect_status_in", "success"))
    status = f" ({answer.status})" if answer.status else ""
    expect(
        holds(step, answer, free=free),
        f"step {number} ({step['do']}): {answer.kind}{status} {answer.said.strip()!r}, expected {wanted}",
    )
    check_reason(step, answer.said)
    if "reason" in step:
        expect(answer.said.split(" ")[0] == step["reason"], f"step {number}: the reason is {answer.said!r}")
