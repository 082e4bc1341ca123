"""The source tree as the house tests see it: which files are ours, and what they parse to."""

import ast
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "SOURCES", "Module", "modules", "parsed", "repository_files"]

ROOT = Path(__file__).parent.parent
SOURCES = (ROOT / "broker", ROOT / "policy", ROOT / "clients/python")
SKIPPED = {"__pycache__", "build", "dist", "node_modules"}


class Module:
    """One Python file of the distribution with its dotted name."""

    def __init__(self, path: Path, base: Path) -> None:
        self.path = path
        parts = path.relative_to(base).with_suffix("").parts
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.is_private = any(part.startswith("_") and part != "__main__" for part in self.name.split("."))

    def __repr__(self) -> str:
        return self.name


@cache
def modules() -> tuple[Module, ...]:
    return tuple(Module(path, base) for base in SOURCES for path in sorted(base.rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def repository_files(*suffixes: str) -> list[Path]:
    """Files of the working tree that are ours: hidden folders but .ci, caches and build output are left out."""
    return [
        path
        for path in sorted(ROOT.rglob("*"))
        if path.is_file()
        and (not suffixes or path.suffix in suffixes)
        and not any(
            (part.startswith(".") and part not in {".ci", ".gitignore"})
            or part in SKIPPED
            or part.endswith(".egg-info")
            for part in path.relative_to(ROOT).parts
        )
    ]
