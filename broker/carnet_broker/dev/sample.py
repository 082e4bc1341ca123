"""The demo registry and policy: a support parent with 14 tools on two hosts, three kinds of children."""

from collections.abc import Mapping

__all__ = ["POLICY", "registry"]

POLICY = """\
id: support-tools
version: 3
defaults: {decision: deny}
catalog:
  search_tickets:  {effect: read}
  read_ticket:     {effect: read}
  search_articles: {effect: read}
  list_orders:     {effect: read}
  get_order:       {effect: read}
  get_shipping:    {effect: read}
  get_policy_text: {effect: read}
  get_invoice:     {effect: read}
  summarize:       {effect: read}
  tag_ticket:      {effect: write, resource_arg: ticket_id}
  add_note:        {effect: write, resource_arg: ticket_id}
  refund:          {effect: irreversible, resource_arg: customer_id}
  send_email:      {effect: irreversible}
  close_account:   {effect: irreversible, resource_arg: customer_id}
tools:
  search_tickets:
    - decision: allow
      args: {query: {type: string, max_length: 200}}
  summarize:
    - decision: allow
      args: {text: {type: string, max_length: 2000}}
  tag_ticket:
    - decision: allow
      args: {ticket_id: {pattern: "^T-[0-9]{1,9}$"}, tag: {enum: [late, refunded, spam]}}
  get_invoice:
    - decision: allow
      args: {customer_id: {pattern: "^cust_[0-9]{6}$"}}
  refund:
    - decision: require_approval
      args: {amount: {type: number, min: 0.01, max: 50}, customer_id: {pattern: "^cust_[0-9]{6}$"}}
    - decision: deny
      args: {amount: {min: 50.01}}
      reason: refunds above 50 need finance, not an agent
  send_email:
    - decision: require_approval
      args: {to: {required: true}}
      reason: outbound mail always needs a human
history:
  - {match: irreversible, max: 1, decision: deny, reason: second irreversible action in this run}
approvals: {timeout: %(timeout)d, on_denial: continue}
"""

_REGISTRY = """\
format: 1
tenant: demo
policies: [tools.policy.yaml]
hosts:
  desk:
    audience: "%(desk)s"
    tools:
      [search_tickets, read_ticket, search_articles, summarize, tag_ticket, add_note, refund, send_email, close_account]
  orders:
    audience: "%(orders)s"
    tools: [list_orders, get_order, get_shipping, get_policy_text, get_invoice]
agents:
  support:
    tools: [search_tickets, read_ticket, search_articles, list_orders, get_order, get_shipping, get_policy_text]
    grants: [get_invoice, summarize, tag_ticket, add_note, refund, send_email, close_account]
    callable_agents: [summarizer, tagger, refund-clerk]
  summarizer:
    tools: [search_tickets, summarize]
  tagger:
    tools: [search_tickets, tag_ticket]
  refund-clerk:
    tools: [refund, get_invoice]
    ceilings: {refund: {args: {amount: {max: 20}}}}
clients:
  support-app: {agent: support, secret_sha256: "%(support_app)s"}
  desk-server: {host: desk, secret_sha256: "%(desk_server)s"}
  orders-server: {host: orders, secret_sha256: "%(orders_server)s"}
operators:
  dev: {role: admin, passphrase: "%(passphrase)s"}
"""


def registry(*, audiences: Mapping[str, str], secrets_sha256: Mapping[str, str], passphrase: str) -> str:
    """Text of carnet.yaml. audiences: URL per host (desk, orders). secrets_sha256: hex per client id. passphrase: the
    scrypt string of the operator `dev`."""
    clients = {name.replace("-", "_"): digest for name, digest in secrets_sha256.items()}
    return _REGISTRY % {**audiences, **clients, "passphrase": passphrase}
