"""From a signature to JSON arguments: what has a JSON form, what is refused, what can't be guarded."""

import copy
import functools
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

import pytest
from fastapi import Depends, Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from carnet import ConfigError, Guard
from carnet.arguments import canonical
from carnet.guard.binding import Binding, Frozen, freeze_json
from carnet.reasons import Reason, Refusal

_DEPENDS = Depends(object)


class Colour(StrEnum):
    RED = "red"


class Number(Enum):
    ONE = 1


@dataclass
class Point:
    x: int
    tags: list[str] = field(default_factory=list)


class Order(BaseModel):
    amount: float
    point: Point | None = None


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


class Row(TypedDict):
    name: str
    age: NotRequired[int]


def json_of(fn: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    frozen = Binding(fn, "tool").freeze(args, kwargs)
    assert isinstance(frozen, Frozen), frozen
    assert isinstance(canonical(frozen.json), bytes)
    return frozen.json


def reason_of(fn: Any, *args: Any, **kwargs: Any) -> Reason:
    refusal = Binding(fn, "tool").freeze(args, kwargs)
    assert isinstance(refusal, Refusal)
    return refusal.reason


def one(annotation: Any) -> Any:
    def tool(value: Any) -> None: ...

    tool.__annotations__ = {"value": annotation}
    return tool


@pytest.mark.parametrize(
    ("annotation", "value", "json"),
    [
        (int, 1, 1),
        (float, 1.5, 1.5),
        (float, 1, 1),
        (bool, True, True),
        (str | None, None, None),
        (list[int], [1], [1]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (tuple[int, ...], (1, 2), [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Any, {"a": [1, None]}, {"a": [1, None]}),
        (Literal["a", 1], 1, 1),
        (Colour, Colour.RED, "red"),
        (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (date, date(2026, 1, 2), "2026-01-02"),
        (datetime, datetime(2026, 1, 2), "2026-01-02T00:00:00"),  # noqa: DTZ001
        (Decimal, Decimal("20.50"), 20.5),
        (Decimal, Decimal("20"), 20),
        (list[Point], [Point(1)], [{"x": 1, "tags": []}]),
        (Order | None, Order(amount=2.5), {"amount": 2.5, "point": None}),
        (Annotated[int, "anything"], 3, 3),
    ],
)
def test_values_read_as_json(annotation: Any, value: Any, json: Any) -> None:
    read = json_of(one(annotation), value)["value"]
    assert read == json
    assert type(read) is type(json)


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, True),
        (int, 1.0),
        (float, "1"),
        (str, Text("a")),
        (str, b"a"),
        (list[int], (1,)),
        (list[int], ["1"]),
        (dict[str, int], {1: 1}),
        (Any, {1, 2}),
        (Any, float("nan")),
        (Literal[1], True),
        (Literal[1], 1.0),
        (Colour, "red"),
        (Decimal, Decimal("NaN")),
        (Decimal, Decimal("0.1000000000000000000001")),
        (datetime, date(2026, 1, 2)),
        (Order | None, {"amount": 1}),
        (Row, {"name": "a", "other": 1}),
        (Row, {"age": 1}),
    ],
)
def test_values_that_are_not_what_was_annotated_are_refused(annotation: Any, value: Any) -> None:
    spread = annotation is Row
    assert reason_of(one(annotation), value) is Reason.ARGUMENTS_INVALID, spread


def test_a_model_parameter_is_spread() -> None:
    def by_model(order: Order) -> None: ...
    def by_dataclass(point: Point, note: str = "n") -> None: ...
    def by_row(row: Row) -> None: ...

    assert json_of(by_model, Order(amount=1.0, point=Point(2))) == {"amount": 1.0, "point": {"x": 2, "tags": []}}
    assert json_of(by_dataclass, Point(1, ["a"])) == {"x": 1, "tags": ["a"], "note": "n"}
    assert json_of(by_row, {"name": "a"}) == {"name": "a"}


def test_defaults_are_applied_and_position_does_not_matter() -> None:
    def tool(a: int, b: str = "b", *, c: float = 1.0) -> None: ...

    assert json_of(tool, 1) == json_of(tool, a=1) == {"a": 1, "b": "b", "c": 1.0}
    assert json_of(tool, 1, "b", c=1.0) == json_of(tool, b="b", a=1)


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2), {}), ((1,), {"a": 1}), ((), {"a": 1, "z": 1})])
def test_a_call_that_python_would_not_take_is_refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def tool(a: int) -> None: ...

    assert reason_of(tool, *args, **kwargs) is Reason.ARGUMENTS_INVALID


