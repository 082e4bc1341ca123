"""The operator's side of the HTTP interface: ask, and turn every answer that is a no into one sentence."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx2

from carnet.cli.problems import Exit, Problem
from carnet.cli.session import Session, load

__all__ = ["Operator", "connect", "segment"]

_LOGGED_OUT = ("operator_authentication", "invalid_token", "token_missing")  # of the 401, those about the operator


def segment(text: str) -> str:
    """One path segment: an id that a person typed can never reach another route."""
    return quote(text, safe="")


class Operator:
    """A logged-in operator at one broker."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=10.0, follow_redirects=False)
        self.url = url

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        kept = {name: str(value) for name, value in (params or {}).items() if value is not None}
        return self._send("GET", path, params=kept)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._send("POST", path, json={name: value for name, value in body.items() if value is not None})

    def lines(self, path: str) -> Iterator[str]:
        """Lines of a long answer as they arrive."""
        try:
            with self._http.stream("GET", path, timeout=60.0) as answer:
                if answer.status_code != 200:
                    answer.read()
                    raise _problem(answer)
                yield from answer.iter_lines()
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None

    def close(self) -> None:
        self._http.close()

    def _send(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, **options)
        except httpx2.HTTPError as error:
            raise self._unreachable(error) from None
        if answer.status_code >= 300:
            raise _problem(answer)
        value = answer.json() if answer.content else {}
        if not isinstance(value, dict):
            raise Problem(f"{self.url} answered something that is no Carnet document.", Exit.UNAVAILABLE)
        return value

    def _unreachable(self, error: Exception) -> Problem:
        return Problem(f"No broker answers at {self.url} ({type(error).__name__}): is it running?", Exit.UNAVAILABLE)


def _problem(answer: httpx2.Response) -> Problem:
    try:
        body = answer.json()
        reason, detail = str(body.get("reason") or body.get("error") or answer.status_code), str(body.get("detail", ""))
    except (ValueError, AttributeError):
        return Problem(f"The broker answered {answer.status_code}.", Exit.UNAVAILABLE)
    if answer.status_code == 401 and reason in _LOGGED_OUT:
        return Problem(f"You are not logged in, or no longer: run `carnet login`. ({reason})", Exit.LOGIN)
    sentence = f"{detail or body.get('title', 'Refused.')} ({reason})"
    return Problem(sentence, Exit.UNAVAILABLE if answer.status_code >= 500 else Exit.REFUSED)


@contextmanager
def connect(environ: Mapping[str, str]) -> Iterator[Operator]:
    """The broker of the stored session."""
    session: Session = load(environ)
    operator = Operator(session.url, session.token)
    try:
        yield operator
    finally:
        operator.close()
