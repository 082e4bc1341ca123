"""Functions, arguments and results that look like something else than what runs."""

import asyncio
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import InitVar, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass as checked

from carnet import ConfigError, Guard, Interrupted, Refused
from carnet.guard.binding import Binding
from carnet.reasons import Reason, Refusal
from carnet.testing import CarnetBroker


@pytest.fixture
def guard(carnet_broker: CarnetBroker) -> Guard:
    return carnet_broker.bind(Guard("desk"))


class Abort(BaseException):
    """Not an Exception, as a framework's own exits are."""


async def _later(query: str) -> str:
    raise AssertionError(f"ran after its call: {query}")


def _lazily(query: str) -> Iterator[str]:
    yield query
    raise AssertionError("ran after its call")


async def _drop(query: str) -> Any:
    return _lazily(query)


@pytest.mark.parametrize("given", [lambda query: _later(query), lambda query: _lazily(query), _drop])
def test_what_would_run_after_its_call_does_not_run(
    carnet_broker: CarnetBroker, guard: Guard, given: Callable[..., Any]
) -> None:
    @functools.wraps(given)
    def tool(query: str) -> Any:
        return given(query)

    search = guard.tool(given if given is _drop else tool, name="search")
    with carnet_broker.child(tools=["search"]):
        with pytest.raises(ConfigError, match="after the guard"):
            asyncio.run(search("a")) if given is _drop else search("a")
        guard.ship()
    outcomes = [row["outcome"] for row in carnet_broker.records() if row["kind"] == "call_outcome"]
    assert outcomes == ["unknown"]


