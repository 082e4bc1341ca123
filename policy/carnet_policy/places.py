"""`path_within` and `url_host`: places that a string may name, read strictly and never fetched or resolved."""

from __future__ import annotations

import re

__all__ = ["host_of", "is_host", "is_within", "segments_of"]

MAX_PLACE = 4096

# Host and port end at "/" or at the end of the text: "https://good.example?@evil.example" and the like are read
# differently by different libraries, so they are no URL here. Printable ASCII without "\" only.
_URL = re.compile(r"https://([A-Za-z0-9.-]{1,253})(?::([0-9]{1,5}))?(?:/[!-\[\]-~]*)?")
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL}){{0,60}}(?::([0-9]{{1,5}}))?")


def segments_of(path: str) -> tuple[str, ...] | None:
    """The parts of an absolute path, empty and "." ones dropped; None for one that cannot be judged: relative, with
    "..", a backslash or a NUL. Symbolic links are not followed: this is about the text only."""
    if not path.startswith("/") or "\0" in path or "\\" in path or len(path) > MAX_PLACE:
        return None
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    return None if ".." in parts else parts


def is_within(parts: tuple[str, ...], root: tuple[str, ...]) -> bool:
    """Whether the path is the root or lies below it; a sibling that shares a prefix of a name does not."""
    return parts[: len(root)] == root


def host_of(url: str) -> str | None:
    """Host in lower case, with `:port` unless that is 443; None for what is not a plain https URL."""
    found = _URL.fullmatch(url) if len(url) <= MAX_PLACE else None
    if found is None:
        return None
    host, port = found.group(1).lower(), found.group(2)
    if port is None or int(port) == 443:
        return host
    return f"{host}:{int(port)}" if int(port) <= 65535 else None


def is_host(text: str) -> bool:
    """Whether `text` can stand in a url_host list: lower case, exact, a port only where it is not 443."""
    found = _HOST.fullmatch(text) if len(text) <= 260 else None
    port = found.group(1) if found else None
    return found is not None and (port is None or (0 < int(port) <= 65535 and port != "443" and port[0] != "0"))
