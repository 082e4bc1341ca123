"""The order in which a call passes the guard; nothing else in this package calls a tool.

verify -> clear -> decide -> approval -> durable intent -> freshness and policy again -> the tool, from the frozen copy
-> outcome. Whatever fails before the tool is a refusal; what fails in it is its own exception and an outcome.
"""

import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar

from carnet.audit import Kind
from carnet.current import Holder, current_child
from carnet.errors import ConfigError, Interrupted, Refused, Unavailable, refused
from carnet.failpoints import hit
from carnet.guard.binding import Frozen
from carnet.guard.case import Case, admit, covered, proven, verified
from carnet.guard.lanes import Lanes, Opened, judge, no_sink
from carnet.guard.running import Running, RunningCalls, told
from carnet.guard.state import State
from carnet.guard.waking import soon
from carnet.reasons import Reason, Refusal
from carnet.token.claims import Claims
from carnet.trace import Trace

if TYPE_CHECKING:
    from carnet_policy import Decision

__all__ = ["Dispatch"]

R = TypeVar("R")
_GRACE = 0.5  # seconds for which a stale guard waits for its feed before it refuses
_START = 2.0  # the same for one that has only just begun to listen
_IN_PROCESS = 50.0  # seconds that a call waits for a person, unless it is said otherwise
_YES = 1.0  # seconds for which the broker's yes needs no second asking at level 2
_THREADS = 128  # calls of one event loop that may wait for the broker at once
_LATER = frozenset({CoroutineType, GeneratorType, AsyncGeneratorType})
_UNRUN = "returned what would run later"
_MENDS = {Reason.STALE, Reason.NOT_READY}


