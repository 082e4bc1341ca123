"""The strict reader: what a person reads is what is loaded, and places are right."""

import contextlib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from carnet_policy import PolicyError, load_yaml

REFUSED = {
    "duplicate key": ("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a'"),
    "duplicate key written in another style": ('a: 1\n"a": 3\n', 2, 1, "duplicate"),
    "duplicate key inside flow": ("x: {a: 1, a: 2}\n", 1, 11, "duplicate"),
    "alias": ("a: [*b]\n", 1, 5, "alias"),
    "anchor": ("a: &b 1\n", 1, 4, "anchor"),
    "tag": ("a: !!python/object:os.system x\n", 1, 4, "tag"),
    "harmless tag": ("a: !!str x\n", 1, 4, "tag"),
    "tag on a list": ("a: !!set [x]\n", 1, 4, "tag"),
    "merge key": ("a: {<<: {b: 1}}\n", 1, 5, "merge key"),
    "second document": ("a: 1\n---\nb: 1\n", 2, 1, "second document"),
    "number as key": ("1: x\n", 1, 1, "quote it"),
    "boolean as key": ("true: x\n", 1, 1, "quote it"),
    "null as key": ("~: x\n", 1, 1, "quote it"),
    "list as key": ("? [a]\n: b\n", 1, 3, "must be a string"),
    "broken syntax": ("a: [1\nb: 2\n", 2, 2, "not YAML"),
    "tab as indent": ("a:\n\tb: 1\n", 2, 1, "not YAML"),
    "NUL": ("a: 1\nb: \0\n", 2, 1, "NUL"),
    "lone surrogate": ("a: \ud800\n", 1, 1, "surrogate"),
    "endless number": (f"a: {'9' * 500}\n", 1, 4, "number of 500 characters"),
    "deep flow": ("[" * 900, 1, 33, "deep"),
    "very deep flow": ("[" * 100_000, 1, 1001, "depth"),
    "deep blocks": ("- " * 100_000 + "x", 1, 65, "deep"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_refuses_and_says_where(what: str) -> None:
    text, line, column, words = REFUSED[what]
    with pytest.raises(PolicyError) as caught:
        load_yaml(text, "p.yaml")
    assert words in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"p.yaml:{line}:{column}: ")


def test_a_text_over_the_cap_is_refused() -> None:
    with pytest.raises(PolicyError, match="1048576 is the most"):
        load_yaml("a: " + "x" * (1 << 20), "p.yaml")


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "Yes", "True", "TRUE", "0x1f", "010", "1:30", "1_000"])
def test_words_that_only_yaml_1_1_reads_otherwise_stay_strings(text: str) -> None:
    assert load_yaml(f"a: {text}", "p").value == {"a": text}


def test_a_date_stays_a_string() -> None:
    assert load_yaml("a: 2024-01-01", "p").value == {"a": "2024-01-01"}


def test_scalars_of_json_are_read_as_such() -> None:
    text = "a: [true, false, null, ~, , 1, -1, 1.5, 1e3, .5, \"1\", 'true']".replace(" ,", " null,")
    value = load_yaml(text, "p").value
    assert value == {"a": [True, False, None, None, None, 1, -1, 1.5, 1000.0, 0.5, "1", "true"]}


def test_every_part_has_a_place() -> None:
    marked = load_yaml("a: 1\nb:\n  - x\n  - c: {d: 2}\n", "p.yaml")
    assert marked.at() == (1, 1)
    assert marked.at(("b",)) == (2, 1)
    assert marked.at(("b", 1)) == (4, 5)
    assert marked.at(("b", 1, "c", "d")) == (4, 9)
    assert marked.at(("b", 1, "c", "unknown")) == (4, 5)
    assert str(marked.error(("b", 0), "no")) == "p.yaml:3:5: no"


@given(st.text(max_size=60))
def test_any_text_is_a_value_or_a_policy_error(text: str) -> None:
    with contextlib.suppress(PolicyError):
        load_yaml(text, "p")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc 1:#-{}[]", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_what_pyyaml_writes_is_read_back(value: object) -> None:
    text = yaml.dump(value, Dumper=_Plain)
    assert load_yaml(text, "p").value == value


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True