def test_an_exit_that_is_no_exception_leaves_an_outcome(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> None:
        raise Abort

    @guard.tool
    async def tag(ticket: str, label: str) -> None:
        raise Abort

    with carnet_broker.child(tools=["search", "tag"]):
        with pytest.raises(Abort):
            search("a")
        with pytest.raises(Abort):
            asyncio.run(tag("a", "b"))
        guard.ship()
    assert [r["outcome"] for r in carnet_broker.records() if r["kind"] == "call_outcome"] == ["unknown", "unknown"]


def test_a_tool_that_calls_another_tool_is_asked_about_both(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    @guard.tool
    def tag(ticket: str, label: str) -> str:
        return search(label)

    @guard.tool
    async def lookup(ticket: str) -> str:
        return search("x" * 300)

    with carnet_broker.child(tools=["search", "tag", "lookup"]):
        assert tag("t", "inner") == "inner"
        with pytest.raises(Refused) as inner:
            asyncio.run(lookup("t"))
    assert inner.value.reason is Reason.NO_MATCH


def test_a_tool_that_ends_its_own_delegation_is_refused_from_then_on(carnet_broker: CarnetBroker, guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        carnet_broker.revoke(f"dlg:{query}")
        return "secret"

    with carnet_broker.child(tools=["search"]) as child:
        refused = None
        until = time.monotonic() + 5
        while refused is None and time.monotonic() < until:
            try:
                with suppress(Interrupted):  # it depends on when the guard hears of it
                    search(child.id)
            except Refused as fault:
                refused = fault
    assert refused is not None
    assert refused.reason is Reason.REVOKED


def test_an_argument_named_like_a_receiver_is_an_argument() -> None:
    def classify(cls: str, text: str) -> str:
        return cls + text

    frozen = Binding(classify, "classify").freeze(("a", "b"), {})
    assert not isinstance(frozen, Refusal)
    assert frozen.json == {"cls": "a", "text": "b"}
    assert isinstance(Binding(classify, "classify").freeze((object(), "b"), {}), Refusal)


def test_methods_of_every_kind(guard: Guard) -> None:
    class Desk:
        @classmethod
        def of_class(cls, query: str) -> str:
            return query

        @staticmethod
        def plain(query: str) -> str:
            return query

        def own(self, query: str) -> str:
            return query

    for given in (Desk.of_class, Desk.plain, Desk().own, Desk.own):
        frozen = Binding(given, "t").freeze((Desk(), "q") if given is Desk.own else ("q",), {})
        assert not isinstance(frozen, Refusal)
        assert frozen.json == {"query": "q"}
    with pytest.raises(ConfigError, match="below @classmethod"):
        guard.tool(Desk.__dict__["of_class"], name="search")


def test_a_function_that_carries_anothers_mark_is_not_taken_for_guarded(guard: Guard) -> None:
    @guard.tool
    def search(query: str) -> str:
        return query

    @functools.wraps(search)
    def other(query: str) -> str:
        return "nobody asked"

    assert guard.owned(other) is None
    with pytest.raises(ConfigError, match="copies the mark"):
        guard.tool(other, name="tag")


def test_a_dataclass_that_takes_any_field_has_no_form() -> None:
    @checked(config=ConfigDict(extra="allow"))
    class Order:
        ticket: str

    def tag(order: Order) -> None: ...

    tag.__annotations__["order"] = Order
    with pytest.raises(ConfigError, match="does not name"):
        Binding(tag, "tag")


@dataclass
class Hidden:
    ticket: str
    amount: InitVar[int] = 0

    def __post_init__(self, amount: int) -> None:
        self.taken = amount


def test_a_dataclass_that_takes_what_is_no_field_has_no_form() -> None:
    def tag(order: Hidden) -> None: ...

    with pytest.raises(ConfigError, match="InitVar"):
        Binding(tag, "tag")


ODD = [2**53, -(2**53), 2**53 + 1, 10**5000, -0.0, float("inf"), float("nan"), "\ud800", {"\udfff": 1}, [["\ud83d"]]]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("annotation", [Any, int, float, str, list[Any]])
def test_what_has_no_canonical_form_is_refused_whoever_decides(value: Any, annotation: Any) -> None:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = annotation
    assert isinstance(Binding(tool, "tool").freeze((value,), {}), Refusal)


@pytest.mark.parametrize("value", [Decimal(2**53), Decimal("1e20"), Decimal("-9007199254740992")])
def test_a_decimal_is_bound_like_the_number_it_equals(value: Decimal) -> None:
    def tool(value: Decimal) -> None: ...

    assert isinstance(Binding(tool, "tool").freeze((value,), {}), Refusal)


class Lied(int):
    def __le__(self, other: object) -> bool:
        return True


class LiedText(str):
    def __len__(self) -> int:
        return 0


LIMITS = [2**53, 10**5000, -0.0, "\ud800", Lied(99), LiedText("5"), 1e22, 51, True, None]


@pytest.mark.parametrize("journal", [True, False])
@pytest.mark.parametrize("odd", LIMITS, ids=range(len(LIMITS)))
def test_no_odd_number_passes_either_lane(
    carnet_broker: CarnetBroker, tmp_path: Path, odd: Any, *, journal: bool
) -> None:
    guard = carnet_broker.bind(Guard("desk", journal=tmp_path), journal=journal)

    @guard.tool
    def search(query: str, limit: Any = 5) -> None:
        raise AssertionError("reached")

    with carnet_broker.child(tools=["search"]), pytest.raises(Refused):
        search("a", odd)


def test_a_default_that_changes_is_copied_for_each_call(carnet_broker: CarnetBroker, guard: Guard) -> None:
    kept: list[str] = []

    @guard.tool
    def tag(ticket: str, label: str = "a", /) -> None:
        kept.append(label)

    def listed(ticket: str, labels: list[str] = []) -> list[str]:  # noqa: B006 - the point of the test
        labels.append(ticket)
        return labels

    binding = Binding(listed, "listed")
    for _ in range(2):
        frozen = binding.freeze(("t",), {})
        assert not isinstance(frozen, Refusal)
        assert listed(*frozen.args, **frozen.kwargs) == ["t"]
    with carnet_broker.child(tools=["tag"]):
        tag("t")
        with pytest.raises(Refused):
            tag(ticket="t")  # type: ignore[call-arg]
    assert kept == ["a"]
