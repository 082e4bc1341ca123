"""Revocation, introspection, the feed, and who sees what."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from carnet.clock import ManualClock
from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Client, Role
from carnet_broker.service.principals import Bearer, Principal
from carnet_broker.service.views import (
    Fallen,
    FeedView,
    GuardList,
    Issued,
    KeysView,
    Listing,
    PolicyView,
    Session,
    TreeView,
)
from carnet_broker.store.base import Feed
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from tests.service.world import (
    ADA,
    GRACE,
    GUARD,
    OTHER,
    PARENT,
    PASSPHRASE,
    PAY_GUARD,
    ROOT,
    SECRET,
    TRACE,
    VERA,
    World,
    good,
    on,
    registry,
)

pytestmark = pytest.mark.anyio
CHILD = frozenset({Bearer.CHILD})


class Overheard(SqliteStore):
    """Remembers what each look at a feed told."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.told: list[Feed] = []

    async def changes(self, tenant: str, epoch: str, after: int, wait: float) -> Feed:
        self.told.append(await super().changes(tenant, epoch, after, wait))
        return self.told[-1]


async def revoke(world: World, mark: str, who: Principal = GRACE, until: int | str | None = None) -> Fallen | Refusal:
    return await world.service.revoke(who, mark, until, "incident", False, TRACE)


@pytest.mark.parametrize(
    "kind", ["dlg", "run", "token", "apr", "agent", "parent's agent", "client", "host", "policy", "tenant"]
)
async def test_each_kind_of_mark_reaches_the_token_it_is_carried_by(world: World, kind: str) -> None:
    root = await world.root()
    view = await world.child(root)
    token = view.tokens["desk"].access_token
    claims = await world.claims(token)
    assert view.approval is not None
    marks = {
        "dlg": f"dlg:{view.id}",
        "run": root.txn,
        "token": f"token:{claims.jti}",
        "apr": view.approval.id,
        "agent": "agent:worker",
        "parent's agent": "agent:support",
        "client": "client:support-app",
        "host": "host:desk",
        "policy": f"policy:{claims.delegation.policy_digest}",
        "tenant": "tenant:acme",
    }
    fallen = good(await revoke(world, marks[kind], ROOT), Fallen)
    assert fallen.seq == 1
    assert view.id in fallen.falls
    assert good(await world.service.caller(token, CHILD), Refusal).reason is Reason.REVOKED
    line = (await world.audit("revoked"))[-1]
    assert (line.actor, line.mark) == ("operator:root", fallen.mark)


async def test_what_is_issued_after_a_broad_revocation_lives(world: World) -> None:
    good(await revoke(world, "agent:worker"), Fallen)
    world.clock.advance(3)
    root = await world.root()
    view = await world.child(root)
    assert (await world.called(view.tokens["desk"].access_token, "search", {"query": "a"})).decision == "allow"


async def test_a_hold_refuses_what_would_be_issued_until_it_ends(world: World) -> None:
    root = await world.root()
    good(await revoke(world, "agent:worker", until=world.clock.now() + 300), Fallen)
    world.clock.advance(200)
    assert good(await world.spawn(root), Refusal).reason is Reason.REVOKED
    world.clock.advance(101)
    assert (await world.child(root)).state == "active"
    too_long = await revoke(world, "agent:worker", until=world.clock.now() + 90_000)
    assert good(too_long, Refusal).reason is Reason.REQUEST_INVALID
    assert good(await revoke(world, "agent:worker", until="forever"), Refusal).reason is Reason.REQUEST_INVALID


async def test_a_tools_mark_takes_that_tool_alone(world: World) -> None:
    root = await world.root()
    view = await world.child(root, ("search", "note"))
    token = view.tokens["desk"].access_token
    good(await revoke(world, f"tool:{root.txn}/note"), Fallen)
    assert (await world.called(token, "note", {"text": "a"})).reason == "revoked"
    assert (await world.called(token, "search", {"query": "a"})).decision == "allow"


async def test_a_dry_run_shows_what_would_fall_and_changes_nothing(world: World) -> None:
    root = await world.root()
    views = [await world.child(root) for _ in range(3)]
    shown = good(await world.service.revoke(GRACE, root.txn, None, "look", True, TRACE), Fallen)
    assert (shown.seq, shown.count) == (0, 4)
    assert set(shown.falls) == {root.txn, *(view.id for view in views)}
    assert await world.audit("revoked") == []


