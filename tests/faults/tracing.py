"""The system calls of a broker, and whether the disk had a commit before its answer left."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Missing", "events", "traced", "unsynced_answers"]

_CALLS = "fsync,fdatasync,pwrite64,write,writev,sendto,sendmsg,read,recvfrom,recvmsg"
_SOCKET = r"\(\d+<(?:TCP|TCPv6|socket)[^>]*>"
_ASKED = re.compile(r"(?:read|recvfrom|recvmsg)" + _SOCKET + r'.*"POST ')
_ANSWERED = re.compile(r"(?:write|writev|sendto|sendmsg)" + _SOCKET + r'.*"HTTP/1\.1 20')
_WRITTEN = re.compile(r"pwrite64\(\d+<[^>]*carnet\.db-wal>")
_SYNCED = re.compile(r"(?:fsync|fdatasync)(?:\(\d+<[^>]*carnet\.db-wal>\)| resumed>\)) *= 0")


class Missing(Exception):
    """Nothing can be traced here: one sentence says why."""


def traced(command: Sequence[str], log: Path) -> list[str]:
    """The command under strace. Raises Missing where there is none, or where it may not trace."""
    found = shutil.which("strace")
    if found is None:
        raise Missing("strace is not on PATH: the broker's fsyncs were not counted")
    words = [found, "-f", "-qq", "-y", "-s", "24", "-e", f"trace={_CALLS}", "-o", str(log)]
    probe = subprocess.run([found, "-qq", "-o", "/dev/null", "true"], capture_output=True, check=False)
    if probe.returncode:
        raise Missing("strace may not trace here: the broker's fsyncs were not counted")
    return [*words, "-I", "waiting", *command]


def events(log: Path) -> str:
    """In order: r = a request came, w = a frame of the write-ahead log written, s = that log synced, a = answered.

    A sync counts when it has returned, a request's reading likewise; a write to the socket when it begins."""
    found = []
    for line in log.read_text(errors="replace").splitlines():
        if _ASKED.search(line):
            found.append("r")
        elif _WRITTEN.search(line):
            found.append("w")
        elif _SYNCED.search(line):
            found.append("s")
        elif _ANSWERED.search(line):
            found.append("a")
    return "".join(found)


def unsynced_answers(found: str) -> int:
    """Answers before which, since their request came, no frame was written and then synced.

    An answer whose request came before the trace begins is not judged."""
    wrong, state = 0, ""
    for event in found:
        if event == "r":
            state = "r"
        elif event == "w" and state == "r":
            state = "w"
        elif event == "s" and state == "w":
            state = "s"
        elif event == "a":
            wrong += state in ("r", "w")
            state = ""
    return wrong
