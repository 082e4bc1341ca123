"""Who the operator is and where the broker is: kept in one 0600 file under the user's configuration folder.

A session views, denies and revokes. It never suffices to approve: that needs the passphrase each time.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from carnet.cli.problems import Exit, Problem

__all__ = ["Session", "config_dir", "load", "save", "write_private"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    url: str
    operator: str
    tenant: str
    token: str = field(repr=False)


def config_dir(environ: Mapping[str, str]) -> Path:
    """XDG configuration folder of carnet; not created here."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "carnet"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing an old one whole."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    scratch.replace(path)


def save(session: Session, environ: Mapping[str, str]) -> Path:
    path = config_dir(environ) / "session.json"
    write_private(path, json.dumps(asdict(session)))
    return path


def load(environ: Mapping[str, str]) -> Session:
    """The stored session. CARNET_URL, when set, must be the broker that the session is for."""
    path = config_dir(environ) / "session.json"
    try:
        session = Session(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise Problem("Not logged in: run `carnet login --url URL --operator NAME`.", Exit.LOGIN) from None
    except (OSError, TypeError, ValueError):
        raise Problem(f"The session file {path} is unreadable: run `carnet login` again.", Exit.LOGIN) from None
    url = environ.get("CARNET_URL")
    if url and url.rstrip("/") != session.url.rstrip("/"):
        raise Problem(f"CARNET_URL is {url}, but the session is for {session.url}: run `carnet login`.", Exit.LOGIN)
    return session
