"""Patterns match the whole value, in linear time, and mean the same wherever they are read."""

import time

import pytest

from carnet_policy.pattern import BadPattern, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("cust_[0-9]{6}", ["cust_123456"], ["cust_123456\n", "xcust_123456", "cust_123456; DROP", "cust_١٢٣٤٥٦", ""]),
        ("^cust_[0-9]{6}$", ["cust_123456"], ["cust_123456\n", "\ncust_123456", "a\ncust_123456"]),
        ("a|b", ["a", "b"], ["ab", "ax", "xb"]),
        ("(?m)^a$", ["a"], ["a\n", "b\na", "a\nb"]),
        ("", [""], ["a", "\n"]),
        (r"\d+", ["12"], ["١٢", "1\n"]),
        (r"\w+", ["ab_1"], ["é", "a-b"]),
        ("a.c", ["abc"], ["a\nc", "ac"]),
        (r"(?i)drop", ["DROP", "drop"], ["dropx"]),
        (r"[.]+", ["..."], ["abc"]),
        (r"[\]\-a]+", ["a]-"], ["b"]),
        (r"\p{Lu}\x41", ["ÉA"], ["éA"]),
        (r"(?P<n>a)(?:b)(?<m>c)", ["abc"], ["ab"]),
    ],
)
def test_a_pattern_matches_the_whole_value(pattern: str, yes: list[str], no: list[str]) -> None:
    matches = compile_pattern(pattern).matches
    assert [value for value in yes if not matches(value)] == []
    assert [value for value in no if matches(value)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(?s)x.y", "(?s:x.y)", "(?is)X.Y", "(?s)(x).(y)", "(?s)(?:x.)y", "(?:(?s)x.)y", "(?i)(?s)x.y", "(?s)(?-i:x.y)"],
)
def test_the_flag_s_lets_a_dot_match_a_line_break(pattern: str) -> None:
    found = compile_pattern(pattern)
    assert found.matches("x\ny")
    assert not found.dot_stops


@pytest.mark.parametrize("pattern", ["x.y", "(?s)(?-s:x.y)", "(?:(?s))x.y", "(?s:)x.y", "((?s)z)?x.y"])
def test_the_flag_s_ends_with_its_group(pattern: str) -> None:
    found = compile_pattern(pattern)
    assert not found.matches("x\ny")
    assert found.dot_stops


def test_a_written_deny_is_not_dodged_by_a_line_break() -> None:
    matches = compile_pattern(r"(?is).*(;|--|\b(drop|delete)\b).*").matches
    assert matches("select 1\n; drop table x\n")
    assert matches("\nDELETE\n")


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(",
            ")",
            "a)|(b",
            "a)b",
            "(?:a",
            "[a",
            "[]",
            "[^]",
            "[]a]",
            "[^]a]",
            "\\",
            "a\\",
            "*",
            "a{2,1}",
            "a{,3}",
            "a{",
        ),
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?#x)", "(?>a)", "(?R)", "(?x)a", "(?u)a", "(?is-i)a", r"(a)\1"),
        *(r"\k<n>", "a{1001}", "a{2,1001}", "(a{100}){11}", "((a{10}){10}){11}", "a{100}{11}", "a{999999999999}"),
        *("[a&&b]", "[[:alpha:]]", "[a--b]", "[a~~b]", "x" * 5000, r"\p{L}{1000}"),
    ],
)
def test_it_refuses(pattern: str) -> None:
    with pytest.raises(BadPattern):
        compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["a{1000}", "(a{100}){10}", "(a{100}b{100}c{100}){10}", "(a{1000}|b{1000})"])
def test_repetition_goes_to_a_thousand(pattern: str) -> None:
    compile_pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+", "(([a-z])+/?)*", "(a|aa)+", "(a|a?)+", "(.*a){20}", "a?{50}a{50}"])
def test_time_is_linear_in_the_value(pattern: str) -> None:
    matches = compile_pattern(pattern).matches
    begin = time.process_time()
    assert not matches("a" * 100_000 + "!")
    assert time.process_time() - begin < 2


def test_a_lone_surrogate_can_not_be_judged() -> None:
    assert compile_pattern("a").judge("\ud800") is None
    assert compile_pattern("a").judge("a") is True


@pytest.mark.parametrize("value", ["\u212a", "\u017f"])
def test_letters_that_only_folding_makes_ascii_can_not_be_judged(value: str) -> None:
    assert compile_pattern("(?i)[a-z]").judge(value) is None
    assert compile_pattern("[a-z]").judge(value) is False
    assert compile_pattern("(?i)[a-z]").judge("K") is True
