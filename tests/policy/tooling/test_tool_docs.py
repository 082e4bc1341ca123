"""The manual's terminals are played: each command of a `console` block prints what stands below it."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carnet.cli.root import build
from tests.tree import ROOT

PAGE = (ROOT / "docs" / "policy.md").read_text()


def blocks(info: str) -> list[str]:
    return re.findall(rf"^```{info}\n(.*?)^```$", PAGE, re.S | re.M)


def files(folder: Path) -> None:
    (folder / "support-tools.yaml").write_text(blocks("yaml policy")[0])
    (folder / "support-tools.test.yaml").write_text(blocks("yaml tests")[0])
    (folder / "candidate.yaml").write_text(blocks("yaml candidate")[0])
    lines = []
    for number, (amount, shown) in enumerate(((20, True), (60, True), (75, False)), 1):
        args = {"amount": amount, "customer_id": "cust_000001"}
        small = amount <= 50
        record = {
            "kind": "call_decided",
            "seq": number,
            "at": 1000 + number,
            "run": f"dlg_{number}",
            "client": "support",
            "tool": "refund",
            "args": dict.fromkeys(args, "0" * 32),
            "clear": {name: value for name, value in args.items() if shown or name != "amount"},
            "call": f"call_{number}",
            "decision": "require_approval" if small else "deny",
            "reason": "policy_approval" if small else "policy_deny",
            "rule": "refund[0]" if small else "refund[1]",
        }
        lines.append(json.dumps({"record": record, "link": "0" * 64}))
    (folder / "export.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_the_manual_shows(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    command, _, shown = block.partition("\n")
    words = shlex.split(command.removeprefix("$ carnet "))
    done = CliRunner().invoke(build(), words)
    pattern = re.escape(shown).replace("…", r"[^\n]+?")
    assert re.fullmatch(pattern, done.output), done.output


def test_every_tool_of_the_manual_is_played() -> None:
    played = {shlex.split(block.partition("\n")[0])[3] for block in blocks("console")}
    assert played == {"test", "explain", "diff", "replay"}
