"""A shell in a pseudo-terminal: what a person at a keyboard types and sees."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

__all__ = ["Terminal"]

PROMPT = "\x02ready\x03$ "  # control characters, so that no output looks like it
# The shell leads a session of its own, whose controlling terminal this is: passphrases are typed at that.
LAUNCH = """
import fcntl, os, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")


class Terminal:
    """bash without start-up files, in `folder`, with only `environ` (and PATH, HOME, TERM) set."""

    def __init__(self, folder: Path, environ: Mapping[str, str], columns: int = 110) -> None:
        self.seen = ""
        self._fd, other = pty.openpty()
        self._shell = subprocess.Popen(
            [sys.executable, "-c", LAUNCH],
            cwd=folder,
            env={"TERM": "xterm", "NO_COLOR": "1", "PS1": PROMPT, **environ},
            stdin=other,
            stdout=other,
            stderr=other,
        )
        os.close(other)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.wait_for(re.escape(PROMPT), 10)
        self.run("stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null; PS2=", 10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)  # the terminal is gone: the shell and what it started get SIGHUP
        self._shell.wait(timeout=10)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.type("\x03")

    def wait_for(self, pattern: str, seconds: float) -> str:
        """Everything shown until the pattern was seen, without it; both are taken from the screen."""
        found = self.find(re.compile(pattern), seconds)
        return found.string[: found.start()]

    def find(self, pattern: re.Pattern[str], seconds: float) -> re.Match[str]:
        """The first place that matches; it and what was shown before it are taken from the screen."""
        deadline = time.monotonic() + seconds
        while True:
            match = pattern.search(self.seen)
            if match:
                self.seen = self.seen[match.end() :]
                return match
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(
                    f"{pattern.pattern!r} was not shown in {seconds} s; on the screen: {self.seen[-2000:]}"
                )
            self._read(min(left, 0.2))

    def run(self, command: str, seconds: float) -> str:
        """Type a command and wait for the next prompt; what it printed."""
        self.type(command + "\n")
        return self.wait_for(re.escape(PROMPT), seconds)

    def prompted(self, seconds: float) -> str:
        """What was shown until the shell waits for the next command."""
        return self.wait_for(re.escape(PROMPT), seconds)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._fd], [], [], seconds)
        if ready:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                raise EOFError(f"the terminal closed; on the screen: {self.seen[-2000:]}") from None
            self.seen += ESCAPES.sub("", data.decode(errors="replace"))
