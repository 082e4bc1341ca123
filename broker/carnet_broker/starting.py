"""The commented configuration that `carnet init` writes: it loads as it stands and denies everything dangerous."""

__all__ = ["policy_text", "registry_text"]

_REGISTRY = """\
# What this tenant has registered. Unknown keys are errors; a change is picked up within seconds, or refused as a whole
# while the last good file stays in force. Check it with `carnet config check`.
format: 1
tenant: {tenant}
policies: [{policy}]

# Tool servers. A token is for one host: its audience is the URL that the host's guard answers for.
hosts:
  tools:
    audience: https://tools.example.com
    tools: [search, send_email]

# Kinds of agents. tools: may call itself; grants: may only hand out; callable_agents: whom it may spawn.
agents:
  assistant:
    grants: [search, send_email]
    callable_agents: [researcher]
  researcher:
    tools: [search, send_email]

# What authenticates: each client is one agent, or the guard of one host. Put the SHA-256 of a secret of 32 bytes or
# more here, or public keys. python -c "import secrets; print(secrets.token_urlsafe(32))" makes a secret, and
# printf %s SECRET | sha256sum its hash; a shorter secret is refused, whatever its hash.
# clients:
#   assistant-app: {{agent: assistant, secret_sha256: "…"}}
#   tools-server:  {{host: tools, keys: tools-server.jwks.json}}

# People. Roles: viewer < approver < operator < admin. Another one's passphrase string: `carnet init` in an empty
# folder makes one. An agent's owner (owner:) may not approve for it, so name a second person before you name owners.
operators:
  {operator}: {{role: admin, passphrase: "{hashed}"}}
"""

_POLICY = """\
# The strictest matching rule wins, order never matters, and what no rule allows is denied.
# Try it: carnet policy check · test · explain
id: tools
version: 1
defaults: {decision: deny}

# Facts about tools. A tool that is not listed counts as irreversible.
catalog:
  search:     {effect: read}
  send_email: {effect: irreversible}

tools:
  search:
    - decision: allow
      args: {query: {type: string, max_length: 200}}
  send_email:
    - decision: require_approval
      args: {to: {type: string, max_length: 200}, text: {type: string, max_length: 5000}}
      reason: outbound mail always needs a human

history:
  - {match: irreversible, max: 3, decision: deny, reason: more than three irreversible actions in one run}

approvals: {timeout: 120, on_denial: revoke}
"""


def registry_text(tenant: str, operator: str, hashed: str, policy: str) -> str:
    """carnet.yaml. hashed: the operator's passphrase as `hash_passphrase` made it."""
    return _REGISTRY.format(tenant=tenant, operator=operator, hashed=hashed, policy=policy)


def policy_text() -> str:
    return _POLICY
