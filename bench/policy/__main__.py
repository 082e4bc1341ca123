"""A policy decision against cedarpy, regopy and pycasbin in one run: `python -m bench.policy`. Exits 1 below a floor.

Each engine is asked the way that is fastest for it, with all that can be prepared before the clock starts: handles, a
built bundle, and here a judge of each tool, as a guard keeps them for calls that need no past. The ratios of
`evaluate`, which looks everything up anew, are printed beside it without a floor.
"""

import sys
from collections.abc import Callable

from bench.policy.peers import PEERS, Asked, call_of
from bench.timing import Figure, cpu_seconds, render
from carnet_policy import Call, Effect, evaluate, judge_of, loads

__all__ = ["main"]

FLOOR = 30
OWN, PLAIN = "policy decision", "evaluate, unprepared"
POLICY = """\
id: tools
version: 3
defaults: {decision: deny}
catalog:
  search_tickets: {effect: read}
  read_customer_record: {effect: read}
  refund: {effect: irreversible}
tools:
  search_tickets:
    - {decision: allow, args: {query: {type: string, max_length: 200}}}
  read_customer_record:
    - {decision: allow, args: {customer_id: {pattern: "^cust_[0-9]{6}$"}}}
  refund:
    - {decision: require_approval, args: {amount: {min: 0.01, max: 50}}}
    - {decision: deny, args: {amount: {min: 50.01}}, reason: "refunds above 50 need finance"}
history:
  - {match: irreversible, max: 1, decision: deny}
"""


def prepared(customer: str) -> Asked:
    policy = loads([("tools.policy.yaml", POLICY)])
    judges = {name: judge_of(policy, name) for name in policy.tools}
    tool, args = call_of(customer)
    return lambda: judges[tool](args).effect is Effect.ALLOW


def plain(customer: str) -> Asked:
    policy = loads([("tools.policy.yaml", POLICY)])
    tool, args = call_of(customer)
    return lambda: evaluate(policy, Call(tool, args), None).effect is Effect.ALLOW


def main() -> int:
    candidates = {OWN: checked(prepared), PLAIN: checked(plain)}
    for name, (package, make) in PEERS.items():
        try:
            candidates[name] = checked(make)
        except ImportError as error:
            sys.stdout.write(f"  {name}: not measured, {package} is not there ({error})\n")
    times = cpu_seconds(candidates)
    figures = [
        Figure(name=f"{own} / {name}", value=times[name] / times[own], floor=floor)
        for own, floor in ((OWN, FLOOR), (PLAIN, None))
        for name in PEERS
        if name in times
    ]
    figures += [Figure(name=name, value=taken * 1e6, floor=None, unit="us CPU") for name, taken in times.items()]
    sys.stdout.write("policy\n" + "".join(f"  {render(figure)}\n" for figure in figures))
    return 0 if all(figure.ok for figure in figures) else 1


def checked(make: Callable[[str], Asked]) -> Asked:
    """An engine that lets the right call through and not another one."""
    asked = make("cust_123456")
    if asked() is not True or make("other")() is not False:
        raise RuntimeError(f"{make.__name__} does not decide as the policy says")
    return asked


if __name__ == "__main__":
    sys.exit(main())
