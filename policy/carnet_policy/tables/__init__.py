"""Table tests of a policy: calls with their past, and what must be decided. Files `*.test.yaml` beside the policy."""

from carnet_policy.tables.case import REASONS, Case, Expected, Table
from carnet_policy.tables.coverage import Coverage, Hits
from carnet_policy.tables.reader import load_table, read_table
from carnet_policy.tables.run import Result, run_table

__all__ = [
    "REASONS",
    "Case",
    "Coverage",
    "Expected",
    "Hits",
    "Result",
    "Table",
    "load_table",
    "read_table",
    "run_table",
]
