"""Several clients that work as fast as they are answered, and write down every answer."""

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.faults.acks import Ack, AckLog, Asked
from tests.faults.scene import PASSPHRASE
from tests.faults.wire import Gone, Wire

__all__ = ["ANSWER_SECONDS", "Client", "task", "traffic"]

ANSWER_SECONDS = 0.7  # between two approvals of one person: passphrases are paced
_RUN_LENGTH = 150  # spawns of one run


class Client:
    """One connection and its ack log. session: an operator's. guard: of the host desk."""

    def __init__(self, wire: Wire, log: AckLog, session: str, guard: str) -> None:
        self._wire, self._log, self._session, self._guard = wire, log, session, guard

    def run(self) -> str:
        """Open a run; its root token."""
        asked = self._asked("run", "/oauth2/token", "", {}, "")
        try:
            opened = self._wire.root()
        except Gone:
            self._log.unanswered(asked)
            raise
        self._log.answered(Ack(asked=asked, ended=self._log.clock(), id=str(opened["run_id"]), answer=opened, mints=1))
        return str(opened["access_token"])

    def spawn(self, root: str, target: str, tools: list[str], **facts: Any) -> dict[str, Any]:
        body = {"target": target, "task": task(tools, **facts), "hosts": ["*"]}
        return self._ask("spawn", "/v1/delegations", root, body, new_key())

    def mint(self, root: str, delegation: str) -> dict[str, Any]:
        return self._ask("mint", f"/v1/delegations/{delegation}/tokens", root, {}, id=delegation)

    def call(self, token: str, tool: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("call", "/v1/calls", self._guard, {"token": token, "tool": tool, "args": args}, new_key())

    def finish(self, call: str) -> dict[str, Any]:
        return self._ask("outcome", f"/v1/calls/{call}/outcome", self._guard, {"outcome": "done"}, id=call)

    def approve(self, approval: str) -> dict[str, Any]:
        body = {"verdict": "approve", "passphrase": PASSPHRASE}
        return self._ask("approve", f"/v1/approvals/{approval}/answer", self._session, body)

    def deny(self, approval: str) -> dict[str, Any]:
        return self._ask("deny", f"/v1/approvals/{approval}/answer", self._session, {"verdict": "deny"})

    def revoke(self, mark: str) -> dict[str, Any]:
        return self._ask("revoke", "/v1/revocations", self._session, {"mark": mark, "reason": "drill"}, id=mark)

    def replay(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        """Send the same request with the same key again."""
        keyed = {"idempotency-key": asked.key} if asked.key else {}
        return self._wire.post(asked.path, asked.token, asked.body, **keyed)

    def _ask(
        self, kind: str, path: str, token: str, body: Mapping[str, Any], key: str = "", id: str = ""
    ) -> dict[str, Any]:
        asked = self._asked(kind, path, token, body, key)
        try:
            status, answer = self.replay(asked)
        except Gone:
            self._log.unanswered(asked)
            raise
        if status >= 300:
            self._log.odd(f"{kind}: {status} {answer}")
            return {}
        made = id or str(answer.get("id") or answer.get("call_id"))
        tokens = len(answer.get("tokens") or ())
        self._log.answered(Ack(asked=asked, ended=self._log.clock(), id=made, answer=answer, mints=tokens))
        return answer

    def _asked(self, kind: str, path: str, token: str, body: Mapping[str, Any], key: str) -> Asked:
        return Asked(kind=kind, path=path, token=token, body=body, key=key, started=self._log.clock())


def task(tools: list[str], **facts: Any) -> dict[str, Any]:
    """What a parent states; harmless unless said otherwise."""
    plain = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 0}
    return {**plain, **facts, "tools": tools}


def new_key() -> str:
    return secrets.token_hex(16)


@contextmanager
def traffic(port: int, clients: int = 6) -> Iterator[AckLog]:
    """Load until the body ends or the broker dies: parents that mint, one of them with a person who answers."""
    log = AckLog(time.monotonic)
    with Wire(port) as wire:
        session, guard = wire.session(), wire.guard()
    ended = threading.Event()
    works = [_mints] * clients + [_asks]
    threads = [
        threading.Thread(target=_worker, args=(work, port, log, session, guard, ended), daemon=True) for work in works
    ]
    for thread in threads:
        thread.start()
    try:
        yield log
    finally:
        ended.set()
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads), "a client hangs"


def _worker(work: Any, port: int, log: AckLog, session: str, guard: str, ended: threading.Event) -> None:
    try:
        with Wire(port) as wire:
            client = Client(wire, log, session, guard)
            while not ended.is_set():
                work(client, ended)
    except Gone:
        return
    except Exception as fault:  # noqa: BLE001 - told to the test, which fails on it
        log.odd(f"a client broke: {fault!r}")


def _mints(client: Client, ended: threading.Event) -> None:
    """One run of a parent: spawn, mint again, let a tool be called, revoke."""
    root = client.run()
    for n in range(_RUN_LENGTH):
        if ended.is_set():
            return
        writes = n % 5 == 4
        child = client.spawn(root, "writer" if writes else "reader", ["search", "tag"] if writes else ["search"])
        if not child:
            continue
        if writes:
            called = client.call(child["tokens"]["desk"]["access_token"], "tag", {"ticket": f"T-{n}"})
            if called and n % 2:
                client.finish(called["call_id"])
        if n % 3 == 0:
            client.mint(root, child["id"])
        if n % 6 == 0:
            client.revoke(f"dlg:{child['id']}")


def _asks(client: Client, ended: threading.Event) -> None:
    """One run whose children need a person: approve one, deny one, leave one open."""
    root = client.run()
    for n, answer in enumerate((client.approve, client.deny, None)):  # each another task: what was denied stays denied
        child = client.spawn(root, "clerk", ["refund"], reversible=False, resource_count=n)
        if child and answer is not None:
            answer(child["approval"]["id"])
        if ended.wait(ANSWER_SECONDS):
            return
