"""The story, act by act. Every step says beforehand what must come of it."""

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from carnet import Broker, ConfigError, Credential, Refused, Task
from carnet.cli.broker import segment
from carnet.cli.demo.actors import Human, call
from carnet.cli.demo.processes import APPROVAL_TIMEOUT, Stage
from carnet.cli.demo.report import Report

__all__ = ["play"]

_READ = Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=3)
_REFUND = Task(touches_pii=False, touches_secrets=False, reversible=False, resource_count=1, tools=["refund"])
_CUSTOMER = "cust_000042"
_SEARCH: dict[str, Any] = {"query": "late parcel"}
_LATE_REFUND: dict[str, Any] = {"amount": 1.0, "customer_id": _CUSTOMER}


def play(stage: Stage, report: Report) -> None:
    """Play all acts with the parent `support` and the operator `dev`."""
    credential = Credential.secret(stage.dev["client_id"], stage.dev["secret"])
    human = Human(stage)
    with Broker(stage.url, credential=credential) as broker:
        with ExitStack() as ending:
            with report.step("open", "support", "opens a run with 14 tools to use or give", "opened") as step:
                run = ending.enter_context(broker.run())
                step.got = "opened" if run.expires_at > time.time() else "closed at once"
            readers = _act_reads(stage, report, run)
            clerk = _act_refund(stage, report, run, human)
            _act_sibling(stage, report, run, human)
            _act_borders(stage, report, run, readers[0])
            _act_revoke(stage, report, run, human, [*readers, clerk])
        _act_silence(stage, report, broker, human)
    _act_records(report, human, run)


def _act_reads(stage: Stage, report: Report, run: Any) -> list[Any]:
    with report.step("spawn-0", "support", "spawns summarizer", "active level 0, 2 tools") as step:
        reader = run.spawn("summarizer", _READ)
        step.got = f"{reader.state} level {reader.level}, {len(reader.tools)} tools"
    with report.step("read", "summarizer", "search_tickets", "allow") as step:
        step.got = call(stage, reader, "desk", "search_tickets", _SEARCH)
    with report.step("scope", "summarizer", "refund 5.00, which its token does not name", "403 scope_missing") as step:
        step.got = call(stage, reader, "desk", "refund", {"amount": 5.0, "customer_id": _CUSTOMER})
    with report.step("spawn-1", "support", "spawns tagger (writes)", "active level 1, 2 tools") as step:
        tagger = run.spawn("tagger", replace(_READ, tools=["search_tickets", "tag_ticket"]))
        step.got = f"{tagger.state} level {tagger.level}, {len(tagger.tools)} tools"
    with report.step("write", "tagger", "tag_ticket T-17", "allow") as step:
        step.got = call(stage, tagger, "desk", "tag_ticket", {"ticket_id": "T-17", "tag": "late"})
    return [reader, tagger]


def _act_refund(stage: Stage, report: Report, run: Any, human: Human) -> Any:
    with report.step("spawn-2", "support", "spawns refund-clerk", "pending level 2, no token") as step:
        clerk = run.spawn("refund-clerk", _REFUND, wait=0)
        step.got = f"{clerk.state} level {clerk.level}, {_token_or_none(clerk)}"
    with report.step("approve", "dev", "approves the clerk, passphrase typed", "active") as step:
        human.approve(clerk.approval_id or "")
        clerk = clerk.wait()
        step.got = clerk.state
    _refund_once(stage, report, clerk, human)
    with report.step("second", "refund-clerk", "refund 7.00 in the same run", "403 history_limit") as step:
        step.got = call(stage, clerk, "desk", "refund", {"amount": 7.0, "customer_id": _CUSTOMER})
    return clerk


def _refund_once(stage: Stage, report: Report, clerk: Any, human: Human) -> None:
    args = {"amount": 5.0, "customer_id": _CUSTOMER}
    with report.step("ask", "refund-clerk", "refund 5.00: irreversible, so it asks", "403 approval_pending") as step:
        step.got = call(stage, clerk, "desk", "refund", args)
    with report.step("answer", "dev", "approves exactly this refund", "approved") as step:
        step.got = human.approve_call(clerk.id)
    with report.step("refund", "refund-clerk", "the same refund again: runs once", "allow, ran 1 time") as step:
        verdict = call(stage, clerk, "desk", "refund", args)
        step.got = f"{verdict}, ran {len(stage.ledger.read_text(encoding='utf-8').splitlines())} time"


def _token_or_none(child: Any) -> str:
    try:
        return f"a token of {len(child.token('pay'))} characters"
    except ConfigError:  # the SDK holds none: the child is pending
        return "no token"


def _act_sibling(stage: Stage, report: Report, run: Any, human: Human) -> None:
    with report.step("sibling", "a sibling", "refund 1.00: the run's one is used up", "403 history_limit") as step:
        sibling = run.spawn("refund-clerk", _REFUND, wait=0)
        human.approve(sibling.approval_id or "")
        step.got = call(stage, sibling.wait(), "desk", "refund", {"amount": 1.0, "customer_id": "cust_000043"})


