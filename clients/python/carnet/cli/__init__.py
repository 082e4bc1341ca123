"""The `carnet` command. Needs the extra `carnet[cli]`; server commands join when `carnet[server]` is installed."""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line; one sentence instead of a traceback where the extra is missing."""
    if find_spec("typer") is None or find_spec("rich") is None:
        sys.stderr.write("carnet: the command line needs its extra: pip install 'carnet[cli]'\n")
        raise SystemExit(2)
    from carnet.cli.root import run

    run()
