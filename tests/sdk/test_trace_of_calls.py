"""What a child asks of a tool server belongs to the trace of its run, unless the caller already has one."""

import httpx2

from carnet.client.auth import ChildAuth

SPAN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
ALLOWED = ("http", "127.0.0.1", 80)


def ask(headers: dict[str, str]) -> httpx2.Request:
    requests: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return httpx2.Response(200)

    auth = ChildAuth(lambda: "token", lambda: "token", ALLOWED, lambda: SPAN)
    with httpx2.Client(transport=httpx2.MockTransport(answer), auth=auth) as http:
        http.get("http://127.0.0.1/tool", headers=headers)
    return requests[0]


def test_a_request_without_a_trace_gets_a_span_of_the_run() -> None:
    assert ask({}).headers["traceparent"] == SPAN


def test_a_trace_that_the_caller_has_is_kept() -> None:
    assert ask({"traceparent": OTHER}).headers["traceparent"] == OTHER
