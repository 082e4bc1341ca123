"""The exceptions of the SDK. A refusal is a decision and nothing ran; the other kinds say what else went wrong."""

from typing import Final

from carnet.reasons import CATALOGUE, Reason, Refusal

__all__ = ["ApprovalPending", "CarnetError", "ConfigError", "Interrupted", "Refused", "Unavailable", "refused"]


class CarnetError(Exception):
    """Base of everything that this package raises on purpose."""


class ConfigError(CarnetError):
    """The set-up is wrong. Raised at construction, decoration or first contact; the message names the fix."""


class Unavailable(CarnetError):
    """Nobody could be asked, so nothing ran. Safe to try again; `retry_after` is the broker's wish in seconds."""

    def __init__(self, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after: Final = retry_after


class Refused(CarnetError):
    """A no. `reason` is a stable code, `detail` one sentence that a model and an operator understand."""

    def __init__(
        self, reason: Reason, detail: str = "", *, call_id: str | None = None, approval_id: str | None = None
    ) -> None:
        self.reason: Final = reason
        self.detail: Final = detail or CATALOGUE[reason].sentence
        self.call_id: Final = call_id
        self.approval_id: Final = approval_id
        super().__init__(f"{reason.value}: {self.detail}")

    def as_dict(self) -> dict[str, str | None]:
        """What a model may read: {decision, reason, detail, call_id, approval_id?}."""
        shown: dict[str, str | None] = {
            "decision": "deny",
            "reason": self.reason.value,
            "detail": self.detail,
            "call_id": self.call_id,
        }
        if self.approval_id is not None:
            shown["approval_id"] = self.approval_id
        return shown


class ApprovalPending(Refused):
    """A person has been asked and has not answered yet. The same call again goes on waiting for the same answer."""

    def as_dict(self) -> dict[str, str | None]:
        """As of a refusal, with `decision: require_approval`."""
        return {**super().as_dict(), "decision": "require_approval"}


class Interrupted(CarnetError):
    """The tool had begun when its delegation fell. Its result is not returned; whether it took effect is unknown."""

    def __init__(self, reason: Reason, call_id: str | None) -> None:
        self.reason: Final = reason
        self.call_id: Final = call_id
        super().__init__(f"{reason.value}: the call had begun when its delegation ended; its outcome is unknown")


def refused(refusal: Refusal, *, call_id: str | None = None, approval_id: str | None = None) -> Refused:
    """The exception for a refusal value: ApprovalPending where a person may still answer, else Refused."""
    kind = ApprovalPending if refusal.reason is Reason.APPROVAL_PENDING else Refused
    return kind(refusal.reason, refusal.detail, call_id=call_id, approval_id=approval_id)
