"""Other engines, each asked in the way that is fastest for it: everything parsed or built before the clock starts."""

import logging
from collections.abc import Callable
from importlib import import_module

__all__ = ["PEERS", "Asked", "call_of"]

Asked = Callable[[], object]
CEDAR = """
permit(principal, action == Action::"search_tickets", resource);
permit(principal, action == Action::"read_customer_record", resource) when { context.customer_id like "cust_*" };
permit(principal, action == Action::"refund", resource) when { context.amount <= 0 };
forbid(principal, action == Action::"refund", resource) when { context.amount > 50 };
"""
REGO = """package tools
default decision := "deny"
decision := "allow" if { input.tool == "search_tickets"; count(input.args.query) <= 200 }
decision := "allow" if { input.tool == "read_customer_record"; regex.match("^cust_[0-9]{6}$", input.args.customer_id) }
decision := "require_approval" if { input.tool == "refund"; input.args.amount >= 0.01; input.args.amount <= 50 }
"""
MODEL = """[request_definition]
r = sub, tool, arg
[policy_definition]
p = sub, tool, pat
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && r.tool == p.tool && regexMatch(r.arg, p.pat)
"""
CASBIN = (
    ("search_tickets", "^.{0,200}$"), ("read_customer_record", "^cust_[0-9]{6}$"), ("list_orders", ".*"),
    ("update_ticket", ".*"),
)  # fmt: skip


def call_of(customer: str) -> tuple[str, dict[str, object]]:
    """The call that all engines are asked about."""
    return "read_customer_record", {"customer_id": customer}


def cedar(customer: str) -> Asked:
    """cedarpy with handles: policies and entities parsed once."""
    cedarpy = import_module("cedarpy")
    tool, args = call_of(customer)
    policies, entities = cedarpy.PolicySet.from_str(CEDAR), cedarpy.Entities.from_json_str("[]")
    request = {
        "principal": 'Agent::"child"', "action": f'Action::"{tool}"', "resource": 'Record::"customer"', "context": args
    }  # fmt: skip
    return lambda: bool(cedarpy.is_authorized(request, policies, entities).allowed)


def rego(customer: str) -> Asked:
    """regopy with a bundle built once and its entry point."""
    regopy = import_module("regopy")
    tool, args = call_of(customer)
    builder = regopy.Interpreter()
    builder.add_module("tools", REGO)
    bundle = builder.build("data.tools.decision", ["tools/decision"])
    asked, given = regopy.Interpreter(), {"tool": tool, "args": args}

    def ask() -> bool:
        asked.set_input(given)
        return bool(asked.query_bundle_entrypoint(bundle, "tools/decision").results[0].expressions[0] == "allow")

    return ask


def casbin(customer: str) -> Asked:
    """pycasbin with four rules and `regexMatch`."""
    library = import_module("casbin")
    tool, args = call_of(customer)
    logging.getLogger("casbin").setLevel(logging.CRITICAL)  # it logs each decision, which would be timed as well
    model = library.Model()
    model.load_model_from_text(MODEL)
    enforcer = library.Enforcer(model)
    for name, pattern in CASBIN:
        enforcer.add_policy("child", name, pattern)
    return lambda: bool(enforcer.enforce("child", tool, args["customer_id"]))


PEERS: dict[str, tuple[str, Callable[[str], Asked]]] = {
    "cedarpy (handles)": ("cedarpy", cedar),
    "regopy (bundle)": ("regopy", rego),
    "pycasbin": ("casbin", casbin),
}
