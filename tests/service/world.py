"""One tenant on a real store with real keys and a clock that stands still, and the steps that most tests begin with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from carnet.audit import Record
from carnet.clock import ManualClock
from carnet.reasons import Refusal
from carnet.token.claims import Claims
from carnet_broker.config.passphrase import hash_passphrase
from carnet_broker.core.registry import Agent, Client, Host, Limits, Operator, Registry, Role
from carnet_broker.keys import KeyRing
from carnet_broker.service.context import Context
from carnet_broker.service.facade import Service
from carnet_broker.service.ids import RandomIds
from carnet_broker.service.principals import Bearer, Kind, Principal
from carnet_broker.service.requests import CallRequest, SpawnRequest, Verdict
from carnet_broker.service.views import ApprovalView, CallView, DelegationView, Issued
from carnet_broker.store.base import Index, Store, Where
from carnet_broker.store.limits import Limits as StoreLimits
from carnet_broker.store.sqlite import SqliteStore
from carnet_policy import Schema, loads

T = TypeVar("T")
ISSUER = "https://carnet.example"
TENANT = "acme"
TRACE = "a" * 32
PASSPHRASE = "correct horse"
STORED = hash_passphrase(PASSPHRASE, b"0123456789abcdef")
SECRET = "s" * 43
POLICY = """
id: support-tools
version: 3
catalog:
  search: {effect: read}
  profile: {effect: read, resource_arg: customer_id}
  note: {effect: write}
  refund: {effect: irreversible, resource_arg: customer_id}
  wipe: {effect: irreversible}
tools:
  search: [{decision: allow, args: {query: {type: string, max_length: 100}}}]
  profile: [{decision: allow, args: {customer_id: {type: string}}}]
  note: [{decision: allow, args: {text: {type: string}}}]
  refund:
    - {decision: require_approval, args: {amount: {type: number, min: 0.01, max: 50}, customer_id: {type: string}}}
    - {decision: deny, args: {amount: {min: 50.01}}, reason: refunds above 50 need finance}
  wipe: [{decision: allow, args: {name: {type: string}}}]
