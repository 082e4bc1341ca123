"""A guard that is there before its broker is: it refuses, and is ready soon after the broker is."""

import time
from pathlib import Path

import httpx2

from carnet import Credential, Guard
from carnet.testing import CarnetBroker
from tests.faults.processes import broker, running, until
from tests.faults.scene import SECRETS, build

SOON = 1.5  # seconds; a third of it where nobody else uses the machine


class NoKeys(httpx2.HTTPTransport):
    """A way to the broker on which its keys can't be had for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.missing = True

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.missing and request.url.path.endswith("/jwks.json"):
            raise httpx2.ConnectError("gone")
        return super().handle_request(request)


def test_a_guard_is_ready_soon_after_its_broker(tmp_path: Path) -> None:
    scene = build(tmp_path / "scene")
    credential = Credential.secret("desk-server", SECRETS["desk-server"])
    guard = Guard("desk", url=scene.url, credential=credential, journal=tmp_path / "journal")
    try:
        assert not guard.ready()
        time.sleep(3)  # long enough for every pause between tries to be at its longest
        assert not guard.ready()
        with running(broker(scene)):
            began = time.monotonic()
            until(guard.ready, 20, "the guard is ready")
            assert time.monotonic() - began < SOON
    finally:
        guard.close()


def test_keys_that_could_not_be_had_at_first_do_not_hold_a_guard_up(carnet_broker: CarnetBroker) -> None:
    transport = NoKeys()
    guard = carnet_broker.bind(Guard("desk", transport=transport))
    assert not guard.ready()
    time.sleep(2)
    assert not guard.ready()
    transport.missing = False
    began = time.monotonic()
    until(guard.ready, 20, "the guard is ready")
    assert time.monotonic() - began < SOON
