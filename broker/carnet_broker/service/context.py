"""What every use case needs, gathered once by the composition."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from carnet.reasons import Reason, Refusal
from carnet_broker.core.registry import Registry
from carnet_broker.keys.ring import KeyRing
from carnet_broker.service.attempts import Attempts
from carnet_broker.service.ids import Ids
from carnet_broker.service.ledgers import Ledgers
from carnet_broker.service.locks import Locks
from carnet_broker.service.openruns import OpenRuns
from carnet_broker.service.pacing import Refusals
from carnet_broker.service.proving import Proofs
from carnet_broker.service.shadowing import Shadows
from carnet_broker.service.verified import Verified
from carnet_broker.store.base import Store

__all__ = ["SYSTEM", "Context"]

SYSTEM = "_system"  # where withdrawn signing keys stand; no tenant can have this name


@dataclass(slots=True, kw_only=True, eq=False)
class Context:
    """registries: by tenant; replaced as a whole when the configuration is read again."""

    store: Store
    keys: KeyRing
    registries: Mapping[str, Registry]
    issuer: str
    ids: Ids
    locks: Locks = field(default_factory=Locks)
    ledgers: Ledgers = field(default_factory=Ledgers)
    verified: Verified = field(default_factory=Verified)
    open_runs: OpenRuns = field(default_factory=OpenRuns)
    refusals: Refusals = field(default_factory=Refusals)
    attempts: Attempts = field(default_factory=Attempts)  # of people who answer
    logins: Attempts = field(default_factory=Attempts)
    proofs: Proofs = field(default_factory=Proofs)
    shadows: Shadows = field(default_factory=Shadows)
    swept: dict[str, tuple[str, int]] = field(default_factory=dict)  # by tenant: epoch and seq of the feed
    rings: dict[str, str] = field(default_factory=dict)  # by tenant: digest of the key ring that is on record

    def registry(self, tenant: str) -> Registry | Refusal:
        found = self.registries.get(tenant)
        return found if found is not None else Refusal(Reason.NOT_FOUND, "The broker does not serve this tenant.")
