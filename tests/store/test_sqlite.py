"""The embedded store passes the contract."""

from tests.store import contract


class TestCommit(contract.CommitContract):
    pass


class TestLedger(contract.LedgerContract):
    pass


class TestFind(contract.FindContract):
    pass


class TestFeed(contract.FeedContract):
    pass


class TestSweep(contract.SweepContract):
    pass


class TestSeal(contract.SealContract):
    pass
