"""What `carnet dev` writes at each start: a registry, a policy, and secrets that nobody had before."""

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from carnet_broker.config.passphrase import MIN_SALT, hash_passphrase
from carnet_broker.dev.sample import POLICY, registry

__all__ = ["CLIENTS", "OPERATOR", "Hand", "deal", "describe", "environment", "write_private"]

CLIENTS = ("support-app", "desk-server", "orders-server")
OPERATOR = "dev"
_WORDS = [
    "amber",
    "basil",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "juniper",
    "kelp",
    "lagoon",
    "maple",
    "north",
    "otter",
    "pebble",
    "quartz",
    "river",
    "spruce",
    "tundra",
    "umber",
    "violet",
    "willow",
    "yarrow",
    "zephyr",
    "birch",
    "clover",
    "dune",
    "elm",
    "fern",
    "gorse",
    "hazel",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """The secrets of one start. Each lies in a 0600 file of the folder; none is in a repr."""

    folder: Path
    config: Path
    secret_files: Mapping[str, Path]
    secret: str = field(repr=False)  # of support-app
    passphrase: str = field(repr=False)


def deal(folder: Path, *, audiences: Mapping[str, str], approval_timeout: int) -> Hand:
    """Write carnet.yaml, the policy and one secret file per client. approval_timeout: seconds."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = {client: secrets.token_urlsafe(32) for client in CLIENTS}
    passphrase = "-".join(secrets.choice(_WORDS) for _ in range(6))
    text = registry(
        audiences=audiences,
        secrets_sha256={client: hashlib.sha256(value.encode()).hexdigest() for client, value in made.items()},
        passphrase=hash_passphrase(passphrase, secrets.token_bytes(MIN_SALT)),
    )
    config = folder / "carnet.yaml"
    write_private(config, text)
    write_private(folder / "tools.policy.yaml", POLICY % {"timeout": approval_timeout})
    files = {client: folder / f"{client}.secret" for client in CLIENTS}
    for client, path in files.items():
        write_private(path, made[client])
    return Hand(folder=folder, config=config, secret_files=files, secret=made["support-app"], passphrase=passphrase)


def write_private(path: Path, text: str) -> None:
    """A file that only its owner reads; readers see the old one or the whole new one."""
    scratch = path.with_name(f".{path.name}.new")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
    scratch.replace(path)


def describe(hand: Hand, url: str, audiences: Mapping[str, str]) -> str:
    """dev.json: all that a program on this machine needs to play any part."""
    hosts = {
        name: {"client_id": f"{name}-server", "secret_file": str(hand.secret_files[f"{name}-server"]), "audience": base}
        for name, base in audiences.items()
    }
    return json.dumps(
        {
            "url": url,
            "client_id": "support-app",
            "secret": hand.secret,
            "secret_file": str(hand.secret_files["support-app"]),
            "operator": OPERATOR,
            "passphrase": hand.passphrase,
            "hosts": hosts,
        }
    )


def environment(hand: Hand, url: str) -> str:
    """dev.env: what a second terminal sources to be the parent agent."""
    lines = {
        "CARNET_URL": url,
        "CARNET_CLIENT_ID": "support-app",
        "CARNET_CLIENT_SECRET_FILE": str(hand.secret_files["support-app"]),
    }
    return "".join(f"export {name}='{value}'\n" for name, value in lines.items())
