"""`carnet policy test | explain | diff | replay` as a shell or a build server calls them. No broker runs."""

import json
import xml.dom.minidom as dom
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carnet.cli.problems import Problem
from carnet.cli.root import build

POLICY = """version: 3
catalog: {refund: {effect: irreversible}}
tools:
  refund:
    - decision: require_approval
      args: {amount: {min: 0.01, max: 50}}
    - {decision: deny, args: {amount: {min: 50.01}}, reason: ask finance}
history:
  - {match: irreversible, max: 1, decision: deny, reason: second irreversible action}
"""
TESTS = """policy: tools.yaml
cases:
  - name: small refund asks
    call: {tool: refund, args: {amount: 5}}
    expect: {decision: require_approval, rule: "refund[0]"}
  - name: large refund is denied
    call: {tool: refund, args: {amount: 60}}
    expect: {decision: deny, reason_contains: finance}
  - name: second irreversible action
    history: [{tool: send_email, outcome: ok}]
    call: {tool: refund, args: {amount: 5}}
    expect: {decision: deny, reason_code: history_limit}
matrix:
  tools: [refund, wipe]
  args: [{amount: .nan}, {amount: true}, {amount: "5"}, {}]
  expect: {decision: deny}
"""

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in a folder with a policy and its tests: exit code, and output or the sentence it ended with."""
    (tmp_path / "tools.yaml").write_text(POLICY)
    (tmp_path / "tools.test.yaml").write_text(TESTS)
    monkeypatch.chdir(tmp_path)

    def command(*words: str, typed: str | None = None) -> tuple[int, str]:
        done = CliRunner().invoke(build(), ["policy", *words], input=typed)
        if isinstance(done.exception, Problem):
            return int(done.exception.code), str(done.exception)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    return command


def edit(file: str, before: str, after: str) -> None:
    path = Path(file)
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_tests_that_hold_pass_and_count_what_they_hit(run: Run) -> None:
    for where in ((), (".",), ("tools.yaml",), ("tools.test.yaml",)):
        code, said = run("test", *where, "--coverage", "100")
        assert code == 0
        assert "3 cases, 8 matrix cells, 0 failed" in said
        assert "tools: 100.0 % of 3 rules hit" in said
        assert said.endswith("11 passed\n")


def test_a_case_that_fails_is_told_with_its_place(run: Run) -> None:
    edit("tools.yaml", "max: 50}", "max: 4}")
    code, said = run("test")
    assert code == 1
    assert "tools.test.yaml:3: small refund asks" in said
    assert "decision is deny, expected require_approval" in said
    assert "2 failed" in said  # what no rule allows, no history is asked about


def test_coverage_below_what_is_wanted_fails(run: Run) -> None:
    code, said = run("test", "-k", "LARGE", "--coverage", "100")
    assert (code, "never hit: refund[0], history[0]" in said) == (1, True)
    assert run("test", "-k", "large", "--coverage", "33")[0] == 0
    assert run("test", "-k", "large")[0] == 0
    assert run("test", "-k", "nothing of the kind")[0] == 2


def test_files_that_can_not_be_used_are_told(run: Run) -> None:
    assert run("test", "gone.yaml") == (2, "There is no file gone.yaml.")
    Path("lonely.yaml").write_text(POLICY)
    assert "there is no lonely.test.yaml" in run("test", "lonely.yaml")[1]
    edit("tools.test.yaml", "cases:", "casez:")
    code, said = run("test")
    assert code == 1
    assert "tools.test.yaml:2:1: unknown key 'casez'" in said
    edit("tools.test.yaml", "casez:", "cases:")
    edit("tools.yaml", "max: 50}", "maxx: 50}")
    code, said = run("test")
    assert (code, "tools.yaml:6:" in said, "1 not loaded" in said) == (1, True, True)


def test_results_as_json(run: Run) -> None:
    found = json.loads(run("test", "--format", "json", "--coverage", "100")[1])
    assert found["ok"] is True
    assert [result["kind"] for result in found["files"][0]["results"]] == ["case"] * 3 + ["cell"] * 8
    assert found["coverage"][0]["rules"] == {"refund[0]": 2, "refund[1]": 4, "history[0]": 1}
    edit("tools.yaml", "ask finance", "ask legal")
    code, said = run("test", "--format", "json")
    assert (code, json.loads(said)["ok"]) == (1, False)


def test_results_as_junit(run: Run) -> None:
    edit("tools.test.yaml", "name: small refund asks", 'name: "small \\x07 <refund> \\"asks\\" \\u202e"')
    edit("tools.yaml", "max: 50}", "max: 4}")
    code, said = run("test", "--format", "junit", "--coverage", "100")
    assert code == 1
    root = dom.parseString(said).documentElement  # noqa: S318 - our own output
    assert root is not None
    assert (root.getAttribute("tests"), root.getAttribute("failures"), root.getAttribute("errors")) == ("12", "3", "0")
    assert len(root.getElementsByTagName("failure")) == 3
    edit("tools.yaml", "max: 4}", "maxx: 4}")
    broken = dom.parseString(run("test", "--format", "junit")[1]).documentElement  # noqa: S318 - our own output
    assert broken is not None
    assert broken.getAttribute("errors") == "1"


def test_explain_shows_every_rule_and_the_history(run: Run) -> None:
    code, said = run("explain", "tools.yaml", "refund", '{"amount": 5}', "--history", "[{tool: send_email}]")
    assert code == 0
    lines = said.splitlines()
    assert lines[1].split()[:3] == ["refund[0]", "require_approval", "match"]
    assert lines[1].endswith("  amount: 5 satisfies min 0.01; amount: 5 satisfies max 50")
    assert "no match  amount: 5 does not satisfy min 50.01" in lines[2]
    assert lines[3].startswith("> history[0]  deny")
    assert "1 before, 1 by this call, at most 1" in lines[3]
    assert lines[-1] == "deny  history_limit: second irreversible action"


def test_explain_reads_arguments_from_a_file_or_a_pipe_and_refuses_what_is_no_json(run: Run) -> None:
    Path("args.json").write_text('{"amount": 60}')
    assert "deny  policy_deny: ask finance" in run("explain", "tools.yaml", "refund", "@args.json")[1]
    assert "deny  policy_deny" in run("explain", "tools.yaml", "refund", "-", typed='{"amount": 60}')[1]
    for bad in ("{", "[]", '{"a": 1, "a": 2}', '{"a": NaN}', "@gone.json"):
        assert run("explain", "tools.yaml", "refund", bad)[0] == 2
    assert run("explain", "gone.yaml", "refund")[0] == 2
    assert run("explain", "tools.yaml", "refund", "{}", "--history", "[{tol: x}]")[0] == 2


def test_explain_as_json_holds_the_whole_trace(run: Run) -> None:
    found = json.loads(run("explain", "tools.yaml", "wipe", "--json", "--pinned")[1])
    assert found["decision"]["reason"] == "unknown_tool"
    assert (found["rules"], found["pinned"]) == ([], True)


def test_a_carnet_yaml_stands_for_its_policies(run: Run) -> None:
    Path("more.yaml").write_text("tools: {read: [{decision: allow}]}\ncatalog: {read: {effect: read}}\n")
    Path("carnet.yaml").write_text("format: 1\ntenant: acme\npolicies: [tools.yaml, more.yaml]\n")
    assert "allow  policy_allow" in run("explain", "carnet.yaml", "read")[1]


def test_diff_tells_what_changes_and_fails_where_that_is_wider(run: Run) -> None:
    Path("new.yaml").write_text(POLICY.replace("max: 50}", "max: 60}"))
    code, said = run("diff", "tools.yaml", "new.yaml", "--fail-on-widen")
    assert code == 1
    assert "deny -> require_approval  (wider)\n  refund(amount: 50.001)" in said
    assert run("diff", "tools.yaml", "new.yaml")[0] == 0
    assert run("diff", "new.yaml", "tools.yaml", "--fail-on-widen")[0] == 0
    assert "No decision changes" in run("diff", "tools.yaml", "tools.yaml")[1]


def test_the_example_of_a_diff_is_a_case_that_can_be_tested(run: Run) -> None:
    Path("new.yaml").write_text(POLICY.replace("max: 1,", "max: 2,"))
    found = json.loads(run("diff", "tools.yaml", "new.yaml", "--json")[1])
    (change,) = [one for one in found["changes"] if one["after"]["decision"] == "require_approval"]
    case = {"name": "found by diff", **change["example"], "expect": change["before"]}
    Path("found.test.yaml").write_text(json.dumps({"policy": "tools.yaml", "cases": [case]}))
    assert run("test", "found.test.yaml")[0] == 0
    edit("found.test.yaml", "tools.yaml", "new.yaml")
    assert run("test", "found.test.yaml")[0] == 1


def test_diff_tries_the_arguments_of_tool_definitions(run: Run) -> None:
    Path("old.yaml").write_text("version: 1\ntools: {t: [{decision: allow}]}\n")
    Path("new.yaml").write_text("version: 1\ntools: {t: [{decision: allow, extra_args: true}]}\n")
    schema = {"type": "object", "properties": {"force": {"type": "boolean"}}}
    Path("tools.json").write_text(json.dumps({"tools": [{"name": "t", "inputSchema": schema}]}))
    code, said = run("diff", "old.yaml", "new.yaml", "--tools", "tools.json")
    assert (code, "t(force: " in said) == (0, True)


def export(*args: dict[str, object], **more: object) -> None:
    lines = []
    for number, one in enumerate(args, 1):
        record = {
            "kind": "call_decided",
            "seq": number,
            "at": number,
            "run": f"dlg_{number}",
            "client": "c",
            "tool": "refund",
            "args": dict.fromkeys(one, "0" * 32),
            "clear": one,
            "call": f"call_{number}",
            "decision": "require_approval",
            "reason": "policy_approval",
            "rule": "refund[0]",
            **more,
        }
        lines.append(json.dumps({"record": record, "link": "0" * 64}))
    lines.append(json.dumps({"checkpoint": {"seq": len(args)}}))
    Path("export.jsonl").write_text("\n".join(lines))


def test_replay_tells_flips_and_fails_above_what_is_accepted(run: Run) -> None:
    export({"amount": 5}, {"amount": 30}, {"amount": 40})
    assert "0 flips, 3 the same, 0 unknown" in run("replay", "tools.yaml", "--audit", "export.jsonl")[1]
    edit("tools.yaml", "max: 50}", "max: 20}")
    code, said = run("replay", "tools.yaml", "--audit", "export.jsonl", "--max-flips", "1")
    assert code == 1
    assert "require_approval -> deny  refund  2 times" in said
    assert "first: record 2 of run dlg_2: refund(amount: 30)" in said
    assert run("replay", "tools.yaml", "--audit", "export.jsonl", "--max-flips", "2")[0] == 0
    assert run("replay", "tools.yaml", "--audit", "export.jsonl")[0] == 0


def test_a_recorded_decision_is_expanded(run: Run) -> None:
    export({"amount": 5}, {"amount": 60})
    said = run("explain", "tools.yaml", "--audit", "export.jsonl", "--seq", "2")[1]
    assert said.splitlines()[-1] == "deny  policy_deny: ask finance"
    assert "holds no record 9" in run("explain", "tools.yaml", "--audit", "export.jsonl", "--seq", "9")[1]
    export({"amount": 5}, clear={})
    code, said = run("explain", "tools.yaml", "--audit", "export.jsonl", "--seq", "1")
    assert (code, "only digests of amount" in said) == (1, True)
    for words in ((), ("refund", "--audit", "export.jsonl", "--seq", "1"), ("--seq", "1"), ("--audit", "export.jsonl")):
        assert run("explain", "tools.yaml", *words)[0] == 2


def test_replay_says_what_it_can_not_know(run: Run) -> None:
    export({"amount": 5}, clear={})
    code, said = run("replay", "tools.yaml", "--audit", "export.jsonl", "--max-flips", "0")
    assert code == 0
    assert "unknown  refund  1 times: the records hide amount" in said
    found = json.loads(run("replay", "tools.yaml", "--audit", "export.jsonl", "--json")[1])
    assert (found["unknown"], found["unknown_by_tool"][0]["hidden"]) == (1, ["amount"])


def test_replay_refuses_what_is_no_export(run: Run) -> None:
    Path("export.jsonl").write_text("not json")
    code, said = run("replay", "tools.yaml", "--audit", "export.jsonl")
    assert (code, said.startswith("export.jsonl:1:1: ")) == (2, True)
    assert run("replay", "tools.yaml", "--audit", "gone.jsonl")[0] == 2