def _act_borders(stage: Stage, report: Report, run: Any, reader: Any) -> None:
    with report.step("depth", "summarizer", "tries to spawn a child of its own", "403 depth_exceeded") as step:
        body = {"target": "tagger", "task": _READ.to_wire()}
        headers = {"Authorization": f"Bearer {reader.token('desk')}"}
        answer = stage.http.post(f"{stage.url}/v1/delegations", json=body, headers=headers)
        step.got = f"{answer.status_code} {answer.json()['reason']}"
    with report.step("target", "support", "spawns shell-runner, unknown to it", "target_not_allowed") as step:
        step.got = _reason(lambda: run.spawn("shell-runner", _READ))
    with report.step("audience", "summarizer", "its desk token at the orders server", "401 invalid_token") as step:
        step.got = call(stage, reader, "desk", "get_invoice", {"customer_id": _CUSTOMER}, at="orders")
    with report.step("grant", "support", "gives a tool that its child may not hold", "invalid_scope") as step:
        step.got = _reason(lambda: run.spawn("summarizer", replace(_READ, tools=["search_tickets", "refund"])))


def _reason(attempt: Any) -> str:
    try:
        attempt()
    except Refused as refused:
        return str(refused.reason.value)
    return "allowed"


def _act_revoke(stage: Stage, report: Report, run: Any, human: Human, children: list[Any]) -> None:
    with report.step("revoke", "dev", f"revokes the run with {len(children)} live children", "all refused") as step:
        answer = human.revoke(run.id)
        begun = time.perf_counter()
        step.got = "all refused" if all(_dies(stage, child, begun) for child in children) else "one still runs"
        step.ms = round((time.perf_counter() - begun) * 1000, 1)
        step.note = f"one record, {answer['count']} fell"


def _dies(stage: Stage, child: Any, begun: float) -> bool:
    tool, args = ("search_tickets", _SEARCH) if "search_tickets" in child.tools else ("refund", _LATE_REFUND)
    headers = {"Authorization": f"Bearer {child.token('desk')}"}
    while time.perf_counter() - begun < 1.0:
        if stage.http.post(f"{stage.hosts['desk']}/{tool}", json=args, headers=headers).status_code == 401:
            return True
    return False


def _act_silence(stage: Stage, report: Report, broker: Broker, human: Human) -> None:
    with broker.run() as run:
        clerk = run.spawn("refund-clerk", _REFUND, wait=0)
        human.approve(clerk.approval_id or "")
        clerk = clerk.wait()
        args = {"amount": 2.0, "customer_id": _CUSTOMER}
        with report.step(
            "silence", "nobody", f"answers a refund for {APPROVAL_TIMEOUT} s", "approval_timed_out"
        ) as step:
            call(stage, clerk, "desk", "refund", args)
            (asked,) = [row for row in human.waiting() if row["delegation"] == clerk.id]
            step.got = _outcome(human, asked["id"])


def _outcome(human: Human, approval: str) -> str:
    """How a question ended, once it is no longer pending."""
    deadline = time.monotonic() + APPROVAL_TIMEOUT + 4
    while time.monotonic() < deadline:
        answered = human.broker.get(f"/v1/approvals/{segment(approval)}")
        if answered["state"] != "pending":
            return str(answered["reason"])
        time.sleep(0.1)
    return "still pending"


def _act_records(report: Report, human: Human, run: Any) -> None:
    with report.step(
        "trace", "audit", "one trace from the run to every tool call", "one trace id at every hop"
    ) as step:
        records = human.records(run=run.id)
        hops = {record["kind"] for record in records}
        traces = {
            record["trace_id"]
            for record in records
            if record["kind"] in ("run_opened", "spawned", "call_decided", "call_outcome")
        }
        step.got = "one trace id at every hop" if len(traces) == 1 and len(hops) > 4 else f"{len(traces)} trace ids"
        step.note = f"{len(records)} records, trace {next(iter(traces), '')[:8]}…"
    with report.step("refused", "audit", "the summarizer's refund stands there too", "deny scope_missing") as step:
        denied = {f"{record['decision']} {record['reason']}" for record in records if record["tool"] == "refund"}
        step.got = next((each for each in sorted(denied) if "scope_missing" in each), f"only {sorted(denied)}")
    with report.step("verify", "audit", "chain and signed checkpoints", "verified") as step:
        deadline = time.monotonic() + 6
        answer: dict[str, Any] = {}
        while time.monotonic() < deadline and not (answer.get("sealed") and not answer["unsealed"]):
            answer = human.broker.get("/v1/audit/verify")
            time.sleep(0.2)
        step.got = "verified" if answer.get("ok") and answer.get("sealed") else str(answer)
        step.note = f"{answer.get('sealed')} sealed, {answer.get('unsealed')} to seal"