class Dispatch:
    """One guard's calls. token_of: the holder's token for this host. max_wait: what the guard was told, or None."""

    def __init__(
        self,
        state: State,
        lanes: Lanes,
        running: RunningCalls,
        token_of: Callable[[Holder], str],
        want_keys: Callable[[], bool],
        max_wait: float | None,
    ) -> None:
        self._state, self._lanes, self._running = state, lanes, running
        self._token_of, self._want_keys, self._max_wait = token_of, want_keys, max_wait

    def run(self, tool: str, frozen: Frozen, fn: Callable[..., R]) -> R:
        """Call a blocking tool. Raises Refused, ApprovalPending, Unavailable, Interrupted, or what the tool raises."""
        case = self._cleared(tool, frozen)
        opened = self._opened(case)
        running = Running(case.claims, tool, None)
        self._running.add(running)
        try:
            hit("before_dispatch")
            self._check_again(opened)
            result = self._watched(opened, running, lambda: fn(*frozen.args, **frozen.kwargs))
        finally:
            self._running.remove(running)
        hit("after_dispatch_before_outcome")
        self._lanes.end(opened, "done", "")
        return self._returned(opened, running, result)

    async def arun(self, tool: str, frozen: Frozen, fn: Callable[..., Awaitable[R]]) -> R:
        """Call an async tool; it is cancelled when its delegation falls. Raises as `run` does."""
        import anyio

        case = await self._acleared(tool, frozen)
        opened = await self._aopened(case)
        scope, schedule = anyio.CancelScope(), soon()
        running = Running(case.claims, tool, lambda: schedule(scope.cancel))
        self._running.add(running)
        try:
            hit("before_dispatch")
            if self._lacks(opened):
                await _threaded(self._check_again, opened)
            result = await self._awatched(opened, running, scope, lambda: fn(*frozen.args, **frozen.kwargs))
        finally:
            self._running.remove(running)
        hit("after_dispatch_before_outcome")
        await self._aend(opened, "done", "")
        return self._returned(opened, running, result)

    def preview(self, tool: str, frozen: Frozen) -> "Decision":
        """What the call would be answered now; nothing is reserved, recorded or asked."""
        case = self._admitted(tool, frozen, *self._presented())
        if isinstance(case, Refusal):
            raise refused(case)
        return self._lanes.preview(case)

    async def aidentify(self, token: str) -> Claims | Refused:
        """Whose token came with a request, or why it is none that this host takes."""
        found = verified(self._state, token)
        mends = isinstance(found, Refusal) and (found.reason in _MENDS or found.reason is Reason.TOKEN_KEY)
        if mends and await _threaded(self._mended, found):
            found = verified(self._state, token)
        return refused(self._told(token, found)) if isinstance(found, Refusal) else found

    def turn_away(
        self,
        token: str,
        tool: str,
        refusal: Refusal,
        *,
        args: Mapping[str, Any] | None = None,
        kind: str = Kind.CALL_DECIDED,
        trace: Trace | None = None,
    ) -> None:
        """Put a refusal on record that was made before there was a call, if the token proves whose request it was."""
        whose = proven(self._state, token)
        if whose is not None:
            self._lanes.turn_away(whose, tool, args or {}, refusal, kind, "" if trace is None else trace.trace_id)

    def turn_tool_away(self, holder: Holder, tool: str, frozen: Frozen, refusal: Refusal) -> None:
        """The same for a tool outside a token's scope, which the broker refuses too when it is shown the call."""
        token = self._token_of(holder)
        case = admit(self._state, tool, frozen, holder, token)
        if isinstance(case, Refusal):
            self.turn_away(token, tool, refusal, trace=holder.trace)
        else:
            self._lanes.refuse(case, refusal)

    def misfit(self, tool: str, refusal: Refusal) -> None:
        """The same for arguments that are none of the tool's."""
        holder = current_child()
        if holder is not None:
            self.turn_away(self._token_of(holder), tool, refusal, trace=holder.trace)

    # before the call
    def _presented(self) -> tuple[Holder, str]:
        holder = current_child()
        if holder is None:
            raise Refused(Reason.TOKEN_MISSING, "no child is current here (threads and executors need carnet.bind)")
        return holder, self._token_of(holder)

    def _admitted(self, tool: str, frozen: Frozen, holder: Holder, token: str, *, mend: bool = True) -> Case | Refusal:
        found = admit(self._state, tool, frozen, holder, token)
        if mend and isinstance(found, Refusal) and self._mended(found):
            found = admit(self._state, tool, frozen, holder, token)
        return self._told(token, found) if isinstance(found, Refusal) else found

    def _told(self, token: str, refusal: Refusal) -> Refusal:
        """The refusal with the reason that its mark was given (completed, approval_withdrawn, ...)."""
        cache = self._state.cache
        if refusal.reason is not Reason.REVOKED or cache is None:
            return refusal
        claims = cache.verify(token, keys=self._state.keys, revoked={}, now=self._state.now())
        return refusal if isinstance(claims, Refusal) else told(self._state, claims, "", refusal)

    async def _acleared(self, tool: str, frozen: Frozen) -> Case:
        """As `_cleared`; what may block (waiting for the feed, fetching keys) is done in a thread."""
        try:
            return self._cleared(tool, frozen, mend=False)
        except Refused as first:
            if first.reason not in _MENDS and first.reason is not Reason.TOKEN_KEY:
                raise
        return await _threaded(self._cleared, tool, frozen)

    def _cleared(self, tool: str, frozen: Frozen, *, mend: bool = True) -> Case:
        holder, token = self._presented()
        case = self._admitted(tool, frozen, holder, token, mend=mend)
        if isinstance(case, Refusal):
            if mend or case.reason not in _MENDS:  # else it is asked again, and that answer is the one to keep
                self.turn_away(token, tool, case, args=frozen.json, trace=holder.trace)
            raise refused(case)
        refusal = covered(self._state, case)
        if refusal is not None:
            refusal = told(self._state, case.claims, tool, refusal)
            self._lanes.refuse(case, refusal)
            raise refused(refusal)
        return case

    def _mended(self, refusal: Refusal) -> bool:
        """Wait a little for the feed, or fetch keys, where that can turn a refusal; whether to ask again."""
        if refusal.reason is Reason.TOKEN_KEY:
            return self._want_keys()
        if refusal.reason not in _MENDS:
            return False
        grace = _START if refusal.reason is Reason.NOT_READY else _GRACE
        return self._state.await_change(lambda: self._state.lacking(1) is None, grace)

    def _opened(self, case: Case) -> Opened:
        if not self._lanes.is_local(case):
            return self._lanes.ask(case, self._patience(case), threading.Event())
        opened, line = self._lanes.local(case)
        self._lanes.write(line)
        hit("after_audit_intent")
        return opened

    async def _aopened(self, case: Case) -> Opened:
        if self._lanes.is_local(case):
            opened, line = self._lanes.local(case)
            await _written(self._lanes, line)
            hit("after_audit_intent")
            return opened
        stop = threading.Event()
        try:
            return await _threaded(partial(self._lanes.ask, case, self._patience(case), stop), abandon=True)
        except BaseException:
            stop.set()
            raise

    def _patience(self, case: Case) -> float:
        if self._max_wait is not None:
            return self._max_wait
        held = case.holder.max_wait
        return _IN_PROCESS if held is None else held

    # just before the call
    def _lacks(self, opened: Opened) -> bool:
        """Whether looking again needs more than a glance (waiting, asking, or a change to look at)."""
        case, state = opened.case, self._state
        late = case.level == 2 and state.clock.mono() - opened.at > _YES
        return late or state.lacking(case.level) is not None or state.generation != case.generation or self._over(case)

    def _over(self, case: Case) -> bool:
        return self._state.now() >= case.claims.exp

    def _check_again(self, opened: Opened) -> None:
        """Freshness, revocations and policy once more. Raises Refused, and puts the unused call on record."""
        if not self._lacks(opened):
            return
        try:
            refusal = self._changed(opened)
        except (Refused, Unavailable) as fault:
            self._lanes.end(opened, "failed", "not dispatched")
            raise Refused(Reason.STALE, f"whether the call may still run can't be known: {fault}") from None
        if refusal is not None:
            self._lanes.end(opened, "failed", f"not dispatched: {refusal.reason.value}")
            raise refused(refusal, call_id=opened.call)

    def _changed(self, opened: Opened) -> Refusal | None:
        case, state = opened.case, self._state
        lacking = state.lacking(case.level)
        if lacking is not None and self._mended(lacking):
            lacking = state.lacking(case.level)
        if lacking is not None:
            return lacking
        again = admit(state, case.tool, case.frozen, case.holder, case.token)
        if isinstance(again, Refusal):
            return told(state, case.claims, case.tool, again)
        refusal = covered(state, again)
        if refusal is not None:
            return told(state, case.claims, case.tool, refusal)
        if again.book.digest != opened.digest and not self._same_answer(opened, again):
            return Refusal(Reason.POLICY_CHANGED)
        if case.level == 2 and state.clock.mono() - opened.at > _YES:
            return self._lanes.still(opened)
        return None

    def _same_answer(self, opened: Opened, again: Case) -> bool:
        """Whether the new policy, too, lets this process decide, and allows. What the broker decided it must decide."""
        return opened.local and self._lanes.is_local(again) and judge(again.book, again).effect == "allow"

    # the call and after it
    def _watched(self, opened: Opened, running: Running, call: Callable[[], R]) -> R:
        try:
            result = call()
        except Exception as fault:
            self._lanes.end(opened, "failed", type(fault).__name__)
            if running.killed is not None:
                raise Interrupted(running.killed, opened.call) from fault
            raise
        except BaseException as fault:
            self._lanes.end(opened, "unknown", type(fault).__name__)
            raise
        if type(result) in _LATER:
            self._lanes.end(opened, "unknown", _UNRUN)
            raise _postponed(opened.case.tool, result)
        return result

    async def _awatched(self, opened: Opened, running: Running, scope: Any, call: Callable[[], Awaitable[R]]) -> R:
        results: list[R] = []
        try:
            with scope:
                results.append(await call())
        except Exception as fault:
            await self._aend(opened, "failed", type(fault).__name__)
            if running.killed is not None:
                raise Interrupted(running.killed, opened.call) from fault
            raise
        except BaseException as fault:  # the caller cancelled
            await self._aend(opened, "unknown", type(fault).__name__)
            raise
        if results and type(results[0]) in _LATER:
            await self._aend(opened, "unknown", _UNRUN)
            raise _postponed(opened.case.tool, results[0])
        if results:
            return results[0]
        # The scope swallowed a cancellation that was ours: the tool was stopped somewhere in the middle.
        await self._aend(opened, "unknown", "cancelled: its delegation ended")
        raise Interrupted(running.killed or Reason.REVOKED, opened.call)

    def _returned(self, opened: Opened, running: Running, result: R) -> R:
        """The result, unless the delegation fell meanwhile: its outcome is kept, its result is not handed out."""
        if running.killed is not None:
            raise Interrupted(running.killed, opened.call)
        return result

    async def _aend(self, opened: Opened, outcome: str, detail: str) -> None:
        if opened.local:
            self._lanes.end(opened, outcome, detail)
            return
        import anyio

        with anyio.CancelScope(shield=True):
            await _threaded(self._lanes.end, opened, outcome, detail)


