"""init makes what serve needs; serve refuses, in one sentence with the fix, whatever would make it unsafe."""

import asyncio
import json
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from carnet.cli.problems import Problem
from carnet.cli.root import build
from carnet_broker.config.load import load_registry
from carnet_broker.http.sockets import listen, url
from carnet_broker.initialise import initialise
from carnet_broker.keys import KeyRing
from carnet_broker.main import StartRefused, open_broker
from carnet_broker.settings import Settings, load_settings
from carnet_broker.store.look import look
from carnet_broker.store.sqlite import SqliteStore

ISSUER = "https://carnet.example.com"


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "CARNET_CONFIG": str(folder / "carnet.yaml"),
        "CARNET_KEYS": str(folder / "keys"),
        "CARNET_STORE": f"sqlite:///{folder}/carnet.db",
        "CARNET_ISSUER": ISSUER,
        "CARNET_LISTEN": "127.0.0.1:0",
        **more,
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = load_settings(environment(tmp_path))
    asyncio.run(initialise(made, tenant="main", operator="ada", passphrase="canary-passphrase"))
    return made


def starting(settings: Settings) -> str:
    """Why serve would not start; "" when it would."""

    async def attempt() -> None:
        broker = await open_broker(settings)
        await broker.close()

    try:
        asyncio.run(attempt())
    except StartRefused as fault:
        return str(fault)
    return ""


def changed(settings: Settings, **values: object) -> Settings:
    return settings.model_copy(update=values)


def test_what_init_made_loads_and_starts(settings: Settings) -> None:
    registry = load_registry(settings.config)
    assert registry.operators["ada"].role.name == "ADMIN"
    assert starting(settings) == ""


