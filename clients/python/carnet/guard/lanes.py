"""The two lanes: who decides a call, where its record lies before the tool runs, and who hears how it ended.

Local: read tools at level 0 and 1 without a bound that outlives the call; decided here, recorded in the journal.
Broker: everything else; one request decides, reserves and records.
"""

import logging
import secrets
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from carnet.audit import Kind
from carnet.errors import Refused, Unavailable, refused
from carnet.guard.asking import Asking, Stop
from carnet.guard.book import Book
from carnet.guard.case import Case, is_local
from carnet.guard.journal import Journal
from carnet.guard.records import decided, ended
from carnet.guard.reports import Reports
from carnet.guard.session import Session
from carnet.guard.state import State
from carnet.guard.upkeep import Upkeep
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.wire.answer import reason_of

if TYPE_CHECKING:
    from carnet_policy import Decision

__all__ = ["Lanes", "Opened", "judge", "no_sink"]

_TO_BASE32 = b"abcdefghijklmnopqrstuvwxyz234567" * 8  # every byte to one character, each as often as any other
_NAME = 300  # characters of a tool's name, or of an endpoint's template, that a record holds
_log = logging.getLogger("carnet.guard")


class Opened(NamedTuple):
    """A call that may run: its record is durable. digest: of the policy that decided; at: our clock at the answer."""

    case: Case
    call: str
    local: bool
    digest: str
    at: float


class Lanes:
    """journal None: every call takes the broker lane."""

    def __init__(self, session: Session, state: State, journal: Journal | None, upkeep: Upkeep) -> None:
        self._session, self._state, self._journal, self._upkeep = session, state, journal, upkeep
        self._asking = Asking(session)
        self._reports = Reports(session, upkeep)

    def is_local(self, case: Case) -> bool:
        return self._journal is not None and is_local(case)

    def has_journal(self) -> bool:
        return self._journal is not None

    def local(self, case: Case) -> tuple[Opened, str]:
        """Decide in process: the call and the intent that must be durable before it runs. Raises Refused."""
        decision = judge(case.book, case)
        call = _new_call()
        if decision.effect != "allow":
            refusal = Refusal(reason_of(decision.reason), decision.detail)
            self.refuse(case, refusal, call=call, rule=decision.rule)
            raise refused(refusal, call_id=call)
        line = self._line(case, Kind.CALL_INTENT, call, "allow", decision.reason, decision.detail, decision.rule)
        digest = case.book.digest
        return Opened(case=case, call=call, local=True, digest=digest, at=self._state.clock.mono()), line

    def write(self, line: str) -> None:
        """Make the intent durable. Raises Refused: without a record nothing runs."""
        try:
            self._held().write(line)
        except OSError as fault:
            raise no_sink(fault) from None

    def queue(self, line: str) -> "Future[None]":
        """The same by the writer's thread, for event loops."""
        return self._held().queue(line)

    def ask(self, case: Case, max_wait: float, stop: Stop) -> Opened:
        """Let the broker decide, and wait for a person where it says so. Raises Refused or Unavailable."""
        answer = self._asking.until_allowed(case, max_wait, stop)
        policy, call = answer.get("policy"), answer.get("call_id")
        digest = policy.get("digest") if isinstance(policy, Mapping) else None
        if not isinstance(digest, str) or not isinstance(call, str):
            raise Unavailable("the broker's yes names no call or no policy; nothing ran")
        return Opened(case=case, call=call, local=False, digest=digest, at=self._state.clock.mono())

    def still(self, opened: Opened) -> Refusal | None:
        """Ask the broker whether its yes still holds."""
        now = self._session.state_of(opened.case.token, opened.call)
        if now.get("live") is True and now.get("state") == "running":
            return None
        return Refusal(Reason.REVOKED, f"the broker no longer lets the call run (state {now.get('state')})")

    def refuse(self, case: Case, refusal: Refusal, *, call: str | None = None, rule: str | None = None) -> None:
        """Put a refusal of this process on record. It needs no durability: nothing ran."""
        if self._journal is None:
            self._upkeep.later(lambda: self._asking.refusal(case))
            return
        line = self._line(
            case, Kind.CALL_DECIDED, call or _new_call(), "deny", refusal.reason.value, refusal.detail, rule
        )
        self._journal.queue(line)

    def turn_away(
        self, whose: tuple[Book, Claims], tool: str, args: Mapping[str, Any], refusal: Refusal, kind: str, trace_id: str
    ) -> None:
        """Put a refusal on record of what was no call that the broker could be shown: it would answer another question,
        or ask a person."""
        book, claims = whose
        line = decided(
            book,
            claims,
            kind=kind,
            call=_new_call(),
            at=self._state.now(),
            tool=tool[:_NAME],
            args=args,
            decision="deny",
            reason=refusal.reason.value,
            detail=refusal.detail,
            rule=None,
            trace_id=trace_id,
        )
        if self._journal is not None:
            self._journal.queue(line)
        elif self._session.bearer.owned:
            self._reports.tell(line)

    def end(self, opened: Opened, outcome: str, detail: str) -> None:
        """Put the outcome on record: in the journal, or at the broker, now or as soon as it can be asked."""
        if opened.local:
            self._held().queue(ended(opened.call, self._state.now(), outcome, detail))
            return
        try:
            self._session.outcome(opened.case.token, opened.call, outcome, detail)
        except (Refused, Unavailable) as fault:
            _log.warning("the outcome of %s is reported later: %s", opened.call, fault)
            self._upkeep.later(lambda: self._session.outcome(opened.case.token, opened.call, outcome, detail))

    def preview(self, case: Case) -> "Decision":
        """What would be decided now; nothing is reserved or recorded."""
        if self.is_local(case):
            return judge(case.book, case)
        from carnet_policy import Decision, Effect, PolicyRef

        answer = self._session.decide(case.token, case.tool, case.frozen.json, key=None, traceparent=None)
        ref = answer["policy"]
        policy = PolicyRef(str(ref["id"]), int(ref["version"]), str(ref["digest"]))
        return Decision(Effect(answer["decision"]), answer["reason"], answer["detail"], answer["rule"], policy)

    def _held(self) -> Journal:
        if self._journal is None:
            raise refused(Refusal(Reason.NO_SINK))
        return self._journal

    def _line(self, case: Case, kind: str, call: str, decision: str, reason: str, detail: str, rule: str | None) -> str:
        trace = case.holder.trace
        return decided(
            case.book,
            case.claims,
            kind=kind,
            call=call,
            at=self._state.now(),
            tool=case.tool,
            args=case.frozen.json,
            decision=decision,
            reason=reason,
            detail=detail,
            rule=rule,
            trace_id="" if trace is None else trace.trace_id,
        )


def judge(book: Book, case: Case) -> "Decision":
    """The policy's answer to a call of the local lane, which never has a history."""
    return book.judges[case.tool](case.frozen.json)


def _new_call() -> str:
    """A call id of the local lane: 130 random bits, in the form of the broker's."""
    return "call_" + secrets.token_bytes(26).translate(_TO_BASE32).decode()


def no_sink(fault: OSError) -> Refused:
    """The disk did not take the intent."""
    detail = f"the journal could not be written ({fault.strerror or type(fault).__name__}), so the tool did not run"
    return refused(Refusal(Reason.NO_SINK, detail))
