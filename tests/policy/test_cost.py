"""What a decision, a row and a load cost. The bounds are ten times the usual figures, so that noise passes."""

import subprocess
import sys
import time
from collections.abc import Callable

from carnet_policy import Call, Folds, Ledger, PastCall, evaluate, loads
from tests.policy.building import policy_of

POLICY = policy_of(
    "catalog: {refund: {effect: irreversible, resource_arg: customer_id}, read: {effect: read}}\n"
    "tools:\n"
    "  read: [{decision: allow, args: {customer_id: {pattern: '^cust_[0-9]{6}$'}}}]\n"
    "  refund:\n"
    "    - {decision: require_approval, args: {amount: {type: number, min: 0.01, max: 50}, customer_id: {}}}\n"
    "    - {decision: deny, args: {amount: {min: 50.01}}}\n"
    "history:\n"
    "  - {match: irreversible, max: 1000000, decision: deny}\n"
    "  - {match: {tool: refund}, sum: amount, max: 100000000, over: client, window: 86400, decision: deny}\n"
    "  - {match: {tool: read}, distinct: customer_id, max: 100000, decision: require_approval}\n"
)
CALLS = [
    Call("read", {"customer_id": "cust_123456"}),
    Call("refund", {"amount": 5.25, "customer_id": "cust_123456"}),
    Call("refund", {"amount": 51, "customer_id": "cust_123456"}),
]


def micros(work: Callable[[], object], times: int) -> float:
    """CPU microseconds of one round, the best of five."""
    best = float("inf")
    for _ in range(5):
        begin = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - begin) / times * 1e6)
    return best


def test_a_decision_costs_the_same_after_ten_thousand_calls() -> None:
    run, client = Folds(POLICY), Folds(POLICY, "client")
    begin = time.process_time()
    for number in range(10_000):
        args = {"amount": number / 100, "customer_id": f"cust_{number:06}"}
        row = PastCall("refund" if number % 2 else "read", args, number)
        run.put(str(number), row)
        client.put(str(number), row)
    assert (time.process_time() - begin) / 20_000 * 1e6 < 100
    for call in CALLS:
        ledger = Ledger(run, client, 50_000, 0)
        assert micros(lambda call=call, ledger=ledger: evaluate(POLICY, call, ledger), 500) < 50  # type: ignore[misc]


def test_ten_thousand_rules_load_in_seconds() -> None:
    rule = "    - {decision: allow, args: {amount: {min: 0, max: 50}, id: {pattern: '^c%d_[0-9]+$'}}}\n"
    text = "version: 1\ntools:\n" + "".join(f"  tool{tool}:\n" + rule % tool * 10 for tool in range(1000))
    begin = time.process_time()
    policy = loads([("large.yaml", text)])
    assert time.process_time() - begin < 20
    assert len(policy.tools) == 1000
    assert micros(lambda: evaluate(policy, Call("tool7", {"amount": 1, "id": "c7_1"}), None), 500) < 50


def test_importing_the_package_loads_no_parser_and_no_engine() -> None:
    heavy = "{'yaml', 'jsonschema_rs', 'dataclasses', 'hashlib'}"
    code = f"import sys, carnet_policy; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_deciding_on_constraints_without_patterns_loads_no_parser_and_no_engine() -> None:
    code = (
        "import sys, carnet_policy as p; c = p.compile_constraints({'a': {'max': 5}}, 'x'); p.satisfies(c, {'a': 1})\n"
        "print(sorted({'yaml', 'jsonschema_rs'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
