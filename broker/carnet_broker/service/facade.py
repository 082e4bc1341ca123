"""Every use case of the broker behind one object. Transports call these methods and render what they answer.

Each method either answers a value or a `Refusal`; the only exception it lets through is the store's `Unavailable`,
which means deny. `trace` is the trace id of the request (32 hex digits).
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from carnet.reasons import Refusal
from carnet.token.claims import Claims
from carnet_broker.service import (
    answers,
    bearers,
    calls,
    clients,
    ending,
    following,
    introspecting,
    minting,
    outcomes,
    policies,
    readiness,
    records,
    revoking,
    ringing,
    runs,
    sealing,
    searching,
    sessions,
    spawn,
    sweeping,
    waiting,
)
from carnet_broker.service.context import Context
from carnet_broker.service.principals import Bearer, Principal
from carnet_broker.service.requests import CallRequest, RecordBatch, SpawnRequest, Verdict
from carnet_broker.service.views import (
    ApprovalView,
    AuditCheck,
    CallStatus,
    CallView,
    DelegationView,
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

__all__ = ["Service"]


class Service:
    """One broker. Made by the composition from a `Context`."""

    def __init__(self, context: Context) -> None:
        self._ctx = context

    # who asks
    async def caller(self, token: str, accept: Collection[Bearer]) -> Claims | Principal | Refusal:
        """Who a bearer token is: Claims for a run's or a child's token, Principal for a guard or an operator.

        Any audience of a child's token is taken here; what it may do at this door is for the use case to say."""
        return await bearers.caller(self._ctx, token, accept)

    async def client_by_secret(self, client: str, secret: str) -> Principal | Refusal:
        """RFC 6749 §2.3.1: a client that proves a secret."""
        return await clients.by_secret(self._ctx, client, secret)

    async def client_by_assertion(self, assertion: str) -> Principal | Refusal:
        """RFC 7523 §2.2: a client that proves its key; the assertion's `jti` is used up."""
        return await clients.by_assertion(self._ctx, assertion)

    # runs and delegations
    async def open_run(self, who: Principal, run_id: str | None, trace: str) -> Issued | Refusal:
        return await runs.open_run(self._ctx, who, run_id, trace)

    async def guard_token(self, who: Principal, trace: str) -> Issued | Refusal:
        return await runs.issue_guard_token(self._ctx, who, trace)

    async def spawn(
        self, caller: Claims, request: SpawnRequest, key: str | None, trace: str
    ) -> DelegationView | Refusal:
        return await spawn.spawn(self._ctx, caller, request, key, trace)

    async def mint(
        self, caller: Claims, delegation: str, hosts: Sequence[str] | None, trace: str
    ) -> Mapping[str, Issued] | Refusal:
        return await minting.mint(self._ctx, caller, delegation, hosts, trace)

    async def show(self, caller: Claims | Principal, delegation: str, wait: float) -> DelegationView | Refusal:
        return await waiting.show(self._ctx, caller, delegation, wait)

    async def end(self, caller: Claims, delegation: str, reason: str, trace: str) -> DelegationView | Refusal:
        return await ending.end(self._ctx, caller, delegation, reason, trace)

    # guards: a guard token's Principal, or the Claims of a child's token that is its own bearer
    async def call(
        self, guard: Principal | None, request: CallRequest, key: str | None, trace: str
    ) -> CallView | Refusal:
        """guard None: the child's token in the request is the bearer."""
        return await calls.call(self._ctx, guard, request, key, trace)

    async def call_state(self, guard: Principal | Claims, call: str, wait: float) -> CallStatus | Refusal:
        return await waiting.call_state(self._ctx, guard, call, wait)

    async def finish(self, guard: Principal | Claims, call: str, outcome: str, detail: str) -> str | Refusal:
        """The call's state after it."""
        return await outcomes.finish(self._ctx, guard, call, outcome, detail)

    async def records(self, guard: Principal | Claims, batch: RecordBatch) -> int | Refusal:
        """The number of the next line that the broker waits for."""
        return await records.store_records(self._ctx, guard, batch)

    async def feed(
        self,
        guard: Principal | Claims,
        *,
        epoch: str,
        after: int,
        wait: float,
        system_epoch: str,
        system_after: int,
        instance: str | None,
    ) -> FeedView | Refusal:
        return await following.feed(
            self._ctx,
            guard,
            epoch=epoch,
            after=after,
            wait=wait,
            system_epoch=system_epoch,
            system_after=system_after,
            instance=instance,
        )

    async def acknowledge(self, guard: Principal | Claims, instance: str, epoch: str, seq: int) -> Refusal | None:
        return await following.acknowledge(self._ctx, guard, instance, epoch, seq)

    async def policy_for(self, guard: Principal | Claims) -> PolicyView | Refusal:
        return await following.policy_for(self._ctx, guard)

    # revocation and introspection
    async def revoke(
        self, who: Principal, mark: str, until: int | str | None, reason: str, dry_run: bool, trace: str
    ) -> Fallen | Refusal:
        """until: a time, "forever", or None for what the kind of mark gives."""
        return await revoking.revoke(self._ctx, who, mark, until, reason, dry_run, trace)

    async def revocations(self, who: Principal, after: str | None, limit: int) -> Listing[Mapping[str, Any]] | Refusal:
        return await searching.find_revocations(self._ctx, who, after, limit)

    async def revoke_token(self, client: Principal, token: str, trace: str) -> Refusal | None:
        """RFC 7009: None also for a token that nobody knows."""
        return await revoking.revoke_token(self._ctx, client, token, trace)

    async def introspect(self, client: Principal, token: str) -> Mapping[str, Any]:
        """RFC 7662 §2.2: the answer as it goes on the wire; `{"active": False}` for whatever the client may not see."""
        return await introspecting.introspect(self._ctx, client, token)

    # operators
    async def login(self, tenant: str | None, operator: str, passphrase: str, trace: str) -> Session | Refusal:
        return await sessions.login(self._ctx, tenant, operator, passphrase, trace)

    async def approvals(
        self, who: Principal, state: str, after: str | None, limit: int
    ) -> Listing[ApprovalView] | Refusal:
        return await searching.find_approvals(self._ctx, who, state, after, limit)

    async def approval(self, who: Principal, approval: str) -> ApprovalView | Refusal:
        return await searching.find_approval(self._ctx, who, approval)

    async def answer(
        self, who: Principal, approval: str, verdict: Verdict, note: str, passphrase: str | None, trace: str
    ) -> ApprovalView | Refusal:
        return await answers.answer(self._ctx, who, approval, verdict, note, passphrase, trace)

    async def delegations(
        self,
        who: Principal,
        *,
        state: str = "all",
        run: str | None = None,
        agent: str | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> Listing[DelegationView] | Refusal:
        return await searching.find_delegations(self._ctx, who, state, run, agent, after, limit)

    async def tree(self, who: Principal, delegation: str) -> TreeView | Refusal:
        return await searching.tree(self._ctx, who, delegation)

    async def audit(
        self, who: Principal, filters: Mapping[str, str | int], after: str | None, limit: int
    ) -> Listing[Mapping[str, Any]] | Refusal:
        """filters: run, delegation, agent, tool, call, decision, reason, trace, since, until."""
        return await searching.find_records(self._ctx, who, filters, after, limit)

    async def export(self, who: Principal) -> AsyncIterator[Mapping[str, Any]] | Refusal:
        """Lines of the export: records with their links, then the checkpoints."""
        return await sealing.export(self._ctx, who)

    async def verify_audit(self, who: Principal) -> AuditCheck | Refusal:
        return await sealing.verify_audit(self._ctx, who)

    async def keys(self, who: Principal) -> KeysView | Refusal:
        return await ringing.show_keys(self._ctx, who)

    async def rotate_keys(self, who: Principal, trace: str) -> KeysView | Refusal:
        return await ringing.rotate_keys(self._ctx, who, trace)

    async def guards(self, who: Principal) -> GuardList | Refusal:
        return await following.list_guards(self._ctx, who)

    # upkeep
    def jwks(self) -> Mapping[str, Any]:
        """The public keys (RFC 7517)."""
        return self._ctx.keys.jwks()

    async def problems(self) -> Sequence[str]:
        """What keeps the broker from being ready, one sentence each."""
        return await readiness.problems(self._ctx)

    async def sweep(self, now: int) -> int:
        return await sweeping.sweep(self._ctx, now)

    async def seal(self, tenant: str) -> int:
        return await sealing.seal(self._ctx, tenant)

    async def record_ring(self) -> None:
        """The signing keys in force, on record in every tenant."""
        await ringing.record_ring(self._ctx)

    async def activate_policy(self, tenant: str) -> None:
        await policies.activate_policy(self._ctx, tenant)
