"""A pattern means the same in every engine: the one that loads it, one over characters, one over bytes, and `like`."""

import fnmatch
import json
import os
import random
import re
import subprocess
import sys

import pytest

from carnet_policy import Call, PolicyError, evaluate, from_mapping
from carnet_policy.export import facts_of
from carnet_policy.export.likes import Like, likes_of
from carnet_policy.export.regex import read_regex
from carnet_policy.export.rego_regex import rego_regex
from carnet_policy.export.unmapped import CanNotMap
from carnet_policy.pattern import BadPattern, compile_pattern
from carnet_policy.probing import specimens
from tests.policy.export.engines import Rego, engine

ATOMS = (
    "a", "b", "é", "漢", r"\d", r"\w", r"\s", r"\W", r"\D", "[ab]", "[^a]", "[^/b]", "[a-c_]", "[éa]", "(?s:.)",
    "(a|b)", "(?:é|a*)", "(?i:K)", "(?i:s[a-m])", r"\.", r"\*", r"\n", r"\x41", r"\u00e9", r"\u{6f22}", r"[\]^-]",
    "(?:)", "/", "-", "'",
)  # fmt: skip
COUNTS = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0}")
LETTERS = "abcKksS_é\u00e8漢/.-*'\n\r\t \u00a0\u2028\ufeff0٣\u017f\u212a😀A]^e\u0301"
ROUNDS = 400
PATHS = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def draw_pattern(draw: random.Random) -> str:
    def sequence() -> str:
        return "".join(draw.choice(ATOMS) + draw.choice(COUNTS) for _ in range(draw.randint(0, 4)))

    branches = "|".join(sequence() for _ in range(draw.choice((1, 1, 1, 2, 3))))
    return draw.choice(("", "", "(?s)", "(?i)")) + draw.choice(("", "^")) + branches + draw.choice(("", "$"))


def draw_texts(draw: random.Random, pattern: str) -> list[str]:
    drawn = ["".join(draw.choices(LETTERS, k=draw.randint(0, 4))) for _ in range(30)]
    return [text for text in dict.fromkeys((*specimens(pattern), *drawn)) if "\0" not in text]


def test_patterns_that_map_match_the_same_texts_over_characters() -> None:
    mapped = 0
    for seed in range(ROUNDS):
        draw = random.Random(seed)
        pattern = draw_pattern(draw)
        try:
            loaded = compile_pattern(pattern)
            written = re.compile(rego_regex(read_regex(pattern)).removeprefix("^").removesuffix("$"))
        except (BadPattern, CanNotMap):
            continue
        mapped += 1
        for text in draw_texts(draw, pattern):
            wanted = loaded.judge(text)
            assert wanted is None or wanted is (written.fullmatch(text) is not None), (pattern, text)
    assert mapped > ROUNDS / 4


def test_patterns_that_map_match_the_same_texts_over_bytes() -> None:
    for seed in range(ROUNDS):
        draw = random.Random(seed)
        pattern = draw_pattern(draw)
        try:
            loaded = compile_pattern(pattern)
            text = rego_regex(read_regex(pattern)).removeprefix("^").removesuffix("$")
        except (BadPattern, CanNotMap):
            continue
        written = re.compile(bytewise(text))
        for sample in draw_texts(draw, pattern):
            wanted = loaded.judge(sample)
            assert wanted is None or wanted is (written.fullmatch(sample.encode()) is not None), (pattern, sample)


def bytewise(text: str) -> bytes:
    """How an engine reads it that knows bytes only."""
    return text.encode()


def test_patterns_that_map_match_the_same_texts_in_rego_cpp() -> None:
    for seed in range(ROUNDS // 4):
        draw = random.Random(seed)
        pattern = draw_pattern(draw)
        rule = {"decision": "allow", "args": {"a": {"pattern": pattern}}}
        try:
            policy = from_mapping({"version": 1, "catalog": {"t": {"effect": "read"}}, "tools": {"t": [rule]}})
        except PolicyError:
            continue
        text = Rego.export(policy)
        if isinstance(text, str):
            asked = engine(Rego, text)
            for sample in draw_texts(draw, pattern):
                call = Call("t", {"a": sample})
                assert asked.ask(facts_of(policy, call)) == evaluate(policy, call, None).effect.value, (pattern, sample)


@pytest.mark.parametrize("decision", ["allow", "deny", "require_approval"])
def test_a_max_length_keeps_a_long_text_from_a_pattern(decision: str) -> None:
    rules = [{"decision": decision, "args": {"a": {"pattern": "(a|b)*", "max_length": 200}}}]
    rules += [] if decision == "allow" else [{"decision": "allow", "args": {"a": {}}}]
    policy = from_mapping({"version": 1, "catalog": {"t": {"effect": "read"}}, "tools": {"t": rules}})
    text = Rego.export(policy)
    assert isinstance(text, str)
    engine(Rego, text)
    call = Call("t", {"a": "a" * 100_000})
    # In a process of its own: where it goes wrong, the engine takes the process with it.
    code = "import json, sys; from tests.policy.export.engines import Rego; told = json.load(sys.stdin); "
    code += "print(Rego(told['text']).ask(told['facts']))"
    told = json.dumps({"text": text, "facts": facts_of(policy, call)})
    done = subprocess.run([sys.executable, "-c", code], input=told, capture_output=True, text=True, env=PATHS)
    assert done.stdout.strip() == evaluate(policy, call, None).effect.value


def glob(like: Like) -> str:
    return "".join("*" if step is None else f"[{step}]" if step in "*?[" else step for step in like)


def test_patterns_that_map_to_like_match_the_same_texts() -> None:
    mapped = 0
    for seed in range(ROUNDS):
        draw = random.Random(seed)
        pattern = draw_pattern(draw) if seed % 2 else draw.choice(("(?s)a.*", "(?s)é.*b|x", "(a|b){1,2}[cd]", r"\*a?"))
        try:
            loaded = compile_pattern(pattern)
            likes = likes_of(read_regex(pattern))
        except (BadPattern, CanNotMap):
            continue
        mapped += 1
        for text in draw_texts(draw, pattern):
            wanted = loaded.judge(text)
            assert wanted is None or wanted is any(fnmatch.fnmatchcase(text, glob(like)) for like in likes), (
                pattern,
                text,
            )
    assert mapped > ROUNDS / 4
