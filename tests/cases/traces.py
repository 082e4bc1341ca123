"""Kind `trace`: what arrives at a boundary and what goes on from there, to the broker's records and to the next hop."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from carnet.trace import Trace, child, extract, start
from carnet.wire.ask import Ask
from tests.cases.reading import Collection, closed
from tests.cases.registering import Agent, Setup, catalog_of
from tests.cases.verdict import CaseFailed, expect
from tests.cases.work import facts_of
from tests.cases.world import World, payload

__all__ = ["play"]

INPUT = frozenset({"carrier", "headers", "message", "hops", "variants"})
EXPECTED = frozenset(
    {
        "trace_id",
        "flags",
        "new_span_id",
        "parent_span",
        "message_has",
        "in_audit",
        "in_token_or_envelope",
        "request_ok",
        "invalid_value_not_in_audit",
        "scope_unchanged",
        "tenant_unchanged",
        "baggage_forwarded",
    }
)
TOOL = "search_tickets"
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class _Passed:
    """One passage: what came in, what was sent on, and what the broker answered."""

    came: Mapping[str, str]
    before: Trace | None  # the sender's span, as the receiver reads it
    sent: Mapping[str, str]
    message: Mapping[str, Any]
    producer: Trace | None
    answer: httpx2.Response


def play(given: Mapping[str, Any], expected: Mapping[str, Any], files: Collection) -> None:
    closed(given, INPUT, "input", frozenset({"carrier"}))
    closed(expected, EXPECTED, "expected")
    headers = {str(name).lower(): str(value) for name, value in given.get("headers", {}).items()}
    sets = [headers, *({**headers, **{k.lower(): str(v) for k, v in one.items()}} for one in given.get("variants", []))]
    agents = {
        "planner": Agent(tools=frozenset({TOOL}), callable_agents=frozenset({"worker"})),
        "worker": Agent(tools=frozenset({TOOL})),
    }
    policy = {"id": "case", "version": 1, "catalog": catalog_of([TOOL]), "tools": {TOOL: [{"decision": "allow"}]}}
    with World(Setup(agents=agents, policy=policy)) as world:
        for one in sets:
            _judge(world, expected, _passed(world, given, one))


def _span() -> str:
    return secrets.token_hex(8)


def _passed(world: World, given: Mapping[str, Any], came: Mapping[str, str]) -> _Passed:
    carrier = given["carrier"]
    if carrier == "http":  # as any HTTP client sends it: the broker itself reads the headers
        before = _read(came)
        return _Passed(came, before, came, {}, None, _spawn(world, came))
    if carrier not in ("queue", "queue_chain"):
        raise CaseFailed(f"unknown carrier {carrier!r}")
    message: dict[str, Any] = dict(given.get("message", {}))
    producer = before = _read(came)
    for _ in range(int(given.get("hops", 1))):
        producer = _next(before)
        message = {**message, "traceparent": producer.header()}
        before = _read(json.loads(json.dumps(message)))
    onward = _next(before)
    sent = Ask(method="POST", path="/v1/delegations", traceparent=onward.header()).headers()
    return _Passed(came, before, sent, message, producer, _spawn(world, {"traceparent": sent["traceparent"]}))


def _read(headers: Mapping[str, Any]) -> Trace | None:
    return extract(
        [str(headers["traceparent"])] if "traceparent" in headers else [],
        [str(headers["tracestate"])] if "tracestate" in headers else [],
    )


def _next(before: Trace | None) -> Trace:
    return child(before, _span()) if before is not None else start(secrets.token_hex(16), _span())


def _spawn(world: World, headers: Mapping[str, str]) -> httpx2.Response:
    run = world.open_run("planner")
    task = {**facts_of(0, [TOOL]), "tools": [TOOL]}
    body = {"target": "worker", "task": task, "hosts": ["*"]}
    return world.request("POST", "/v1/delegations", bearer=run.token, json=body, headers=headers)


def _judge(world: World, expected: Mapping[str, Any], passed: _Passed) -> None:
    answer = passed.answer
    expect(answer.status_code == 201, f"the request failed: {answer.status_code} {answer.text[:200]}")
    document = answer.json()
    trace_id = document["envelope"]["trace_id"]
    expect(answer.headers["carnet-trace-id"] == trace_id, "answer and envelope name different traces")
    came = passed.came.get("traceparent", "")
    wanted = expected.get("trace_id")
    if wanted == "new":
        expect(bool(TRACE_ID.fullmatch(trace_id)) and trace_id not in came, f"the trace is {trace_id}")
    elif wanted is not None:
        expect(trace_id == wanted, f"the trace is {trace_id}, expected {wanted}")
    _judge_spans(expected, passed)
    _judge_records(world, expected, document, passed)
    _judge_authority(world, expected, document, passed)


def _judge_spans(expected: Mapping[str, Any], passed: _Passed) -> None:
    onward = _next(passed.before)
    if "new_span_id" in expected:
        old = _read(passed.came)
        fresh = old is None or onward.span_id != old.span_id
        expect(fresh == expected["new_span_id"], f"the next span is {onward.span_id}")
    if "flags" in expected:
        flags = onward.header()[-2:]
        expect(int(flags, 16) == int(str(expected["flags"]), 16), f"the flags are {flags}")
    if "parent_span" in expected:
        if expected["parent_span"] != "producer":
            raise CaseFailed(f"unknown parent_span {expected['parent_span']!r}")
        same = passed.before is not None and passed.producer is not None
        expect(same and passed.before.span_id == passed.producer.span_id, "the consumer's parent is not the producer")  # type: ignore[union-attr]
    for name in expected.get("message_has", []):
        expect(name in passed.message, f"the message has no {name}")


def _judge_records(world: World, expected: Mapping[str, Any], document: Mapping[str, Any], passed: _Passed) -> None:
    trace_id = document["envelope"]["trace_id"]
    rows = world.records()
    mine = [row for row in rows if row["delegation"] == document["id"]]
    if "in_audit" in expected:
        found = bool(mine) and all(row["trace_id"] == trace_id for row in mine)
        expect(found == expected["in_audit"], f"{len(mine)} records, not all of this trace")
    if expected.get("in_token_or_envelope"):
        (token,) = document["tokens"].values()
        claim = payload(token["access_token"])["urn:carnet:delegation"]["trace_id"]
        expect(claim == trace_id, f"the token is of the trace {claim}")
    if expected.get("invalid_value_not_in_audit"):
        expect(passed.came["traceparent"] not in json.dumps(rows), "the bad value stands in a record")


def _judge_authority(world: World, expected: Mapping[str, Any], document: Mapping[str, Any], passed: _Passed) -> None:
    if "scope_unchanged" in expected or "tenant_unchanged" in expected:
        plain = _spawn(world, {}).json()["envelope"]
        ours = document["envelope"]
        same = (plain["tools"], plain["level"]) == (ours["tools"], ours["level"])
        expect(same == expected.get("scope_unchanged", True), f"the scope is {ours['tools']}")
        expect((plain["tenant"] == ours["tenant"]) == expected.get("tenant_unchanged", True), "another tenant")
    if "baggage_forwarded" in expected:
        onward = Ask(method="POST", path="/", traceparent=_next(passed.before).header()).headers()
        forwarded = any(name.lower() == "baggage" for name in onward)
        expect(forwarded == expected["baggage_forwarded"], f"sent on: {sorted(onward)}")
