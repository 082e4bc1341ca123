"""A whole configuration on disk, and edits of it."""

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

from carnet_broker.config.passphrase import hash_passphrase

__all__ = ["GOOD", "POLICY", "jwk", "of", "write"]

PASSPHRASE = hash_passphrase("correct horse", bytes(range(16)))
POLICY = """\
id: support-tools
version: 3
catalog:
  search_tickets: {effect: read}
  refund: {effect: irreversible, resource_arg: customer_id}
approvals: {approvers: [support-leads]}
"""
GOOD = f"""\
format: 1
tenant: acme
policies: [tools.policy.yaml, more.policy.yaml]
hosts:
  crm: {{audience: "https://crm.example/mcp", tools: [search_tickets], clear_fields: [query]}}
  pay: {{audience: "urn:acme:pay", tools: [refund]}}
agents:
  support:
    owner: ada
    tools: [search_tickets]
    grants: [refund]
    callable_agents: [clerk]
    ceilings: {{refund: {{args: {{amount: {{max: 50}}}}}}}}
  clerk:
    tools: [refund]
    handoff: schemas/refund.json
    returns: {{type: object}}
    ceilings: {{refund: {{args: {{amount: {{max: 20}}}}, max_calls: 1}}}}
    min_level: 2
clients:
  support-app: {{agent: support, keys: keys/support.jwks.json}}
  pay-server: {{host: pay, secret_sha256: "{"a" * 64}"}}
operators:
  ada: {{role: approver, groups: [support-leads], passphrase: "{PASSPHRASE}"}}
  bot: {{role: viewer, keys: keys/support.jwks.json}}
limits:
  ttl: {{"0": 600}}
  staleness: {{"0": 5}}
  run_ttl: 7200
  bind_from_level: 3
"""


def of(tenant: str) -> str:
    """The configuration of another tenant: clients and audiences of its own."""
    made = GOOD.replace("tenant: acme", f"tenant: {tenant}")
    for name in ("support-app:", "pay-server:"):
        made = made.replace(name, f"{tenant}-{name}")
    return made.replace("urn:acme:", f"urn:{tenant}:").replace("crm.example", f"{tenant}.crm.example")


def jwk(private: bool = False) -> dict[str, Any]:
    key = generate_private_key(SECP256R1())
    made: dict[str, Any] = json.loads(ECAlgorithm.to_jwk(key if private else key.public_key()))
    return {name: value for name, value in made.items() if name not in ("key_ops", "use")}


def write(folder: Path, text: str = GOOD, name: str = "carnet.yaml") -> Path:
    """All files of the configuration in a folder; the path of its carnet.yaml."""
    for part in ("schemas", "keys"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "tools.policy.yaml").write_text(POLICY)
    (folder / "more.policy.yaml").write_text("tools:\n  search_tickets: [{decision: allow, extra_args: true}]\n")
    (folder / "schemas/refund.json").write_text('{"type": "object", "required": ["event"]}')
    (folder / "keys/support.jwks.json").write_text(json.dumps({"keys": [jwk()]}))
    (folder / name).write_text(text)
    return folder / name
