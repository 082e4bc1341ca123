"""Where commands take a policy from: one policy file, or a carnet.yaml, whose `policies` form one policy."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from carnet.cli.problems import Exit, Problem
from carnet_policy import Policy, PolicyError, load, load_yaml

__all__ = ["loaded", "open_policy", "read_text", "records_of"]

MAX_BYTES = 1 << 20


def open_policy(path: Path) -> Policy:
    """Errors: PolicyError, with its place."""
    return load(_files(path))


def loaded(path: Path) -> Policy:
    """The same for a command that can do nothing without it: a policy that does not load ends the command."""
    if not path.is_file():
        raise Problem(f"There is no file {path}; name a policy, or a carnet.yaml.", Exit.USAGE)
    try:
        return open_policy(path)
    except PolicyError as error:
        raise Problem(str(error)) from None


def read_text(path: Path, most: int) -> str:
    """The text of a file of at most `most` bytes; raises Problem."""
    try:
        if path.stat().st_size > most:
            raise Problem(f"{path} is larger than {most} bytes.", Exit.USAGE)
        return path.read_text("utf-8")
    except OSError as error:
        raise Problem(f"{path} can not be read: {error.strerror or error}.", Exit.USAGE) from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is no UTF-8 text; save it as UTF-8.", Exit.USAGE) from None


def records_of(path: Path) -> Iterator[Mapping[str, object]]:
    """The records of an audit export, as they are read; raises Problem, and PolicyError for a line that is none."""
    from carnet_policy.recorded import read_export

    try:
        with path.open(encoding="utf-8") as lines:
            yield from read_export(lines, str(path))
    except OSError as error:
        raise Problem(f"{path} can not be read: {error.strerror or error}.", Exit.USAGE) from None
    except UnicodeDecodeError:
        raise Problem(f"{path} is no UTF-8 text; name what `carnet audit export` wrote.", Exit.USAGE) from None


def _files(path: Path) -> list[Path]:
    try:
        if path.stat().st_size > MAX_BYTES:
            return [path]  # the loader says so
        value = load_yaml(path.read_text("utf-8"), str(path)).value
    except (OSError, UnicodeDecodeError):
        return [path]  # the loader says so
    names = value.get("policies") if isinstance(value, dict) and "tenant" in value else None
    if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
        return [path.parent / name for name in names]
    return [path]
