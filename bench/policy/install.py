"""Installs the locked packages one by one, so that a peer without a wheel for this machine costs only itself."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["main"]

LOCK = Path(__file__).with_name("requirements-bench.txt")


def main() -> int:
    """1 if something is missing, so that the next run tries, and says, it again."""
    missing = False
    for block in blocks(LOCK.read_text("utf-8")):
        why = install(block)
        if why:
            missing = True
            sys.stdout.write(f"  {block.split('==')[0]}: does not install: {why}\n")
    return int(missing)


def blocks(text: str) -> Iterator[str]:
    """One package with its hashes at a time."""
    found: list[str] = []
    for line in text.splitlines():
        if found and not line.startswith(" "):
            yield "\n".join(found)
            found = []
        found.append(line)
    if found:
        yield "\n".join(found)


def install(block: str) -> str:
    """Why it did not work, in the installer's words; empty if it did."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        file.write(block + "\n")
        file.flush()
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        options = ["--only-binary", ":all:", "--require-hashes", "-r", file.name]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return "" if done.returncode == 0 else (lines or ["ERROR: the installer says nothing"])[-1].removeprefix("ERROR: ")


if __name__ == "__main__":
    sys.exit(main())
