"""What operators see and do: log in, answer, revoke, look. Every right is judged by the use case."""

from typing import Any

from starlette.responses import Response, StreamingResponse

from carnet.reasons import Reason, Refusal
from carnet_broker.http import render
from carnet_broker.http.bodies import (
    AnswerBody,
    ApprovalsQuery,
    AuditQuery,
    DelegationsQuery,
    PageQuery,
    RevocationBody,
    SessionBody,
)
from carnet_broker.http.door import Ask, Doors, Nothing, get, post
from carnet_broker.http.errors import NO_STORE
from carnet_broker.http.pace import Pace
from carnet_broker.service.facade import Service
from carnet_broker.service.principals import Bearer, Principal
from carnet_broker.service.requests import Verdict

__all__ = ["Operators"]

_SESSION = frozenset({Bearer.SESSION})
_TOO_OFTEN = Refusal(Reason.TOO_MANY_REQUESTS, "too many passphrases in a short time; wait a little")


class Operators:
    """attempts: how often passphrases may be tried; each costs some 60 ms and 32 MiB to check."""

    def __init__(self, service: Service, attempts: Pace) -> None:
        self._service = service
        self._attempts = attempts

    def doors(self) -> Doors:
        return [
            post("/v1/sessions", self.login, "Log in with a passphrase", (), SessionBody),
            get("/v1/approvals", self.approvals, "Questions, the most urgent first", _SESSION, ApprovalsQuery),
            get("/v1/approvals/{id}", self.approval, "One question with everything that must be seen", _SESSION),
            post("/v1/approvals/{id}/answer", self.answer, "Approve, deny or withdraw", _SESSION, AnswerBody),
            get("/v1/delegations", self.delegations, "Delegations, newest first", _SESSION, DelegationsQuery),
            get("/v1/delegations/{id}/tree", self.tree, "A delegation with its children", _SESSION),
            get("/v1/revocations", self.revocations, "Revocations in feed order", _SESSION, PageQuery),
            post("/v1/revocations", self.revoke, "Revoke, or show what would fall", _SESSION, RevocationBody),
            get("/v1/audit", self.audit, "Search the audit log", _SESSION, AuditQuery),
            get("/v1/audit/export", self.export, "The audit log as JSON lines, then its checkpoints", _SESSION),
            get("/v1/audit/verify", self.verify, "Check the audit chain", _SESSION),
            get("/v1/keys", self.keys, "Signing keys", _SESSION),
            post("/v1/keys/rotate", self.rotate, "Sign with the prepared key from now on", _SESSION),
            get("/v1/guards", self.guards, "Guard processes and how far they follow", _SESSION),
        ]

    async def login(self, ask: Ask[None, SessionBody, Nothing]) -> Response | Refusal:
        body = ask.body
        if not self._attempts.allow(_peer(ask)):  # whatever name is tried: each try costs the same
            return _TOO_OFTEN
        view = await self._service.login(body.tenant, body.operator, body.passphrase, ask.trace)
        return view if isinstance(view, Refusal) else render.json_answer(render.session(view))

    async def approvals(self, ask: Ask[Principal, Nothing, ApprovalsQuery]) -> Response | Refusal:
        page = await self._service.approvals(ask.caller, ask.query.state, ask.query.after, ask.query.limit)
        if isinstance(page, Refusal):
            return page
        return render.json_answer(render.listing("approvals", page, render.approval))

    async def approval(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.approval(ask.caller, ask.path("id"))
        return view if isinstance(view, Refusal) else render.json_answer(render.approval(view))

    async def answer(self, ask: Ask[Principal, AnswerBody, Nothing]) -> Response | Refusal:
        body, who = ask.body, ask.caller
        if body.passphrase is not None and not self._attempts.allow(f"{who.tenant} {who.name}"):
            return _TOO_OFTEN
        view = await self._service.answer(
            who, ask.path("id"), Verdict(body.verdict), body.note, body.passphrase, ask.trace
        )
        return view if isinstance(view, Refusal) else render.json_answer(render.approval(view))

    async def delegations(self, ask: Ask[Principal, Nothing, DelegationsQuery]) -> Response | Refusal:
        page = await self._service.delegations(ask.caller, **ask.query.model_dump())
        if isinstance(page, Refusal):
            return page
        return render.json_answer(render.listing("delegations", page, render.delegation))

    async def tree(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.tree(ask.caller, ask.path("id"))
        return view if isinstance(view, Refusal) else render.json_answer(render.tree(view))

    async def revocations(self, ask: Ask[Principal, Nothing, PageQuery]) -> Response | Refusal:
        page = await self._service.revocations(ask.caller, ask.query.after, ask.query.limit)
        return page if isinstance(page, Refusal) else render.json_answer(render.listing("revocations", page))

    async def revoke(self, ask: Ask[Principal, RevocationBody, Nothing]) -> Response | Refusal:
        body = ask.body
        view = await self._service.revoke(ask.caller, body.mark, body.until, body.reason, body.dry_run, ask.trace)
        return view if isinstance(view, Refusal) else render.json_answer(render.fallen(view))

    async def audit(self, ask: Ask[Principal, Nothing, AuditQuery]) -> Response | Refusal:
        filters = ask.query.model_dump(exclude_none=True, exclude={"after", "limit"})
        page = await self._service.audit(ask.caller, filters, ask.query.after, ask.query.limit)
        return page if isinstance(page, Refusal) else render.json_answer(render.listing("records", page))

    async def export(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        lines = await self._service.export(ask.caller)
        if isinstance(lines, Refusal):
            return lines
        ask.request.state.deadline.reschedule(None)  # as long as it takes; a reader that stalls is cut off by TCP
        text = (render.dumps(line) + b"\n" async for line in lines)
        return StreamingResponse(text, headers=NO_STORE, media_type="application/jsonl")

    async def verify(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.verify_audit(ask.caller)
        return view if isinstance(view, Refusal) else render.json_answer(render.audit_check(view))

    async def keys(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.keys(ask.caller)
        return view if isinstance(view, Refusal) else render.json_answer(view)

    async def rotate(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.rotate_keys(ask.caller, ask.trace)
        return view if isinstance(view, Refusal) else render.json_answer(view)

    async def guards(self, ask: Ask[Principal, Nothing, Nothing]) -> Response | Refusal:
        view = await self._service.guards(ask.caller)
        return view if isinstance(view, Refusal) else render.json_answer(render.guards(view))


def _peer(ask: Ask[Any, Any, Any]) -> str:
    return ask.request.client.host if ask.request.client else ""
