"""How many questions may wait at once: people who are flooded click yes."""

from carnet.reasons import Reason, Refusal
from carnet_broker.service.ledgers import Standing

__all__ = ["DENIALS", "PER_CLIENT", "PER_DELEGATION", "PER_RUN", "PER_TENANT", "too_many"]

PER_DELEGATION = 3  # of one delegation's calls
PER_RUN = 10  # calls and spawns
PER_CLIENT = 30  # of all its runs, so that no client takes the tenant's share
PER_TENANT = 100
DENIALS = 3  # of delegations to one agent in one run: after them a person is not asked about that agent again


def too_many(standing: Standing, delegation: str | None, client: str, now: int) -> Refusal | None:
    """delegation: whose call asks, None for a spawn. client: which opened the run."""
    if delegation is not None and standing.run.questions_of(delegation, now) >= PER_DELEGATION:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_DELEGATION} calls of this delegation wait for an answer.")
    if standing.run.questions(now) >= PER_RUN:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_RUN} questions of this run wait for an answer.")
    if standing.asked[client] >= PER_CLIENT:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_CLIENT} questions of the client {client} wait for an answer.")
    if standing.asked.total() >= PER_TENANT:
        return Refusal(Reason.TOO_MANY_PENDING, f"{PER_TENANT} questions of this tenant wait for an answer.")
    return None
