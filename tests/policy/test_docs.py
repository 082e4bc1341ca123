"""The manual of policies is run: its examples load or are refused as it says, its calls are decided as it says, and
its tables are those of the code."""

import json
import re
from dataclasses import dataclass

import pytest

from carnet_policy import Call, Policy, PolicyError, evaluate, loads
from carnet_policy.catalog import EFFECTS
from carnet_policy.grammar import CONSTRAINTS
from carnet_policy.history import KEYS as HISTORY_KEYS
from carnet_policy.lint import CODES, Severity, check
from carnet_policy.loader import KEYS as FILE_KEYS
from carnet_policy.rule import KEYS as RULE_KEYS
from tests.tree import ROOT

PAGE = (ROOT / "docs" / "policy.md").read_text()
_BLOCK = re.compile(r"^```(?P<info>[a-z][^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?P<tool>\S+) (?P<args>\{.*\}) -> (?P<decision>[a-z_]+)")


@dataclass(frozen=True)
class Block:
    line: int
    info: str
    text: str
    above: str
    """The policy that was loaded last before this block."""


def blocks() -> list[Block]:
    found, above = [], ""
    for match in _BLOCK.finditer(PAGE):
        info = match["info"].strip()
        above = match["text"] if info == "yaml policy" else above
        found.append(Block(PAGE.count("\n", 0, match.start()) + 1, info, match["text"], above))
    return found


def of(kind: str) -> list[Block]:
    found = [block for block in blocks() if block.info.startswith(kind)]
    assert found, f"the manual has no block {kind}"
    return found


def loaded(text: str) -> Policy:
    return loads([("policy.yaml", text)])


def place(block: Block) -> str:
    return f"line {block.line}"


@pytest.mark.parametrize("block", of("yaml policy"), ids=place)
def test_a_policy_loads_and_has_no_error(block: Block) -> None:
    assert not loaded(block.text).warnings
    errors = [found for found in check([("policy.yaml", block.text)]) if found.severity is Severity.ERROR]
    assert not errors


@pytest.mark.parametrize("block", of("yaml refused"), ids=place)
def test_what_is_said_to_be_refused_does_not_load(block: Block) -> None:
    with pytest.raises(PolicyError):
        loaded(block.text)


@pytest.mark.parametrize("block", of("yaml finding"), ids=place)
def test_what_is_said_to_be_found_is_found(block: Block) -> None:
    wanted = block.info.split()[2]
    assert wanted in {found.code.id for found in check([("policy.yaml", block.text)])}


@pytest.mark.parametrize("block", of("calls"), ids=place)
def test_calls_are_decided_as_the_page_says(block: Block) -> None:
    policy = loaded(block.above)
    for line in block.text.splitlines():
        call = _CALL.fullmatch(line)
        assert call is not None, line
        decision = evaluate(policy, Call(call["tool"], json.loads(call["args"])), None)
        assert decision.effect == call["decision"], (line, decision)


def rows(heading: str) -> list[list[str]]:
    """The cells of all tables of a section."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r" \| ", line.strip("| "))] for line in lines]


def test_the_table_of_constraints_is_that_of_the_grammar() -> None:
    assert {cells[0].strip("`"): cells[1] for cells in rows("Constraints")} == CONSTRAINTS


def test_the_table_of_codes_is_that_of_lint() -> None:
    told = [tuple(cell.strip("`") for cell in cells[:3]) for cells in rows("Lint codes")]
    assert told == [(code.id, code.name, code.severity.value) for code in CODES.values()]
    assert [cells[3] for cells in rows("Lint codes")] == [code.about for code in CODES.values()]


def test_every_key_is_in_a_table() -> None:
    told = [cells[0].strip("`") for cells in rows("Every key")]
    assert told == [
        *sorted(FILE_KEYS, key=told.index),
        "effect",
        "data_class",
        "resource_arg",
        *told[-len(RULE_KEYS) :],
    ]
    assert set(told[-len(RULE_KEYS) :]) == set(RULE_KEYS)
    assert {cells[0].strip("`") for cells in rows("History")} == set(HISTORY_KEYS)
    assert {cells[0].strip("`") for cells in rows("Approvals")} == {"timeout", "on_denial", "approvers"}
    assert all(f"`{effect}`" in PAGE for effect in EFFECTS)
