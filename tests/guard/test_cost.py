"""What a call of the local lane costs here. Figures are printed (pytest -s); bounds are wide, for machines differ."""

import time
from collections.abc import Callable

from carnet import Guard
from carnet.guard.binding import Binding
from carnet.testing import CarnetBroker


def median(call: Callable[[], object], rounds: int) -> float:
    """Microseconds of thread time, so that neighbours on the machine do not count."""
    taken = []
    for _ in range(rounds):
        began = time.thread_time_ns()
        call()
        taken.append(time.thread_time_ns() - began)
    return sorted(taken)[rounds // 2] / 1000


def test_a_warm_local_decision_is_cheap(carnet_broker: CarnetBroker) -> None:
    guard = carnet_broker.bind(Guard("desk"))

    def search(query: str, limit: int = 5) -> str:
        return query

    guarded, binding = guard.tool(search), Binding(search, "search")
    with carnet_broker.child(tools=["search"]):
        guarded("late parcels")
        dispatch = guard.started().dispatch

        def decide() -> None:
            frozen = binding.freeze(("late parcels",), {})
            assert not isinstance(frozen, Exception)
            case = dispatch._cleared("search", frozen)  # type: ignore[arg-type]
            dispatch._lanes.local(case)

        decided, called = median(decide, 2000), median(lambda: guarded("late parcels"), 300)
    print(f"\nwarm local decision with its record: {decided:.0f} us CPU; whole call with fsync: {called:.0f} us CPU")
    assert decided < 500
    assert called < 5000
