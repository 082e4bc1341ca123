"""Makes `client/_sync.py` from `client/_async.py`: `python scripts/make_sync.py [--check]`.

Works on tokens, so that it sees names, strings and comments for what they are. It drops `async` and `await`, and
renames; whatever concurrency needs more than that belongs in the `_io_async` and `_io_sync` pair.
"""

import io
import itertools
import re
import sys
import tokenize
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "clients/python/carnet/client"
SOURCE, TARGET = CLIENT / "_async.py", CLIENT / "_sync.py"
HEADER = '''"""The parent's side, blocking: `Broker` opens runs, `Run` spawns, `Child` holds the tokens.

Made from `_async.py` by `scripts/make_sync.py`; change that file and run the script.
"""'''
NAMES = {
    "AsyncBroker": "Broker",
    "AsyncRun": "Run",
    "AsyncChild": "Child",
    "_io_async": "_io_sync",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
}
WORDS = re.compile(r"\b(" + "|".join(NAMES) + r")\b")


def sync_of(source: str) -> str:
    """The blocking form of a module's text."""
    lines = source.splitlines(keepends=True)
    found = list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token, following in reversed(list(itertools.pairwise(found))):
        if token.string in ("async", "await"):
            _put(lines, token.start, following.start, "")
        elif token.start == (1, 0):
            _put(lines, token.start, token.end, HEADER)
        elif token.string.startswith("# noqa: ASYNC"):
            line = lines[token.start[0] - 1]
            _put(lines, (token.start[0], len(line[: token.start[1]].rstrip())), token.end, "")
        elif token.type in (tokenize.STRING, tokenize.COMMENT):
            _put(lines, token.start, token.end, WORDS.sub(lambda word: NAMES[word.group()], token.string))
        elif token.string in NAMES:
            _put(lines, token.start, token.end, NAMES[token.string])
    return "".join(lines)


def _put(lines: list[str], start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    """Replace what stands between two places (1-based line, column)."""
    before, after = lines[start[0] - 1][: start[1]], lines[end[0] - 1][end[1] :]
    lines[start[0] - 1 : end[0]] = (before + text + after).splitlines(keepends=True)


def main(arguments: list[str]) -> int:
    made = sync_of(SOURCE.read_text("utf-8"))
    if arguments == ["--check"]:
        return 0 if TARGET.read_text("utf-8") == made else 1
    TARGET.write_text(made, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
