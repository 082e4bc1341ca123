"""One world for a case: a broker, its operators and runs over HTTP, and a guarded tool host."""

import json
import tempfile
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2

from carnet.clock import ManualClock
from tests.cases.answering import Answer
from tests.cases.brokering import STORED_PASSPHRASE, CaseBroker
from tests.cases.handles import Child, Run
from tests.cases.registering import GUARD_CLIENT, HOST, PASSPHRASE, Setup, secret_of, stand_in
from tests.cases.toolhost import ToolHost
from tests.cases.verdict import CaseFailed

__all__ = ["TYPED_AT_ONCE", "World", "payload"]

PAGE = 200
TYPED_AT_ONCE = 8  # passphrases that one person may type in a short time
LONGEST_SLEEP = 3.0  # seconds
RENEW_BEFORE = 60  # seconds of life left at which the runner renews a root token


class World:
    def __init__(self, setup: Setup) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="carnet-case-")
        self.setup = setup
        self.clock = ManualClock()
        self.broker = CaseBroker(Path(self._folder.name), setup, self.clock)
        self.http = httpx2.Client(base_url=self.broker.url, timeout=10)
        self._sessions: dict[str, str] = {}
        self._typed: dict[str, int] = {}
        self._policy: dict[str, Any] = dict(setup.policy)
        self._tools: ToolHost | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._tools is not None:
            self._tools.close()
        self.http.close()
        self.broker.close()
        self._folder.cleanup()

    @property
    def tools(self) -> ToolHost:
        """The guarded tool host; made on first use, because not every case needs one."""
        if self._tools is None:
            self._tools = ToolHost(self.broker.url, self.clock)
        return self._tools

    # requests
    def request(
        self,
        method: str,
        path: str,
        *,
        bearer: str | None = None,
        json: Any = None,
        content: bytes | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        sent = dict(headers or {}) | ({"authorization": f"Bearer {bearer}"} if bearer is not None else {})
        answer = self.http.request(method, path, json=json, content=content, params=params, headers=sent)
        if answer.status_code >= 500 and answer.status_code != 503:
            raise CaseFailed(f"{method} {path} answered {answer.status_code}: {answer.text[:200]}")
        return answer

    def _must(self, answer: httpx2.Response) -> Any:
        if not answer.is_success:
            raise CaseFailed(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")
        return answer.json()

    # runs and children
    def open_run(self, agent: str, headers: Mapping[str, str] | None = None) -> Run:
        found = self._token_request(agent, {}, headers)
        return Run(found["run_id"], agent, found["access_token"])

    def _token_request(self, agent: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Any:
        proof = {"grant_type": "client_credentials", **_proof(agent)}
        return self._must(self.http.post("/oauth2/token", data={**proof, **form}, headers=dict(headers or {})))

    def root_token(self, run: Run) -> str:
        """The run's token, renewed where it ends soon; the old one where the broker renews it no more."""
        if payload(run.token)["exp"] - self.clock.now() < RENEW_BEFORE:
            proof = {**_proof(run.agent), "run_id": run.id}
            answer = self.http.post("/oauth2/token", data={"grant_type": "client_credentials", **proof})
            if answer.is_success:
                run.token = answer.json()["access_token"]
        return run.token

    def child_of(self, document: Mapping[str, Any]) -> Child:
        """A handle for the delegation of a spawn's answer."""
        tokens = document.get("tokens", {})
        approval = document["approval"]
        return Child(
            id=document["id"],
            run=document["run"],
            agent=document["agent"],
            level=document["envelope"]["level"],
            tools=frozenset(document["envelope"]["tools"]),
            approval=approval["id"] if approval else None,
            bearer=tokens[HOST]["access_token"] if HOST in tokens else None,
            expires_at=document["expires_at"],
        )

    def approve_delegation(self, child: Child, parent: str | None) -> None:
        """A person approves, and the parent fetches the tokens that exist from then on."""
        body = {"verdict": "approve", "passphrase": PASSPHRASE}
        path = f"/v1/approvals/{child.approval}/answer"
        self._must(self.request("POST", path, bearer=self.session(self.person("runner")), json=body))
        path = f"/v1/delegations/{child.id}/tokens"
        found = self._must(self.request("POST", path, bearer=parent, json={}))
        child.bearer = found["tokens"][HOST]["access_token"]
        child.expires_at = payload(child.bearer)["exp"]

    def delegation(self, id: str) -> Any:
        return self._must(self.request("GET", f"/v1/delegations/{id}", bearer=self.session("runner")))

    def holder(self, handle: Child | Run) -> Child:
        """What the guard takes for the current child: also a run that tries its root token."""
        if isinstance(handle, Child):
            return handle
        return Child(handle.id, handle.id, handle.agent, 0, frozenset(), None, self.root_token(handle))

    def introspected(self, run: Run) -> Answer:
        proof = {**_proof(run.agent), "token": self.root_token(run)}
        found = self._must(self.http.post("/oauth2/introspect", data=proof))
        return Answer("valid" if found["active"] else "invalid", "" if found["active"] else "not active")

    def jti(self, child: Child) -> str:
        return str(payload(child.bearer or "")["jti"])

    def guard_token(self) -> str:
        """What the guard of the host shows at the broker; the runner may read the feed with it as a guard does."""
        proof = {
            "grant_type": "client_credentials",
            "scope": "guard",
            "client_id": GUARD_CLIENT,
            "client_secret": secret_of(GUARD_CLIENT),
        }
        return str(self._must(self.http.post("/oauth2/token", data=proof))["access_token"])

    # operators
    def revoke(self, mark: str) -> None:
        body = {"mark": mark, "reason": "revoked"}
        self._must(self.request("POST", "/v1/revocations", bearer=self.session("runner"), json=body))

    def person(self, operator: str) -> str:
        """Who types the operator's next passphrase: the operator, or a stand-in after several."""
        used = self._typed[operator] = self._typed.get(operator, 0) + 1
        return stand_in(operator, min((used - 1) // TYPED_AT_ONCE, self.setup.stand_ins))

    def session(self, operator: str) -> str:
        if operator not in self._sessions:
            body = {"tenant": self.setup.tenant, "operator": operator, "passphrase": PASSPHRASE}
            self._sessions[operator] = self._must(self.http.post("/v1/sessions", json=body))["access_token"]
        return self._sessions[operator]

    def approvals(self, state: str) -> list[Any]:
        params = {"state": state, "limit": PAGE}
        answer = self.request("GET", "/v1/approvals", bearer=self.session("runner"), params=params)
        return list(self._must(answer)["approvals"])

    def approval(self, id: str) -> Any:
        return self._must(self.request("GET", f"/v1/approvals/{id}", bearer=self.session("runner")))

    def records(self, after: int = 0) -> list[Mapping[str, Any]]:
        """Audit records whose seq is later."""
        rows: list[Mapping[str, Any]] = []
        cursor: str | None = None
        while True:
            params = {"limit": PAGE} | ({"after": cursor} if cursor is not None else {})
            page = self._must(self.request("GET", "/v1/audit", bearer=self.session("runner"), params=params))
            rows += [row for row in page["records"] if row["seq"] > after]
            cursor = page["next"]
            if cursor is None:
                return rows

    def last_record(self) -> int:
        return max((row["seq"] for row in self.records()), default=0)

    # the world itself
    def advance(self, seconds: float) -> None:
        """Seconds on every clock. How fresh its feed is, a guard tells by a clock that nobody can move: while the store
        is away it is left to run for as long."""
        self.clock.advance(seconds)
        self._sessions.clear()
        if self.broker.down.is_set():
            time.sleep(min(seconds, LONGEST_SLEEP))
            return
        self.broker.upkeep("sweeper")
        if self._tools is not None:
            self._tools.hears_of(self.clock.now())

    def store_down(self, down: bool) -> None:
        if down:
            self.broker.down.set()
        else:
            self.broker.down.clear()

    def restart(self) -> None:
        self.http.close()
        self.broker.restart()
        self.http = httpx2.Client(base_url=self.broker.url, timeout=10)

    def change_policy(self, patch: Mapping[str, Any]) -> str | None:
        policy = merged(self._policy, patch)
        policy["version"] = int(self._policy.get("version", 1)) + 1
        problem = self.broker.change_policy(policy)
        if problem is None:
            self._policy = policy
        return problem

    def reload_with_second_host(self, tools: list[str]) -> str | None:
        document = self.setup.document(STORED_PASSPHRASE)
        document["hosts"]["second"] = {"audience": "https://second.example", "tools": tools}
        return self.broker.change_registry(document)

    @contextmanager
    def losing_answers(self) -> Iterator[None]:
        """What is asked inside is done, and its answers get lost."""
        self.tools.wire.lose_answers = True
        try:
            yield
        finally:
            self.tools.wire.lose_answers = False


def _proof(agent: str) -> dict[str, str]:
    client = f"{agent}-app"
    return {"client_id": client, "client_secret": secret_of(client)}


def payload(token: str) -> dict[str, Any]:
    """The claims of a token, unverified: the runner only looks."""
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged key by key; anything else is replaced."""
    result = dict(base)
    for key, value in patch.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(value, Mapping) and isinstance(before, Mapping) else value
    return result
