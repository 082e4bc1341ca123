"""Whatever happens in whatever order: nothing dead acts, nothing irreversible happens twice, every act is on record."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from hypothesis import given
from hypothesis import strategies as st

from carnet.clock import ManualClock
from carnet.reasons import Refusal
from carnet_broker.service.requests import Verdict
from carnet_broker.service.views import AuditCheck, CallView, DelegationView
from tests.service.world import ADA, ONE_IRREVERSIBLE, QUIET, RISKY, ROOT, TRACE, VERA, World, build, good

ACTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["spawn", "risky", "sweep", "seal"]), st.just(0)),
        st.tuples(
            st.sampled_from(
                ["search", "refund", "approve", "deny", "answer", "refuse", "withdraw", "end", "revoke", "rush"]
            ),
            st.integers(0, 3),
        ),
        st.tuples(st.just("advance"), st.sampled_from([1, 60, 119, 120, 300, 900])),
    ),
    min_size=4,
    max_size=24,
)
REFUND = {"amount": 5, "customer_id": "cust_1"}


@dataclass
class Child:
    """What a model of the rules knows: until when the child may act, and whether somebody ended it."""

    view: DelegationView
    token: str | None
    until: int
    dead: bool = False
    question: str | None = None
    asked_until: int = 0
    granted: bool = False


@dataclass
class Story:
    world: World
    root: object = None
    children: list[Child] = field(default_factory=list)
    irreversible: int = 0

    @property
    def now(self) -> int:
        return self.world.clock.now()

    def pick(self, number: int) -> Child | None:
        return self.children[number % len(self.children)] if self.children else None

    async def act(self, name: str, number: int) -> None:
        if name == "advance":
            self.world.clock.advance(number)
        elif name in ("sweep", "seal"):
            await (self.world.service.sweep(self.now) if name == "sweep" else self.world.service.seal("acme"))
        elif name in ("spawn", "risky"):
            await self.spawn(name == "risky")
        elif (child := self.pick(number)) is not None:
            for step in ("approve", "refund", "answer", "refund") if name == "rush" else (name,):
                await getattr(self, step)(child)

    async def spawn(self, risky: bool) -> None:
        task = {**(RISKY if risky else QUIET), "resource_count": len(self.children) + 1}
        made = await self.world.spawn(self.root, ("refund",) if risky else ("search",), task=task)  # type: ignore[arg-type]
        if isinstance(made, DelegationView):
            token = None if risky else made.tokens["desk"].access_token
            self.children.append(Child(made, token, made.expires_at or 0))

    async def approve(self, child: Child) -> None:
        assert child.view.approval is not None
        done = await self.world.approve(child.view.approval.id)
        if isinstance(done, Refusal):
            return
        assert not child.dead
        assert self.now < child.view.approval.deadline
        made = await self.world.service.mint(self.root, child.view.id, None, TRACE)  # type: ignore[arg-type]
        if not isinstance(made, Refusal):
            child.token, child.until = made["pay"].access_token, self.now + 300

    async def deny(self, child: Child) -> None:
        assert child.view.approval is not None
        done = await self.world.service.answer(ADA, child.view.approval.id, Verdict.DENY, "", None, TRACE)
        child.dead |= not isinstance(done, Refusal)

    async def withdraw(self, child: Child) -> None:
        assert child.view.approval is not None
        done = await self.world.service.answer(ADA, child.view.approval.id, Verdict.WITHDRAW, "", None, TRACE)
        child.dead |= not isinstance(done, Refusal)

    async def answer(self, child: Child) -> None:
        if child.question is not None:
            done = await self.world.approve(child.question)
            if not isinstance(done, Refusal):
                assert not child.dead
                assert self.now < child.asked_until
                child.granted = True

    async def refuse(self, child: Child) -> None:
        if child.question is not None:
            done = await self.world.service.answer(ADA, child.question, Verdict.DENY, "", None, TRACE)
            child.dead |= not isinstance(done, Refusal)

    async def end(self, child: Child) -> None:
        await self.world.service.end(self.root, child.view.id, "completed", TRACE)  # type: ignore[arg-type]
        child.dead = True

    async def revoke(self, child: Child) -> None:
        await self.world.service.revoke(ROOT, child.view.id, None, "x", False, TRACE)
        child.dead = True

    async def search(self, child: Child) -> None:
        await self.call(child, "search", {"query": "a"})

    async def refund(self, child: Child) -> None:
        await self.call(child, "refund", REFUND)

    async def call(self, child: Child, tool: str, args: dict[str, object]) -> None:
        if child.token is None:
            return
        made = await self.world.call(child.token, tool, args)
        if isinstance(made, Refusal) or made.decision == "deny":
            return
        assert isinstance(made, CallView)
        assert not child.dead
        assert self.now < child.until
        if made.decision == "allow" and tool == "refund":
            assert child.granted, "nobody approved this call"
            child.granted, child.question = False, None
            self.irreversible += 1
        elif made.decision == "require_approval":
            child.question, child.asked_until = made.approval_id, made.deadline or child.asked_until
        assert self.irreversible <= 1


async def tell(acts: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = await build(Path(folder), ManualClock(), ONE_IRREVERSIBLE)
        story = Story(world, await world.root())
        for name, number in acts:
            await story.act(name, number)
        await world.service.seal("acme")
        assert good(await world.service.verify_audit(VERA), AuditCheck).ok
        decided = [row for row in await world.audit("call_decided") if row.decision == "allow" and row.tool == "refund"]
        assert len(decided) == story.irreversible
        await world.store.close()


@given(ACTS)
def test_no_order_of_events_lets_anything_through(acts: list[tuple[str, int]]) -> None:
    anyio.run(tell, acts)
