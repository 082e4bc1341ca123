"""Policy files that try to mean something else than they say, or to cost more than they may."""

import time

import pytest

from carnet_policy import PolicyError, loads

BASE = "id: p\nversion: 1\ntools:\n  t:\n    - {decision: allow, args: {x: %s}}\n"
CONSTRAINTS = [
    "{max: 1e400}",
    "{max: .inf}",
    "{max: .nan}",
    "{max: ~}",
    "{max: 0x10}",
    "{max: 010}",
    "{max: 1:30}",
    "{max: 1_000}",
    "{max: '5'}",
    "{max: %s}" % ("9" * 5000),
    "{const: .inf}",
    "{enum: [1e400]}",
    "{required: yes}",
    "{ｍax: 5}",
    "{max\u200b: 5}",
    "{const: !!binary aGk=}",
    "{<<: {max: 3}}",
    "{~: 3}",
    "{max_length: 5.0}",
    "{items: " * 300 + "{}" + "}" * 300,
    "",
]
FILES = [
    "",
    "a: " + "[" * 20_000,
    "a: " + "{a: " * 5_000,
    "a: &a [x]\nb: *a\n",
    BASE % "{max: 5}" + "---\n" + BASE % "{max: 5}",
    BASE % "{max: 5}" + "\0",
    BASE % "{max: 5}" + "# \ud800",
    "id: p\nversion: 1\ntools:\n\tt: []\n",
    "id: p\nversion: 1\ntools:\n  \u202et: [{decision: allow}]\n",
    "id: p\nversion: 1\ntools:\n  t: [{decision: deny}]\n  't': [{decision: allow}]\n",
    "id: p\nversion: 1e400\n",
    "id: p\nversion: %s\n" % ("9" * 5000),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=range(len(CONSTRAINTS)))
def test_a_constraint_that_is_none_is_an_error_with_its_place(constraint: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.yaml:5:"):
        loads([("p.yaml", BASE % constraint)])


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_a_file_that_is_no_policy_is_an_error_at_once(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(PolicyError):
        loads([("p.yaml", text)])
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("before", ["\ufeff", "%YAML 1.2\n---\n"])
def test_a_mark_or_a_directive_before_it_changes_nothing_in_it(before: str) -> None:
    assert loads([("p.yaml", before + BASE % "{max: 5}")]).bounds("t") == loads([("p.yaml", BASE % "{max: 5}")]).bounds(
        "t"
    )
