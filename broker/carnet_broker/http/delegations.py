"""Spawn, look, mint, end: the doors of a parent, and of a child that asks about itself."""

from starlette.responses import Response

from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet_broker.http import render
from carnet_broker.http.bodies import EndBody, SpawnBody, TokensBody, WaitQuery
from carnet_broker.http.door import Ask, Doors, Nothing, get, post
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Bearer, Principal
from carnet_broker.service.requests import SpawnRequest

__all__ = ["Delegations", "idempotency_key"]

# A child's token is let in everywhere: that it may not mint is a refusal with its own reason, not a failed login.
_TREE = frozenset({Bearer.ROOT, Bearer.CHILD})


class Delegations:
    def __init__(self, service: Service) -> None:
        self._service = service

    def doors(self) -> Doors:
        one = "/v1/delegations/{id}"
        viewers = _TREE | {Bearer.SESSION, Bearer.ENDED}
        return [
            post("/v1/delegations", self.spawn, "Spawn a child", _TREE, SpawnBody, status=201),
            get(one, self.show, "One delegation; with `wait` a pending one is waited for", viewers, WaitQuery),
            post(f"{one}/tokens", self.mint, "Tokens of a delegation, one per host", _TREE, TokensBody),
            post(f"{one}/end", self.end, "End a delegation, or close a run", _TREE, EndBody),
        ]

    async def spawn(self, ask: Ask[Claims, SpawnBody, Nothing]) -> Response | Refusal:
        key = idempotency_key(ask.header("idempotency-key"))
        if isinstance(key, Refusal):
            return key
        body = ask.body
        request = SpawnRequest(
            target=body.target,
            task=body.task,
            payload=body.payload,
            ttl=body.ttl,
            hosts=body.hosts,
            ceilings=body.ceilings,
        )
        view = await self._service.spawn(ask.caller, request, key, ask.trace)
        if isinstance(view, Refusal):
            return view
        return render.json_answer(render.delegation(view), 202 if view.state == "pending" else 201)

    async def mint(self, ask: Ask[Claims, TokensBody, Nothing]) -> Response | Refusal:
        found = await self._service.mint(ask.caller, ask.path("id"), ask.body.hosts, ask.trace)
        return found if isinstance(found, Refusal) else render.json_answer({"tokens": render.tokens(found)})

    async def end(self, ask: Ask[Claims, EndBody, Nothing]) -> Response | Refusal:
        delegation = ask.path("id")
        reason = ask.body.reason or ("run_closed" if delegation == ask.caller.txn else "completed")
        view = await self._service.end(ask.caller, delegation, reason, ask.trace)
        return view if isinstance(view, Refusal) else render.json_answer(render.delegation(view))

    async def show(self, ask: Ask[Claims | Principal, Nothing, WaitQuery]) -> Response | Refusal:
        delegation = ask.path("id")
        view = await ask.patient(lambda wait: self._service.show(ask.caller, delegation, wait), ask.query.wait)
        return view if isinstance(view, Refusal) else render.json_answer(render.delegation(view))


def idempotency_key(sent: str | None) -> str | Refusal | None:
    """1 to 128 printable ASCII characters, or none."""
    if sent is None:
        return None
    if 1 <= len(sent) <= 128 and sent.isascii() and sent.isprintable():
        return sent
    return Refusal(Reason.REQUEST_INVALID, "Idempotency-Key must be 1 to 128 printable characters")
