"""Patterns, and arguments that a shell, a file system or a network will read."""

import pytest

from carnet_policy.lint import Severity
from carnet_policy.lint.atoms import alternatives, atoms_of
from tests.policy.lint.planting import codes, only, policy


def deny(pattern: str) -> str:
    return policy(f"{{decision: deny, args: {{a: {{pattern: '{pattern}'}}}}}}")


@pytest.mark.parametrize("pattern", ["rm -rf", "^rm", "secret$", "^a|b$"])
def test_a_deny_that_searches_misses_what_it_means(pattern: str) -> None:
    assert only("CP301", deny(pattern)).severity is Severity.WARNING


@pytest.mark.parametrize(
    "pattern",
    ["(?s).*rm -rf.*", "^rm$", r"\Arm\z", "(?s)rm.*", "^(a|b)$", "(^a$|^b$)", "^a$|^b$", "(?i:^a$)", "(?P<x>(^a$))"],
)
def test_a_deny_written_for_the_whole_value_is_fine(pattern: str) -> None:
    assert "CP301" not in codes(deny(pattern))


def test_an_allow_without_anchors_is_only_a_note_for_it_fails_closed() -> None:
    assert only("CP301", policy(args="a: {pattern: 'cust_[0-9]{6}'}")).severity is Severity.NOTE
    assert only("CP301", policy(args="a: {pattern: '^cust_[0-9]{6}'}")).severity is Severity.WARNING


def test_an_escaped_dollar_is_no_anchor() -> None:
    assert "CP301" in codes(deny(r"^cost \$"))
    assert "CP301" not in codes(deny(r"^cost \\$"))


@pytest.mark.parametrize(
    "pattern", ["^.*$", "^x.+$", r"^[\s\S]*$", r"^\S+$", "^[^/]+$", "^(?:.)*$", "^(a|.)+$", "^.{0,1000}.*$"]
)
def test_a_wide_pattern_is_told(pattern: str) -> None:
    assert "CP302" in codes(policy(args=f"a: {{pattern: '{pattern}'}}"))


@pytest.mark.parametrize("pattern", ["^[a-z]*$", r"^\w+$", "^.{1,80}$", r"^\.+$", "^[.*]+$", "^(?:a.)?$"])
def test_a_narrow_pattern_is_not(pattern: str) -> None:
    assert "CP302" not in codes(policy(args=f"a: {{pattern: '{pattern}'}}"))


def test_a_wide_pattern_is_fine_where_something_else_bounds_the_text() -> None:
    assert "CP302" not in codes(policy(args="a: {pattern: '^x.*$', max_length: 90}"))
    assert "CP302" not in codes(policy(args="path: {pattern: '^/a/.*$', path_within: /a}"))


SLIPS = [("^[A-z]$", True), ("^api.example.com$", True), (r"^api\.example\.com$", False)]
NO_SLIPS = [("^v.*$", False), ("^[a.b]$", False), ("^a.{3}b$", False)]


@pytest.mark.parametrize(("pattern", "told"), [*SLIPS, *NO_SLIPS])
def test_slips_are_told(pattern: str, told: bool) -> None:
    assert ("CP303" in codes(policy(args=f"a: {{pattern: '{pattern}'}}"))) is told


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("{type: string}", True),
        ("{type: string, max_length: 20}", True),
        ("{pattern: '^git .*$'}", True),
        ("{pattern: '^git [^;]+$'}", True),
        (r"{pattern: '^git [\s\S]{1,9}$'}", True),
        ("{type: array}", True),
        ("{items: {type: string}}", True),
        ("{pattern: '^git (status|log)$'}", False),
        ("{pattern: '^git [a-z -]+$'}", False),
        ("{enum: [ls, df]}", False),
        ("{items: {pattern: '^[a-z-]{1,20}$'}}", False),
    ],
)
def test_a_command_is_bounded_character_by_character_or_listed(bound: str, told: bool) -> None:
    for name in ("command", "shellCommand", "run_cmd"):
        assert ("CP305" in codes(policy(args=f"{name}: {bound}"))) is told


def test_a_person_who_approves_a_command_sees_it_so_that_is_milder() -> None:
    ask = policy("{decision: require_approval, args: {command: {type: string}}}")
    assert only("CP305", ask).severity is Severity.WARNING
    assert only("CP305", policy(args="command: {type: string}")).severity is Severity.ERROR
    assert only("CP305", policy(args="sql: {type: string}")).severity is Severity.WARNING
    assert "CP305" not in codes(policy("{decision: deny, args: {command: {type: string}}}"))


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("{}", True),
        ("{type: string}", True),
        ("{pattern: '^/srv/[a-z./]+$'}", True),
        ("{pattern: '^[a-z/]+$'}", True),
        (r"{pattern: '^\.\./[a-z]+$'}", True),
        ("{pattern: '^/srv/[a-z]+$'}", False),
        (r"{pattern: '^[a-z]+\.txt$'}", False),
        ("{path_within: /srv}", False),
        ("{enum: [/etc/hosts]}", False),
        ("{type: integer}", False),
        ("{properties: {line: {type: integer}}}", False),
    ],
)
def test_a_path_is_bounded_by_folders_or_by_a_pattern_that_can_not_climb(bound: str, told: bool) -> None:
    for name in ("path", "outputDir", "log_file"):
        assert ("CP306" in codes(policy(args=f"{name}: {bound}"))) is told


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("{type: string}", True),
        ("{pattern: '^https://.*$'}", True),
        (r"{pattern: '^https://api\.example[a-z./]*$'}", True),
        (r"{pattern: '^https://api\.example/[a-z]*$'}", False),
        ("{url_host: api.example}", False),
    ],
)
def test_a_url_is_bounded_by_hosts(bound: str, told: bool) -> None:
    assert ("CP307" in codes(policy(args=f"callback_url: {bound}"))) is told


def test_a_word_inside_another_is_no_path_or_command() -> None:
    assert not codes(policy(args="profile: {type: string}, xpath_count: {type: string}, filed: {type: string}"))


def test_atoms_are_laid_out_with_how_often_they_stand() -> None:
    found = atoms_of(r"^(?:ab{2,3}){2}[c-e]*\.(x|y+)?$")
    told = [(atom.text, len(atom.chars), atom.most) for atom in found]
    assert told == [("a", 1, 2), ("b", 1, 6), ("[c-e]", 3, None), (r"\.", 1, 1), ("x", 1, 1), ("y", 1, None)]


def test_alternatives_are_those_of_the_outermost_level() -> None:
    assert alternatives(r"(?i)a(b|c)[|]\||d") == [r"a(b|c)[|]\|", "d"]
