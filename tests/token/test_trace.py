"""W3C Trace Context: what is kept, what is restarted, what is dropped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.trace import Trace, child, extract, parse, start

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE_ID}-{SPAN_ID}-01"
NEXT = "b7ad6b7169203331"


def test_a_valid_header_is_kept_and_a_child_span_goes_out() -> None:
    trace = parse(GOOD)
    assert trace is not None
    assert trace == Trace(TRACE_ID, SPAN_ID, sampled=True)
    assert trace.header() == GOOD
    assert child(trace, NEXT).header() == f"00-{TRACE_ID}-{NEXT}-01"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "00",
        f"00-{TRACE_ID}-{SPAN_ID}",
        f"00-{TRACE_ID}-{SPAN_ID}-01-",
        f"00-{TRACE_ID}-{SPAN_ID}-01-extra",
        f"00-{TRACE_ID}-{SPAN_ID}-011",
        f"00-{TRACE_ID}-{SPAN_ID}-1",
        f"00-{TRACE_ID}0-{SPAN_ID}-01",
        f"00-{TRACE_ID[:-1]}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}0-01",
        f"00-{TRACE_ID}-{SPAN_ID[:-1]}-01",
        f"00-{TRACE_ID.upper()}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID.upper()}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-0G",
        f"00-xyz-{SPAN_ID}-01",
        f"00-{'0' * 32}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{'0' * 16}-01",
        f"ff-{TRACE_ID}-{SPAN_ID}-01",
        f"0x-{TRACE_ID}-{SPAN_ID}-01",
        f"cc-{TRACE_ID}-{SPAN_ID}-01.what",
        f"00_{TRACE_ID}-{SPAN_ID}-01",
        f"00-{TRACE_ID}-{SPAN_ID}-01\n",
        f"00-{TRACE_ID[:-1]}\u0661-{SPAN_ID}-01",
    ],
)
def test_a_malformed_header_restarts_and_its_state_is_not_read(header: str | None) -> None:
    assert parse(header, "vendor=abc") is None


@pytest.mark.parametrize("tail", ["", "-", "-what-the-future-will-be-like"])
def test_a_higher_version_is_read_as_far_as_it_is_known_and_written_as_ours(tail: str) -> None:
    trace = parse(f"cc-{TRACE_ID}-{SPAN_ID}-01{tail}")
    assert trace is not None
    assert trace.header() == GOOD


def test_flags_are_bits_and_unknown_ones_are_not_passed_on() -> None:
    flags = {
        given: trace.header()[-2:]
        for given in ("00", "01", "02", "03", "ff", "fc")
        if (trace := parse(GOOD[:-2] + given))
    }
    assert flags == {"00": "00", "01": "01", "02": "02", "03": "03", "ff": "03", "fc": "00"}


def test_white_space_around_the_header_is_not_part_of_it() -> None:
    assert parse(f" \t{GOOD}\t ") == parse(GOOD)


def test_several_parents_restart_and_several_states_are_joined() -> None:
    assert extract([]) is None
    assert extract([GOOD, GOOD]) is None
    trace = extract([GOOD], ["a=1", "b=2,c=3"])
    assert trace is not None
    assert trace.state == "a=1,b=2,c=3"
    assert child(trace, NEXT).state == trace.state


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("vendor=abc", "vendor=abc"),
        ("a=1, \t b=2 ,,", "a=1,b=2"),
        ("fw529a3039@dt=FfAAAA,1a-_*/@=x y", "fw529a3039@dt=FfAAAA,1a-_*/@=x y"),
        ("", ""),
        (",".join(f"k{n}=1" for n in range(32)), ",".join(f"k{n}=1" for n in range(32))),
        (",".join(f"k{n}=1" for n in range(33)), ""),
        ("a=b," * 300, ""),
        ("a=1,a=2", ""),
        ("A=1", ""),
        ("=1", ""),
        ("a", ""),
        ("a=", ""),
        ("a=b=c", ""),
        ("a=\x01", ""),
        ("a=é", ""),
        ("k" * 256 + "=1", ""),
        ("k" * 257 + "=1", ""),
        ("k" * 256 + "=1,ok=2", "k" * 256 + "=1,ok=2"),
        ("a=" + "v" * 257, ""),
    ],
)
def test_tracestate_is_passed_on_whole_or_dropped_and_never_spoils_the_parent(state: str, kept: str) -> None:
    trace = parse(GOOD, state)
    assert trace is not None
    assert trace.trace_id == TRACE_ID
    assert trace.state == ("k" * 256 + "=1" if state == "k" * 256 + "=1" else kept)


def test_of_a_long_tracestate_whole_members_stay_long_ones_go_first() -> None:
    long = "long=" + "v" * 200
    short = [f"k{number:02}={'v' * 20}" for number in range(20)]
    trace = parse(
        GOOD,
        ",".join(
            [
                long,
                *short,
            ]
        ),
    )
    assert trace is not None
    assert len(trace.state) <= 512
    assert trace.state == ",".join(short[: len(trace.state.split(","))])


def test_new_ids_are_arguments_and_are_checked() -> None:
    trace = start(TRACE_ID, SPAN_ID, random=True)
    assert trace.header() == f"00-{TRACE_ID}-{SPAN_ID}-03"
    for wrong in (
        ("0" * 32, SPAN_ID),
        (TRACE_ID, "0" * 16),
        (TRACE_ID.upper(), SPAN_ID),
        ("", ""),
        (TRACE_ID + "\n", SPAN_ID),
    ):
        with pytest.raises(ValueError, match="lowercase hex"):
            start(*wrong)
    with pytest.raises(ValueError, match="lowercase hex"):
        child(trace, "x")


@given(st.text(max_size=70), st.text(max_size=70))
def test_whatever_arrives_parsing_never_raises_and_echoes_nothing(header: str, state: str) -> None:
    trace = parse(header, state)
    assert trace is None or (trace.header()[:52] == header.strip(" \t")[:52].replace(header.strip(" \t")[:2], "00", 1))
