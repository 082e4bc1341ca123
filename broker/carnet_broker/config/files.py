"""Reading the files that a configuration is made of. Each is read once, and its digest is kept."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from carnet.errors import ConfigError

__all__ = ["MAX_BYTES", "MISSING", "Sources", "digest_of", "strict_json"]

MAX_BYTES = 1 << 20
MISSING = "missing"  # stands for the digest of a file that cannot be read


class Sources:
    """The files of one attempt to load. A file named twice is read once, so that one attempt sees one content."""

    def __init__(self) -> None:
        self._texts: dict[Path, str] = {}
        self.digests: dict[Path, str] = {}

    def read(self, path: Path) -> str:
        """The text of a file; ConfigError when it cannot be read, is too large or is not UTF-8."""
        known = self._texts.get(path)
        if known is not None:
            return known
        self.digests[path] = MISSING
        try:
            with path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror or error}; check path and rights") from None
        self.digests[path] = _digest(content)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{path}: has more than {MAX_BYTES} bytes; split it")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{path}: is no UTF-8 text; save it as UTF-8") from None
        self._texts[path] = text
        return text


def digest_of(path: Path) -> str:
    """Digest of a file as it is now, or MISSING."""
    try:
        with path.open("rb") as file:
            return _digest(file.read(MAX_BYTES + 1))
    except OSError:
        return MISSING


def strict_json(text: str, path: Path) -> Any:
    """Parse JSON; a member that stands twice, NaN and infinities are errors."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise ConfigError(f"{path}: is nested too deep; flatten it") from None
    except ValueError as error:
        raise ConfigError(f"{path}: is not the JSON that is wanted here: {error}; correct it") from None


def _once(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the member {name[:64]!r} stands twice")
        found[name] = value
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON number")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
