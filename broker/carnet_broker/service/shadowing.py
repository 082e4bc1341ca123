"""Shadow policies: what a candidate would have said of a call that the policy in force decided, on record beside it.

Nothing of it reaches the answer: it is asked after the decision, over folds of its own, and whatever goes wrong in it
becomes a word in the record. It reads no scope of the store that the decision did not read, so it adds no conflicts.
"""

from collections.abc import Mapping
from typing import Any

from carnet_broker.core.ceilings import pinned
from carnet_broker.service.deciding import Asked, Verdict
from carnet_broker.service.ledgers import Standing
from carnet_policy import Call as PolicyCall
from carnet_policy import Effect, Ledger, Policy, evaluate

__all__ = ["Shadows"]

UNKNOWN = "unknown"


class Shadows:
    """Remembers since when each shadow has been asked: its own history rules count as coming into force then."""

    def __init__(self) -> None:
        self._since: dict[str, tuple[str, int]] = {}  # by tenant: digest, and the time of its first question

    def facts(self, asked: Asked, standing: Standing, verdict: Verdict, now: int) -> Mapping[str, Any]:
        """`{"shadow": {digest, decision, rule, reason}}`; empty without a shadow, and for a call that the token does
        not cover, which no policy is asked about."""
        shadow = asked.registry.shadow
        if shadow is None or asked.uncovered is not None:
            return {}
        said: dict[str, Any] = {"decision": UNKNOWN, "rule": None, "reason": "shadow_error"}
        try:
            said = self._ask(shadow, asked, standing, verdict, now)
        except Exception as error:  # noqa: BLE001 - a candidate must never fail a call
            said["reason"] = f"shadow_error:{type(error).__name__}"
        return {"shadow": {"digest": shadow.ref.digest, **said}}

    def _ask(self, shadow: Policy, asked: Asked, standing: Standing, verdict: Verdict, now: int) -> dict[str, Any]:
        tool = asked.request.tool
        call = PolicyCall(tool, asked.request.args, pinned(asked.row.envelope, shadow, tool))
        if _beyond(shadow, asked.registry.policy, tool) and evaluate(shadow, call, None).effect is not Effect.DENY:
            # The client's calls in other runs were not read, or not so far back.
            return {"decision": UNKNOWN, "rule": None, "reason": "history_unknown"}
        found = evaluate(shadow, call, self._past(shadow, asked, standing, verdict, now))
        return {"decision": found.effect.value, "rule": found.rule, "reason": found.reason}

    def _past(self, shadow: Policy, asked: Asked, standing: Standing, verdict: Verdict, now: int) -> Ledger | None:
        if not shadow.bounds(asked.request.tool):
            return None
        began = self._began(asked.registry.tenant, shadow, now)
        known = standing.policy.history
        return Ledger(
            run=standing.run.beside(shadow),
            client=None if standing.client is None else standing.client.beside(shadow),
            now=now,
            opened=asked.run.created_at,
            since={rule: known.get(rule, began) for rule in shadow.history_ids},
            skip=None if verdict.waiting is None else verdict.waiting.id,
        )

    def _began(self, tenant: str, shadow: Policy, now: int) -> int:
        digest, since = self._since.get(tenant, ("", now))
        if digest != shadow.ref.digest:
            since = now
            self._since[tenant] = (shadow.ref.digest, since)
        return since


def _beyond(shadow: Policy, policy: Policy, tool: str) -> bool:
    """Whether some bound of the tool needs more of the client's past than the policy in force has read."""
    return any(rule.window > policy.client_window for rule in shadow.bounding(tool))
