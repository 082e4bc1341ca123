"""Settings from the environment: unknown names are errors, and no value of a secret is ever shown."""

import pytest

from carnet_broker.settings import Settings, SettingsError, ignored_names, load_settings


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = load_settings({})
    assert settings.listen == "127.0.0.1:8420"
    assert settings.store.get_secret_value() == "sqlite:///carnet.db"


def test_an_unknown_name_names_the_nearest_known_one() -> None:
    with pytest.raises(SettingsError, match=r"CARNET_ISUER is no setting of Carnet; did you mean CARNET_ISSUER\?"):
        load_settings({"CARNET_ISUER": "https://x.example"})


def test_a_known_name_in_lower_case_is_an_error_too() -> None:
    with pytest.raises(SettingsError, match="did you mean CARNET_STORE"):
        load_settings({"carnet_store": "sqlite:///x"})


def test_names_of_the_sdk_are_left_to_the_sdk() -> None:
    names = ("URL", "CLIENT_ID", "CLIENT_KEY", "CLIENT_SECRET_FILE", "WORKLOAD_TOKEN_FILE", "HOST", "JOURNAL", "CHILD")
    load_settings({f"CARNET_{name}": "x" for name in names})


def test_service_links_of_kubernetes_are_ignored_and_named() -> None:
    links = {"CARNET_PORT": "tcp://10.0.0.1:80", "CARNET_PORT_80_TCP": "x", "CARNET_SERVICE_HOST": "10.0.0.1"}
    load_settings(links)
    assert ignored_names({**links, "CARNET_LOG": "info"}) == sorted(links)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LISTEN", "8420"),
        ("LISTEN", "127.0.0.1:99999"),
        ("ISSUER", "carnet.example.com"),
        ("ISSUER", "https://user@carnet.example.com"),
        ("ISSUER", "https://carnet.example.com?x=1"),
        ("LOG", "loud"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,nobody"),
    ],
)
def test_a_value_that_does_not_fit_names_its_variable(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^CARNET_{name}: "):
        load_settings({f"CARNET_{name}": value})


def test_proxies_are_a_list_of_networks() -> None:
    settings = load_settings({"CARNET_TRUSTED_PROXIES": "10.0.0.0/8, 192.168.1.1"})
    assert settings.trusted_proxies == ("10.0.0.0/8", "192.168.1.1")


def test_the_address_of_the_store_is_never_shown() -> None:
    settings = load_settings({"CARNET_STORE": "redis://:canary-password@db:6379"})
    assert "canary" not in repr(settings) + str(settings) + settings.model_dump_json()
    assert isinstance(settings, Settings)
