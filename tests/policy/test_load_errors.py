"""What does not load, with the line it is told at; and how several files form one policy."""

from pathlib import Path

import pytest

from carnet_policy import PolicyError, from_mapping, load, loads

HISTORY = "version: 1\nhistory:\n  - "
HEAD = "version: 3\ndefaults: {decision: deny}\ntools:\n  refund:\n"


def rule(text: str) -> str:
    return f"{HEAD}    - {text}\n"


def arg(text: str, decision: str = "allow") -> str:
    return f"{HEAD}    - decision: {decision}\n      args:\n        amount: {text}\n"


# text, line, words of the message
ERRORS: dict[str, tuple[str, int, str]] = {
    "misspelt top key": ("version: 3\ndefault:\n  decision: deny\n", 2, "did you mean defaults?"),
    "no version": ("tools: {}\n", 1, "version: 1"),
    "version as text": ("version: '3'\n", 1, "whole number"),
    "boolean version": ("version: true\n", 1, "whole number"),
    "empty file": ("", 1, "empty"),
    "list": ("- a\n", 1, "must be a mapping"),
    "word for a list": (
        "version: 1\ncatalog:\n  a: {effect: read, data_class: pii}\n",
        3,
        "must be a list, not 'pii': write [pii]",
    ),
    "nothing for a mapping": ("version: 1\ncatalog:\n", 2, "catalog is empty: a mapping must stand there"),
    "default allow": ("version: 3\ndefaults: {decision: allow}\n", 2, "i_accept_fail_open"),
    "default allow, signature false": (
        "version: 3\ni_accept_fail_open: false\ndefaults: {decision: allow}\n",
        3,
        "default",
    ),
    "default without decision": ("version: 3\ndefaults: {}\n", 2, "decision"),
    "signature that is no boolean": ("version: 3\ni_accept_fail_open: yes\n", 2, "true or false"),
    "unknown decision word": (rule("decision: permit"), 5, "one of allow, deny, require_approval"),
    "decision with a capital": (rule("decision: Deny"), 5, "one of"),
    "rule without decision": (rule("args: {a: {}}"), 5, "no decision"),
    "unknown key in a rule": (rule("{decision: deny, when: x}"), 5, "unknown key 'when'"),
    "rules as mapping": ("version: 1\ntools:\n  a: {decision: deny}\n", 3, "must be a list"),
    "extra_args on a deny": (rule("{decision: deny, extra_args: true}"), 5, "extra_args is for allow"),
    "extra_args as text": (rule("{decision: allow, extra_args: 'true'}"), 5, "true or false"),
    "tool name with a space": ("version: 1\ntools:\n  'a b': []\n", 3, "no tool name"),
    "duplicate tool": ("version: 3\ntools:\n  refund:\n    - decision: deny\n  refund: []\n", 5, "duplicate"),
    "unknown constraint": (arg("{maximum: 10}"), 7, "unknown constraint 'maximum'"),
    "constraint as text": (arg("10"), 7, "must be a mapping"),
    "min as text": (arg("{min: '1'}"), 7, "finite number"),
    "min as boolean": (arg("{min: true}"), 7, "finite number"),
    "min not finite": (arg("{min: .nan}"), 7, "finite number"),
    "max not finite": (arg("{max: 1e999}"), 7, "finite number"),
    "length not whole": (arg("{max_length: 1.5}"), 7, "whole number"),
    "length below zero": (arg("{min_length: -1}"), 7, "whole number"),
    "required as text": (arg("{required: 'yes'}"), 7, "true or false"),
    "unknown type": (arg("{type: str}"), 7, "one of string"),
    "types that differ": (arg("{type: string, max: 5}"), 7, "judges a number"),
    "constraints of two types": (arg("{min_length: 1, max: 5}"), 7, "judges a number"),
    "empty range": (arg("{min: 5, max: 4}"), 7, "empty range"),
    "empty range of integers": (arg("{type: integer, min: 0.5, max: 0.7}"), 7, "empty range"),
    "empty length range": (arg("{min_length: 5, max_length: 4}"), 7, "empty range"),
    "empty items range": (arg("{min_items: 5, max_items: 4}"), 7, "empty range"),
    "required but empty": (arg("{required: true, max_length: 0}"), 7, "nothing can match"),
    "enum empty": (arg("{enum: []}"), 7, "enum is empty"),
    "enum as text": (arg("{enum: abc}"), 7, "must be a list"),
    "enum member outside the type": (arg("{type: integer, enum: [1, '2']}"), 7, "outside its type"),
    "enum member that is a float": (arg("{type: integer, enum: [1, 2.0]}"), 7, "outside its type"),
    "enum with nothing in range": (arg("{max: 5, enum: [6, 7]}"), 7, "nothing can match"),
    "const outside enum": (arg("{enum: [1, 2], const: 1.0}"), 7, "nothing can match"),
    "const not finite": (arg("{const: .inf}"), 7, "finite"),
    "pattern that does not compile": (arg("{pattern: '^(abc'}"), 7, "bad pattern"),
    "pattern made whole by brackets": (arg("{pattern: 'a)|(b'}"), 7, "bad pattern"),
    "look-ahead": (arg("{pattern: '(?=a)a'}"), 7, "look-around"),
    "look-behind": (arg("{pattern: '(?<!a)b'}"), 7, "look-around"),
    "back-reference": (arg("{pattern: '(a)\\1'}"), 7, "bad pattern"),
    "large repetition": (arg("{pattern: 'a{1001}'}"), 7, "1000"),
    "nested repetition": (arg("{pattern: '(a{100}){11}'}"), 7, "1000"),
    "path that is relative": (arg("{path_within: srv}"), 7, "absolute path"),
    "path with dots": (arg("{path_within: [/srv/../x]}"), 7, "absolute path"),
    "host with a scheme": (arg("{url_host: 'https://a.example'}"), 7, "exact host"),
    "host with a wildcard": (arg("{url_host: ['*.example']}"), 7, "exact host"),
    "bad constraint of elements": (arg("{items: {min: x}}"), 7, "finite number"),
    "bad constraint of a member": (arg("{properties: {a: {min: x}}}"), 7, "finite number"),
    "constraints nested too deep": (arg("{items: " * 10 + "{}" + "}" * 10), 7, "deep"),
    "alias": ("version: 1\ntools:\n  a: &r [{decision: deny}]\n", 3, "anchor"),
    "tag": (arg("!!float 3"), 7, "tag"),
    "unknown effect": ("version: 1\ncatalog:\n  a: {effect: delete}\n", 3, "one of read, write, irreversible"),
    "unknown key in catalog": ("version: 1\ncatalog:\n  a: {effects: read}\n", 3, "did you mean effect?"),
    "data class with a capital": ("version: 1\ncatalog:\n  a: {data_class: [PII]}\n", 3, "lower-case"),
    "data class as text": ("version: 1\ncatalog:\n  a: {data_class: pii}\n", 3, "must be a list"),
    "history without max": (HISTORY + "{match: irreversible, decision: deny}\n", 3, "no max"),
    "history that allows": (
        HISTORY + "{match: irreversible, max: 1, decision: allow}\n",
        3,
        "one of deny",
    ),
    "history with two measures": (
        HISTORY + "{match: irreversible, sum: a, distinct: b, max: 1, decision: deny}\n",
        3,
        "two rules",
    ),
    "history of an unknown match": (
        HISTORY + "{match: all, max: 1, decision: deny}\n",
        3,
        "irreversible or",
    ),
    "history over a client without window": (
        HISTORY + "{match: irreversible, max: 1, over: client, decision: deny}\n",
        3,
        "window",
    ),
    "window over a run": (
        HISTORY + "{match: irreversible, max: 1, window: 60, decision: deny}\n",
        3,
        "window",
    ),
    "count that is not whole": (
        HISTORY + "{match: irreversible, max: 1.5, decision: deny}\n",
        3,
        "whole",
    ),
    "sum below zero": (HISTORY + "{match: {tool: a}, sum: x, max: -1, decision: deny}\n", 3, "below 0"),
    "the same history rule twice": (
        HISTORY + "{match: irreversible, max: 1, decision: deny}\n"
        "  - {decision: deny, match: irreversible, max: 1, reason: again}\n",
        4,
        "says the same as history[0]",
    ),
    "timeout too long": ("version: 1\napprovals: {timeout: 100000}\n", 2, "whole number"),
    "unknown on_denial": ("version: 1\napprovals: {on_denial: retry}\n", 2, "one of revoke, continue"),
    "id with a slash": ("id: a/b\nversion: 1\n", 1, "no policy id"),
    "allow past a deny by omission": (
        "version: 1\ntools:\n  a:\n    - {decision: deny, args: {amount: {min: 50}}}\n"
        "    - {decision: allow, extra_args: true}\n",
        5,
        "a[1] can allow a call without amount",
    ),
    "allow past a deny by an optional argument": (
        "version: 1\ntools:\n  a:\n    - {decision: allow, args: {amount: {max: 5, min: 0, required: false}}}\n"
        "    - {decision: deny, args: {amount: {min: 50}}}\n",
        4,
        "without amount",
    ),
    "allow past a deny on a member": (
        "version: 1\ntools:\n  a:\n    - {decision: allow, args: {o: {type: object}}}\n"
        "    - {decision: deny, args: {o: {properties: {force: {const: true}}}}}\n",
        4,
        "without o.force",
    ),
}