%s
"""
ONE_IRREVERSIBLE = "history: [{match: irreversible, max: 1, decision: deny, reason: second irreversible action}]\n"
QUIET = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 0}
RISKY = {**QUIET, "reversible": False, "resource_count": 5}
PARENT = Principal(kind=Kind.AGENT, tenant=TENANT, name="support", client="support-app")
OTHER = Principal(kind=Kind.AGENT, tenant=TENANT, name="support", client="other-app")
GUARD = Principal(kind=Kind.HOST, tenant=TENANT, name="desk", client="desk-guard")
PAY_GUARD = Principal(kind=Kind.HOST, tenant=TENANT, name="pay", client="pay-guard")


def operator(name: str, role: Role) -> Principal:
    return Principal(kind=Kind.OPERATOR, tenant=TENANT, name=name, role=role)


ADA = operator("ada", Role.APPROVER)
OWEN = operator("owen", Role.ADMIN)  # owns the agent support
GRACE = operator("grace", Role.OPERATOR)
VERA = operator("vera", Role.VIEWER)
ROOT = operator("root", Role.ADMIN)


def registry(more: str = "", limits: Limits | None = None, tenant: str = TENANT) -> Registry:
    people = {
        "ada": Operator(name="ada", role=Role.APPROVER, groups=frozenset({"leads"}), passphrase=STORED),
        "owen": Operator(name="owen", role=Role.ADMIN, groups=frozenset({"leads"}), passphrase=STORED),
        "grace": Operator(name="grace", role=Role.OPERATOR, passphrase=STORED),
        "vera": Operator(name="vera", role=Role.VIEWER, passphrase=STORED),
        "root": Operator(name="root", role=Role.ADMIN, passphrase=STORED),
    }
    every = frozenset({"search", "profile", "note", "refund", "wipe"})
    schema = Schema.compile({"type": "object", "properties": {"ticket": {"type": "string"}}, "required": ["ticket"]})
    hashed = sha256(SECRET.encode()).hexdigest()
    return Registry(
        tenant=tenant,
        agents={
            "support": Agent(
                name="support",
                owner="owen",
                tools=frozenset({"search"}),
                grants=every,
                callable_agents=frozenset({"worker", "clerk"}),
            ),
            "worker": Agent(name="worker", tools=every),
            "clerk": Agent(name="clerk", tools=frozenset({"refund"}), handoff=schema),
        },
        hosts={
            "desk": Host(
                name="desk",
                audience="https://desk.example",
                tools=frozenset({"search", "profile", "note", "wipe"}),
                clear_fields=frozenset({"note.text"}),
            ),
            "pay": Host(name="pay", audience="https://pay.example", tools=frozenset({"refund"})),
        },
        clients={
            "support-app": Client(id="support-app", agent="support", secret_sha256=hashed),
            "other-app": Client(id="other-app", agent="support", secret_sha256=hashed),
            "desk-guard": Client(id="desk-guard", host="desk", secret_sha256=hashed),
            "pay-guard": Client(id="pay-guard", host="pay", secret_sha256=hashed),
        },
        operators=people,
        limits=limits or Limits(),
        policy=loads([("tools.policy.yaml", POLICY % more)]),
    )


@dataclass(eq=False)
class World:
    context: Context
    service: Service
    clock: ManualClock
    keys: "count[int]" = field(default_factory=count)

    @property
    def store(self) -> Store:
        return self.context.store

    async def root(self, who: Principal = PARENT) -> Claims:
        issued = good(await self.service.open_run(who, None, TRACE), Issued)
        return await self.claims(issued.access_token)

    async def claims(self, token: str) -> Claims:
        return good(await self.service.caller(token, frozenset({Bearer.ROOT, Bearer.CHILD})), Claims)

    async def spawn(
        self, root: Claims, tools: Sequence[str] = ("search",), *, key: str | None = None, **more: Any
    ) -> DelegationView | Refusal:
        task = {**more.pop("task", QUIET), "tools": list(tools)}
        request = SpawnRequest(**{"target": "worker", "task": task, "hosts": ("*",), **more})
        return await self.service.spawn(root, request, key, TRACE)

    async def child(self, root: Claims, tools: Sequence[str] = ("search",), **more: Any) -> DelegationView:
        return good(await self.spawn(root, tools, **more), DelegationView)

    async def approve(self, approval: str, who: Principal = ADA) -> ApprovalView | Refusal:
        return await self.service.answer(who, approval, Verdict.APPROVE, "fine", PASSPHRASE, TRACE)

    async def approved(self, root: Claims, tools: Sequence[str] = ("refund",), **more: Any) -> tuple[str, str]:
        """A child of level 2 that a person approved: its id and its token for the first host."""
        view = await self.child(root, tools, **{"task": RISKY, **more})
        assert view.approval is not None
        good(await self.approve(view.approval.id), ApprovalView)
        made = await self.service.mint(root, view.id, None, TRACE)
        assert not isinstance(made, Refusal), made
        return view.id, next(iter(made.values())).access_token

    async def call(
        self,
        token: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        guard: Principal | None = None,
        key: str | None = None,
        **more: Any,
    ) -> CallView | Refusal:
        request = CallRequest(token=token, tool=tool, args=dict(args), **more)
        given = key or f"k{next(self.keys):031x}"
        return await self.service.call(guard, request, None if more.get("preview") else given, TRACE)

    async def called(self, token: str, tool: str, args: Mapping[str, Any], **more: Any) -> CallView:
        return good(await self.call(token, tool, args, **more), CallView)

    async def audit(self, kind: str | None = None) -> list[Record]:
        page = await self.store.find(Record, TENANT, Where(index=Index.RECORDS), None, 1000)
        return [row for row in page.rows if kind in (None, row.kind)]


def good(value: object, kind: type[T]) -> T:
    assert isinstance(value, kind), value
    return value


async def build(path: Path, clock: ManualClock, more: str = "", **limits: Any) -> World:
    store = SqliteStore.open(path / "carnet.db", clock=clock.now, limits=StoreLimits(reserve=4096))
    return await on(store, clock, more, Limits(**limits))


async def on(store: Store, clock: ManualClock, more: str = "", limits: Limits | None = None) -> World:
    context = Context(
        store=store,
        keys=KeyRing.ephemeral(now=clock.now()),
        registries={TENANT: registry(more, limits)},
        issuer=ISSUER,
        ids=RandomIds(),
    )
    service = Service(context)
    await service.activate_policy(TENANT)
    return World(context, service, clock)
