"""Revocations, the feed, wake-ups and the life of the store."""

import asyncio
import time

import pytest

from carnet.audit import Record
from carnet_broker.core.rows import FOREVER, ApprovalState, GuardSeen, Revocation
from carnet_broker.store.base import SEEN_ANEW, Index, Store, Where
from tests.store.making import (
    T0,
    TENANT,
    Clock,
    approval,
    change,
    committed,
    policy,
    revocation,
    step,
)


async def entries(store: Store, after: int = 0, wait: float = 0) -> list[tuple[int, str, int]]:
    feed = await store.changes(TENANT, await epoch_of(store), after, wait)
    assert not feed.snapshot
    return [(entry.seq, entry.mark, entry.until) for entry in feed.entries]


async def epoch_of(store: Store) -> str:
    return (await store.changes(TENANT, "", 0, 0)).epoch


@pytest.mark.anyio
class FeedContract:
    async def test_a_revocation_is_one_row_and_one_feed_entry(self, store: Store, clock: Clock) -> None:
        told = await committed(store, change(revoke=(revocation("dlg:a"), revocation("dlg:b"))))
        assert told.seq == 2
        assert await entries(store) == [(1, "dlg:a", FOREVER), (2, "dlg:b", FOREVER)]
        found = await store.revoked(TENANT, ["dlg:a", "dlg:none"])
        assert found == {"dlg:a": revocation("dlg:a", seq=1)}
        assert await store.get(Revocation, TENANT, "dlg:b") == revocation("dlg:b", seq=2)

    async def test_a_new_epoch_makes_every_follower_reload(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("dlg:a"),)))
        old = await epoch_of(store)
        new = await store.new_epoch()
        assert new != old
        assert (await store.health()).epoch == new
        feed = await store.changes(TENANT, old, 1, 5)
        assert (feed.epoch, feed.snapshot, [entry.mark for entry in feed.entries]) == (new, True, ["dlg:a"])

    async def test_until_now_covers_the_seconds_that_the_commit_may_take(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("agent:a", until=T0),)))
        assert (await store.revoked(TENANT, ["agent:a"]))["agent:a"].until == T0 + 2

    async def test_merging_takes_the_later_end_and_keeps_the_first_reason(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("agent:a", until=T0 + 10, reason="first"),)))
        clock.now = T0 + 1
        later = revocation("agent:a", until=T0 + 50, at=T0 + 1, reason="second", actor="operator:bob")
        assert (await committed(store, change(T0 + 1, revoke=(later,)))).seq == 2
        found = (await store.revoked(TENANT, ["agent:a"]))["agent:a"]
        assert found == revocation("agent:a", until=T0 + 50, reason="first", seq=2)
        assert await entries(store) == [(1, "agent:a", T0 + 10), (2, "agent:a", T0 + 50)]
        page = await store.find(Revocation, TENANT, Where(index=Index.REVOCATIONS), None, 10)
        assert page.rows == (found,)

    @pytest.mark.parametrize("until", [T0 + 10, T0 + 9])
    async def test_what_changes_nothing_gets_no_seq_but_its_record(
        self, store: Store, clock: Clock, until: int
    ) -> None:
        await committed(store, change(revoke=(revocation("agent:a", until=T0 + 10),)))
        assert (await committed(store, change(revoke=(revocation("agent:a", until=until),)))).seq == 1
        assert len((await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 9)).rows) == 2

    async def test_each_tenant_counts_by_itself(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("dlg:a"),)))
        other = await committed(store, change(tenant="other", revoke=(revocation("dlg:a", tenant="other"),)))
        assert other.seq == 1
        assert await entries(store) == [(1, "dlg:a", FOREVER)]

    async def test_only_what_is_newer_is_told(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=tuple(revocation(f"dlg:{n}") for n in range(5))))
        assert [seq for seq, _, _ in await entries(store, 3)] == [4, 5]
        assert await entries(store, 5) == []

    @pytest.mark.parametrize("after", [-1, 3, 99])
    async def test_a_step_back_or_a_gap_answers_the_snapshot(self, store: Store, clock: Clock, after: int) -> None:
        await committed(store, change(revoke=(revocation("dlg:a"), revocation("dlg:b"))))
        feed = await store.changes(TENANT, await epoch_of(store), after, 5)
        assert feed.snapshot
        assert [entry.mark for entry in feed.entries] == ["dlg:a", "dlg:b"]
        assert (feed.seq, feed.now) == (2, T0)

    async def test_another_epoch_answers_the_snapshot_at_once(self, store: Store, clock: Clock) -> None:
        feed = await store.changes(TENANT, "another", 0, 5)
        assert feed.snapshot
        assert feed.entries == ()
        assert feed.epoch == (await store.health()).epoch

    async def test_the_feed_names_the_policy_in_force(self, store: Store, clock: Clock) -> None:
        assert (await store.changes(TENANT, "", 0, 0)).policy_digest is None
        await committed(store, change(insert=(policy("1" * 64),)))
        await committed(store, change(insert=(policy("2" * 64),)))
        await committed(store, change(insert=(policy("1" * 64),)))
        assert (await store.changes(TENANT, "", 0, 0)).policy_digest == "1" * 64

    async def test_a_waiting_follower_hears_of_a_revocation_at_once(self, store: Store, clock: Clock) -> None:
        epoch = await epoch_of(store)
        waiting = asyncio.ensure_future(store.changes(TENANT, epoch, 0, 20))
        await asyncio.sleep(0.02)
        started = time.monotonic()
        await committed(store, change(revoke=(revocation("dlg:a"),)))
        feed = await waiting
        assert [entry.mark for entry in feed.entries] == ["dlg:a"]
        assert time.monotonic() - started < 2

    async def test_a_waiting_follower_hears_of_a_new_policy(self, store: Store, clock: Clock) -> None:
        waiting = asyncio.ensure_future(store.changes(TENANT, await epoch_of(store), 0, 20))
        await asyncio.sleep(0.02)
        await committed(store, change(insert=(policy(),)))
        assert (await asyncio.wait_for(waiting, 5)).policy_digest == "p" * 64

    async def test_a_quiet_feed_answers_when_the_wait_is_over(self, store: Store, clock: Clock) -> None:
        started = time.monotonic()
        feed = await store.changes(TENANT, await epoch_of(store), 0, 0.15)
        assert not feed.snapshot
        assert feed.entries == ()
        assert 0.14 <= time.monotonic() - started < 2

    async def test_watch_returns_when_the_row_moves(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(),)))
        watching = asyncio.ensure_future(store.watch(TENANT, "apr_1", 1, 20))
        await asyncio.sleep(0.02)
        assert not watching.done()
        await committed(store, change(moves=(step(approval(), ApprovalState.APPROVED),)))
        await asyncio.wait_for(watching, 5)

    async def test_watch_returns_when_the_delegation_is_revoked(self, store: Store, clock: Clock) -> None:
        watching = asyncio.ensure_future(store.watch(TENANT, "dlg_child", 1, 20))
        await asyncio.sleep(0.02)
        await committed(store, change(revoke=(revocation(),)))
        await asyncio.wait_for(watching, 5)

    async def test_watch_does_not_miss_what_came_before_it(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(),)))
        await committed(store, change(moves=(step(approval(), ApprovalState.APPROVED),), revoke=(revocation(),)))
        await asyncio.wait_for(store.watch(TENANT, "apr_1", 1, 20), 5)
        await asyncio.wait_for(store.watch(TENANT, "dlg_child", 1, 20), 5)

    async def test_watch_ends_with_its_wait(self, store: Store, clock: Clock) -> None:
        started = time.monotonic()
        await store.watch("other", "apr_1", 1, 0.15)
        assert 0.14 <= time.monotonic() - started < 2

    async def test_guards_are_noted_with_the_time(self, store: Store, clock: Clock) -> None:
        await store.seen(TENANT, "cli-guard/b", 4)
        await store.seen(TENANT, "cli-guard/a", 3)
        clock.now = T0 + 7
        await store.seen(TENANT, "cli-guard/b", 5)
        page = await store.find(GuardSeen, TENANT, Where(index=Index.GUARDS), None, 10)
        assert [(row.guard, row.seq, row.at) for row in page.rows] == [
            ("cli-guard/a", 3, T0),
            ("cli-guard/b", 5, T0 + 7),
        ]
        late = Where(index=Index.GUARDS, since=T0 + 1)
        assert [row.guard for row in (await store.find(GuardSeen, TENANT, late, None, 10)).rows] == ["cli-guard/b"]

    async def test_the_same_note_of_a_guard_is_not_written_again_at_once(self, store: Store, clock: Clock) -> None:
        for at, seq, noted in ((0, 4, 0), (SEEN_ANEW - 1, 4, 0), (SEEN_ANEW, 4, SEEN_ANEW), (SEEN_ANEW + 1, 5, 4)):
            clock.now = T0 + at
            await store.seen(TENANT, "cli-guard/a", seq)
            found = await store.get(GuardSeen, TENANT, "cli-guard/a")
            assert found == GuardSeen(tenant=TENANT, guard="cli-guard/a", seq=seq, at=T0 + noted)

    async def test_key_marks_are_found_for_every_tenant(self, store: Store, clock: Clock) -> None:
        await committed(store, change(tenant="_system", revoke=(revocation("key:k", tenant="_system"),)))
        assert (await store.revoked(TENANT, ["key:k"]))["key:k"].tenant == "_system"