@pytest.mark.parametrize("what", ERRORS)
def test_it_does_not_load(what: str) -> None:
    text, line, words = ERRORS[what]
    with pytest.raises(PolicyError) as caught:
        loads([("p.yaml", text)])
    assert words in caught.value.message
    assert (caught.value.file, caught.value.line) == ("p.yaml", line)
    assert caught.value.column >= 1


def test_a_deny_that_matches_absence_needs_no_presence() -> None:
    text = (
        "version: 1\ntools:\n  a:\n    - {decision: deny, args: {amount: {min: 50, required: false}}}\n"
        "    - {decision: allow, args: {amount: {required: false}}}\n"
    )
    loads([("p.yaml", text)])


FIRST = ("first.yaml", "version: 2\ncatalog: {a: {effect: read}}\ntools: {a: [{decision: allow}]}\n")


def test_several_files_form_one_policy() -> None:
    history = "history: [{match: {tool: b}, max: 1, decision: deny}]\n"
    second = ("second.yaml", f"catalog: {{b: {{effect: write}}}}\ntools: {{b: [{{decision: allow}}]}}\n{history}")
    policy = loads([FIRST, second])
    assert (policy.ref.id, policy.ref.version) == ("first", 2)
    assert policy.facts("b").effect == "write"
    assert list(policy.history_ids.values()) == [0]
    assert policy.ref.digest != loads([FIRST]).ref.digest
    assert loads(policy.texts).ref == policy.ref


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id: x\n", "first file"),
        ("version: 3\n", "first file"),
        ("defaults: {decision: deny}\n", "first file"),
        ("approvals: {}\n", "first file"),
        ("tools: {a: []}\n", "a is in two files"),
        ("catalog: {a: {effect: read}}\n", "a is in two files"),
    ],
)
def test_a_further_file_may_not(text: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words) as caught:
        loads([FIRST, ("second.yaml", text)])
    assert (caught.value.file, caught.value.line) == ("second.yaml", 1)


