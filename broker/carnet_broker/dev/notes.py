"""What `carnet dev` leaves in the user's own folder while it runs, so that other terminals find the broker."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from carnet.cli.session import Session, config_dir, save, write_private

__all__ = ["left_for_others"]


@contextmanager
def left_for_others(session: Session, files: Mapping[str, str]) -> Iterator[None]:
    """Log the user in and write the files; at the end take back what is still there of it, and let whoever was logged
    in before be so again: a developer's broker must not cost an operator the session at a real one."""
    folder = config_dir(os.environ)
    before = _read(folder / "session.json")
    save(session, os.environ)
    for name, content in files.items():
        write_private(folder / name, content)
    written = {path: _read(path) for path in (folder / name for name in ("session.json", *files))}
    try:
        yield
    finally:
        for path, text in written.items():
            if _read(path) == text:
                path.unlink(missing_ok=True)
        if before is not None and not (folder / "session.json").exists():
            write_private(folder / "session.json", before)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
