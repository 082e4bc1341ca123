"""Every use case of the broker behind one object. Transports call these methods and render what they answer.

Each method either answers a value or a `Refusal`; the only exception it lets through is the store's `Unavailable`, which
means deny. `trace` is the trace id of the request (32 hex digits).
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any

from carnet.reasons import Refusal
from carnet.token.claims import Claims
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
    # who asks
    async def caller(self, token: str, accept: Collection[Bearer]) -> Claims | Principal | Refusal:
        """Who a bearer token is: Claims for a run's or a child's token, Principal for a guard or an operator.

        Any audience of a child's token is taken here; what it may do at this door is for the use case to say."""
        raise NotImplementedError

    async def client_by_secret(self, client: str, secret: str) -> Principal | Refusal:
        """RFC 6749 §2.3.1: a client that proves a secret."""
        raise NotImplementedError

    async def client_by_assertion(self, assertion: str) -> Principal | Refusal:
        """RFC 7523 §2.2: a client that proves its key; the assertion's `jti` is used up."""
        raise NotImplementedError

    # runs and delegations
    async def open_run(self, who: Principal, run_id: str | None, trace: str) -> Issued | Refusal:
        raise NotImplementedError

    async def guard_token(self, who: Principal) -> Issued | Refusal:
        raise NotImplementedError

    async def spawn(
        self, caller: Claims, request: SpawnRequest, key: str | None, trace: str
    ) -> DelegationView | Refusal:
        raise NotImplementedError

    async def mint(
        self, caller: Claims, delegation: str, hosts: Sequence[str] | None, trace: str
    ) -> Mapping[str, Issued] | Refusal:
        raise NotImplementedError

    async def show(self, caller: Claims | Principal, delegation: str, wait: float) -> DelegationView | Refusal:
        raise NotImplementedError

    async def end(self, caller: Claims, delegation: str, reason: str, trace: str) -> DelegationView | Refusal:
        raise NotImplementedError

    # guards: a guard token's Principal, or the Claims of a child's token that is its own bearer
    async def call(
        self, guard: Principal | None, request: CallRequest, key: str | None, trace: str
    ) -> CallView | Refusal:
        """guard None: the child's token in the request is the bearer."""
        raise NotImplementedError

    async def call_state(self, guard: Principal | Claims, call: str, wait: float) -> CallStatus | Refusal:
        raise NotImplementedError

    async def finish(self, guard: Principal | Claims, call: str, outcome: str, detail: str) -> str | Refusal:
        """The call's state after it."""
        raise NotImplementedError

    async def records(self, guard: Principal | Claims, batch: RecordBatch) -> int | Refusal:
        """The number of the next line that the broker waits for."""
        raise NotImplementedError

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
        raise NotImplementedError

    async def acknowledge(self, guard: Principal | Claims, instance: str, epoch: str, seq: int) -> Refusal | None:
        raise NotImplementedError

    async def policy_for(self, guard: Principal | Claims) -> PolicyView | Refusal:
        raise NotImplementedError

    # revocation and introspection
    async def revoke(
        self, who: Principal, mark: str, until: int | str | None, reason: str, dry_run: bool, trace: str
    ) -> Fallen | Refusal:
        """until: a time, "forever", or None for what the kind of mark gives."""
        raise NotImplementedError

    async def revocations(self, who: Principal, after: str | None, limit: int) -> Listing[Mapping[str, Any]] | Refusal:
        raise NotImplementedError

    async def revoke_token(self, client: Principal, token: str, trace: str) -> Refusal | None:
        """RFC 7009: None also for a token that nobody knows."""
        raise NotImplementedError

    async def introspect(self, client: Principal, token: str) -> Mapping[str, Any]:
        """RFC 7662 §2.2: the answer as it goes on the wire; `{"active": False}` for whatever the client may not see."""
        raise NotImplementedError

    # operators
    async def login(self, tenant: str | None, operator: str, passphrase: str, trace: str) -> Session | Refusal:
        raise NotImplementedError

    async def approvals(
        self, who: Principal, state: str, after: str | None, limit: int
    ) -> Listing[ApprovalView] | Refusal:
        raise NotImplementedError

    async def approval(self, who: Principal, approval: str) -> ApprovalView | Refusal:
        raise NotImplementedError

    async def answer(
        self, who: Principal, approval: str, verdict: Verdict, note: str, passphrase: str | None, trace: str
    ) -> ApprovalView | Refusal:
        raise NotImplementedError

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
        raise NotImplementedError

    async def tree(self, who: Principal, delegation: str) -> TreeView | Refusal:
        raise NotImplementedError

    async def audit(
        self, who: Principal, filters: Mapping[str, str | int], after: str | None, limit: int
    ) -> Listing[Mapping[str, Any]] | Refusal:
        """filters: run, delegation, agent, tool, decision, reason, trace, since, until."""
        raise NotImplementedError

    async def export(self, who: Principal) -> AsyncIterator[Mapping[str, Any]] | Refusal:
        """Lines of the export: records with their links, then the checkpoints."""
        raise NotImplementedError

    async def verify_audit(self, who: Principal) -> AuditCheck | Refusal:
        raise NotImplementedError

    async def keys(self, who: Principal) -> KeysView | Refusal:
        raise NotImplementedError

    async def rotate_keys(self, who: Principal, trace: str) -> KeysView | Refusal:
        raise NotImplementedError

    async def guards(self, who: Principal) -> GuardList | Refusal:
        raise NotImplementedError

    # upkeep
    def jwks(self) -> Mapping[str, Any]:
        """The public keys (RFC 7517)."""
        raise NotImplementedError

    async def problems(self) -> Sequence[str]:
        """What keeps the broker from being ready, one sentence each."""
        raise NotImplementedError

    async def sweep(self, now: int) -> int:
        raise NotImplementedError

    async def seal(self, tenant: str) -> int:
        raise NotImplementedError

    async def activate_policy(self, tenant: str) -> None:
        raise NotImplementedError
