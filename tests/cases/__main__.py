"""`python -m tests.cases DIR [--json] [-k ID]`: exit code 0 when no case failed, 1 when one did, 2 for a wrong call."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from tests.cases.playing import play
from tests.cases.reading import collect
from tests.cases.verdict import Ending, Result

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", action="store_true", help="one object per case, then a summary")
    parser.add_argument("-k", dest="only", metavar="ID", help="only cases whose id has this text")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is no directory")
    results = []
    for result in play(collect(options.folder), options.only):
        results.append(result)
        _tell(result, options.json)
    return _close(results, options.json)


def _tell(result: Result, as_json: bool) -> None:
    if as_json:
        print(
            json.dumps({"id": result.id, "kind": result.kind, "ending": result.ending.value, "detail": result.detail}),
            flush=True,
        )
    elif result.ending is Ending.FAILED:
        print(f"{result.id}: failed: {result.detail}", flush=True)


def _close(results: list[Result], as_json: bool) -> int:
    counted = Counter(result.ending for result in results)
    passed, failed, left = (counted[ending] for ending in (Ending.PASSED, Ending.FAILED, Ending.NOT_RUN))
    if as_json:
        print(json.dumps({"summary": {"passed": passed, "failed": failed, "not_run": left}}))
    else:
        for why, times in sorted(Counter(r.detail for r in results if r.ending is Ending.NOT_RUN).items()):
            print(f"not run: {times} ({why})")
        print(f"{passed} passed, {failed} failed, {left} not run")
    if not results:
        print("no case was found", file=sys.stderr)
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
