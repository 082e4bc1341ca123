"""The README is played: its files run, its commands are typed into terminals, and what it shows is what appears."""

import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from carnet.cli.problems import Exit
from carnet_broker.config.load import load_registry
from carnet_broker.settings import Settings
from tests.readme import Block, Names, blocks
from tests.terminal import Terminal
from tests.tree import ROOT

BLOCKS = list(blocks(ROOT / "README.md"))
PATIENCE = 40.0  # seconds for one printed line: machines that run tests are busy
PORTS = (8420, 8421)  # named in the README


def played(role: str) -> list[Block]:
    found = [block for block in BLOCKS if block.role == role]
    assert found, f"the README has no block for {role}"
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for block in BLOCKS:
        if block.role.endswith(".py"):
            (tmp_path / block.role).write_text("\n".join(block.lines) + "\n")
    (tmp_path / "policy.yaml").write_text("\n".join(played("policy")[0].lines))
    return tmp_path


@pytest.fixture
def terminals(folder: Path) -> Iterator[dict[str, Terminal]]:
    if taken := [port for port in PORTS if _is_taken(port)]:
        pytest.skip(f"the README's ports {taken} are in use on this machine")
    bin_folder = Path(sys.executable).parent
    environ = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": str(folder)}
    with Terminal(folder, environ) as first, Terminal(folder, environ) as second:
        yield {"terminal 1": first, "terminal 2": second}


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def play(block: Block, terminal: Terminal, names: Names, passphrase: str) -> str:
    """Type what follows `$ `, wait for every other line. What was shown is answered."""
    shown = ""
    for line in block.lines:
        if line.startswith("$ "):
            terminal.type(names.filled(line[2:]) + "\n")
        elif line.strip() and line.strip() != "…":
            prompt = line.rstrip().endswith("exactly this:")
            pattern = re.compile(re.escape(line.strip())) if prompt else names.pattern(line)
            found = terminal.find(pattern, PATIENCE)
            names.learn(found)
            shown += found[0] + "\n"
            if prompt:
                terminal.type(passphrase + "\n")
    return shown


def test_the_five_minutes_are_as_the_readme_shows_them(terminals: dict[str, Terminal]) -> None:
    names = Names()
    shown = play(played("terminal 1")[0], terminals["terminal 1"], names, "")
    passphrase = re.search(r"passphrase ([a-z-]+)", shown)
    assert passphrase is not None
    for block in played("terminal 2"):
        play(block, terminals["terminal 2"], names, passphrase[1])
    terminals["terminal 1"].interrupt()
    terminals["terminal 1"].find(re.compile("Stopped; keys and secrets are gone"), PATIENCE)


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.role == "python"])
def test_python_blocks_run(block: Block, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    exec(compile("\n".join(block.lines), "README.md", "exec"), {})  # noqa: S102 (our own README)


def test_the_operating_guide_shows_a_configuration_that_loads(folder: Path) -> None:
    (shown,) = [block for block in blocks(ROOT / "docs/operating.md") if block.role == "carnet.yaml"]
    tools = ("search_tickets", "read_customer_record", "refund")
    catalog = "".join(f"  {tool}: {{effect: read}}\n" for tool in tools)
    (folder / "tools.policy.yaml").write_text(f"version: 1\ncatalog:\n{catalog}")
    (folder / "carnet.yaml").write_text("\n".join(shown.lines))
    registry = load_registry(folder / "carnet.yaml")
    assert set(registry.agents) == {"support", "summarizer", "refund-clerk"}


def test_every_variable_of_the_environment_is_described() -> None:
    page = (ROOT / "docs/operating.md").read_text()
    described = set(re.findall(r"`(CARNET_[A-Z_]+)`", page))
    fields = {f"CARNET_{name.upper()}" for name in Settings.model_fields}
    assert fields <= described
    codes = " ".join(page.split()).partition("Exit codes:")[2]
    assert all(f" {code.value} " in codes for code in Exit)


def test_every_link_in_the_docs_leads_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_block_of_code_is_played_or_is_the_set_up(folder: Path) -> None:
    unplayed = [block for block in BLOCKS if not block.role]
    assert [block.lines[0][:11] for block in unplayed] == ["$ make demo"]
