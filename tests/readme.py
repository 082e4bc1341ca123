"""The README as a program: its files, its commands, and what it says they print."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "Names", "blocks"]

FENCE = re.compile(
    r"(?:<!-- (?:played|tested): (?P<role>[a-z0-9_. ]+) -->\n)?```(?P<kind>[a-z]+)\n(?P<body>.*?)^```$", re.S | re.M
)
ID = re.compile(r"\b(dlg|apr|call)_[a-z0-9]+")
VOLATILE = re.compile(r"\d+(?:\.\d+)? ?(?:ms|s)\b|[a-z]+(?:-[a-z]+){5}|127\.0\.0\.1:\d+|/tmp/carnet-dev-\w+")


@dataclass(frozen=True, slots=True)
class Block:
    """role: what plays it (a file's name, or a terminal); empty for blocks that are only shown."""

    role: str
    kind: str
    lines: tuple[str, ...]


def blocks(path: Path) -> Iterator[Block]:
    for found in FENCE.finditer(path.read_text()):
        yield Block(found["role"] or "", found["kind"], tuple(found["body"].splitlines()))


class Names:
    """Which real id stands for which id of the README."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}

    def filled(self, command: str) -> str:
        """A command with the ids of this run."""
        return ID.sub(lambda found: self._real.get(found[0], found[0]), command)

    def pattern(self, line: str) -> re.Pattern[str]:
        """What a printed line must look like: ids, times, ports, words of a passphrase and `…` may differ."""
        parts: list[str] = []
        last = 0
        for found in re.finditer(f"{ID.pattern}|{VOLATILE.pattern}|…", line):
            parts.append(_spaced(line[last : found.start()]))
            last = found.end()
            if not ID.fullmatch(found[0]):
                parts.append(r"[^\n]*?")
            elif found[0] in self._real:
                parts.append(re.escape(self._real[found[0]]))
            elif f"(?P<{found[0]}>" in "".join(parts):
                parts.append(f"(?P={found[0]})")
            else:
                parts.append(f"(?P<{found[0]}>{found[0].split('_')[0]}_[a-z0-9]+)")
        parts.append(_spaced(line[last:]))
        return re.compile(r"[^\S\n]*".join(part for part in parts if part) + r"[^\S\n]*(?=\n|$)")

    def learn(self, found: re.Match[str]) -> None:
        self._real |= found.groupdict()


def _spaced(text: str) -> str:
    """White space stands for any white space inside a line: columns move with what is in them."""
    return r"[^\S\n]+".join(re.escape(part) for part in re.split(r"\s+", text.strip())) if text.strip() else ""