def test_what_init_made_is_for_its_owner_alone(settings: Settings) -> None:
    assert stat.S_IMODE(settings.keys.stat().st_mode) == 0o700
    for path in (settings.config, *settings.keys.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert "canary" not in settings.config.read_text()


def test_init_overwrites_nothing(settings: Settings) -> None:
    before = settings.config.read_bytes()
    with pytest.raises(StartRefused, match="exists already"):
        asyncio.run(initialise(settings, tenant="main", operator="eve", passphrase="another passphrase"))
    assert settings.config.read_bytes() == before


@pytest.mark.parametrize(
    ("issuer", "said"),
    [("", "set CARNET_ISSUER"), ("http://carnet.example.com", "not https"), ("http://127.0.0.1", "https")],
)
def test_serve_refuses_an_issuer_that_is_not_https(settings: Settings, issuer: str, said: str) -> None:
    assert said in starting(changed(settings, issuer=issuer))


def test_serve_refuses_an_empty_store_beside_initialised_keys(settings: Settings, tmp_path: Path) -> None:
    for path in tmp_path.glob("carnet.db*"):
        path.unlink()
    assert "carnet recover" in starting(settings)


def test_serve_refuses_keys_that_others_can_read(settings: Settings) -> None:
    settings.keys.chmod(0o755)
    assert "chmod" in starting(settings)


def test_serve_refuses_a_developers_keys(settings: Settings, tmp_path: Path) -> None:
    KeyRing.create(tmp_path / "dev", 1, epoch="dev-1")
    assert "carnet init" in starting(changed(settings, keys=tmp_path / "dev"))


def test_serve_refuses_a_missing_key_directory(settings: Settings, tmp_path: Path) -> None:
    assert "carnet init" in starting(changed(settings, keys=tmp_path / "none"))


def test_serve_refuses_a_broken_configuration_with_its_place(settings: Settings) -> None:
    with settings.config.open("a") as file:
        file.write("nonsense: 1\n")
    assert "carnet.yaml:" in starting(settings)


def test_serve_refuses_a_broken_policy_with_its_place(settings: Settings) -> None:
    policy = settings.config.parent / "tools.policy.yaml"
    policy.write_text(policy.read_text().replace("decision: allow", "decision: permit"))
    assert "tools.policy.yaml:" in starting(settings)


def test_serve_refuses_a_store_that_another_process_holds(settings: Settings) -> None:
    async def twice() -> str:
        broker = await open_broker(settings)
        try:
            await open_broker(settings)
        except StartRefused as fault:
            return str(fault)
        finally:
            await broker.close()
        return ""

    assert "holds the store" in asyncio.run(twice())


# The commands


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return CliRunner()


def test_init_without_a_terminal_leaves_the_passphrase_in_a_private_file(command: CliRunner, tmp_path: Path) -> None:
    done = command.invoke(build(), ["init", "--operator", "ada"])
    assert done.exit_code == 0, done.output
    secret = tmp_path / "first-admin.passphrase"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert secret.read_text().strip() not in done.output
    assert command.invoke(build(), ["config", "check"]).exit_code == 0


def test_doctor_finds_nothing_after_init_and_a_lost_store_later(command: CliRunner, tmp_path: Path) -> None:
    command.invoke(build(), ["init"])
    assert command.invoke(build(), ["doctor"]).exit_code == 0
    for path in tmp_path.glob("carnet.db*"):
        path.unlink()
    found = command.invoke(build(), ["doctor", "--json"])
    assert found.exit_code == 1
    (store,) = [finding for finding in json.loads(found.output) if finding["what"] == "store"]
    assert store["fact"] == "missing"
    assert "`carnet serve` refuses until it is restored" in store["problem"]
    assert "`carnet recover --accept-loss` begins an empty one, which forgets every revocation" in store["problem"]
    assert list(tmp_path.glob("carnet.db*")) == []


def contents(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    return {str(path): (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns) for path in found}


def test_doctor_changes_nothing(command: CliRunner, tmp_path: Path) -> None:
    assert command.invoke(build(), ["doctor"]).exit_code == 1
    assert list(tmp_path.iterdir()) == []
    command.invoke(build(), ["init"])
    for gone in ("", ".lock", ".reserve"):
        if gone:
            (tmp_path / f"carnet.db{gone}").unlink()
        before = contents(tmp_path)
        done = command.invoke(build(), ["doctor"])
        assert done.exit_code == 0, done.output
        assert contents(tmp_path) == before


def test_doctor_shows_an_owner_that_is_nobody_without_calling_it_a_fault(command: CliRunner, tmp_path: Path) -> None:
    command.invoke(build(), ["init"])
    file = tmp_path / "carnet.yaml"
    file.write_text(file.read_text().replace("  researcher:\n", "  researcher:\n    owner: adah\n"))
    done = command.invoke(build(), ["doctor", "--json"])
    assert done.exit_code == 0, done.output
    assert "nobody is kept from approving what researcher asks" in done.output


def test_doctor_reads_what_a_killed_broker_left_in_its_log(command: CliRunner, tmp_path: Path) -> None:
    command.invoke(build(), ["init"])
    copy = tmp_path / "killed.db"
    store = SqliteStore.open(tmp_path / "carnet.db")
    try:
        asyncio.run(store.new_epoch())
        for ending in ("", "-wal"):
            Path(f"{copy}{ending}").write_bytes(Path(f"{tmp_path}/carnet.db{ending}").read_bytes())
        before = contents(tmp_path)
        assert look(copy).epoch == store.epoch
        assert contents(tmp_path) == before
        held = command.invoke(build(), ["doctor"])
        assert (held.exit_code, "/readyz" in held.output) == (1, True)
    finally:
        store.close_now()


@pytest.mark.parametrize(
    ("text", "said"), [(b"", "empty or no Carnet store"), (b"no store " * 999, "damaged or no store")]
)
def test_doctor_names_a_file_that_is_no_store_and_leaves_it(
    command: CliRunner, tmp_path: Path, text: bytes, said: str
) -> None:
    command.invoke(build(), ["init"])
    (tmp_path / "carnet.db").write_bytes(text)
    done = command.invoke(build(), ["doctor", "--json"])
    assert done.exit_code == 1
    assert said in done.output
    assert (tmp_path / "carnet.db").read_bytes() == text


def test_recover_accepts_the_loss_only_when_told(command: CliRunner, tmp_path: Path) -> None:
    command.invoke(build(), ["init"])
    for path in tmp_path.glob("carnet.db*"):
        path.unlink()
    assert isinstance(command.invoke(build(), ["recover"]).exception, Problem)
    assert command.invoke(build(), ["recover", "--accept-loss"]).exit_code == 0
    assert command.invoke(build(), ["doctor"]).exit_code == 0


def test_keys_rotate_and_retire(command: CliRunner, tmp_path: Path) -> None:
    command.invoke(build(), ["init"])
    before = KeyRing.open(tmp_path / "keys").active.kid
    assert command.invoke(build(), ["keys", "rotate"]).exit_code == 0
    assert KeyRing.open(tmp_path / "keys").active.kid != before
    assert command.invoke(build(), ["keys", "retire", before]).exit_code == 0
    assert before not in {key["kid"] for key in KeyRing.open(tmp_path / "keys").jwks()["keys"]}
    assert isinstance(command.invoke(build(), ["keys", "retire", before]).exception, Problem)


def test_the_id_of_a_key_may_begin_with_a_dash(command: CliRunner) -> None:
    command.invoke(build(), ["init"])
    assert "no key of the ring" in str(command.invoke(build(), ["keys", "retire", "-P0lK3XOcvKacLqMC"]).exception)


def test_an_unknown_setting_ends_a_command_with_one_sentence(
    command: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARNET_STOER", "x")
    fault = command.invoke(build(), ["doctor"]).exception
    assert isinstance(fault, Problem)
    assert "did you mean CARNET_STORE?" in str(fault)


# The process


def test_a_served_broker_ends_in_order_on_sigterm(settings: Settings, tmp_path: Path) -> None:
    with listen(("127.0.0.1", 0)) as free:
        where = url(free)
    more = {"CARNET_LISTEN": where.removeprefix("http://"), "PATH": "/usr/bin:/bin", "CARNET_PORT": "tcp://1.2.3.4:1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "carnet_broker", "serve"], env=environment(tmp_path, **more), stderr=subprocess.PIPE
    )
    try:
        assert _answers(f"{where}/readyz")
        login = {"operator": "ada", "passphrase": "canary-passphrase"}
        session = httpx2.post(f"{where}/v1/sessions", json=login).json()["access_token"]
        for token in (session, "canary-token", "canary.canary.canary"):
            httpx2.get(f"{where}/v1/delegations?canary={token}", headers={"authorization": f"Bearer {token}"})
            httpx2.post(f"{where}/oauth2/token", data={"client_secret": token}, auth=("canary", token))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=15)
    finally:
        process.kill()
    assert process.returncode == 0
    assert b'"event": "stopped"' in log
    assert b"service link" in log
    assert b"Traceback" not in log
    assert b"canary" not in log
    assert session.encode() not in log
    assert b'"event": "caller refused"' in log


def _answers(address: str) -> bool:
    for _ in range(100):
        try:
            return httpx2.get(address).status_code == 200
        except httpx2.TransportError:
            time.sleep(0.1)
    return False
