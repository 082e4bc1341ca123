"""The verbs of a sequence. Each is one request, or one movement of the world, and gives one answer."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.cases import faults, people, work
from tests.cases.answering import Answer, holds, judge
from tests.cases.handles import Child, Run
from tests.cases.reading import closed
from tests.cases.verdict import CaseFailed
from tests.cases.wiring import Held
from tests.cases.world import World

__all__ = ["VERBS", "Player"]

READY = 5.0  # seconds that a guard may take after the store came back
JUDGED = frozenset({"do", "as", "expect", "expect_status_in", "reason", "reason_any"})


@dataclass(frozen=True, slots=True)
class Verb:
    """keys: what the step may name beside what every step may. settles: the answer may lag behind a revocation or an
    outage, so the step is repeated for a while until it is as expected."""

    run: Callable[["Player", Mapping[str, Any]], Answer]
    keys: frozenset[str] = frozenset()
    settles: bool = False


@dataclass(frozen=True, slots=True)
class Paused:
    """A call whose guard is held between the decision and the tool."""

    held: Held
    waiting: Future[Answer]
    step: Mapping[str, Any]


class Player:
    """One pass through the steps."""

    def __init__(self, world: World, patience: float) -> None:
        self.world = world
        self.names: dict[str, object] = {}
        self.runs: set[str] = set()
        self.slowest = 0.0
        self.revoked_at = 0  # seq of the last revocation in the feed
        self.patience = patience
        self._settle_until = 0.0
        self._executed_before = world.tools.executions
        self._records_before = world.last_record()

    @property
    def executed(self) -> int:
        return self.world.tools.executions - self._executed_before

    def records(self) -> list[Mapping[str, Any]]:
        """Audit records since this pass began."""
        return self.world.records(self._records_before)

    def named(self, step: Mapping[str, Any], key: str, *kinds: type) -> Any:
        name = str(step[key]) if key in step else None
        found = self.names.get(name) if name is not None else None
        if not isinstance(found, kinds):
            raise CaseFailed(f"step {step['do']} names {name!r}, which is no {'/'.join(k.__name__ for k in kinds)}")
        return found

    def bearer(self, handle: Run | Child) -> str | None:
        return self.world.root_token(handle) if isinstance(handle, Run) else handle.bearer

    def settle(self, seconds: float | None = None) -> None:
        """From now on answers may lag for so long."""
        self._settle_until = time.monotonic() + (self.patience if seconds is None else seconds)

    def play(self, steps: Any, prefix: str = "", *, free: bool = False) -> None:
        for number, step in enumerate(steps, 1):
            self.do(step, f"{prefix}{number}", free=free)

    def do(self, step: Mapping[str, Any], number: str, *, free: bool = False) -> None:
        verb = VERBS[step["do"]]
        closed(step, JUDGED | verb.keys, f"step {number} ({step['do']})")
        answer = self._answer(verb, step, free=free)
        judge(step, answer, number, free=free)
        if "as" in step and answer.value is not None:
            self.names[str(step["as"])] = answer.value

    def _answer(self, verb: Verb, step: Mapping[str, Any], *, free: bool) -> Answer:
        while True:
            began = time.monotonic()
            answer = verb.run(self, step)
            self.slowest = max(self.slowest, time.monotonic() - began)
            if (
                not verb.settles
                or (holds(step, answer, free=free) and not answer.lagging)
                or began > self._settle_until
            ):
                return answer
            time.sleep(0.02)


def concurrently(player: Player, step: Mapping[str, Any]) -> Answer:
    """All at once. A step that expects nothing may be refused here: the others may have been first."""
    steps = step["steps"]
    with ThreadPoolExecutor(len(steps)) as pool:
        waiting = [pool.submit(player.do, one, f"concurrent {n}", free=True) for n, one in enumerate(steps, 1)]
    for one in waiting:
        one.result()
    return Answer("ok")


def repeat(player: Player, step: Mapping[str, Any]) -> Answer:
    for number in range(int(step["n"])):
        player.do(step["step"], f"repeat {number + 1}")
    return Answer("ok")


def pause_between(player: Player, step: Mapping[str, Any]) -> Answer:
    """Begin a call, and hold its guard between the decision and the tool until `resume`."""
    held = player.world.tools.hold()
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(player._answer, VERBS[step["step"]["do"]], step["step"], free=True)
    held.reached.wait(READY)
    player.names["@paused"] = Paused(held, waiting, step["step"])
    pool.shutdown(wait=False)
    return Answer("ok")


def resume(player: Player, step: Mapping[str, Any]) -> Answer:
    paused = player.names.pop("@paused", None)
    if not isinstance(paused, Paused):
        raise CaseFailed("resume without pause_between")
    player.world.tools.catch_up(player.revoked_at, player.patience)
    paused.held.release()
    answer = paused.waiting.result(timeout=READY)
    if "expect" in step:
        return answer
    judge(paused.step, answer, "paused", free=False)
    return Answer("ok", answer.said, answer.status, answer.value)


VERBS: dict[str, Verb] = {
    "issue_root": Verb(work.issue_root, frozenset({"agent", "tools", "ttl"})),
    "spawn": Verb(
        work.spawn, frozenset({"by", "target", "level", "tools", "ttl", "delegation", "task", "payload"}), settles=True
    ),
    "call": Verb(
        work.call, frozenset({"token", "tool", "args", "args_json", "approval", "idempotency_of"}), settles=True
    ),
    "verify": Verb(work.verify, frozenset({"token", "verifier"}), settles=True),
    "verify_forged": Verb(work.verify_forged, frozenset({"kid", "token"})),
    "register_tools": Verb(work.register_tools, frozenset({"tools", "by", "server", "host", "source", "name"})),
    "raw_exchange": Verb(lambda _player, _step: Answer("refused"), frozenset({"subject_token", "actor_token", "omit"})),
    "approve": Verb(people.approve, frozenset({"approval", "by", "by_token"})),
    "deny": Verb(people.deny, frozenset({"approval", "by", "by_token"})),
    "await": Verb(people.wait_for, frozenset({"approval", "seconds"})),
    "revoke": Verb(people.revoke, frozenset({"token", "by", "by_token", "mark"})),
    "revoke_jti": Verb(people.revoke_jti, frozenset({"token", "by"})),
    "rotate_key": Verb(people.rotate_key, frozenset({"by"})),
    "reload_policy": Verb(faults.reload_policy, frozenset({"patch"})),
    "advance": Verb(faults.advance, frozenset({"seconds"})),
    "jwks_down": Verb(faults.jwks_down),
    "jwks_up": Verb(faults.jwks_up),
    "store_down": Verb(faults.store_down),
    "store_up": Verb(faults.store_up),
    "restart_broker": Verb(faults.restart_broker),
    "crash_during": Verb(faults.crash_during, frozenset({"step", "point", "at", "after", "before"})),
    "repeat": Verb(repeat, frozenset({"n", "step"})),
    "concurrently": Verb(concurrently, frozenset({"steps"})),
    "pause_between": Verb(pause_between, frozenset({"step", "points", "between", "after", "before", "at"})),
    "resume": Verb(resume),
}
