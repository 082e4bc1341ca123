"""How many questions may wait at once: people who are flooded click yes."""

from carnet.reasons import Reason, Refusal
from carnet_broker.service.ledgers import Standing

__all__ = ["PER_DELEGATION", "PER_RUN", "PER_TENANT", "too_many"]

PER_DELEGATION = 3  # of one delegation's calls
PER_RUN = 10  # calls and spawns
PER_TENANT = 100


def too_many(standing: Standing, delegation: str | None, now: int) -> Refusal | None:
    """delegation: whose call asks, None for a spawn."""
    if delegation is not None and standing.run.questions_of(delegation, now) >= PER_DELEGATION:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_DELEGATION} calls of this delegation wait for an answer.")
    if standing.run.questions(now) >= PER_RUN:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_RUN} questions of this run wait for an answer.")
    if standing.asked >= PER_TENANT:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_TENANT} questions of this tenant wait for an answer.")
    return None
