"""The registry that guard and SDK tests run against: a support parent, three kinds of children, two hosts."""

from pathlib import Path

__all__ = ["write_desk"]

POLICY = """\
id: desk
version: 1
defaults: {decision: deny}
catalog:
  search: {effect: read}
  lookup: {effect: read, resource_arg: ticket}
  tag: {effect: write, resource_arg: ticket}
  refund: {effect: irreversible, resource_arg: customer}
  invoice: {effect: read}
tools:
  search:
    - decision: allow
      args: {query: {type: string, max_length: 200}, limit: {type: integer, max: 50, required: false}}
  lookup:
    - decision: allow
      args: {ticket: {type: string}}
  tag:
    - decision: allow
      args: {ticket: {type: string}, label: {type: string}}
  refund:
    - decision: require_approval
      args: {amount: {type: number, min: 1, max: 50}, customer: {type: string}}
    - decision: deny
      args: {amount: {min: 50.01}}
      reason: refunds above 50 need finance
  invoice:
    - decision: allow
      args: {customer: {type: string}}
history:
  - {match: irreversible, max: 1, decision: deny, reason: second irreversible action in this run}
approvals: {timeout: 60, on_denial: continue}
"""

REGISTRY = """\
format: 1
tenant: main
policies: [desk.policy.yaml]
hosts:
  desk: {audience: "http://desk.example", tools: [search, lookup, tag, refund], clear_fields: [ticket]}
  books: {audience: "http://books.example/api", tools: [invoice]}
agents:
  support:
    owner: ada
    tools: [search]
    grants: [lookup, tag, refund, invoice]
    callable_agents: [reader, writer, clerk]
  reader: {tools: [search, lookup]}
  writer: {tools: [search, lookup, tag]}
  clerk: {tools: [refund, invoice]}
clients:
  support-app: {agent: support, secret_sha256: "1111111111111111111111111111111111111111111111111111111111111111"}
  desk-server: {host: desk, secret_sha256: "2222222222222222222222222222222222222222222222222222222222222222"}
  books-server: {host: books, secret_sha256: "3333333333333333333333333333333333333333333333333333333333333333"}
operators: {}
limits: {bind_from_level: 3}
"""


def write_desk(folder: Path) -> Path:
    """carnet.yaml and its policy; the test broker gives every client a secret of its own."""
    (folder / "desk.policy.yaml").write_text(POLICY)
    (folder / "carnet.yaml").write_text(REGISTRY)
    return folder / "carnet.yaml"