def _postponed(tool: str, result: Any) -> ConfigError:
    """A tool must be done when its call returns: what runs afterwards runs unwatched, after a revocation too."""
    if isinstance(result, CoroutineType | GeneratorType):
        result.close()
    return ConfigError(
        f"{tool} returned a {type(result).__name__}, which would run after the guard has let go of the call; make the "
        "tool `async def`, or return what it yields as a list"
    )


async def _written(lanes: Lanes, line: str) -> None:
    """Wait in the event loop until the writer's thread has the intent on the disk."""
    import anyio

    done, schedule = anyio.Event(), soon()
    future = lanes.queue(line)
    future.add_done_callback(lambda _: schedule(done.set))
    await done.wait()
    fault = future.exception()
    if isinstance(fault, OSError):
        raise no_sink(fault)
    if fault is not None:
        raise no_sink(OSError(type(fault).__name__))


async def _threaded(work: Callable[..., R], *args: Any, abandon: bool = False) -> R:
    """Run blocking work in a thread that is not one of the framework's: waiting calls must not use those up."""
    import anyio
    from anyio.lowlevel import RunVar

    held: RunVar[anyio.CapacityLimiter] = RunVar("carnet_guard_threads")
    try:
        limiter = held.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_THREADS)
        held.set(limiter)
    return await anyio.to_thread.run_sync(partial(work, *args), abandon_on_cancel=abandon, limiter=limiter)
