"""The reads: ledger deltas, pages, what is due, once, sealing, the clock."""

from dataclasses import replace

import pytest

from carnet.audit import GENESIS, Record, link
from carnet_broker.core.rows import (
    Approval,
    ApprovalState,
    Call,
    CallState,
    Checkpoint,
    Delegation,
    PolicyInForce,
)
from carnet_broker.store.base import Index, Page, R, Store, Where
from tests.store.making import (
    RUN,
    T0,
    TENANT,
    Clock,
    approval,
    call,
    call_step,
    change,
    committed,
    delegation,
    ids,
    policy,
    record,
    step,
)


async def walk(store: Store, kind: type[R], where: Where, limit: int = 2) -> list[R]:
    """All pages, each with at most `limit` rows."""
    rows: list[R] = []
    after: str | None = None
    while True:
        page: Page[R] = await store.find(kind, TENANT, where, after, limit)
        assert len(page.rows) <= limit
        rows += page.rows
        if page.next is None:
            return rows
        after = page.next


@pytest.mark.anyio
class LedgerContract:
    async def test_a_delta_holds_only_what_is_newer(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call("call_1"), call("call_2"))))
        known = (await store.ledger(TENANT, {f"run:{RUN}": 0})).versions
        await committed(store, change(insert=(delegation(), approval())))
        await committed(store, change(moves=(call_step(call("call_1"), CallState.DONE),)))
        delta = await store.ledger(TENANT, known)
        assert ids(delta.rows[f"run:{RUN}"])[-1] == "call_1"
        assert set(ids(delta.rows[f"run:{RUN}"])) == {"dlg_child", "apr_1", "call_1"}
        again = await store.ledger(TENANT, delta.versions)
        assert again.rows == {f"run:{RUN}": ()}
        assert again.versions == delta.versions

    async def test_the_run_itself_is_not_in_its_ledger(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(delegation(RUN, parent=None), delegation())))
        delta = await store.ledger(TENANT, {f"run:{RUN}": 0})
        assert ids(delta.rows[f"run:{RUN}"]) == ["dlg_child"]

    async def test_the_client_scope_spans_runs(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call("call_1"), call("call_2", run="dlg_b"), call("call_3", client="x"))))
        delta = await store.ledger(TENANT, {"client:cli-lead": 0, "client:x": 0})
        assert set(ids(delta.rows["client:cli-lead"])) == {"call_1", "call_2"}
        assert ids(delta.rows["client:x"]) == ["call_3"]
        await committed(store, change(moves=(call_step(call("call_2", run="dlg_b"), CallState.DONE),)))
        delta = await store.ledger(TENANT, delta.versions)
        assert ids(delta.rows["client:cli-lead"]) == ["call_2"]

    async def test_of_a_client_only_calls_since_a_time_are_told(self, store: Store, clock: Clock) -> None:
        rows = tuple(call(f"call_{n}", at=T0 - n * 100) for n in range(4))
        await committed(store, change(insert=rows))
        first = await store.ledger(TENANT, {"client:cli-lead": 0, f"run:{RUN}": 0}, since=T0 - 100)
        assert set(ids(first.rows["client:cli-lead"])) == {"call_0", "call_1"}
        assert len(first.rows[f"run:{RUN}"]) == 4
        await committed(store, change(moves=tuple(call_step(row, CallState.DONE) for row in (rows[0], rows[3]))))
        later = await store.ledger(TENANT, {"client:cli-lead": first.versions["client:cli-lead"]}, since=T0 - 100)
        assert ids(later.rows["client:cli-lead"]) == ["call_0"]

    async def test_a_call_refused_at_once_is_in_no_ledger_and_one_refused_later_is(
        self, store: Store, clock: Clock
    ) -> None:
        waiting = call("call_1", state=CallState.WAITING, hold_until=T0 + 60)
        await committed(store, change(insert=(waiting, call("call_2", state=CallState.REFUSED))))
        scopes = {f"run:{RUN}": 0, "client:cli-lead": 0}
        assert [ids(rows) for rows in (await store.ledger(TENANT, scopes)).rows.values()] == [["call_1"]] * 2
        known = (await store.ledger(TENANT, scopes)).versions
        await committed(store, change(moves=(call_step(waiting, CallState.REFUSED, hold_until=None),)))
        assert [ids(rows) for rows in (await store.ledger(TENANT, known)).rows.values()] == [["call_1"]] * 2

    async def test_pending_tells_all_that_wait_when_anything_moved(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval("apr_1", deadline=T0 + 9), approval("apr_2"))))
        first = await store.ledger(TENANT, {"pending": 0})
        assert set(ids(first.rows["pending"])) == {"apr_1", "apr_2"}
        assert (await store.ledger(TENANT, first.versions)).rows == {"pending": ()}
        await committed(store, change(moves=(step(approval("apr_1", deadline=T0 + 9), ApprovalState.DENIED),)))
        assert ids((await store.ledger(TENANT, first.versions)).rows["pending"]) == ["apr_2"]

    async def test_the_policy_scope_tells_new_policies(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(policy("1" * 64),)))
        first = await store.ledger(TENANT, {"policy": 0})
        assert first.rows["policy"] == (policy("1" * 64),)
        await committed(store, change(insert=(policy("2" * 64),), ledger=(("policy", first.versions["policy"]),)))
        assert (await store.ledger(TENANT, first.versions)).rows["policy"] == (policy("2" * 64),)

    async def test_a_version_of_the_future_gets_everything(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call(),)))
        delta = await store.ledger(TENANT, {f"run:{RUN}": 99})
        assert delta.versions == {f"run:{RUN}": 1}
        assert ids(delta.rows[f"run:{RUN}"]) == ["call_1"]

    @pytest.mark.parametrize("scope", ["run:", "runs:x", "", "pending:x"])
    async def test_an_unknown_scope_is_an_error(self, store: Store, clock: Clock, scope: str) -> None:
        with pytest.raises(ValueError, match="scope"):
            await store.ledger(TENANT, {scope: 0})

    async def test_tenants_have_ledgers_of_their_own(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call(),)))
        delta = await store.ledger("other", {f"run:{RUN}": 0, "pending": 0})
        assert set(delta.versions.values()) == {0}
        assert delta.rows == {f"run:{RUN}": (), "pending": ()}


