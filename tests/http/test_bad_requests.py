"""Bad requests over raw sockets: each is refused cheaply, and the server answers the next one."""

import time
from contextlib import suppress

import pytest

from carnet_broker.runner import BrokerServer
from tests.http.raw import connect, exchange, read_answer
from tests.http.world import REQUEST_SECONDS

HOST = b"host: 127.0.0.1\r\n"


@pytest.fixture
def address(server: BrokerServer) -> bytes:
    return b"host: " + server.url.removeprefix("http://").encode() + b"\r\n"


@pytest.fixture(autouse=True)
def _still_answers(server: BrokerServer, address: bytes):  # type: ignore[no-untyped-def]
    yield
    assert exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + b"\r\n").status == 200


def post(address: bytes, path: bytes, headers: bytes, body: bytes = b"") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\n" + address + headers + b"\r\n" + body


@pytest.mark.parametrize("size", [16 * 1024 + 1, 64 * 1024, 5 * 1024 * 1024])
def test_a_head_that_is_too_large_is_refused(server: BrokerServer, address: bytes, size: int) -> None:
    started = time.monotonic()
    answer = exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + b"x: " + b"a" * size + b"\r\n\r\n")
    assert answer.status in (0, 431)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("count", [101, 5000])
def test_too_many_header_lines_are_refused(server: BrokerServer, address: bytes, count: int) -> None:
    lines = b"".join(b"x%d: 1\r\n" % number for number in range(count))
    assert exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + lines + b"\r\n").status in (0, 431)


def test_the_refusal_of_a_head_is_a_problem_document(server: BrokerServer, address: bytes) -> None:
    answer = exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + b"x: " + b"a" * 17_000 + b"\r\n\r\n")
    assert answer.status == 431
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["connection"] == "close"
    assert answer.json()["reason"] == "request_too_large"


def test_a_long_request_target_is_refused(server: BrokerServer, address: bytes) -> None:
    answer = exchange(server.url, b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + address + b"\r\n")
    assert answer.status == 431


@pytest.mark.parametrize("path", [b"/v1/sessions", b"/oauth2/token"])
def test_a_body_over_the_limit_of_its_route_is_refused(server: BrokerServer, address: bytes, path: bytes) -> None:
    body = b"a" * (64 * 1024 + 1)
    answer = exchange(server.url, post(address, path, b"content-length: %d\r\n" % len(body), body))
    assert answer.status == 413


def test_a_declared_body_of_50_megabytes_is_refused_before_it_is_sent(server: BrokerServer, address: bytes) -> None:
    with connect(server.url) as sock:
        sock.sendall(post(address, b"/v1/sessions", b"content-length: 52428800\r\n"))
        assert read_answer(sock).status == 413


def test_a_chunked_body_without_end_is_cut_off(server: BrokerServer, address: bytes) -> None:
    with connect(server.url) as sock:
        sock.sendall(post(address, b"/v1/sessions", b"transfer-encoding: chunked\r\n"))
        chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
        with suppress(ConnectionError):
            for _ in range(64):
                sock.sendall(chunk)
        assert read_answer(sock).status in (0, 413)


@pytest.mark.parametrize(
    "headers",
    [
        b"content-length: 4\r\ntransfer-encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        b"content-length: 4\r\ncontent-length: 5\r\n",
        b"content-length: 4\r\ncontent-length: 4\r\n",
        b"content-length: +4\r\n",
        b"content-length: -1\r\n",
        b"content-length: 0x4\r\n",
        b"content-length: 99999999999999999999\r\n",
        b"transfer-encoding: gzip, chunked\r\n",
        b"transfer-encoding: identity\r\n",
        b"transfer-encoding: xchunked\r\n",
        b"transfer-encoding : chunked\r\n",
        b"connection: upgrade\r\nupgrade: websocket\r\n",
        b"x: a\x00b\r\n",
        b"x y: 1\r\n",
    ],
)
def test_ambiguous_or_malformed_framing_is_refused(server: BrokerServer, address: bytes, headers: bytes) -> None:
    answer = exchange(server.url, post(address, b"/v1/sessions", headers, b"0\r\n\r\n"))
    assert answer.status in (0, 400, 413)


