"""What operators do in a sequence: answer, revoke, rotate keys, wait."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.cases.answering import Answer
from tests.cases.handles import Child, Outcome, Run
from tests.cases.registering import PASSPHRASE
from tests.cases.verdict import CaseFailed

if TYPE_CHECKING:
    from tests.cases.steps import Player

__all__ = ["approve", "deny", "revoke", "revoke_jti", "rotate_key", "wait_for"]

Step = Mapping[str, Any]
PATIENCE = 5.0
ENDED = frozenset({"denied", "timed_out", "withdrawn", "superseded", "lapsed"})


def _approval_id(player: Player, step: Step) -> str:
    named = player.named(step, "approval", Outcome, Child)
    if named.approval is None:
        raise CaseFailed(f"{step['approval']!r} asked nobody")
    return str(named.approval)


def _answer(player: Player, step: Step, verdict: str) -> Answer:
    if ("by" in step) == ("by_token" in step):
        raise CaseFailed("an answer is given by an operator or with a token")
    if "by" in step:
        bearer = player.world.session(player.world.person(str(step["by"])))
    else:
        bearer = player.bearer(player.named(step, "by_token", Run, Child)) or ""
    body = {"verdict": verdict} | ({"passphrase": PASSPHRASE} if verdict == "approve" else {})
    path = f"/v1/approvals/{_approval_id(player, step)}/answer"
    answer = player.world.request("POST", path, bearer=bearer, json=body)
    if answer.is_success:
        player.settle()
        return Answer("ok", status=answer.status_code)
    document = answer.json()
    return Answer("refused", f"{document['reason']} {document['detail']}", answer.status_code)


def approve(player: Player, step: Step) -> Answer:
    return _answer(player, step, "approve")


def deny(player: Player, step: Step) -> Answer:
    return _answer(player, step, "deny")


def wait_for(player: Player, step: Step) -> Answer:
    """Until the question is answered or over; `denied` = it ended without an approval, and the reason tells how."""
    approval = _approval_id(player, step)
    deadline = time.monotonic() + float(step.get("seconds", PATIENCE))
    while True:
        row = player.world.approval(approval)
        if row["state"] != "pending":
            kind = "denied" if row["state"] in ENDED else "approved"
            return Answer(kind, f"{row['reason']} {row['state']}")
        if time.monotonic() > deadline:
            return Answer("pending")
        time.sleep(0.05)


def revoke(player: Player, step: Step) -> Answer:
    if "by_token" in step or isinstance(player.names.get(str(step.get("by"))), Run | Child):
        return _end(player, step)
    mark = str(step["mark"]) if "mark" in step else f"dlg:{player.named(step, 'token', Run, Child).id}"
    return _revoke(player, step, mark)


def _end(player: Player, step: Step) -> Answer:
    """An agent has no say over marks: with a token of the run it ends a delegation that is its own or below it."""
    bearer = player.bearer(player.named(step, "by_token" if "by_token" in step else "by", Run, Child)) or ""
    target = player.named(step, "token", Run, Child).id
    answer = player.world.request("POST", f"/v1/delegations/{target}/end", bearer=bearer, json={})
    player.settle()
    if answer.is_success:
        return Answer("ok", status=answer.status_code)
    document = answer.json()
    return Answer("refused", f"{document['reason']} {document['detail']}", answer.status_code)


def revoke_jti(player: Player, step: Step) -> Answer:
    return _revoke(player, step, f"token:{player.world.jti(player.named(step, 'token', Child))}")


def _revoke(player: Player, step: Step, mark: str) -> Answer:
    body = {"mark": mark, "reason": "revoked"}
    bearer = player.world.session(str(step.get("by", "runner")))
    answer = player.world.request("POST", "/v1/revocations", bearer=bearer, json=body)
    player.settle()
    if answer.is_success:
        player.revoked_at = answer.json()["seq"]
        return Answer("ok", status=answer.status_code)
    document = answer.json()
    return Answer("refused", f"{document['reason']} {document['detail']}", answer.status_code)


def rotate_key(player: Player, step: Step) -> Answer:
    answer = player.world.request("POST", "/v1/keys/rotate", bearer=player.world.session("runner"), json={})
    return Answer(
        "ok" if answer.is_success else "refused", "" if answer.is_success else answer.text, answer.status_code
    )