def test_injected_parameters_are_no_arguments_and_pass_unread() -> None:
    secret = object()

    def tool(
        a: int, request: Request, db: Annotated[object, Depends(object)], other: Any = _DEPENDS, ctx: Any = None
    ) -> None: ...

    frozen = Binding(tool, "tool", ["ctx"]).freeze(
        (1,), {"request": secret, "db": secret, "other": secret, "ctx": secret}
    )
    assert isinstance(frozen, Frozen)
    assert frozen.json == {"a": 1}
    assert frozen.kwargs["db"] is secret


def test_self_is_no_argument() -> None:
    class Desk:
        def search(self, query: str) -> None: ...

    frozen = Binding(Desk.search, "tool").freeze((Desk(), "a"), {})
    assert isinstance(frozen, Frozen)
    assert frozen.json == {"query": "a"}


def test_the_tool_gets_a_copy_that_nobody_else_holds() -> None:
    mine = {"value": [Point(1, ["a"])]}
    frozen = Binding(one(list[Point]), "tool").freeze((), mine)
    assert isinstance(frozen, Frozen)
    mine["value"][0].tags.append("b")
    mine["value"].append(Point(9))
    assert frozen.kwargs["value"] == [Point(1, ["a"])]
    assert frozen.json == {"value": [{"x": 1, "tags": ["a"]}]}


def test_a_deep_copy_that_lies_is_read_after_it_lied() -> None:
    @dataclass
    class Liar:
        amount: int

        def __deepcopy__(self, _: Any) -> "Liar":
            return Liar(999)

    def tool(liar: Liar) -> None: ...

    frozen = Binding(tool, "tool").freeze((Liar(1),), {})
    assert isinstance(frozen, Frozen)
    assert frozen.json == {"amount": 999}
    assert frozen.kwargs["liar"].amount == 999


def rest(*args: int) -> None: ...
def named(**kwargs: int) -> None: ...
def generator(a: int) -> Iterator[int]:
    yield a


async def agenerator(a: int) -> AsyncIterator[int]:
    yield a


def clash(point: Point, x: int) -> None: ...
def loose(loose: Loose) -> None: ...
def numbers(n: Number) -> None: ...
def bytes_(b: bytes) -> None: ...
def span(d: timedelta) -> None: ...
def keyed(d: dict[int, str]) -> None: ...
def missing(a: "NotImported") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "fn", [rest, named, generator, agenerator, clash, loose, numbers, bytes_, span, keyed, missing, lambda x, *y: x]
)
def test_what_has_no_json_form_is_a_config_error_at_decoration(fn: Any) -> None:
    with pytest.raises(ConfigError):
        Guard("desk").tool(fn, name="tool")


def test_the_error_names_the_import_and_context_mends_it() -> None:
    with pytest.raises(ConfigError, match="NotImported"):
        Binding(missing, "tool")
    frozen = Binding(missing, "tool", ["a"]).freeze((1,), {})
    assert isinstance(frozen, Frozen)
    assert frozen.json == {}


def test_two_tools_of_one_name_and_unknown_context_are_config_errors() -> None:
    guard = Guard("desk")
    guard.tool(lambda a: a, name="tool")
    with pytest.raises(ConfigError, match="two functions"):
        guard.tool(lambda b: b, name="tool")
    with pytest.raises(ConfigError, match="does not take"):
        guard.tool(lambda b: b, name="other", context=["z"])
    with pytest.raises(ConfigError, match="no tool name"):
        guard.tool(lambda b: b, name="a b")


def test_a_partial_is_a_tool() -> None:
    def tool(a: int, b: int) -> None: ...

    assert json_of(functools.partial(tool, b=2), 1) == {"a": 1, "b": 2}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), JSON, max_size=4))
def test_json_arguments_are_copied_whole_and_shared_with_nobody(args: dict[str, Any]) -> None:
    before = copy.deepcopy(args)
    frozen = freeze_json(args)
    assert isinstance(frozen, Refusal) == isinstance(canonical(before), Refusal), "both lanes take the same arguments"
    if isinstance(frozen, Refusal):
        return
    assert repr(frozen.json) == repr(before)
    _wreck(args)
    assert repr(frozen.json) == repr(before)


def _wreck(value: Any) -> None:
    if isinstance(value, dict):
        for inner in value.values():
            _wreck(inner)
        value.clear()
    elif isinstance(value, list):
        for inner in value:
            _wreck(inner)
        value.clear()


def test_depth_is_bounded() -> None:
    value: Any = []
    for _ in range(sys.getrecursionlimit() * 2):
        value = [value]
    assert isinstance(freeze_json({"a": value}), Refusal)
