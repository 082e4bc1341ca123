"""The contract suite that every store must pass. A store's test module gives the fixtures `store` (fresh and empty) and
`clock` (what that store reads, at T0), and subclasses each class here."""

from tests.store.contract_commit import CommitContract
from tests.store.contract_feed import FeedContract
from tests.store.contract_reads import FindContract, LedgerContract, SealContract, SweepContract

__all__ = ["CommitContract", "FeedContract", "FindContract", "LedgerContract", "SealContract", "SweepContract"]
