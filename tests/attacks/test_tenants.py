"""Another tenant of the same broker, with an admin of its own and every credential of its side."""

from pathlib import Path

import pytest

from carnet import Guard
from carnet.current import entered
from carnet.errors import ConfigError, Refused
from carnet.wire.credential import Credential
from carnet_broker.composition import Broker, compose
from carnet_broker.config.load import load_registries, load_registry
from carnet_broker.keys import KeyRing
from carnet_broker.runner import BrokerServer
from carnet_broker.store.sqlite import SqliteStore
from tests.attacks.stolen import Stolen
from tests.http.world import SECRETS, World, limits, write_config


def one_audience(folder: Path) -> Path:
    """Both tenants name the tool server of main as a host of theirs."""
    write_config(folder)
    config = folder / "other.carnet.yaml"
    config.write_text(config.read_text().replace("https://o-crm.example", "https://crm.example"))
    return folder


def careless(folder: Path, issuer: str) -> Broker:
    """A broker whose tenants were read one by one, so that nobody compared them."""
    one_audience(folder)
    registries = {tenant: load_registry(folder / f"{tenant}.carnet.yaml") for tenant in ("main", "other")}
    store = SqliteStore.open(folder / "carnet.db")
    return compose(store=store, keys=KeyRing.ephemeral(), registries=registries, issuer=issuer)


def test_an_audience_belongs_to_one_tenant(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has an audience of the tenant main"):
        load_registries(one_audience(tmp_path))


def test_a_guard_takes_no_token_of_another_tenant_even_for_its_own_audience(tmp_path: Path) -> None:
    ran: list[str] = []
    with BrokerServer(lambda issuer: careless(tmp_path, issuer), limits=limits()) as server:
        with World(server.url) as world:
            foreign = world.spawn(world.root("other-app")["access_token"]).json()["tokens"]["o-crm"]["access_token"]
            own = world.spawn(world.root()["access_token"]).json()["tokens"]["crm"]["access_token"]
        credential = Credential.secret("crm-server", SECRETS["crm-server"])
        guard = Guard("crm", url=server.url, credential=credential, journal=tmp_path / "journal")

        @guard.tool
        def search(query: str) -> str:
            ran.append(query)
            return query

        with guard:
            with entered(Stolen(foreign)), pytest.raises(Refused) as refused:
                search("the other's")
            with entered(Stolen(own)):
                search("the own")
    assert refused.value.reason.value == "token_aud"
    assert ran == ["the own"]
