"""The registry that the HTTP tests run against, and clients for its actors."""

import json
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

from carnet.token.signer import P256Signer
from carnet_broker.composition import Broker, compose
from carnet_broker.config.load import load_registries
from carnet_broker.config.passphrase import hash_passphrase
from carnet_broker.http.limits import Limits
from carnet_broker.keys import KeyRing
from carnet_broker.store.sqlite import SqliteStore

__all__ = [
    "PASSPHRASE",
    "REQUEST_SECONDS",
    "SECRETS",
    "SIGNER",
    "TASK",
    "World",
    "limits",
    "make_broker",
    "write_config",
]

REQUEST_SECONDS = 1.5
PASSPHRASE = "canary-passphrase-of-the-operator"
SECRETS = {
    name: f"canary-secret-{name}-0123456789abcdef0123456789abcdef"
    for name in ("support-app", "crm-server", "pay-server", "other-app", "other-server")
}
SIGNER = P256Signer(generate_private_key(SECP256R1()))  # of the client key-app
TASK = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 0}

_POLICY = """\
id: %(id)s
version: 1
defaults: {decision: deny}
catalog:
  search: {effect: read}
  tag: {effect: write, resource_arg: ticket}
  refund: {effect: irreversible, resource_arg: customer}
tools:
  search:
    - decision: allow
      args: {query: {type: string, max_length: 200}}
  tag:
    - decision: allow
      args: {ticket: {type: string}, label: {type: string}}
  refund:
    - decision: require_approval
      args: {amount: {type: number, min: 1, max: 50}, customer: {type: string}}
"""

_REGISTRY = """\
format: 1
tenant: %(tenant)s
policies: [%(tenant)s.policy.yaml]
hosts:
  %(p)scrm: {audience: "https://%(p)scrm.example", tools: [search, tag]}
  %(p)spay: {audience: "https://%(p)spay.example", tools: [refund]}
agents:
  support: {tools: [search], grants: [tag, refund], callable_agents: [reader, clerk]}
  reader: {tools: [search, tag]}
  clerk: {tools: [refund]}
clients:
%(clients)s
operators:
  ada: {role: admin, passphrase: "%(passphrase)s"}
  vic: {role: viewer, passphrase: "%(passphrase)s"}
limits: {bind_from_level: 3}
"""


def limits() -> Limits:
    """The real limits, but for shorter times and fewer connections, so that tests can reach them."""
    return Limits(request_seconds=REQUEST_SECONDS, connections=200)


def _client(name: str, kind: str) -> str:
    return f'  {name}: {{{kind}, secret_sha256: "{sha256(SECRETS[name].encode()).hexdigest()}"}}\n'


def write_config(folder: Path) -> Path:
    """Two tenants: `main` and `other`, each with an agent's client and the clients of its hosts."""
    passphrase = hash_passphrase(PASSPHRASE, b"0123456789abcdef")
    tenants = {
        "main": ("", {"support-app": "agent: support", "crm-server": "host: crm", "pay-server": "host: pay"}),
        "other": ("o-", {"other-app": "agent: support", "other-server": "host: o-crm"}),
    }
    (folder / "key-app.jwks.json").write_text(json.dumps({"keys": [SIGNER.public_jwk()]}))
    for tenant, (prefix, clients) in tenants.items():
        lines = "".join(_client(name, kind) for name, kind in clients.items())
        lines += "  key-app: {agent: support, keys: key-app.jwks.json}\n" if tenant == "main" else ""
        values = {"tenant": tenant, "p": prefix, "clients": lines, "passphrase": passphrase}
        (folder / f"{tenant}.policy.yaml").write_text(_POLICY % {"id": tenant})
        (folder / f"{tenant}.carnet.yaml").write_text(_REGISTRY % values)
    return folder


def make_broker(folder: Path, issuer: str) -> Broker:
    store = SqliteStore.open(folder / "carnet.db")
    registries = load_registries(write_config(folder))
    return compose(store=store, keys=KeyRing.ephemeral(), registries=registries, issuer=issuer)


class World:
    """Shorthand for the requests of the actors. All of it goes over the wire."""

    def __init__(self, url: str) -> None:
        self.http = httpx2.Client(base_url=url, timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.http.close()

    def form(self, path: str, client: str | None, **fields: str) -> httpx2.Response:
        if client is None:
            return self.http.post(path, data=fields)
        return self.http.post(path, data=fields, auth=(client, SECRETS[client]))

    def root(self, client: str = "support-app") -> dict[str, Any]:
        answer = self.form("/oauth2/token", client, grant_type="client_credentials")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def guard(self, client: str = "crm-server") -> str:
        answer = self.form("/oauth2/token", client, grant_type="client_credentials", scope="guard")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def session(self, operator: str = "ada", tenant: str = "main") -> str:
        body = {"tenant": tenant, "operator": operator, "passphrase": PASSPHRASE}
        answer = self.http.post("/v1/sessions", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def post(self, path: str, token: str, body: Any, **headers: str) -> httpx2.Response:
        return self.http.post(path, json=body, headers={"authorization": f"Bearer {token}", **headers})

    def get(self, path: str, token: str, **query: str | int | float) -> httpx2.Response:
        return self.http.get(path, params=query, headers={"authorization": f"Bearer {token}"})

    def spawn(self, root: str, target: str = "reader", **more: Any) -> httpx2.Response:
        body = {"target": target, "task": {**TASK, "tools": ["search"]}, "hosts": ["*"], **more}
        return self.post("/v1/delegations", root, body)
