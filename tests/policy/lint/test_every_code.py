"""One planted fault per code, and beside it the nearest thing that is no fault."""

import re
from dataclasses import dataclass
from typing import Any

import pytest

from carnet_policy import loads
from carnet_policy.lint import CODES
from tests.policy.lint.planting import codes, definitions, lint, policy

SAFE = "history: [{match: {tool: t}, max: 1, decision: deny}]\n"
WIDE = "history: [{match: {tool: t}, max: 1, decision: deny, over: client, window: 60}]\n"
GONE = "catalog: {t: {effect: irreversible}}\n"
REFUND = {
    "name": "t",
    "inputSchema": {
        "type": "object",
        "properties": {"amount": {"type": "number", "minimum": 0}, "to": {"enum": ["a", "b"]}},
        "required": ["amount"],
    },
}
TOOLS = definitions(REFUND)
ODD = definitions({"name": "t", "inputSchema": {"type": "object", "properties": {"amount": {"$ref": "http://x/y"}}}})
AMOUNT = "amount: {min: 0, max: 5}"


@dataclass
class Planted:
    code: str
    fault: str
    near_miss: str
    tools: Any = None
    registered: frozenset[str] | None = None
    near_tools: Any = None


MANY = [f"{{decision: allow, args: {{a: {{const: {n}}}}}}}" for n in range(401)]
ALLOW = "{decision: allow}"
PLANTED = [
    Planted("CP001", "version: 1\ntools: {a: &x []}\n", "version: 1\n"),
    Planted("CP002", policy("{decision: perhaps}"), policy(ALLOW)),
    Planted("CP003", policy(*MANY), policy(*MANY[:400])),
    Planted(
        "CP101",
        "version: 1\ndefaults: {decision: require_approval}\ni_accept_fail_open: true\n",
        "version: 1\ndefaults: {decision: deny}\ni_accept_fail_open: true\n",
    ),
    Planted(
        "CP102",
        policy("{decision: allow, args: {a: {min: 1, max: 2}}}", "{decision: deny, args: {a: {min: 0}}}"),
        policy("{decision: allow, args: {a: {min: -1, max: 2}}}", "{decision: deny, args: {a: {min: 0}}}"),
    ),
    Planted(
        "CP103",
        policy("{decision: allow, args: {a: {const: 1}}}", "{decision: allow, args: {a: {enum: [1]}}}"),
        policy("{decision: allow, args: {a: {const: 1}}}", "{decision: allow, args: {a: {enum: [1.0]}}}"),
    ),
    Planted(
        "CP104",
        policy("{decision: allow, args: {a: {const: 1}}}", "{decision: require_approval, args: {b: {min: 1}}}"),
        policy(
            "{decision: allow, args: {a: {const: 1}, b: {min: 0, max: 0}}}",
            "{decision: require_approval, args: {b: {min: 1}}}",
        ),
    ),
    Planted("CP105", policy(), policy(ALLOW)),
    Planted(
        "CP106",
        policy("{decision: allow, extra_args: true, args: {a: {const: 1}}}"),
        policy("{decision: allow, extra_args: false, args: {a: {const: 1}}}"),
    ),
    Planted("CP201", policy(args="a: {max: 0}"), policy(args="a: {min: 0, max: 0}")),
    Planted(
        "CP202",
        policy(
            "{decision: allow, args: {a: {type: integer, min: 0, max: 5}}}",
            "{decision: deny, args: {a: {type: integer, min: 7}}}",
        ),
        policy(
            "{decision: allow, args: {a: {type: integer, min: 0, max: 5}}}",
            "{decision: deny, args: {a: {type: integer, min: 6}}}",
        ),
    ),
    Planted(
        "CP203",
        policy("{decision: allow, args: {a: {min: 0, max: 5}}}", "{decision: deny, args: {a: {min: 4}}}"),
        policy("{decision: allow, args: {a: {min: 0, max: 5}}}", "{decision: deny, args: {a: {min: 6}}}"),
    ),
    Planted("CP301", policy(args='a: {pattern: "^cust_"}'), policy(args='a: {pattern: "^cust_$"}')),
    Planted("CP302", policy(args='a: {pattern: "^x.*$"}'), policy(args='a: {pattern: "^x.{0,80}$"}')),
    Planted("CP303", policy(args='a: {pattern: "^[A-z]+$"}'), policy(args='a: {pattern: "^[A-Za-z]+$"}')),
    Planted(
        "CP304",
        policy('{decision: deny, args: {a: {pattern: ".*rm.*"}}}'),
        policy('{decision: deny, args: {a: {pattern: "(?s).*rm.*"}}}'),
    ),
    Planted("CP305", policy(args='command: {pattern: "^ls .*$"}'), policy(args='command: {pattern: "^ls [a-z]*$"}')),
    Planted("CP306", policy(args="output_path: {type: string}"), policy(args="output_path: {path_within: /srv}")),
    Planted("CP307", policy(args="url: {type: string}"), policy(args="url: {url_host: api.example}")),
    Planted("CP401", policy(ALLOW, catalog=GONE), policy(ALLOW, catalog=GONE, more=SAFE)),
    Planted("CP402", policy(ALLOW, catalog=GONE, more=SAFE), policy(ALLOW, catalog=GONE, more=WIDE)),
    Planted("CP403", policy(ALLOW, catalog="catalog: {t: {}}\n"), policy(ALLOW)),
    Planted("CP404", policy(ALLOW, more=SAFE.replace("tool: t", "tool: tt")), policy(ALLOW, more=SAFE)),
    Planted(
        "CP405",
        policy(args=AMOUNT, more="history: [{match: {tool: t}, sum: amuont, max: 1, decision: deny}]\n"),
        policy(args=AMOUNT, more="history: [{match: {tool: t}, sum: amount, max: 1, decision: deny}]\n"),
    ),
    Planted(
        "CP406",
        policy(ALLOW, catalog="catalog: {t: {effect: write, data_class: [pii, secrets]}}\n"),
        policy(ALLOW, catalog="catalog: {t: {effect: write, data_class: [pii, secret]}}\n"),
    ),
    Planted("CP501", policy(ALLOW).replace("  t:", "  tt:"), policy(ALLOW), registered=frozenset({"t"})),
    Planted("CP502", "version: 1\n", policy(ALLOW), registered=frozenset({"t"})),
    Planted("CP601", policy(args="amuont: {min: 0, max: 5}"), policy(args=AMOUNT), TOOLS),
    Planted("CP602", policy(args="amount: {type: string}"), policy(args="amount: {type: integer}"), TOOLS),
    Planted("CP603", policy(args="to: {const: a}"), policy(args=f"{AMOUNT}, to: {{const: a}}"), TOOLS),
    Planted("CP604", policy(ALLOW).replace("  t:", "  tt:"), policy(args=AMOUNT), TOOLS),
    Planted("CP605", "version: 1\n", policy(args=AMOUNT), TOOLS),
    Planted("CP606", policy(args=AMOUNT), policy(args=AMOUNT), ODD, near_tools=TOOLS),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.code)
