"""The benchmarks measure what they say: a warm world hits its memory of tokens, a forgetful one never does."""

import pytest

from bench.__main__ import main
from bench.timing import Figure, render
from bench.world import TOOL, build
from carnet.guard.case import verified
from carnet.reasons import Refusal
from carnet.token.claims import Claims


def test_a_warm_world_reads_a_token_once_and_a_forgetful_one_each_time() -> None:
    warm, cold = build(), build().forgetful()
    first = verified(warm.state, warm.token)
    assert isinstance(first, Claims)
    assert TOOL in first.scope
    assert verified(warm.state, warm.token) is first
    seen = verified(cold.state, cold.token)
    cold.swap()
    assert verified(cold.state, cold.token) != seen
    cold.swap()
    again = verified(cold.state, cold.token)
    assert again == seen
    assert again is not seen


def test_marks_of_others_stop_nothing_and_a_mark_of_the_token_does() -> None:
    world = build()
    world.revoke_others(1000)
    assert isinstance(verified(world.state, world.token), Claims)
    world.state.feed.tenant.until["tenant:acme"] = 2**33
    assert isinstance(verified(world.state, world.token), Refusal)


def test_a_word_that_names_no_group_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-k", "nothing"]) == 2
    assert "deciding, committing, serving" in capsys.readouterr().err


def test_a_figure_is_held_against_its_floor() -> None:
    assert "BELOW" in render(Figure(name="a", value=1.9, floor=2))
    assert "ABOVE" in render(Figure(name="a", value=2.1, floor=2, higher=False))
    assert Figure(name="a", value=2.0, floor=2).ok
    assert Figure(name="a", value=0.0, floor=None).ok
