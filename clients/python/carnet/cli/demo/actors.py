"""Who takes part in the story: a child that calls tools over HTTP, and an operator who answers."""

from collections.abc import Mapping
from typing import Any

import httpx2

from carnet.cli.broker import Operator, segment
from carnet.cli.demo.processes import Stage

__all__ = ["Human", "call"]


def call(stage: Stage, child: Any, host: str, tool: str, args: Mapping[str, Any], *, at: str | None = None) -> str:
    """Call a tool as this child and say what came of it: "allow", or "<status> <reason>".

    at: send the child's token for `host` to another host's server; the SDK itself would refuse to.
    """
    url = f"{stage.hosts[at or host]}/{tool}"
    if at is None:
        return _verdict(stage.http.post(url, json=dict(args), auth=child.auth(host)))
    headers = {"Authorization": f"Bearer {child.token(host)}"}
    return _verdict(stage.http.post(url, json=dict(args), headers=headers))


def _verdict(answer: httpx2.Response) -> str:
    if answer.status_code == 200:
        return "allow"
    try:
        return f"{answer.status_code} {answer.json()['reason']}"
    except (ValueError, KeyError):
        return f"{answer.status_code}"


class Human:
    """The operator `dev`: logs in with the passphrase and types it again for each approval."""

    def __init__(self, stage: Stage) -> None:
        self._name, self._passphrase = stage.dev["operator"], stage.dev["passphrase"]
        door = Operator(stage.url)
        session = door.post("/v1/sessions", {"operator": self._name, "passphrase": self._passphrase})
        door.close()
        self.broker = Operator(stage.url, session["access_token"])

    def approve(self, approval: str, note: str = "") -> str:
        body = {"verdict": "approve", "note": note, "passphrase": self._passphrase}
        return str(self.broker.post(f"/v1/approvals/{segment(approval)}/answer", body)["state"])

    def waiting(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.broker.get("/v1/approvals", {"state": "pending"})["approvals"]
        return found

    def approve_call(self, delegation: str) -> str:
        """Approve the one call that waits for this delegation."""
        (asked,) = [row for row in self.waiting() if row["delegation"] == delegation and row["kind"] == "call"]
        return self.approve(asked["id"])

    def revoke(self, delegation: str) -> dict[str, Any]:
        return self.broker.post("/v1/revocations", {"mark": f"dlg:{delegation}", "reason": "wrong customer"})

    def records(self, **filters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.broker.get("/v1/audit", {"limit": 500, **filters})["records"]
        return found
