"""One recorded decision, with the past that the export tells, expanded to the trace behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from carnet_policy.explain import Trace
from carnet_policy.folds import Folds, Ledger, PastCall
from carnet_policy.policy import Policy
from carnet_policy.reconstructing import Pasts
from carnet_policy.recorded import Recorded, Unexplained, explain_record, in_order, recorded_call

__all__ = ["expand"]


def expand(policy: Policy, records: Iterable[Mapping[str, object]], seq: int) -> Trace | Unexplained:
    """The trace of the record with this number under `policy`, over what the records before it hold of the run and of
    the client. No history rule counts as young. Whether an envelope pinned the tool is taken from the recorded rule."""
    pasts = Pasts(policy)
    for record in in_order(records):
        call = recorded_call(record)
        if record.get("seq") == seq:
            return _expanded(policy, record, call, pasts)
        if call is None:
            pasts.settle(record)
        else:
            pasts.put(call)
    return Unexplained(f"the export holds no record {seq}")


def _expanded(policy: Policy, record: Mapping[str, object], call: Recorded | None, pasts: Pasts) -> Trace | Unexplained:
    if call is None:
        return explain_record(policy, record)
    run, client = Folds(policy), Folds(policy, "client")
    for id, row in pasts.held.items():
        if row.run != call.run and row.client != call.client:
            continue
        lacking = sorted(row.hidden & {rule.arg for rule in policy.bounding(row.tool)})
        if lacking and policy.bounds(call.tool):
            return Unexplained(f"record {row.seq}, which counts, shows only digests of {', '.join(map(str, lacking))}")
        past = PastCall(row.tool, row.known, row.at)
        if row.run == call.run:
            run.put(id, past)
        if row.client == call.client:
            client.put(id, past)
    skip = call.call if call.call in pasts.held else None
    pinned = call.reason == "policy_allow" and policy.irreversible(call.tool)
    return explain_record(policy, record, Ledger(run, client, call.at, 0, skip=skip), pinned=pinned)
