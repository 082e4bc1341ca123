"""What `commit` must do in every store: its fields one by one, the order of its checks, whole or not at all."""

from dataclasses import replace

import pytest

from carnet.audit import Record
from carnet_broker.core.rows import FOREVER, Approval, ApprovalState, Call, CallState, Delegation, Revocation
from carnet_broker.store.base import Change, Index, Move, Store, Where, Why
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
    key,
    policy,
    record,
    refused,
    revocation,
    step,
    versions,
)

SYSTEM = "_system"


@pytest.mark.anyio
class CommitContract:
    """Needs the fixtures `store` (empty) and `clock` (its clock, at T0)."""

    async def test_rows_come_back_as_they_were_written(self, store: Store, clock: Clock) -> None:
        rows = (delegation(), approval(shown={"args": {"amount": 12.5, "note": None}}), call(resources=("a", "b")))
        await committed(store, change(insert=rows))
        assert await store.get(Delegation, TENANT, "dlg_child") == replace(rows[0], ledger_version=1)
        assert await store.get(Approval, TENANT, "apr_1") == replace(rows[1], ledger_version=1)
        assert await store.get(Call, TENANT, "call_1") == replace(rows[2], ledger_version=1)
        assert await store.get(Call, "other", "call_1") is None
        assert await store.get(Call, TENANT, "call_2") is None

    async def test_records_get_contiguous_numbers_per_tenant(self, store: Store, clock: Clock) -> None:
        await committed(store, change(records=(record(detail="a"), record(detail="b"))))
        await committed(store, change(tenant="other"))
        await committed(store, change(records=(record(detail="c"),)))
        page = await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 10)
        assert [(row.seq, row.detail) for row in page.rows] == [(1, "a"), (2, "b"), (3, "c")]
        other = await store.find(Record, "other", Where(index=Index.RECORDS), None, 10)
        assert [row.seq for row in other.rows] == [1]

    async def test_a_change_without_a_record_cannot_be_made(self, store: Store, clock: Clock) -> None:
        with pytest.raises(ValueError, match="record"):
            Change(tenant=TENANT, at=T0, records=())

    async def test_a_key_seen_before_names_the_row_and_does_nothing(self, store: Store, clock: Clock) -> None:
        given = change(insert=(delegation(),), key=key())
        await committed(store, given)
        again = await committed(store, given)
        assert again.first == "dlg_child"
        assert (await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 10)).rows[1:] == ()

    async def test_a_key_with_another_request_conflicts(self, store: Store, clock: Clock) -> None:
        await committed(store, change(key=key()))
        await refused(store, change(key=key(request="b" * 64)), Why.KEY)

    async def test_keys_of_another_caller_delegation_or_tenant_are_others(self, store: Store, clock: Clock) -> None:
        await committed(store, change(key=key()))
        for other in (key(caller="cli-b"), key(delegation="dlg_b"), key("k2")):
            assert (await committed(store, change(key=other))).first is None
        assert (await committed(store, change(tenant="other", key=key()))).first is None

    async def test_a_key_is_kept_until_its_end(self, store: Store, clock: Clock) -> None:
        await committed(store, change(key=key(until=T0 + 60)))
        clock.now = T0 + 59
        assert (await committed(store, change(clock.now, key=key(until=T0 + 60)))).first == "dlg_child"
        clock.now = T0 + 60
        assert (await committed(store, change(clock.now, key=key(until=T0 + 90, row="new")))).first is None
        assert (await committed(store, change(clock.now, key=key(until=T0 + 90)))).first == "new"

    async def test_a_refused_change_holds_no_key(self, store: Store, clock: Clock) -> None:
        await refused(store, change(key=key(), before=T0), Why.LATE)
        assert (await committed(store, change(key=key()))).first is None

    @pytest.mark.parametrize(("at", "fits"), [(T0 + 1, False), (T0, True), (T0 - 2, True), (T0 - 3, False)])
    async def test_the_time_of_a_change_is_the_stores(self, store: Store, clock: Clock, at: int, fits: bool) -> None:
        if fits:
            assert (await committed(store, change(at))).now == T0
        else:
            assert (await refused(store, change(at), Why.SKEW)).now == T0

    @pytest.mark.parametrize(("before", "late"), [(T0 - 1, True), (T0, True), (T0 + 1, False)])
    async def test_before_means_earlier_than(self, store: Store, clock: Clock, before: int, late: bool) -> None:
        if late:
            await refused(store, change(before=before), Why.LATE)
        else:
            await committed(store, change(before=before))

    @pytest.mark.parametrize(("issued", "dead"), [(T0 - 5, True), (T0 + 10, True), (T0 + 11, False), (None, True)])
    async def test_what_was_issued_up_to_until_is_dead(
        self, store: Store, clock: Clock, issued: int | None, dead: bool
    ) -> None:
        await committed(store, change(revoke=(revocation("agent:clerk", until=T0 + 10),)))
        given = change(alive=frozenset({("agent:clerk", issued), ("tenant:acme", None)}))
        if dead:
            told = await refused(store, given, Why.REVOKED)
            assert isinstance(told.row, Revocation)
            assert told.row.mark == "agent:clerk"
        else:
            await committed(store, given)

    async def test_none_means_issued_at_the_change(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("agent:clerk", until=T0 + 10),)))
        clock.now = T0 + 11
        await committed(store, change(clock.now, alive=frozenset({("agent:clerk", None)})))

    async def test_a_mark_named_twice_is_judged_at_the_earlier_issue(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("agent:clerk", until=T0 - 5),)))
        alive = frozenset({("agent:clerk", None), ("agent:clerk", T0 - 9)})
        await refused(store, change(alive=alive), Why.REVOKED)

    async def test_of_several_revocations_the_oldest_is_named(self, store: Store, clock: Clock) -> None:
        await committed(store, change(revoke=(revocation("agent:clerk", at=T0, until=FOREVER),)))
        await committed(store, change(revoke=(revocation("client:c", at=T0 - 9, until=FOREVER),)))
        told = await refused(store, change(alive=frozenset({("agent:clerk", None), ("client:c", None)})), Why.REVOKED)
        assert isinstance(told.row, Revocation)
        assert told.row.mark == "client:c"

    async def test_marks_of_another_tenant_do_not_kill(self, store: Store, clock: Clock) -> None:
        await committed(store, change(tenant="other", revoke=(revocation("agent:clerk", tenant="other"),)))
        await committed(store, change(alive=frozenset({("agent:clerk", None)})))

    async def test_key_marks_are_those_of_the_system(self, store: Store, clock: Clock) -> None:
        await committed(store, change(tenant=SYSTEM, revoke=(revocation("key:kid1", tenant=SYSTEM),)))
        told = await refused(store, change(alive=frozenset({("key:kid1", T0), ("dlg:x", T0)})), Why.REVOKED)
        assert isinstance(told.row, Revocation)
        assert told.row.mark == "key:kid1"
        with pytest.raises(ValueError, match="_system"):
            await store.commit(change(revoke=(revocation("key:kid2"),)))

    async def test_each_scope_of_the_ledger_must_be_where_it_was(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call(),), ledger=((f"run:{RUN}", 0), ("client:cli-lead", 0))))
        await refused(store, change(ledger=(("pending", 0), (f"run:{RUN}", 0))), Why.STALE)
        await committed(store, change(ledger=(("pending", 0), (f"run:{RUN}", 1), ("client:cli-lead", 1))))

    async def test_a_move_replaces_exactly_the_version_it_expects(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(),)))
        await committed(store, change(moves=(step(approval(), ApprovalState.APPROVED, answered_by="ann"),)))
        told = await refused(store, change(moves=(step(approval(), ApprovalState.DENIED),)), Why.STATE)
        now = await store.get(Approval, TENANT, "apr_1")
        assert told.row == now
        assert now is not None
        assert (now.state, now.version, now.answered_by) == (ApprovalState.APPROVED, 2, "ann")

    async def test_a_move_of_nothing_conflicts(self, store: Store, clock: Clock) -> None:
        assert (await refused(store, change(moves=(call_step(call(), CallState.DONE),)), Why.STATE)).row is None

    async def test_a_row_that_exists_is_not_inserted_again(self, store: Store, clock: Clock) -> None:
        for row in (delegation(), approval(), call()):
            await committed(store, change(insert=(row,)))
            there = (await refused(store, change(insert=(row,), key=key(row.id)), Why.STATE)).row
            assert there is not None
            assert not isinstance(there, Revocation)
            assert getattr(there, "id", None) == row.id
        assert await versions(store, f"run:{RUN}") == (3,)
        await committed(store, change(key=key("call_1")))

    async def test_a_failed_insert_takes_back_all_of_its_change(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(),)))
        half = change(
            insert=(delegation("dlg_new"), approval()), revoke=(revocation(),), key=key(), records=(record(), record())
        )
        await refused(store, half, Why.STATE)
        assert await store.get(Delegation, TENANT, "dlg_new") is None
        assert await store.revoked(TENANT, ["dlg:dlg_child"]) == {}
        assert len((await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 10)).rows) == 1
        assert (await committed(store, change(key=key()))).seq == 0
        assert await versions(store, f"run:{RUN}", "pending") == (1, 1)

    async def test_checks_run_in_their_order(self, store: Store, clock: Clock) -> None:
        await committed(store, change(key=key(), insert=(approval(),), revoke=(revocation("agent:clerk"),)))
        wrong = change(
            T0 - 9,
            key=key(request="b" * 64),
            before=T0,
            alive=frozenset({("agent:clerk", T0)}),
            ledger=(("pending", 9),),
            moves=(Move(expect=7, to=approval(version=8)),),
        )
        await refused(store, wrong, Why.KEY)
        wrong = replace(wrong, key=key("new"))
        await refused(store, wrong, Why.SKEW)
        wrong = replace(wrong, at=T0)
        await refused(store, wrong, Why.LATE)
        wrong = replace(wrong, before=None)
        await refused(store, wrong, Why.REVOKED)
        wrong = replace(wrong, alive=frozenset())
        await refused(store, wrong, Why.STALE)
        await refused(store, replace(wrong, ledger=()), Why.STATE)

    async def test_a_seen_key_answers_before_any_other_check(self, store: Store, clock: Clock) -> None:
        given = change(key=key(), before=T0 + 1)
        await committed(store, given)
        clock.now = T0 + 30
        assert (await committed(store, given)).first == "dlg_child"

    async def test_what_raises_which_scope(self, store: Store, clock: Clock) -> None:
        scopes = (f"run:{RUN}", "client:cli-lead", "pending", "policy")
        opening = delegation(RUN, parent=None)
        moves = call_step(call(), CallState.DONE)
        for given, raised in (
            (change(insert=(opening,)), (0, 0, 0, 0)),
            (change(insert=(delegation(),)), (1, 0, 0, 0)),
            (change(insert=(approval("apr_0", state=ApprovalState.APPROVED),)), (1, 0, 0, 0)),
            (change(insert=(approval(),)), (1, 0, 1, 0)),
            (change(moves=(step(approval(), ApprovalState.APPROVED),)), (1, 0, 1, 0)),
            (change(moves=(step(approval(version=2), ApprovalState.SPENT),)), (1, 0, 0, 0)),
            (change(insert=(call(),)), (1, 1, 0, 0)),
            (change(moves=(moves,)), (1, 1, 0, 0)),
            (change(insert=(policy(),)), (0, 0, 0, 1)),
            (change(revoke=(revocation(),)), (0, 0, 0, 0)),
        ):
            before = await versions(store, *scopes)
            await committed(store, given)
            after = await versions(store, *scopes)
            assert tuple(int(new > old) for new, old in zip(after, before, strict=True)) == raised, given

    async def test_rows_keep_the_version_that_wrote_them(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(call(),)))
        await committed(store, change(insert=(call("call_2"),)))
        await committed(store, change(moves=(call_step(call(), CallState.DONE),)))
        first, second = [await store.get(Call, TENANT, id) for id in ("call_1", "call_2")]
        assert first is not None
        assert second is not None
        assert (first.ledger_version, second.ledger_version) == (3, 2)

    async def test_done_runs_are_named_no_more(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(delegation(RUN, parent=None), delegation())))
        clock.now = T0 + 3600
        assert await store.due(clock.now, 10) == [(TENANT, "delegation", RUN)]
        await committed(store, change(clock.now, done=(RUN,)))
        await committed(store, change(clock.now, done=(RUN,)))
        assert await store.due(clock.now, 10) == []

    async def test_contradictions_are_errors_and_change_nothing(self, store: Store, clock: Clock) -> None:
        await committed(store, change(insert=(approval(), call())))
        for wrong in (
            change(insert=(delegation(tenant="other"),)),
            change(records=(record(tenant="other"),)),
            change(revoke=(revocation(tenant="other"),)),
            change(moves=(Move(expect=1, to=approval(version=3)),)),
            change(moves=(Move(expect=1, to=approval(version=2, run="dlg_other")),)),
            change(moves=(Move(expect=1, to=call(version=2, client="other")),)),
            change(insert=(delegation(), delegation())),
            change(revoke=(revocation(), revocation())),
            change(insert=(delegation(facts={"x": float("nan")}),)),
            change(done=("dlg_none",)),
        ):
            with pytest.raises(ValueError, match=r"\w"):
                await store.commit(wrong)
        assert len((await store.find(Record, TENANT, Where(index=Index.RECORDS), None, 10)).rows) == 1

    async def test_a_settled_row_never_moves_again(self, store: Store, clock: Clock) -> None:
        """The service's tables say so; a store that holds it too turns a slip there into an error."""
        await committed(store, change(insert=(approval(state=ApprovalState.SPENT),)))
        with pytest.raises(ValueError, match="settled"):
            await store.commit(change(moves=(step(approval(), ApprovalState.APPROVED),)))
        now = await store.get(Approval, TENANT, "apr_1")
        assert now is not None
        assert now.state is ApprovalState.SPENT
