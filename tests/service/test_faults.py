"""The store fails, answers late, or its clock jumps: nothing is ever allowed by it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Limits
from carnet_broker.core.rows import Approval, Call, Delegation
from carnet_broker.service.requests import CallRequest, SpawnRequest, Verdict
from carnet_broker.service.views import ApprovalView, CallView
from carnet_broker.store.base import Change, Committed, Conflict, Index, Store, Unavailable, Where, Why
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import ADA, GUARD, PARENT, PASSPHRASE, QUIET, RISKY, TRACE, World, good, on

pytestmark = pytest.mark.anyio
METHODS = ("commit", "get", "find", "ledger", "revoked", "now", "once", "changes")


class Failing(SqliteStore):
    """Raises in one method, once `broken` names it; `first` spares that many of its calls."""

    broken: str | None = None
    first: int = 0
    calls: int = 0

    def __getattribute__(self, name: str) -> Any:
        if name in METHODS and name == object.__getattribute__(self, "broken"):
            self.calls += 1
            if self.calls > self.first:
                return _raise
        return object.__getattribute__(self, name)


async def _raise(*_: object, **__: object) -> Any:
    raise Unavailable("the disk is gone")


async def failing(path: Path, clock: ManualClock) -> tuple[World, Failing]:
    store = Failing.open(path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    return await on(store, clock, limits=Limits()), store


async def acts(world: World) -> list[Callable[[], Awaitable[object]]]:
    root = await world.root()
    child = await world.child(root, ("search",))
    token = child.tokens["desk"].access_token
    _, risky = await world.approved(root)
    asked = await world.called(risky, "refund", {"amount": 1, "customer_id": "a"})
    pending = await world.child(root, ("wipe",), task=RISKY)
    assert pending.approval is not None
    assert asked.approval_id is not None
    approval, question = pending.approval.id, asked.approval_id
    search = CallRequest(token=token, tool="search", args={"query": "a"})
    service = world.service
    return [
        lambda: service.open_run(PARENT, None, TRACE),
        lambda: service.open_run(PARENT, root.txn, TRACE),
        lambda: service.spawn(root, SpawnRequest(target="worker", task={**QUIET, "tools": ["search"]}), "k", TRACE),
        lambda: service.mint(root, child.id, None, TRACE),
        lambda: service.call(GUARD, search, "k" * 32, TRACE),
        lambda: service.answer(ADA, approval, Verdict.APPROVE, "", PASSPHRASE, TRACE),
        lambda: service.answer(ADA, question, Verdict.APPROVE, "", PASSPHRASE, TRACE),
    ]


async def granted(store: Store) -> tuple[int, ...]:
    counted = []
    for kind, index in ((Delegation, Index.DELEGATIONS), (Approval, Index.APPROVALS)):
        page = await store.find(kind, "acme", Where(index=index), None, 200)  # type: ignore[type-var]
        counted.append(len(page.rows))
        counted.append(sum(1 for row in page.rows if getattr(row, "state", None) == "approved"))
    return tuple(counted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("first", [0, 1, 2])
async def test_a_store_that_fails_anywhere_denies(tmp_path: Path, clock: ManualClock, method: str, first: int) -> None:
    world, store = await failing(tmp_path, clock)
    for act in await acts(world):
        before = await granted(store)
        store.broken, store.first, store.calls = method, first, 0
        try:
            outcome = await act()
        except Unavailable:
            outcome = None
        failed = store.calls > first
        store.broken = None
        if failed and method == "commit":
            assert await granted(store) == before
        if failed and first == 0:
            assert outcome is None or isinstance(outcome, Refusal)
    await store.close()


class ActThenRecord(SqliteStore):
    """A store with a mistake: it acts first and records afterwards, and then the disk is full."""

    full: bool = False

    async def commit(self, change: Change) -> Committed | Conflict:
        done = await super().commit(change)
        if self.full and (change.insert or change.moves):
            raise Unavailable("the audit could not be written")
        return done


async def test_a_store_that_records_after_the_act_is_found_out(tmp_path: Path, clock: ManualClock) -> None:
    store = ActThenRecord.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    world = await on(store, clock, limits=Limits())
    root = await world.root()
    before = await granted(store)
    store.full = True
    with pytest.raises(Unavailable):
        await world.spawn(root)
    assert await granted(store) != before, "the suite would not notice an act without its record"
    await store.close()


async def test_where_nothing_can_be_recorded_nothing_is_decided(tmp_path: Path, clock: ManualClock) -> None:
    world, store = await failing(tmp_path, clock)
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    store.broken, store.first, store.calls = "commit", 0, 0
    with pytest.raises(Unavailable):
        await world.call(token, "search", {"query": "a"}, guard=GUARD)
    with pytest.raises(Unavailable):
        await world.call(token, "search", {}, guard=GUARD)  # a denial too is only a denial once it is on record
    store.broken = None
    page = await store.find(Call, "acme", Where(index=Index.CALLS_BY_RUN, value=root.txn), None, 10)
    assert page.rows == ()
    await store.close()


class LostReply(SqliteStore):
    """Commits and then breaks the connection: the caller can't know."""

    lose: bool = False

    async def commit(self, change: Change) -> Committed | Conflict:
        done = await super().commit(change)
        if self.lose:
            self.lose = False
            raise Unavailable("the reply was lost")
        return done