@pytest.mark.parametrize(
    ("who", "mark", "reason"),
    [
        (ADA, "agent:worker", Reason.FORBIDDEN),
        (VERA, "agent:worker", Reason.FORBIDDEN),
        (GUARD, "agent:worker", Reason.FORBIDDEN),
        (GRACE, "tenant:acme", Reason.FORBIDDEN),
        (ROOT, "tenant:other", Reason.NOT_FOUND),
        (GRACE, "dlg:dlg_none", Reason.NOT_FOUND),
        (GRACE, "apr_none", Reason.NOT_FOUND),
        (GRACE, "unheard:of", Reason.REQUEST_INVALID),
        (GRACE, "agent:", Reason.REQUEST_INVALID),
        (ROOT, "key:none", Reason.NOT_FOUND),
    ],
)
async def test_who_may_revoke_what(world: World, who: Principal, mark: str, reason: Reason) -> None:
    assert good(await revoke(world, mark, who), Refusal).reason is reason
    assert (await world.audit("revoke_refused"))[-1].reason == reason.value


async def test_a_withdrawn_key_refuses_what_it_signed(world: World) -> None:
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    old = good(await world.service.keys(VERA), KeysView).active
    assert good(await world.service.rotate_keys(GRACE, TRACE), Refusal).reason is Reason.FORBIDDEN
    assert good(await world.service.rotate_keys(ROOT, TRACE), KeysView).active != old
    assert not isinstance(await world.service.caller(token, CHILD), Refusal)
    good(await revoke(world, f"key:{old}", ROOT), Fallen)
    assert good(await world.service.caller(token, CHILD), Refusal).reason is Reason.TOKEN_KEY
    told = good(await follow(world, GUARD), FeedView)
    assert [entry.mark for entry in told.system.entries] == [f"key:{old}"]
    assert [(row.actor, row.mark) for row in await world.audit("revoked")] == [("operator:root", f"key:{old}")]
    assert [row.decision for row in await world.audit("key_rotated")] == ["deny", None]
    assert told.feed.entries == ()