def test_files_are_read_from_disk_and_named_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "support-tools.yaml"
    path.write_text(FIRST[1])
    assert load(path).ref.id == "support-tools"
    assert load([path]).ref == load(path).ref
    path.write_bytes(b"\xff")
    with pytest.raises(PolicyError, match="UTF-8"):
        load(path)
    with pytest.raises(PolicyError, match="No such file"):
        load(tmp_path / "absent.yaml")
    with pytest.raises(PolicyError, match="1 to 1000 files"):
        load([])


def test_the_digest_is_of_content_and_not_of_writing() -> None:
    one = loads([("p.yaml", "version: 1\ntools: {a: [{decision: deny}]}\n")])
    other = loads([("p.yaml", "# note\ntools:\n  a:\n  - decision: deny\nversion: 1\n")])
    assert one.ref == other.ref
    assert one.ref == from_mapping({"version": 1, "tools": {"a": [{"decision": "deny"}]}}, id="p").ref
    assert one.ref.digest != loads([("p.yaml", "version: 1\ntools: {a: [{decision: allow}]}\n")]).ref.digest


def test_a_mapping_survives_the_way_through_its_text() -> None:
    odd = "\x7f \u2028 \ufeff \x85 💡 : NaN #"
    mapping = {"version": 1, "tools": {"a": [{"decision": "allow", "args": {odd: {"const": odd}}, "reason": "x"}]}}
    policy = from_mapping(mapping, id="p")
    assert loads(policy.texts).ref == policy.ref
    assert policy.tools["a"].rules[0].args[odd].enum == (odd,)


@pytest.mark.parametrize("value", [{1: "x"}, (1,), float("nan"), b"x", {"a": object()}])
def test_a_mapping_of_other_values_is_refused(value: object) -> None:
    with pytest.raises(PolicyError):
        from_mapping({"version": 1, "tools": value})