async def test_a_lost_reply_is_found_again_by_its_key(tmp_path: Path, clock: ManualClock) -> None:
    store = LostReply.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    world = await on(store, clock, limits=Limits())
    root = await world.root()
    store.lose = True
    with pytest.raises(Unavailable):
        await world.spawn(root, key="once")
    view = await world.child(root, key="once")
    token = view.tokens["desk"].access_token
    assert len(await world.audit("spawned")) == 1
    store.lose = True
    with pytest.raises(Unavailable):
        await world.call(token, "search", {"query": "a"}, key="c" * 32)
    again = await world.called(token, "search", {"query": "a"}, key="c" * 32)
    assert (again.decision, again.repeat) == ("allow", True)
    await store.close()


class Skewed(SqliteStore):
    """Another broker's clock: the first readings are stale by a minute."""

    stale: int = 0

    async def now(self) -> int:
        now = await super().now()
        if self.stale > 0:
            self.stale -= 1
            return now - 60
        return now


async def test_a_stale_reading_of_the_clock_is_read_again(tmp_path: Path, clock: ManualClock) -> None:
    store = Skewed.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    world = await on(store, clock, limits=Limits())
    root = await world.root()
    store.stale = 4
    view = await world.child(root)
    assert view.created_at == clock.now()
    await store.close()


class Contended(SqliteStore):
    """The run moves on at every look."""

    async def commit(self, change: Change) -> Committed | Conflict:
        if change.insert and change.ledger and any(scope.startswith("run:") for scope, _ in change.ledger):
            return Conflict(why=Why.STALE, now=change.at)
        return await super().commit(change)


async def test_after_eight_tries_nothing_was_changed(tmp_path: Path, clock: ManualClock) -> None:
    store = Contended.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    world = await on(store, clock, limits=Limits())
    root = await world.root()
    assert good(await world.spawn(root), Refusal).reason is Reason.CONTENDED
    assert (await world.audit("spawn_refused"))[-1].reason == "contended"
    await store.close()


async def test_an_answer_between_two_looks_is_one_answer(world: World) -> None:
    view = await world.child(await world.root(), ("refund",), task=RISKY)
    assert view.approval is not None
    first = await world.approve(view.approval.id)
    assert isinstance(first, ApprovalView)
    row = await world.store.get(Approval, "acme", view.approval.id)
    assert row is not None
    assert (row.version, row.answered_at) == (2, world.clock.now())


async def test_a_preview_of_what_cannot_be_read_is_no_allow(tmp_path: Path, clock: ManualClock) -> None:
    world, store = await failing(tmp_path, clock)
    token = (await world.child(await world.root())).tokens["desk"].access_token
    for method in ("revoked", "ledger", "get", "now"):
        store.broken, store.first, store.calls = method, 0, 0
        with pytest.raises(Unavailable):
            await world.call(token, "search", {"query": "a"}, preview=True)
        store.broken = None
    seen = await world.call(token, "search", {"query": "a"}, preview=True)
    assert good(seen, CallView).decision == "allow"
    await store.close()
