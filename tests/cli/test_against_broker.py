"""Every command of an operator against a real broker process."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from carnet import ApprovalPending, Refused, Task
from carnet.cli.output import moment
from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, load, save
from tests.cli.conftest import Development

READS = Task(touches_pii=False, touches_secrets=False, reversible=True, resource_count=3)
REFUNDS = Task(touches_pii=False, touches_secrets=False, reversible=False, resource_count=1, tools=["refund"])
Run = Callable[..., tuple[int, str, BaseException | None]]


def test_a_run_is_listed_drawn_and_shown(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("summarizer", READS)
        code, drawn, _ = carnet("tree", run.id)
        assert code == 0
        lines = drawn.splitlines()
        assert lines[0].startswith(f"support  {run.id}  active")
        assert lines[1].startswith(f"└── summarizer  {child.id}  active  level 0  search_tickets summarize")
        assert child.id in carnet("list", "delegations", "--run", run.id)[1]
        shown = json.loads(carnet("show", child.id, "--json")[1])
        assert (shown["id"], shown["state"], shown["envelope"]["level"]) == (child.id, "active", 0)


def test_a_call_is_shown_as_it_is_on_record(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("summarizer", READS)
        records = json.loads(carnet("audit", "search", "--delegation", child.id, "--json")[1])["records"]
        assert records
        _, _, problem = carnet("show", "call_nothing")
        assert "Nothing is on record for call_nothing" in str(problem)


def test_what_waits_is_shown_with_everything_and_denied_with_a_note(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("refund-clerk", REFUNDS, wait=0)
        assert child.approval_id is not None
        assert child.approval_id in carnet("list", "approvals")[1]
        shown = carnet("show", child.approval_id)[1]
        assert "refund-clerk" in shown
        assert "1 resource, cannot be undone" in shown
        assert '"amount": {"max": 20}' in shown
        assert "each call still asks" in shown
        code, said, _ = carnet("deny", child.id, "--note", "ticket 4711")
        assert (code, said) == (0, f"{child.approval_id} is denied.\n")
        with pytest.raises(Refused, match="approval_denied"):
            child.wait()
        answered = json.loads(carnet("audit", "search", "--delegation", child.id, "--json")[1])["records"]
        assert [row["detail"] for row in answered if row["kind"] == "answered"] == ["ticket 4711"]


def test_approving_without_a_terminal_is_refused_and_changes_nothing(
    carnet: Run, development: Development, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ = os.open

    def without_terminal(path: str, *rest: int, **more: int) -> int:
        if path == "/dev/tty":
            raise OSError(6, "No such device or address")
        return open_(path, *rest, **more)

    monkeypatch.setattr(os, "open", without_terminal)
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("refund-clerk", REFUNDS, wait=0)
        _, _, problem = carnet("approve", child.id)
        assert isinstance(problem, Problem)
        assert "A person must type the passphrase" in str(problem)
        with pytest.raises(ApprovalPending):
            child.wait(0.2)


def test_a_dry_run_names_what_would_fall_and_nothing_falls(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("summarizer", READS)
        code, said, _ = carnet("revoke", run.id, "--dry-run")
        assert code == 0
        assert "2 live delegations would fall" in said
        assert child.id in said
        assert json.loads(carnet("show", child.id, "--json")[1])["state"] == "active"
        assert "2 live delegations fell" in carnet("revoke", run.id, "--reason", "wrong customer")[1]
        ended = json.loads(carnet("show", child.id, "--json")[1])
        assert (ended["state"], ended["reason"]) == ("ended", "revoked")


def test_a_name_that_nothing_carries_is_asked_about(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        run.spawn("summarizer", READS)
        assert "is it spelt as in carnet.yaml?" in carnet("revoke", "agent:sumarizer", "--dry-run")[1]
        assert "spelt" not in carnet("revoke", "agent:summarizer", "--dry-run")[1]


@pytest.mark.parametrize(
    "words", [("approvals", "--run", "dlg_a"), ("keys", "--state", "all"), ("guards", "--after", "1")]
)
def test_a_filter_that_a_listing_does_not_have_is_said(carnet: Run, words: tuple[str, ...]) -> None:
    _, _, problem = carnet("list", *words)
    assert str(problem) == f"{words[1]} does not go with {words[0]}."


def test_the_log_verifies_and_exports_to_a_new_file_only(carnet: Run, development: Development, tmp_path: Path) -> None:
    with development.parent() as broker, broker.run() as run:
        run.spawn("summarizer", READS)
    assert json.loads(carnet("audit", "verify", "--json")[1])["ok"] is True
    file = tmp_path / "audit.jsonl"
    assert carnet("audit", "export", "-o", str(file))[0] == 0
    kinds = [json.loads(line).get("record", json.loads(line)).get("kind") for line in file.read_text().splitlines()]
    assert "spawned" in kinds
    _, _, problem = carnet("audit", "export", "-o", str(file))
    assert "exists already" in str(problem)


def test_a_search_that_was_cut_says_how_to_go_on(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        run.spawn("summarizer", READS)
        whole = json.loads(carnet("audit", "search", "--run", run.id, "--json")[1])["records"]
        assert len(whole) >= 2
        said = carnet("audit", "search", "--run", run.id, "--limit", "1")[1]
        after = re.search(r"There is more: --after (\S+)", said)
        assert after is not None
        rest = json.loads(carnet("audit", "search", "--run", run.id, "--after", after[1], "--json")[1])["records"]
        assert rest == whole[1:]
        assert "There is more" not in carnet("audit", "search", "--run", run.id)[1]
        assert "There is more: --after" in carnet("list", "delegations", "--limit", "1")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--reason", "scope_mising"), "scope_mising is no reason code; did you mean scope_missing?"),
        (("--decision", "denied"), "denied is no decision: allow, deny, require_approval, approve, withdraw."),
    ],
)
def test_a_word_that_no_record_can_hold_does_not_read_as_all_is_quiet(
    carnet: Run, words: tuple[str, ...], sentence: str
) -> None:
    _, said, problem = carnet("audit", "search", *words)
    assert (said, str(problem)) == ("", sentence)


def test_a_search_for_what_did_not_happen_is_empty(carnet: Run) -> None:
    assert carnet("audit", "search", "--reason", "too_late") == (0, "Audit: none\n", None)


def test_answered_questions_say_who_answered(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        by_policy = run.spawn("summarizer", READS)
        denied = run.spawn("refund-clerk", REFUNDS, wait=0)
        assert "  by" not in carnet("list", "approvals")[1].splitlines()[1]
        carnet("deny", denied.id, "--note", "ticket 4711")
        listed = {line.split()[0]: line for line in carnet("list", "approvals", "--state", "all")[1].splitlines()}
        assert listed[str(by_policy.approval_id)].split()[1:] == [
            "approved",
            "summarizer",
            "-",
            "-",
            "policy:support-tools@3",
        ]
        assert listed[str(denied.approval_id)].split()[1:] == ["denied", "refund-clerk", "-", "-", "operator:dev"]
        shown = carnet("show", str(denied.approval_id))[1]
        assert "operator:dev" in shown
        assert "ticket 4711" in shown


def test_times_are_dates_for_a_person_and_seconds_for_a_program(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        born = json.loads(carnet("show", run.id, "--json")[1])["created_at"]
        assert f"created_at  {moment(born)}" in carnet("show", run.id)[1]


def test_what_ended_is_no_reason_to_log_in(
    carnet: Run, development: Development, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carnet.cli.answering.ask_secret", lambda _: development.facts["passphrase"])
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("refund-clerk", REFUNDS, wait=0)
    _, _, problem = carnet("approve", child.id)
    assert isinstance(problem, Problem)
    assert problem.code is Exit.REFUSED
    assert "carnet login" not in str(problem)


def test_keys_and_guards_are_listed(carnet: Run) -> None:
    keys = json.loads(carnet("list", "keys", "--json")[1])["keys"]
    assert {key["state"] for key in keys} == {"active", "prepared"}
    listed = carnet("list", "keys")[1]
    assert keys[0]["kid"] in listed
    assert "1970" not in listed
    assert carnet("list", "guards")[0] == 0


def test_a_token_is_read_without_being_trusted(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        token = run.spawn("summarizer", READS).token("desk")
        shown = json.loads(carnet("token", "inspect", token, "--json")[1])
        assert shown["verified"] is False
        assert shown["claims"]["scope"] == "search_tickets summarize"
        forged = token[:-8] + "AAAAAAAA"
        assert json.loads(carnet("token", "inspect", forged, "--json")[1])["verified"] is False


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "dlg_nothing"), "not_found"),
        (("show", "nothing"), "no id"),
        (("deny", "apr_nothing"), "not_found"),
        (("revoke", "nothing"), "neither an id nor a mark"),
        (("revoke", "agent:nobody", "--until", "soon"), "Unix seconds"),
        (("token", "inspect", "a.b"), "no compact JWT"),
    ],
)
def test_a_mistake_is_one_sentence(carnet: Run, words: tuple[str, ...], sentence: str) -> None:
    _, _, problem = carnet(*words)
    assert isinstance(problem, Problem)
    assert sentence in str(problem)
    assert "\n" not in str(problem)


def test_a_session_that_ended_says_to_log_in(carnet: Run) -> None:
    session = load(os.environ)
    save(Session(url=session.url, operator="dev", tenant="demo", token="e30.e30.e30"), os.environ)
    _, _, problem = carnet("list", "approvals")
    assert isinstance(problem, Problem)
    assert problem.code is Exit.LOGIN
    assert "carnet login" in str(problem)


def test_no_broker_is_said_with_its_address(carnet: Run) -> None:
    save(Session(url="http://127.0.0.1:9", operator="dev", tenant="demo", token="e30.e30.e30"), os.environ)
    _, _, problem = carnet("list", "approvals")
    assert isinstance(problem, Problem)
    assert problem.code is Exit.UNAVAILABLE
    assert "http://127.0.0.1:9" in str(problem)


def test_a_wrong_login_names_what_can_be_wrong(
    carnet: Run, development: Development, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carnet.cli.login.ask_secret", lambda _: "not the passphrase")
    _, _, problem = carnet("login", "--operator", "dev", "--url", development.url)
    assert str(problem) == "The name, the passphrase or the tenant is wrong. (operator_authentication)"
    assert isinstance(problem, Problem)
    assert problem.code is Exit.LOGIN


# Last, because what is opened in the next two seconds falls with it.
def test_stopping_a_tenant_asks_for_its_name(carnet: Run, development: Development) -> None:
    with development.parent() as broker, broker.run() as run:
        child = run.spawn("summarizer", READS)
        _, _, problem = carnet("revoke", "tenant:demo", typed="demon\n")
        assert str(problem) == "The name differs: nothing was revoked."
        assert json.loads(carnet("show", child.id, "--json")[1])["state"] == "active"
        assert carnet("revoke", "tenant:demo", typed="demo\n")[0] == 0
        assert json.loads(carnet("show", child.id, "--json")[1])["state"] == "ended"