def test_a_planted_fault_is_found_and_its_near_miss_is_not(planted: Planted) -> None:
    assert planted.code in codes(planted.fault, planted.tools, planted.registered)
    tools = planted.near_tools or planted.tools
    near = codes(planted.near_miss, tools, planted.registered)
    assert planted.code not in near
    assert not near & {"CP001", "CP002"}


def test_every_code_has_its_planted_fault() -> None:
    assert [planted.code for planted in PLANTED] == list(CODES)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.code)
def test_a_finding_is_one_line_with_a_place_in_the_file(planted: Planted) -> None:
    for found in lint(planted.fault, planted.tools, planted.registered):
        assert "\n" not in found.message
        assert found.file == "p.yaml"
        assert 1 <= found.line <= planted.fault.count("\n") + 1
        assert found.column >= 1


def test_codes_and_names_are_unique_and_well_formed() -> None:
    assert all(re.fullmatch(r"CP[0-9]{3}", id) and code.id == id for id, code in CODES.items())
    assert len({code.name for code in CODES.values()}) == len(CODES)
    assert all(re.fullmatch(r"[a-z_]+", code.name) and code.about.endswith(".") for code in CODES.values())


@pytest.mark.parametrize(
    ("word", "told"),
    [("secrets", "did you mean secret?"), ("pi", "did you mean pii?"), ("xyzzy", "known are pii, secret, internal")],
)
@pytest.mark.parametrize("place", ["catalog", "rule"])
def test_a_word_that_raises_nothing_is_told_with_the_nearest_one_at_load_and_by_lint(
    word: str, told: str, place: str
) -> None:
    classes = f", data_class: [internal, {word}]"
    catalog = f"catalog: {{t: {{effect: read{classes if place == 'catalog' else ''}}}}}\n"
    text = policy(f"{{decision: allow{classes if place == 'rule' else ''}}}", catalog=catalog)
    (warning,) = loads([("p.yaml", text)]).warnings
    (found,) = [finding for finding in lint(text) if finding.code.id == "CP406"]
    assert warning == found.message
    assert told in warning
    assert "only pii and secret raise the level" in warning
    assert text.splitlines()[found.line - 1][found.column - 1 :].startswith("data_class:")
