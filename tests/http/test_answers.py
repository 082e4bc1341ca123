"""What every answer has, what nobody finds, discovery, health, and how long a request takes."""

import statistics
import time
from urllib.parse import urlsplit

import pytest

from carnet_broker.http.discovery import metadata
from carnet_broker.runner import BrokerServer
from tests.http.raw import connect, read_answer
from tests.http.world import World

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.mark.parametrize("path", ["/healthz", "/nothing", "/v1/calls", "/oauth2/token", "/openapi.json"])
def test_every_answer_names_its_trace_and_is_not_stored(world: World, path: str) -> None:
    answer = world.http.get(path, headers={"traceparent": PARENT})
    assert answer.headers["carnet-trace-id"] == TRACE
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("header", ["", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "canary\tvalue", PARENT.upper()])
def test_a_malformed_trace_starts_a_new_one_and_is_not_echoed(world: World, header: str) -> None:
    answer = world.http.get("/healthz", headers={"traceparent": header})
    assert len(answer.headers["carnet-trace-id"]) == 32
    assert answer.headers["carnet-trace-id"] not in (TRACE, "0" * 32)


def test_two_trace_headers_start_a_new_trace(world: World) -> None:
    answer = world.http.get("/healthz", headers=[("traceparent", PARENT), ("traceparent", PARENT)])
    assert answer.headers["carnet-trace-id"] != TRACE


def test_an_unknown_path_is_a_problem_and_below_oauth_an_oauth_error(world: World) -> None:
    answer = world.http.get("/v1/nothing")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:carnet:reason:not_found"
    assert "error" in world.http.get("/oauth2/nothing").json()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/delegations", {"POST", "GET", "HEAD"}),
        ("PUT", "/v1/feed", {"POST", "GET", "HEAD"}),
        ("GET", "/oauth2/introspect", {"POST"}),
        ("GET", "/v1/calls", {"POST"}),
        ("PATCH", "/healthz", {"GET", "HEAD"}),
    ],
)
def test_another_method_is_405_with_the_methods_that_there_are(
    world: World, method: str, path: str, allowed: set[str]
) -> None:
    answer = world.http.request(method, path)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize("path", ["/healthz/", "//healthz", "/v1//calls", "/V1/calls", "/healthz%2f", "/../healthz"])
def test_a_path_has_one_spelling(server: BrokerServer, path: str) -> None:
    host = urlsplit(server.url).netloc
    with connect(server.url) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
        assert read_answer(sock).status in (400, 404)


def test_a_broker_on_loopback_answers_to_its_own_name_only(server: BrokerServer) -> None:
    for host, origin in (("evil.example", ""), (urlsplit(server.url).netloc, "origin: http://evil.example\r\n")):
        with connect(server.url) as sock:
            sock.sendall(f"GET /healthz HTTP/1.1\r\nhost: {host}\r\n{origin}\r\n".encode())
            assert read_answer(sock).status == 403


def test_metadata_names_the_issuer_exactly_and_every_url_answers(world: World, server: BrokerServer) -> None:
    answer = world.http.get("/.well-known/oauth-authorization-server")
    assert answer.headers["content-type"] == "application/json"
    document = answer.json()
    assert document == metadata(server.url)
    assert document["issuer"] == server.url
    assert all(document.values()), "no empty arrays, no nulls"
    for name in ("jwks_uri", "authorization_endpoint", "token_endpoint", "revocation_endpoint"):
        assert world.http.get(document[name]).status_code in (200, 400, 405)
    assert world.http.get("/.well-known/openid-configuration").json() == document


@pytest.mark.parametrize("issuer", ["https://carnet.example/a/b", "https://carnet.example/a/b/"])
def test_metadata_keeps_the_spelling_of_the_issuer(issuer: str) -> None:
    document = metadata(issuer)
    assert document["issuer"] == issuer
    assert document["token_endpoint"] == "https://carnet.example/a/b/oauth2/token"


def test_the_authorization_endpoint_never_authorises(world: World) -> None:
    answer = world.http.get("/oauth2/authorize", params={"response_type": "code", "redirect_uri": "https://a.example"})
    assert answer.status_code == 400
    assert answer.json()["error"] == "unsupported_response_type"
    assert "location" not in answer.headers


def test_published_keys_are_public(world: World) -> None:
    answer = world.http.get("/.well-known/jwks.json")
    assert answer.headers["content-type"] == "application/jwk-set+json"
    assert "max-age" in answer.headers["cache-control"]
    for key in answer.json()["keys"]:
        assert {"kty", "kid", "use", "alg", "crv", "x", "y"} == key.keys()


def test_a_broker_that_is_well_is_ready(world: World) -> None:
    assert world.http.get("/healthz").json() == {"status": "ok"}
    assert world.http.get("/readyz").json() == {"status": "ready", "problems": [], "notices": []}


def test_the_openapi_document_names_every_route(world: World, server: BrokerServer) -> None:
    document = world.http.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    paths = document["paths"]
    for path in ("/oauth2/token", "/v1/delegations", "/v1/delegations/{id}/tokens", "/v1/calls", "/v1/feed", "/readyz"):
        assert path in paths
    assert set(paths["/v1/feed"]) == {"get", "post"}
    body = paths["/v1/calls"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    name = body.rpartition("/")[2]
    assert document["components"]["schemas"][name]["additionalProperties"] is False


def test_a_request_on_loopback_takes_less_than_10_ms(world: World) -> None:
    run = world.root()
    for path in ("/healthz", "/readyz", f"/v1/delegations/{run['run_id']}"):
        took = []
        for _ in range(60):
            started = time.perf_counter()
            assert world.get(path, run["access_token"]).status_code == 200
            took.append(time.perf_counter() - started)
        assert statistics.median(took) < 0.010, path