def test_a_smuggled_second_request_is_never_answered(server: BrokerServer, address: bytes) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\n" + address + b"\r\n"
    head = b"content-length: %d\r\ntransfer-encoding: chunked\r\n" % (5 + len(smuggled))
    with connect(server.url) as sock:
        sock.sendall(post(address, b"/v1/sessions", head, b"0\r\n\r\n" + smuggled))
        assert read_answer(sock).status == 400
        assert read_answer(sock).status == 0


@pytest.mark.parametrize(
    "request_line",
    [
        b"",
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"{}",
    ],
)
def test_what_is_no_http_is_refused(server: BrokerServer, request_line: bytes) -> None:
    with connect(server.url) as sock:
        sock.sendall(request_line + b"\r\n\r\n")
        sock.settimeout(REQUEST_SECONDS + 2)
        assert read_answer(sock).status in (0, 400, 408)


def test_slow_heads_and_bodies_are_cut_off_and_nobody_else_waits(server: BrokerServer, address: bytes) -> None:
    slow_head = b"GET /healthz HTTP/1.1\r\n" + address + b"x: "
    slow_body = post(address, b"/v1/sessions", b"content-type: application/json\r\ncontent-length: 100\r\n", b"{")
    socks = [connect(server.url) for _ in range(60)]
    try:
        for number, sock in enumerate(socks):
            sock.sendall(slow_head if number % 2 else slow_body)
        started = time.monotonic()
        assert exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + b"\r\n").status == 200
        assert time.monotonic() - started < 1
        statuses = {read_answer(sock).status for sock in socks}
        assert statuses == {408}
        assert time.monotonic() - started < REQUEST_SECONDS + 3
    finally:
        for sock in socks:
            sock.close()


def test_idle_connections_beyond_the_maximum_make_room_for_new_ones(server: BrokerServer, address: bytes) -> None:
    socks = [connect(server.url) for _ in range(300)]
    try:
        assert exchange(server.url, b"GET /healthz HTTP/1.1\r\n" + address + b"\r\n").status == 200
    finally:
        for sock in socks:
            sock.close()


def test_a_flood_of_pipelined_requests_is_cut_off(server: BrokerServer, address: bytes) -> None:
    one = b"GET /healthz HTTP/1.1\r\n" + address + b"\r\n"
    with connect(server.url) as sock:
        sock.sendall(one * 500)
        data = b""
        with suppress(ConnectionError):
            while chunk := sock.recv(65536):
                data += chunk
        assert data.count(b"HTTP/1.1 200") < 500


def test_a_compressed_body_is_not_unpacked(server: BrokerServer, address: bytes) -> None:
    headers = b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n"
    answer = exchange(server.url, post(address, b"/v1/sessions", headers, b"{}"))
    assert answer.status == 400
    assert "uncompressed" in answer.json()["detail"]


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(server: BrokerServer, address: bytes) -> None:
    body = b'{"operator": "nobody", "passphrase": "x"}'
    headers = b"content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: %d\r\n" % len(body)
    with connect(server.url) as sock:
        sock.sendall(post(address, b"/v1/sessions", headers))
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        sock.sendall(body)
        assert read_answer(sock).status == 401


JSON = b"content-type: application/json\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 33 + b"]" * 33,
        b"[" * 1000 + b"]" * 1000,
        b"[" * 30_000,
        b'{"operator": ' * 40 + b"1" + b"}" * 40,
        b'{"operator": NaN, "passphrase": "x"}',
        b'{"operator": "a", "operator": "b", "passphrase": "x"}',
        b'{"operator": "\\ud800", "passphrase": "x"}',
        b'{"operator": "\xff", "passphrase": "x"}',
        b'\xef\xbb\xbf{"operator": "a", "passphrase": "x"}',
        b'{"operator": ' + b"9" * 5000 + b"}",
        b'{"operator": 1e999}',
        b'{"operator": "a", "passphrase": "x", "more": 1}',
        b'{"operator": "a", "passphrase": "x"} {}',
        b"null",
        b'"text"',
    ],
    ids=range(15),
)
def test_json_that_has_two_readings_or_too_much_is_refused(server: BrokerServer, address: bytes, body: bytes) -> None:
    answer = exchange(server.url, post(address, b"/v1/sessions", JSON + b"content-length: %d\r\n" % len(body), body))
    assert answer.status == 400
    assert answer.json()["reason"] == "invalid_request"
    assert "passphrase" not in answer.json()["detail"]