@pytest.mark.anyio
class FindContract:
    async def test_delegations_in_each_order(self, store: Store, clock: Clock) -> None:
        rows = (
            delegation("dlg_1", agent="a", client="x", run="r1", live_until=T0 + 30),
            delegation("dlg_2", agent="b", client="x", run="r1", live_until=T0 + 10, created_at=T0 + 1),
            delegation("dlg_3", agent="a", client="y", run="r2", live_until=T0 + 20, created_at=T0 + 2),
        )
        for row in rows:
            await committed(store, change(insert=(row,)))
        for where, expected in (
            (Where(index=Index.DELEGATIONS), "321"),
            (Where(index=Index.DELEGATIONS, since=T0 + 1, until=T0 + 2), "2"),
            (Where(index=Index.DELEGATIONS_BY_RUN, value="r1"), "12"),
            (Where(index=Index.DELEGATIONS_BY_AGENT, value="a"), "31"),
            (Where(index=Index.DELEGATIONS_BY_CLIENT, value="x"), "21"),
            (Where(index=Index.DELEGATIONS_BY_CLIENT, value="x y"), ""),
            (Where(index=Index.DELEGATIONS_LIVE, since=T0 + 10), "31"),
            (Where(index=Index.DELEGATIONS_LIVE, since=T0 + 9), "231"),
        ):
            assert ids(await walk(store, Delegation, where)) == [f"dlg_{n}" for n in expected], where

    async def test_approvals_in_each_order(self, store: Store, clock: Clock) -> None:
        rows = (
            approval("apr_1", deadline=T0 + 9, digest="x"),
            approval("apr_2", deadline=T0 + 5, digest="x"),
            approval("apr_3", deadline=T0 + 7, digest="y"),
        )
        await committed(store, change(insert=rows))
        await committed(store, change(moves=(step(rows[2], ApprovalState.DENIED),)))
        for where, expected in (
            (Where(index=Index.APPROVALS), "321"),
            (Where(index=Index.APPROVALS_PENDING), "21"),
            (Where(index=Index.APPROVALS_PENDING, until=T0 + 6), "2"),
            (Where(index=Index.APPROVALS_BY_DIGEST, value=f"{RUN} x"), "21"),
            (Where(index=Index.APPROVALS_BY_DIGEST, value="other x"), ""),
        ):
            assert ids(await walk(store, Approval, where)) == [f"apr_{n}" for n in expected], where

    async def test_calls_in_each_order(self, store: Store, clock: Clock) -> None:
        rows = (
            call("call_1", at=T0 + 2, state=CallState.WAITING),
            call("call_2", at=T0 + 1, state=CallState.WAITING),
            call("call_3", at=T0 + 3, run="dlg_b"),
        )
        await committed(store, change(insert=rows))
        await committed(store, change(moves=(call_step(rows[1], CallState.RUNNING),)))
        for where, expected in (
            (Where(index=Index.CALLS_BY_RUN, value=RUN), "12"),
            (Where(index=Index.CALLS_BY_CLIENT, value="cli-lead"), "213"),
            (Where(index=Index.CALLS_BY_CLIENT, value="cli-lead", since=T0 + 2), "13"),
            (Where(index=Index.CALLS_WAITING, value="c" * 64), "1"),
        ):
            assert ids(await walk(store, Call, where)) == [f"call_{n}" for n in expected], where

    async def test_records_in_each_order(self, store: Store, clock: Clock) -> None:
        rows = (
            record(T0 + 5, delegation="dlg_a", trace_id="t1"),
            record(T0 + 1, run="dlg_b", trace_id="t2"),
            record(T0 + 3, delegation="dlg_a", trace_id="t1"),
            record(T0 + 9, run=None),
        )
        await committed(store, change(records=rows))
        for where, expected in (
            (Where(index=Index.RECORDS), [1, 2, 3, 4]),
            (Where(index=Index.RECORDS, since=T0 + 3), [1, 3, 4]),
            (Where(index=Index.RECORDS, since=T0 + 1, until=T0 + 5), [2, 3]),
            (Where(index=Index.RECORDS, until=T0 + 5), [2, 3]),
            (Where(index=Index.RECORDS_BY_DELEGATION, value="dlg_a"), [1, 3]),
            (Where(index=Index.RECORDS_BY_RUN, value=RUN), [1, 3]),
            (Where(index=Index.RECORDS_BY_TRACE, value="t2"), [2]),
        ):
            assert [row.seq for row in await walk(store, Record, where)] == expected, where
        third = await store.get(Record, TENANT, "3")
        assert third == replace(rows[2], seq=3)

    async def test_policies_newest_first(self, store: Store, clock: Clock) -> None:
        for digest in ("1", "2", "1"):
            await committed(store, change(insert=(policy(digest * 64),)))
        found = await walk(store, PolicyInForce, Where(index=Index.POLICIES))
        assert [row.digest[0] for row in found] == ["1", "2", "1"]
        assert await store.get(PolicyInForce, TENANT, "2" * 64) == policy("2" * 64)

    async def test_pages_neither_repeat_nor_hide_rows_under_inserts(self, store: Store, clock: Clock) -> None:
        for n in range(6):
            await committed(store, change(insert=(delegation(f"dlg_{n}"),)))
        first = await store.find(Delegation, TENANT, Where(index=Index.DELEGATIONS), None, 3)
        for n in range(6, 9):
            await committed(store, change(insert=(delegation(f"dlg_{n}"),)))
        second = await store.find(Delegation, TENANT, Where(index=Index.DELEGATIONS), first.next, 10)
        assert ids(first.rows + second.rows) == [f"dlg_{n}" for n in (5, 4, 3, 2, 1, 0)]
        assert second.next is None

    async def test_a_log_that_grows_is_read_on_from_the_cursor(self, store: Store, clock: Clock) -> None:
        await committed(store, change(records=(record(), record(), record())))
        first = await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 2)
        await committed(store, change())
        second = await store.find(Record, TENANT, Where(index=Index.RECORDS), first.next, 9)
        assert [row.seq for row in first.rows + second.rows] == [1, 2, 3, 4]

    async def test_other_tenants_see_nothing(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(delegation(), approval(), call())))
        assert (await store.find(Delegation, "other", Where(index=Index.DELEGATIONS), None, 9)).rows == ()
        assert (await store.find(Record, "other", Where(index=Index.RECORDS), None, 9)).rows == ()
        assert await store.due(T0 + 9999, 9) == [(TENANT, "approval", "apr_1")]

    @pytest.mark.parametrize("cursor", ["", "x", "1,2", "-1", "1 OR 1", "9" * 30])
    async def test_a_strange_cursor_is_an_error(self, store: Store, clock: Clock, cursor: str) -> None:
        with pytest.raises(ValueError, match="cursor"):
            await store.find(Delegation, TENANT, Where(index=Index.DELEGATIONS), cursor, 9)

    async def test_a_kind_or_value_that_does_not_fit_is_an_error(self, store: Store, clock: Clock) -> None:
        with pytest.raises(ValueError, match="hold"):
            await store.find(Call, TENANT, Where(index=Index.RECORDS), None, 9)
        with pytest.raises(ValueError, match="values"):
            await store.find(Record, TENANT, Where(index=Index.RECORDS, value="x"), None, 9)
        with pytest.raises(ValueError, match="values"):
            await store.find(Approval, TENANT, Where(index=Index.APPROVALS_BY_DIGEST, value="x"), None, 9)
        with pytest.raises(ValueError, match="row"):
            await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 0)


