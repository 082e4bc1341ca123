"""Nothing in the tree speaks of the place where it was built: a reader has only what is here."""

import re

import pytest

from tests.tree import ROOT, repository_files

TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".sql", ".svg", ".json", ".lock", ""}
# Split, so that this file does not find itself.
FORBIDDEN = {
    "a path of the building site": r"/wor" r"k/|/tm" r"p/team|/home/[a-z]+/|/ro" r"ot/",
    "a package registry's host": r"py" r"pi\.org|pythonhost" r"ed\.org|registry\.npm" r"js\.org|proxy\.gol" r"ang\.org",
    "a design nobody here can read": r"desi"
    r"gn(\.md)? §|desi"
    r"gn\.md|reliabil"
    r"ity\.md|perform"
    r"ance\.md|sket"
    r"ches\.md",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_nothing_in_the_tree_names(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in repository_files()
        if path.suffix in TEXT and "wycheproof" not in path.parts
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found[:20])
