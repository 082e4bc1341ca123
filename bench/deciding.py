"""What a guard's decision costs in this process, against PyJWT decoding the token at each call with the same policy."""

import time
from dataclasses import dataclass
from typing import Any

import jwt

from bench.timing import Figure, cpu_seconds
from bench.world import ARGS, AUDIENCE, ISSUER, TOOL, World, build
from carnet.audit import Kind
from carnet.guard.binding import Frozen
from carnet.guard.case import Case, admit, covered, is_local
from carnet.guard.journalfile import encode_line
from carnet.guard.lanes import judge
from carnet.guard.records import decided
from carnet.trace import Trace
from carnet_policy import Call, Folds, Ledger, evaluate

__all__ = ["measure"]

_MARKS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Holder:
    """The child that is current; the token is given, so nothing of it is asked."""

    id: str = "dlg"
    agent: str = "summarizer"
    level: int = 0
    tools: frozenset[str] = frozenset()
    expires_at: int | None = None
    max_wait: float | None = 0.0
    trace: Trace | None = None

    def token(self, host: str) -> str:
        raise RuntimeError(host)


def measure() -> list[Figure]:
    world, cold = build(), build().forgetful()
    frozen = Frozen(dict(ARGS), (), dict(ARGS))
    times = cpu_seconds(
        {
            "warm": lambda: _guard(world, frozen),
            "cold": lambda: _cold(cold, frozen),
            "pyjwt": lambda: _pyjwt(world),
            "policy": lambda: evaluate(_policy(world), Call(TOOL, ARGS), None),
        }
    )
    figures = [
        Figure(name="warm guard decision incl. audit / PyJWT + policy", value=times["pyjwt"] / times["warm"], floor=20),
        Figure(name="cold guard decision / PyJWT + policy", value=times["pyjwt"] / times["cold"], floor=1.4),
        Figure(name="warm guard decision incl. audit", value=times["warm"] * 1e6, floor=None, unit="us CPU"),
        Figure(name="cold guard decision", value=times["cold"] * 1e6, floor=None, unit="us CPU"),
        Figure(name="policy decision alone", value=times["policy"] * 1e6, floor=5, unit="us CPU", higher=False),
    ]
    return [*figures, _marks(frozen), _past(world)]


def _decide(world: World, frozen: Frozen) -> tuple[Case, Any]:
    """Verify, clear and decide: all that a call of the local lane passes before its record."""
    case = admit(world.state, TOOL, frozen, _HOLDER, world.token)
    if not isinstance(case, Case) or covered(world.state, case) is not None or not is_local(case):
        raise RuntimeError("the benchmark's call was refused")
    decision = judge(case.book, case)
    if decision.effect != "allow":
        raise RuntimeError("the benchmark's call was denied")
    return case, decision


def _guard(world: World, frozen: Frozen) -> bytes:
    """The same and the encoded record."""
    case, decision = _decide(world, frozen)
    line = decided(
        case.book, case.claims, kind=Kind.CALL_INTENT, call="call_bench", at=case.at, tool=TOOL,
        args=frozen.json, decision="allow", reason=decision.reason, detail=decision.detail, rule=decision.rule,
        trace_id="",
    )  # fmt: skip
    return encode_line(1, line)


def _cold(world: World, frozen: Frozen) -> object:
    world.swap()
    return _decide(world, frozen)


def _pyjwt(world: World) -> Any:
    """What a careful user would write with PyJWT alone."""
    key = world.keys.find(world.kid)
    if key is None:
        raise RuntimeError("the key that signed the token is not in the set")
    claims = jwt.decode(world.token, key.key, algorithms=["ES256"], audience=AUDIENCE, issuer=ISSUER)
    if claims["jti"] in world.state.feed.tenant.until or TOOL not in claims["scope"].split():
        raise PermissionError
    return evaluate(_policy(world), Call(TOOL, ARGS), None)


def _policy(world: World) -> Any:
    if world.state.book is None:
        raise RuntimeError("the world has no book")
    return world.state.book.policy


def _marks(frozen: Frozen) -> Figure:
    few, many = build(), build()
    many.revoke_others(_MARKS)
    times = cpu_seconds({"few": lambda: _guard(few, frozen), "many": lambda: _guard(many, frozen)}, rounds=11)
    return Figure(
        name="guard with 1,000,000 marks / with none", value=times["many"] / times["few"], floor=1.2, higher=False
    )


def _past(world: World) -> Figure:
    """The same decision in a run with 10,000 past calls."""
    from carnet_policy import PastCall

    policy = _policy(world)
    folds = Folds(policy, "run")
    now = int(time.time())
    for number in range(10_000):
        folds.put(f"call_{number}", PastCall("search_tickets", {"query": "x"}, now))
    ledger = Ledger(folds, None, now, now - 60)
    taken = cpu_seconds({"past": lambda: evaluate(policy, Call(TOOL, ARGS), ledger)})["past"]
    return Figure(name="policy decision after 10,000 calls", value=taken * 1e6, floor=5, unit="us CPU", higher=False)


_HOLDER = _Holder()