@pytest.mark.anyio
class SweepContract:
    async def test_due_names_what_has_come_longest_due_first(self, store: Store, clock: Clock) -> None:
        await committed(
            store,
            change(
                insert=(
                    approval("apr_1", due=T0 + 20),
                    approval("apr_2", due=None),
                    call("call_1", due=T0 + 10),
                    delegation(RUN, parent=None, live_until=T0 + 15),
                    delegation("dlg_child", live_until=T0 + 15),
                )
            ),
        )
        assert await store.due(T0 + 9, 9) == []
        expected = [(TENANT, "call", "call_1"), (TENANT, "delegation", RUN), (TENANT, "approval", "apr_1")]
        assert await store.due(T0 + 20, 9) == expected
        assert await store.due(T0 + 20, 2) == expected[:2]

    async def test_a_move_sets_what_is_due(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(), call(due=T0 + 5))))
        moves = (step(approval(), ApprovalState.DENIED, due=None), call_step(call(), CallState.DONE, due=None))
        await committed(store, change(moves=moves))
        assert await store.due(T0 + 9999, 9) == []

    async def test_once_is_true_once_until_its_end(self, store: Store, clock: Clock) -> None:
        assert await store.once(TENANT, "jti", T0 + 60)
        assert not await store.once(TENANT, "jti", T0 + 60)
        assert await store.once("other", "jti", T0 + 60)
        clock.now = T0 + 59
        assert not await store.once(TENANT, "jti", T0 + 90)
        clock.now = T0 + 60
        assert await store.once(TENANT, "jti", T0 + 90)
        assert not await store.once(TENANT, "jti", T0 + 90)

    async def test_once_never_accepts_what_has_ended(self, store: Store, clock: Clock) -> None:
        assert not await store.once(TENANT, "old", T0)

    async def test_the_clock_never_steps_back(self, store: Store, clock: Clock) -> None:
        clock.now = T0 + 100
        assert await store.now() == T0 + 100
        clock.now = T0 + 96
        assert await store.now() == T0 + 100
        assert (await store.health()).problems == ()
        clock.now = T0
        assert (await committed(store, change(T0 + 100))).now == T0 + 100
        (problem,) = (await store.health()).problems
        assert "100 s behind" in problem

    async def test_a_well_store_has_no_problems(self, store: Store, clock: Clock) -> None:
        health = await store.health()
        assert (health.now, health.problems) == (T0, ())
        assert health.epoch


