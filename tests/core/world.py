"""A small tenant and rows of it, for tests of the core."""

from collections.abc import Iterable, Mapping
from typing import Any

from carnet_broker.core.registry import Agent, Client, Host, Limits, Registry
from carnet_broker.core.rows import Approval, ApprovalState, Call, CallState, Delegation, Envelope
from carnet_policy import Policy, loads

__all__ = ["CATALOG", "NOW", "TENANT", "approval", "call", "child", "envelope", "policy", "registry", "run", "support"]

NOW = 1_700_000_000
TENANT = "acme"
CATALOG = """
  search_tickets: {effect: read}
  read_ticket: {effect: read}
  read_customer_record: {effect: read, data_class: [pii]}
  tag_ticket: {effect: write}
  refund: {effect: irreversible, resource_arg: customer_id}
  send_email: {effect: irreversible}
  show_secret: {effect: read, data_class: [secret]}
"""
KNOWN = ("search_tickets", "read_ticket", "read_customer_record", "tag_ticket", "refund", "send_email")


def policy(more: str = "", catalog: str = CATALOG) -> Policy:
    return loads([("tools.yaml", f"version: 1\ncatalog:{catalog}{more}")])


def support(tools: Iterable[str] = KNOWN, **more: Any) -> Agent:
    more = {"callable_agents": frozenset({"worker"}), **more}
    return Agent(name="support", tools=frozenset(tools), **more)


def registry(
    *agents: Agent, served: Iterable[str] | None = None, limits: Limits | None = None, rules: Policy | None = None
) -> Registry:
    tools = {tool for agent in agents for tool in (*agent.tools, *agent.grants)} if served is None else set(served)
    desk = Host(name="desk", audience="https://desk.example", tools=frozenset(tools))
    return Registry(
        tenant=TENANT,
        agents={agent.name: agent for agent in agents},
        hosts={"desk": desk},
        clients={"support-app": Client(id="support-app", agent="support", secret_sha256="0" * 64)},
        operators={},
        limits=limits or Limits(),
        policy=rules or policy(),
    )


def envelope(**more: Any) -> Envelope:
    base: dict[str, Any] = {
        "level": 0,
        "tools": (),
        "ceilings": {},
        "credential_ttl_seconds": 3600,
        "approval_required": False,
        "resource_limit": None,
        "tenant": TENANT,
        "trace_id": "",
    }
    return Envelope(**(base | more))


def run(id: str = "dlg_run", *, ceilings: Mapping[str, Any] | None = None, **more: Any) -> Delegation:
    base: dict[str, Any] = {
        "id": id,
        "tenant": TENANT,
        "run": id,
        "parent": None,
        "chain": ((id, "support", "support-app"),),
        "depth": 0,
        "agent": "support",
        "client": "support-app",
        "sub": "agent:support",
        "envelope": envelope(ceilings=ceilings or {}),
        "approval": None,
        "digest": "",
        "policy_id": "tools",
        "policy_version": 1,
        "policy_digest": "p" * 64,
        "payload_sha256": None,
        "jkt": None,
        "resource_count": 0,
        "facts": {},
        "created_at": NOW,
        "live_until": NOW + 3600,
        "trace_id": "",
    }
    return Delegation(**(base | more))


def child(id: str = "dlg_child", *, of: str = "dlg_run", **more: Any) -> Delegation:
    base: dict[str, Any] = {
        "run": of,
        "parent": of,
        "chain": ((of, "support", "support-app"), (id, "worker", "support-app")),
        "depth": 1,
        "agent": "worker",
        "approval": f"apr_{id}",
        "digest": f"digest of {id}",
        "envelope": envelope(credential_ttl_seconds=300, resource_limit=0),
    }
    return run(id, **(base | more))


def approval(subject: str = "dlg_child", **more: Any) -> Approval:
    base: dict[str, Any] = {
        "id": f"apr_{subject}",
        "tenant": TENANT,
        "run": "dlg_run",
        "delegation": subject if subject.startswith("dlg_") else "dlg_child",
        "client": "support-app",
        "subject": subject,
        "digest": f"digest of {subject}",
        "state": ApprovalState.PENDING,
        "deadline": NOW + 120,
        "created_at": NOW,
        "policy_digest": "p" * 64,
    }
    return Approval(**(base | more))


def call(id: str = "call_1", **more: Any) -> Call:
    base: dict[str, Any] = {
        "id": id,
        "tenant": TENANT,
        "run": "dlg_run",
        "delegation": "dlg_child",
        "client": "support-app",
        "guard": "desk-server",
        "host": "desk",
        "tool": "refund",
        "effect": "irreversible",
        "args": {},
        "resources": (),
        "digest": f"digest of {id}",
        "state": CallState.WAITING,
        "decision": "require_approval",
        "reason": "policy_approval",
        "detail": "",
        "rule": None,
        "policy_digest": "p" * 64,
        "approval": f"apr_{id}",
        "at": NOW,
        "hold_until": NOW + 120,
    }
    return Call(**(base | more))
