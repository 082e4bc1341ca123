"""What a guard looks at first: a guard that is out of date and hears again in the middle of a call must not pass that
call with what it knew before."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from carnet import Guard, Refused
from carnet.clock import ManualClock
from carnet.guard import dispatch
from carnet.guard.case import verified
from carnet.guard.freshness import Freshness
from carnet.guard.state import State
from carnet.reasons import Reason, Refusal
from carnet.testing import CarnetBroker
from carnet.testing.clock import GuardClock
from carnet.token.claims import Claims
from carnet.token.keyset import KeySet, VerifyKey
from tests.guard.test_records import book
from tests.token.making import DLG, NOW, RING, child, minted

TOKEN = minted(child())
BOOK = book()


def document(seq: int = 0, *marks: str) -> dict[str, Any]:
    entries = [{"seq": seq, "mark": mark, "until": 2**33, "reason": "revoked"} for mark in marks]
    system = {"epoch": "s", "seq": 0, "entries": [], "snapshot": True}
    return {
        "system": system, "epoch": "t", "seq": seq, "entries": entries, "snapshot": not marks,
        "policy_digest": BOOK.digest,
    }  # fmt: skip


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def state(clock: ManualClock) -> State:
    state = State(clock)
    state.keys = RING.keyset()
    state.load(BOOK)
    state.feed.take(document())
    state.freshness.heard(clock.mono(), NOW, clock.mono())
    return state


class Asked(dict[str, int]):
    """Marks that let something happen behind the back of whoever has just looked at them."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self.then = then

    def keys(self) -> Any:
        found = dict(self).keys()
        self.then()
        return found


class AskedKeys(KeySet):
    __slots__ = ("then",)
    then: Callable[[], None]

    def find(self, kid: str) -> VerifyKey | None:
        found = super().find(kid)
        self.then()
        return found


def reason(found: Claims | Refusal) -> Reason | None:
    return found.reason if isinstance(found, Refusal) else None


def test_a_guard_that_hears_while_it_looks_at_marks_does_not_pass_with_the_old_ones(
    state: State, clock: ManualClock
) -> None:
    def hear() -> None:
        state.feed.take(document(1, f"dlg:{DLG}"))
        state.freshness.heard(clock.mono(), NOW, clock.mono())

    assert reason(verified(state, TOKEN)) is None
    clock.advance(5)
    state.feed.tenant.until = Asked(hear)
    assert reason(verified(state, TOKEN)) in (Reason.STALE, Reason.REVOKED)


@pytest.mark.parametrize("remembered", [True, False])
def test_a_guard_that_hears_while_it_looks_at_keys_does_not_pass_with_a_withdrawn_one(
    state: State, clock: ManualClock, remembered: bool
) -> None:
    def hear() -> None:
        state.keys = other
        state.freshness.heard(clock.mono(), NOW, clock.mono())

    other = KeySet([replace(key, kid="other") for key in RING.keyset()._keys.values()])
    if remembered:
        assert reason(verified(state, TOKEN)) is None
    clock.advance(5)
    state.keys = AskedKeys(RING.keyset()._keys.values())
    state.keys.then = hear
    assert reason(verified(state, TOKEN)) in (Reason.STALE, Reason.TOKEN_KEY)


def test_marks_are_in_force_and_counted_before_they_make_the_guard_fresh(carnet_broker: CarnetBroker) -> None:
    class Watched(Freshness):
        __slots__ = ()

        def heard(self, as_of: float, wall: int, received: float) -> None:
            seen.append((state.feed.tenant.seq, state.generation))
            super().heard(as_of, wall, received)

    seen: list[tuple[int, int]] = []
    state = carnet_broker.bind(Guard("desk")).started().state
    before = state.generation
    state.freshness = Watched()
    carnet_broker.revoke("agent:writer")
    until = time.monotonic() + 3.0
    while not any(seq for seq, _ in seen):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert next(generation for seq, generation in seen if seq) > before


class Reported(GuardClock):
    """A clock at whose next reading something else happens first."""

    __slots__ = ("first",)

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__(now)
        self.first: Callable[[], None] | None = None

    def mono(self) -> float:
        first, self.first = self.first, None
        if first is not None:
            first()
        return super().mono()


def test_a_guard_that_hears_at_its_last_glance_before_the_tool_looks_at_what_it_heard(
    carnet_broker: CarnetBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = carnet_broker.bind(Guard("desk"))
    clock = Reported(carnet_broker.clock.now)
    guard.placed(replace(guard.setup, clock=clock))
    reached: list[str] = []
    with carnet_broker.child(tools=["search"]) as child:
        works = guard.started()
        state, caller = works.state, threading.current_thread()

        def hear() -> None:
            feed = state.feed.tenant
            feed.until = {**feed.until, f"dlg:{child.id}": 2**33}
            state.changed()
            state.freshness.heard(clock.mono(), state.now(), clock.mono())

        def pause(name: str) -> None:
            if name == "before_dispatch" and threading.current_thread() is caller:
                works.follower.stop()
                works.follower.join(3.0)
                time.sleep(1.1)  # nothing was heard for longer than the budget
                clock.first = hear

        monkeypatch.setattr(dispatch, "hit", pause)
        with pytest.raises(Refused) as caught:
            guard.call("search", {"query": "a"}, lambda query: reached.append(query))
    assert caught.value.reason is Reason.REVOKED
    assert not reached
