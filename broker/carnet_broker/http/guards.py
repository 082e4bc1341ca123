"""What a guard asks: may this call run, did the answer change, here is how it ended, which policy is in force."""

from typing import Any

from starlette.responses import Response

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.http import render
from carnet_broker.http.bodies import CallBody, OutcomeBody, RecordsBody, WaitQuery
from carnet_broker.http.delegations import idempotency_key
from carnet_broker.http.door import Ask, Doors, Nothing, get, post
from carnet_broker.http.errors import problem
from carnet_broker.http.limits import DEFAULT
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Bearer, Principal
from carnet_broker.service.requests import CallRequest, RecordBatch

__all__ = ["GUARDS", "Guard", "Guards", "told"]

# A guard has its own token; one inside the child's process may speak with the child's.
GUARDS = frozenset({Bearer.GUARD, Bearer.CHILD})
Guard = Principal | Claims


class Guards:
    def __init__(self, service: Service) -> None:
        self._service = service

    def doors(self) -> Doors:
        one = "/v1/calls/{id}"
        decide = "Decide one tool call, reserve and record it"
        return [
            post("/v1/calls", self.call, decide, GUARDS, CallBody, cap=DEFAULT.body_call),
            get(one, self.state, "State and liveness of a call that this guard opened", GUARDS, WaitQuery),
            post(f"{one}/outcome", self.finish, "How a call ended", GUARDS, OutcomeBody),
            post("/v1/records", self.records, "Lines of a guard's journal", GUARDS, RecordsBody, cap=DEFAULT.body),
            get("/v1/policy", self.policy, "The policy in force and what the guard must know of its host", GUARDS),
        ]

    async def call(self, ask: Ask[Guard, CallBody, Nothing]) -> Response | Refusal:
        body, key = ask.body, idempotency_key(ask.header("idempotency-key"))
        if isinstance(key, Refusal):
            return key
        guard = ask.caller if isinstance(ask.caller, Principal) else None
        if guard is None and body.token != ask.token:
            return Refusal(Reason.REQUEST_INVALID, "the bearer is a child's token, so the body must carry the same one")
        request = CallRequest(
            token=body.token, tool=body.tool, args=body.args, preview=body.preview, approval_id=body.approval_id
        )
        view = await self._service.call(guard, request, key, ask.trace)
        return told(ask, view) if isinstance(view, Refusal) else render.json_answer(render.call(view))

    async def state(self, ask: Ask[Guard, Nothing, WaitQuery]) -> Response | Refusal:
        call = ask.path("id")
        view = await ask.patient(lambda wait: self._service.call_state(ask.caller, call, wait), ask.query.wait)
        return told(ask, view) if isinstance(view, Refusal) else render.json_answer(render.call_status(view))

    async def finish(self, ask: Ask[Guard, OutcomeBody, Nothing]) -> Response | Refusal:
        state = await self._service.finish(ask.caller, ask.path("id"), ask.body.outcome, ask.body.detail)
        return told(ask, state) if isinstance(state, Refusal) else render.json_answer({"state": state})

    async def records(self, ask: Ask[Guard, RecordsBody, Nothing]) -> Response | Refusal:
        body = ask.body
        batch = RecordBatch(journal=body.journal, first=body.first, lines=tuple(body.lines))
        upcoming = await self._service.records(ask.caller, batch)
        return told(ask, upcoming) if isinstance(upcoming, Refusal) else render.json_answer({"next": upcoming})

    async def policy(self, ask: Ask[Guard, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.policy_for(ask.caller)
        return told(ask, view) if isinstance(view, Refusal) else render.json_answer(render.policy(view))


def told(ask: Ask[Guard, Any, Any], refusal: Refusal) -> Response:
    """The refusal with its true reason: whoever got here with a guard's own token has proved to be a guard."""
    return problem(refusal, ask.trace, guard=isinstance(ask.caller, Principal))
