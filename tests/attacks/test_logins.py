"""Somebody without any credential at the one door that anybody may knock at."""

from concurrent.futures import ThreadPoolExecutor

import httpx2

from carnet_broker.runner import BrokerServer
from tests.http.world import PASSPHRASE, TASK, World

TOO_LONG = "\u00e9" * 1024  # refused before anything is computed: the test is about the count


def attempt(url: str, operator: str, passphrase: str) -> int:
    body = {"tenant": "main", "operator": operator, "passphrase": passphrase}
    return httpx2.post(f"{url}/v1/sessions", json=body, timeout=30).status_code


def test_wrong_logins_under_a_persons_name_do_not_keep_that_person_from_answering(
    server: BrokerServer, world: World
) -> None:
    session = world.session()
    task = {**TASK, "reversible": False, "tools": ["refund"]}
    pending = world.spawn(world.root()["access_token"], "clerk", task=task).json()
    assert [attempt(server.url, "ada", "wrong") for _ in range(11)][-1] == 429
    body = {"verdict": "approve", "passphrase": PASSPHRASE}
    answer = world.post(f"/v1/approvals/{pending['approval']['id']}/answer", session, body)
    assert answer.status_code == 200, answer.text


def test_made_up_names_do_not_make_the_broker_work_without_end(server: BrokerServer) -> None:
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda number: attempt(server.url, f"nobody{number}", TOO_LONG), range(90)))
    assert set(codes) == {401, 429}


def test_a_name_that_nobody_has_reads_like_a_wrong_passphrase(world: World) -> None:
    answers = [
        world.http.post("/v1/sessions", json={"tenant": tenant, "operator": name, "passphrase": "wrong"})
        for tenant, name in (("main", "vic"), ("main", "nobody"), ("nowhere", "vic"), ("other", "ada\u202e"))
    ]
    bodies = [{**answer.json(), "trace_id": ""} for answer in answers if answer.status_code != 429]
    assert all(body == bodies[0] for body in bodies)
