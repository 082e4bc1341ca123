"""A deployment on disk, as an operator would have it: configuration, keys, store, secrets of its clients."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from carnet_broker.config.passphrase import hash_passphrase
from carnet_broker.keys import KeyRing
from carnet_broker.store.sqlite import SqliteStore
from tests.faults.ports import free_port

__all__ = ["ISSUER", "OPERATOR", "PASSPHRASE", "TENANT", "Scene", "build"]

ROOT = Path(__file__).parents[2]
ISSUER = "https://carnet.test"
TENANT = "main"
OPERATOR = "ada"
PASSPHRASE = "four random words here"
SECRETS = {name: f"{name}-{'0123456789abcdef' * 4}" for name in ("lead-app", "desk-server", "pay-server")}

_POLICY = """\
id: faults
version: 1
defaults: {decision: deny}
catalog:
  search: {effect: read}
  tag: {effect: write}
  refund: {effect: irreversible, resource_arg: customer}
tools:
  search:
    - decision: allow
      args: {query: {type: string, max_length: 200}}
  tag:
    - decision: allow
      args: {ticket: {type: string, max_length: 200}}
  refund:
    - decision: require_approval
      args: {amount: {type: number, min: 1, max: 50}, customer: {type: string}}
approvals: {timeout: 600, on_denial: revoke}
"""

_REGISTRY = """\
format: 1
tenant: main
policies: [faults.policy.yaml]
hosts:
  desk: {audience: "https://desk.test", tools: [search, tag], clear_fields: [query, ticket]}
  pay: {audience: "https://pay.test", tools: [refund]}
agents:
  lead: {grants: [search, tag, refund], callable_agents: [reader, writer, clerk]}
  reader: {tools: [search]}
  writer: {tools: [search, tag]}
  clerk: {tools: [refund]}
clients:
  lead-app: {agent: lead, secret_sha256: "%(lead-app)s"}
  desk-server: {host: desk, secret_sha256: "%(desk-server)s"}
  pay-server: {host: pay, secret_sha256: "%(pay-server)s"}
operators:
  ada: {role: admin, passphrase: "%(passphrase)s"}
limits: {bind_from_level: 3, max_open_runs: 10000}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """folder: holds everything. port: of the broker; it stays the same over restarts."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.folder / "carnet.db"

    def environment(self, **more: str) -> dict[str, str]:
        """What `carnet serve` of this deployment runs with."""
        return clean_environment() | {
            "CARNET_ISSUER": ISSUER,
            "CARNET_LISTEN": f"127.0.0.1:{self.port}",
            "CARNET_CONFIG": str(self.folder / "carnet.yaml"),
            "CARNET_STORE": f"sqlite:///{self.database}",
            "CARNET_KEYS": str(self.folder / "keys"),
            "CARNET_LOG": "warning",
            **more,
        }

    def host_environment(self, client: str, **more: str) -> dict[str, str]:
        """What a tool server runs with: its guard's credential and its journal's folder."""
        secret = self.folder / f"{client}.secret"
        if not secret.exists():
            secret.touch(mode=0o600)
            secret.write_text(SECRETS[client])
        return clean_environment() | {
            "CARNET_URL": self.url,
            "CARNET_CLIENT_ID": client,
            "CARNET_CLIENT_SECRET_FILE": str(secret),
            "CARNET_JOURNAL": str(self.journal),
            **more,
        }

    @property
    def journal(self) -> Path:
        return self.folder / "journal"

    def copied(self, folder: Path) -> "Scene":
        """The same deployment in another folder, on another port."""
        shutil.copytree(self.folder, folder, symlinks=True)
        return replace(self, folder=folder, port=free_port())

    def pass_time(self, seconds: int) -> None:
        """Let so many seconds pass for the stopped broker: its store never goes back to before what it has seen."""
        with sqlite3.connect(self.database) as conn:
            conn.execute("UPDATE meta SET high_water = high_water + ?", (seconds,))
        conn.close()


def clean_environment() -> dict[str, str]:
    """Ours, without settings of another deployment, able to import the tree."""
    paths = os.pathsep.join(str(ROOT / path) for path in ("broker", "policy", "clients/python", "."))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARNET_", "TEST_CARNET_"))}
    return kept | {"PYTHONPATH": paths}


def build(folder: Path, fill: Callable[[SqliteStore], Coroutine[Any, Any, None]] | None = None) -> Scene:
    """Make a deployment as `carnet init` does, the keys last. fill: puts rows into the new store."""
    folder.mkdir(parents=True, exist_ok=True)
    hashes = {name: sha256(secret.encode()).hexdigest() for name, secret in SECRETS.items()}
    (folder / "faults.policy.yaml").write_text(_POLICY)
    (folder / "carnet.yaml").write_text(_REGISTRY % {**hashes, "passphrase": _hashed()})
    scene = Scene(folder=folder, port=free_port())
    asyncio.run(_store(scene, fill))
    return scene


async def _store(scene: Scene, fill: Callable[[SqliteStore], Coroutine[Any, Any, None]] | None) -> None:
    store = SqliteStore.open(scene.database)
    try:
        if fill is not None:
            await fill(store)
        health = await store.health()
        KeyRing.create(scene.folder / "keys", health.now, epoch=health.epoch)
    finally:
        await store.close()


@cache
def _hashed() -> str:
    return hash_passphrase(PASSPHRASE, b"0123456789abcdef")
