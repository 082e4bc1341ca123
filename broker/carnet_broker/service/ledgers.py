"""Ledgers at hand: each read asks the store only for what is newer than what this process has seen."""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from carnet.reasons import Reason, Refusal
from carnet_broker.core.ledgers import ClientLedger, RunLedger
from carnet_broker.core.rows import Approval, PolicyInForce
from carnet_broker.store.base import LedgerDelta, Store
from carnet_policy import Policy

__all__ = ["Ledgers", "Standing"]

_KEEP = 512  # runs and clients; a dropped one is read again
_NOT_LOADED = Refusal(Reason.NOT_READY, "This broker has not loaded the policy in force; nothing runs until it has.")


@dataclass(frozen=True, slots=True)
class Standing:
    """What one read told. versions: of the scopes, for the commit to compare. asked: open questions by client, of the
    whole tenant."""

    run: RunLedger
    client: ClientLedger | None
    policy: PolicyInForce
    versions: Mapping[str, int]
    asked: Counter[str]

    def scope(self, *names: str) -> tuple[tuple[str, int], ...]:
        return tuple((name, self.versions[name]) for name in names)


class Ledgers:
    """The ledgers that this process has read, the least recently used dropped first. Used on one event loop."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[str, str], RunLedger] = OrderedDict()
        self._clients: OrderedDict[tuple[str, str], ClientLedger] = OrderedDict()
        self._policies: dict[str, tuple[int, PolicyInForce]] = {}
        self._pending: dict[str, tuple[int, tuple[Approval, ...]]] = {}

    async def read(
        self, store: Store, tenant: str, run: str, policy: Policy, now: int, client: str | None = None
    ) -> Standing | Refusal:
        """The run's ledger as it is now, and the client's where a rule in force counts over it. Refused when the loaded
        policy is not the one in force: this process must read its configuration again first."""
        ledger = self._run(tenant, run, policy)
        other = self._client(tenant, client, policy) if client is not None and policy.over_client else None
        have = {
            f"run:{run}": ledger.version,
            "policy": self._policies.get(tenant, (0, None))[0],
            "pending": self._pending.get(tenant, (0, ()))[0],
        }
        if other is not None:
            have[f"client:{client}"] = other.version
        begin = now - policy.client_window - 1  # no rule in force looks further back
        delta = await store.ledger(tenant, have, since=begin)
        _take(ledger, f"run:{run}", delta)
        if other is not None:
            _take(other, f"client:{client}", delta)
            other.forget(begin)
        self._take_pending(tenant, delta, have["pending"])
        in_force = self._take_policy(tenant, delta)
        if in_force is None or in_force.digest != policy.ref.digest:
            return _NOT_LOADED
        asked = Counter(row.client for row in self._pending.get(tenant, (0, ()))[1] if row.deadline > now)
        return Standing(ledger, other, in_force, delta.versions, asked)

    async def policy(self, store: Store, tenant: str) -> tuple[PolicyInForce | None, int]:
        """The policy in force and the version of its scope."""
        delta = await store.ledger(tenant, {"policy": self._policies.get(tenant, (0, None))[0]})
        return self._take_policy(tenant, delta), delta.versions["policy"]

    async def loaded(self, store: Store, tenant: str, policy: Policy) -> tuple[PolicyInForce, int] | Refusal:
        """As `policy`, refused when the loaded one is not the one in force."""
        in_force, version = await self.policy(store, tenant)
        stale = in_force is None or in_force.digest != policy.ref.digest
        return _NOT_LOADED if in_force is None or stale else (in_force, version)

    async def peek(self, store: Store, tenant: str, run: str, policy: Policy) -> RunLedger:
        """The run's ledger for showing; no decision is taken on it."""
        ledger = self._run(tenant, run, policy)
        delta = await store.ledger(tenant, {f"run:{run}": ledger.version})
        _take(ledger, f"run:{run}", delta)
        return ledger

    def _run(self, tenant: str, run: str, policy: Policy) -> RunLedger:
        ledger = self._runs.get((tenant, run))
        if ledger is None:
            ledger = self._runs[tenant, run] = RunLedger(run, policy)
            _trim(self._runs)
        self._runs.move_to_end((tenant, run))
        ledger.use(policy)
        return ledger

    def _client(self, tenant: str, client: str, policy: Policy) -> ClientLedger:
        ledger = self._clients.get((tenant, client))
        if ledger is None:
            ledger = self._clients[tenant, client] = ClientLedger(client, policy)
            _trim(self._clients)
        self._clients.move_to_end((tenant, client))
        ledger.use(policy)
        return ledger

    def _take_policy(self, tenant: str, delta: LedgerDelta) -> PolicyInForce | None:
        version, known = delta.versions["policy"], self._policies.get(tenant)
        newest = [row for row in delta.rows.get("policy", ()) if isinstance(row, PolicyInForce)]
        if newest and (known is None or version > known[0]):
            known = self._policies[tenant] = (version, newest[-1])
        return None if known is None else known[1]

    def _take_pending(self, tenant: str, delta: LedgerDelta, had: int) -> None:
        version = delta.versions["pending"]
        if version > max(had, self._pending.get(tenant, (0, ()))[0]):
            rows = tuple(row for row in delta.rows.get("pending", ()) if isinstance(row, Approval))
            self._pending[tenant] = (version, rows)


def _take(ledger: RunLedger | ClientLedger, scope: str, delta: LedgerDelta) -> None:
    ledger.apply(delta.rows.get(scope, ()), delta.versions[scope])


def _trim(kept: OrderedDict[tuple[str, str], RunLedger] | OrderedDict[tuple[str, str], ClientLedger]) -> None:
    while len(kept) > _KEEP:
        kept.popitem(last=False)