@pytest.mark.anyio
class SealContract:
    async def test_records_are_sealed_in_order(self, store: Store, clock: Clock) -> None:
        await committed(store, change(records=tuple(record(detail=str(n)) for n in range(5))))
        head, seq, rows = await store.unsealed(TENANT, 3)
        assert (head, seq, [row.seq for row in rows]) == (GENESIS, 0, [1, 2, 3])
        links = chained(head, rows)
        assert await store.seal(TENANT, 0, links, checkpoint(links))
        head, seq, rows = await store.unsealed(TENANT, 9)
        assert (head, seq, [row.seq for row in rows]) == (links[-1][1], 3, [4, 5])
        assert await store.get(Checkpoint, TENANT, "3") == checkpoint(links)
        page = await store.find(Checkpoint, TENANT, Where(index=Index.CHECKPOINTS), None, 9)
        assert page.rows == (checkpoint(links),)

    async def test_the_second_sealer_of_the_same_records_loses(self, store: Store, clock: Clock) -> None:
        await committed(store, change(records=(record(), record())))
        head, _, rows = await store.unsealed(TENANT, 9)
        links = chained(head, rows)
        assert await store.seal(TENANT, 0, links[:1], checkpoint(links[:1]))
        assert not await store.seal(TENANT, 0, links, checkpoint(links))
        assert (await store.unsealed(TENANT, 9))[:2] == (links[0][1], 1)

    async def test_links_that_do_not_follow_are_errors(self, store: Store, clock: Clock) -> None:
        await committed(store, change(records=(record(), record())))
        links = chained(GENESIS, (await store.unsealed(TENANT, 9))[2])
        for after, wrong, sealed in (
            (0, [], checkpoint(links)),
            (0, links[1:], checkpoint(links)),
            (0, links, checkpoint(links[:1])),
            (0, [*links, (3, "0" * 64)], checkpoint([(3, "0" * 64)])),
        ):
            with pytest.raises(ValueError, match=r"\w"):
                await store.seal(TENANT, after, wrong, sealed)
        assert (await store.unsealed(TENANT, 9))[:2] == (GENESIS, 0)

    async def test_a_record_read_back_hashes_the_same(self, store: Store, clock: Clock) -> None:
        rich = record(
            chain=((RUN, "lead", "c"),), resource=("a",), facts={"n": 1, "x": [1.5, None]}, clear={"ü": "\u2028"}
        )
        await committed(store, change(records=(rich,)))
        stored = await store.get(Record, TENANT, "1")
        assert stored is not None
        assert link(GENESIS, stored) == link(GENESIS, replace(rich, seq=1))


def chained(head: str, rows: object) -> list[tuple[int, str]]:
    links: list[tuple[int, str]] = []
    assert isinstance(rows, list)
    for row in rows:
        head = link(head, row)
        links.append((row.seq, head))
    return links


def checkpoint(links: list[tuple[int, str]]) -> Checkpoint:
    return Checkpoint(tenant=TENANT, seq=links[-1][0], head=links[-1][1], at=T0, signature="a.b.c")