async def test_listing_the_guards_reads_no_snapshot_of_the_feed(tmp_path: Path, clock: ManualClock) -> None:
    store = Overheard.open(tmp_path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    world = await on(store, clock)
    for _ in range(3):
        await revoke(world, (await world.root()).txn)
    await world.service.sweep(clock.now())
    await revoke(world, (await world.root()).txn)
    store.told.clear()
    assert good(await world.service.guards(VERA), GuardList).seq == 4
    assert [(feed.snapshot, len(feed.entries)) for feed in store.told] == [(False, 1)]
    await store.close()


async def follow(
    world: World, guard: Principal, instance: str | None = None, after: int = 0, epoch: str = ""
) -> object:
    return await world.service.feed(
        guard, epoch=epoch, after=after, wait=0, system_epoch="", system_after=0, instance=instance
    )


async def test_rfc_7009_ends_the_clients_own_tokens_and_no_others(world: World) -> None:
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    assert await world.service.revoke_token(OTHER, token, TRACE) is None
    assert await world.service.revoke_token(GUARD, token, TRACE) is None
    assert not isinstance(await world.service.caller(token, CHILD), Refusal)
    assert await world.service.revoke_token(PARENT, "no token", TRACE) is None
    assert await world.service.revoke_token(PARENT, token, TRACE) is None
    assert good(await world.service.caller(token, CHILD), Refusal).reason is Reason.REVOKED


async def test_introspection_tells_each_client_only_its_own(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    token = view.tokens["desk"].access_token
    for client in (PARENT, GUARD):
        told = await world.service.introspect(client, token)
        assert (told["active"], told["txn"], told["scope"]) == (True, root.txn, "search")
    for client in (OTHER, PAY_GUARD):
        assert await world.service.introspect(client, token) == {"active": False}
    assert await world.service.introspect(PARENT, "garbage") == {"active": False}
    await revoke(world, view.id)
    assert await world.service.introspect(PARENT, token) == {"active": False}


async def test_guards_follow_acknowledge_and_are_counted_until_they_fall_silent(world: World) -> None:
    first = good(await follow(world, GUARD, "a1"), FeedView)
    root = await world.root()
    await revoke(world, root.txn)
    told = good(await follow(world, GUARD, "a1", first.feed.seq, first.feed.epoch), FeedView)
    assert [entry.mark for entry in told.feed.entries] == [f"dlg:{root.txn}"]
    listed = good(await world.service.guards(VERA), GuardList)
    assert [(row.guard, row.lag, row.lost) for row in listed.guards] == [("desk-guard/a1", 1, False)]
    await follow(world, GUARD, "a1", 1, first.feed.epoch)
    assert good(await world.service.guards(VERA), GuardList).guards[0].lag == 0
    assert good(await revoke(world, root.txn), Fallen).guards_total == 1
    world.clock.advance(11)
    assert good(await world.service.guards(VERA), GuardList).guards[0].lost
    assert good(await revoke(world, root.txn), Fallen).guards_total == 0
    assert isinstance(await follow(world, PARENT), Refusal)


async def test_a_guard_learns_the_policy_and_what_concerns_its_own_host(world: World) -> None:
    found = good(await world.service.policy_for(GUARD), PolicyView)
    assert found.host.tools == ("note", "profile", "search", "wipe")
    assert found.host.effects["profile"] == {"effect": "read", "resource_arg": "customer_id"}
    assert found.host.audit_key == world.context.keys.secret("audit-args", "acme", "desk")
    assert found.digest == world.context.registries["acme"].policy.ref.digest
    assert isinstance(await world.service.policy_for(PARENT), Refusal)
    child = await world.claims((await world.child(await world.root())).tokens["desk"].access_token)
    assert good(await world.service.policy_for(child), PolicyView).host.name == "desk"


async def test_sessions_view_and_are_ended_by_another_passphrase(world: World) -> None:
    session = good(await world.service.login(None, "vera", PASSPHRASE, TRACE), Session)
    assert (session.tenant, session.role) == ("acme", "viewer")
    who = good(await world.service.caller(session.access_token, {Bearer.SESSION}), Principal)
    assert (who.name, who.role) == ("vera", Role.VIEWER)
    assert isinstance(await world.service.caller(session.access_token, CHILD), Refusal)
    mine = world.context.registries["acme"]
    raised = replace(mine.operators["vera"], role=Role.ADMIN)
    world.context.registries = {"acme": replace(mine, operators={"vera": raised})}
    assert good(await world.service.caller(session.access_token, {Bearer.SESSION}), Principal).role is Role.ADMIN
    world.context.registries = {"acme": replace(mine, operators={"vera": replace(raised, passphrase=None)})}
    refused = await world.service.caller(session.access_token, {Bearer.SESSION})
    assert good(refused, Refusal).reason is Reason.OPERATOR_AUTH


async def test_a_failed_login_says_nothing_and_is_recorded_only_for_a_known_name(world: World) -> None:
    for tenant, name in ((None, "vera"), ("acme", "nobody"), ("other", "vera")):
        refused = good(await world.service.login(tenant, name, "wrong", TRACE), Refusal)
        assert refused == Refusal(Reason.OPERATOR_AUTH)
    assert [row.actor for row in await world.audit("login_refused")] == ["operator:vera"]
    for _ in range(9):
        await world.service.login("acme", "vera", "wrong", TRACE)
    locked = good(await world.service.login("acme", "vera", PASSPHRASE, TRACE), Refusal)
    assert locked.reason is Reason.TOO_MANY_REQUESTS


async def test_clients_prove_a_secret(world: World) -> None:
    assert await world.service.client_by_secret("support-app", SECRET) == PARENT
    assert await world.service.client_by_secret("desk-guard", SECRET) == GUARD
    for client, secret in (("support-app", "wrong"), ("nobody", SECRET), ("support-app", "")):
        refused = good(await world.service.client_by_secret(client, secret), Refusal)
        assert refused == Refusal(Reason.CLIENT_AUTH)


@pytest.mark.parametrize(
    ("secret", "taken"), [("s" * 31, 0), ("s" * 32, 1), ("ß" * 16, 1), ("s" * 1024, 1), ("s" * 1025, 0)]
)
async def test_a_secret_of_another_length_is_refused_whatever_hash_is_registered(
    world: World, secret: str, taken: int
) -> None:
    known = Client(id="support-app", agent="support", secret_sha256=sha256(secret.encode()).hexdigest())
    whole = world.context.registries["acme"]
    world.context.registries = {"acme": replace(whole, clients={**whole.clients, known.id: known})}
    said = await world.service.client_by_secret(known.id, secret)
    assert said == (PARENT if taken else Refusal(Reason.CLIENT_AUTH))


async def test_operators_look_at_delegations_trees_and_records(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    await world.called(view.tokens["desk"].access_token, "search", {"query": "a"})
    await world.service.end(root, view.id, "completed", TRACE)
    shown = good(await world.service.tree(VERA, root.txn), TreeView)
    assert [(one.id, one.calls, one.state) for one in shown.children] == [(view.id, 1, "ended")]
    assert shown.node.calls == 1
    active = good(await world.service.delegations(VERA, state="active"), Listing)
    assert [row.id for row in active.rows] == [root.txn]
    ended = good(await world.service.delegations(VERA, state="ended", run=root.txn), Listing)
    assert [row.id for row in ended.rows] == [view.id]
    found = good(await world.service.audit(VERA, {"delegation": view.id, "tool": "search"}, None, 10), Listing)
    assert [row["decision"] for row in found.rows] == ["allow"]
    bad = await world.service.audit(VERA, {}, "no cursor", 10)
    assert good(bad, Refusal).reason is Reason.REQUEST_INVALID
    for refused in (
        await world.service.tree(GUARD, root.txn),
        await world.service.delegations(PARENT),
        await world.service.audit(GUARD, {}, None, 10),
        await world.service.guards(PARENT),
        await world.service.approvals(GUARD, "all", None, 10),
    ):
        assert good(refused, Refusal).reason is Reason.FORBIDDEN


async def test_nothing_of_another_tenant_is_found(world: World) -> None:
    issued = good(await world.service.open_run(PARENT, None, TRACE), Issued)
    root = await world.claims(issued.access_token)
    view = await world.child(root)
    world.context.registries = {**world.context.registries, "other": registry(tenant="other")}
    await world.service.activate_policy("other")
    spy = Principal(kind=VERA.kind, tenant="other", name="root", role=Role.ADMIN)
    assert good(await world.service.show(spy, view.id, 0), Refusal).reason is Reason.NOT_FOUND
    assert good(await world.service.tree(spy, view.id), Refusal).reason is Reason.NOT_FOUND
    assert good(await revoke(world, view.id, spy), Refusal).reason is Reason.NOT_FOUND
    assert good(await world.service.delegations(spy), Listing).rows == ()
    guard = Principal(kind=GUARD.kind, tenant="other", name="desk", client="desk-guard")
    crossed = await world.call(view.tokens["desk"].access_token, "search", {"query": "a"}, guard=guard)
    assert good(crossed, Refusal).reason is Reason.TOKEN_AUD


async def test_no_token_is_minted_for_a_host_that_is_held(world: World) -> None:
    root = await world.root()
    view = await world.child(root)
    good(await revoke(world, "host:desk", until=world.clock.now() + 60), Fallen)
    assert good(await world.service.mint(root, view.id, None, TRACE), Refusal).reason is Reason.REVOKED
    assert (await world.audit("mint_refused"))[-1].reason == "revoked"
    assert good(await world.spawn(root), Refusal).reason is Reason.REVOKED


async def test_a_token_that_was_verified_before_dies_with_its_key_and_its_host(world: World) -> None:
    root = await world.root()
    token = (await world.child(root)).tokens["desk"].access_token
    assert not isinstance(await world.service.caller(token, CHILD), Refusal)
    mine = world.context.registries["acme"]
    moved = {**mine.hosts, "desk": replace(mine.hosts["desk"], audience="https://moved.example")}
    world.context.registries = {"acme": replace(mine, hosts=moved)}
    assert good(await world.service.caller(token, CHILD), Refusal).reason is Reason.TOKEN_AUD
    world.context.registries = {"acme": mine}
    assert not isinstance(await world.service.caller(token, CHILD), Refusal)
    old = world.context.keys.active.kid
    world.context.keys.rotate(world.clock.now())
    world.context.keys.retire(old)
    assert good(await world.service.caller(token, CHILD), Refusal).reason is Reason.TOKEN_KEY
