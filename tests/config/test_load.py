"""carnet.yaml is read strictly: a mistake is one sentence with its place and the fix, and nothing comes into force."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carnet.errors import ConfigError
from carnet.token.names import LEVEL_TTL
from carnet_broker.config.load import check_issuer, find_configs, load_registries, load_registry
from carnet_broker.core.registry import Role
from tests.config.files import GOOD, PASSPHRASE, jwk, of, write


def test_a_whole_configuration_becomes_a_registry(tmp_path: Path) -> None:
    registry = load_registry(write(tmp_path))
    assert registry.tenant == "acme"
    support, clerk = registry.agents["support"], registry.agents["clerk"]
    assert support.owner == "ada"
    assert support.tools == {"search_tickets"}
    assert support.grants == {"refund"}
    assert support.callable_agents == {"clerk"}
    assert clerk.handoff is not None
    assert clerk.handoff.check({"event": "x"}) is None
    assert clerk.handoff.check({}) is not None
    assert clerk.handoff_document == {"type": "object", "required": ["event"]}
    assert clerk.returns_document == {"type": "object"}
    assert clerk.ceilings == {"refund": {"args": {"amount": {"max": 20}}, "max_calls": 1}}
    assert registry.host_of("refund") is registry.hosts["pay"]
    assert [host.name for host in registry.hosts_of(["refund", "search_tickets", "nothing"])] == ["crm", "pay"]
    assert registry.hosts["crm"].clear_fields == {"query"}
    assert registry.clients["support-app"].agent == "support"
    assert registry.clients["pay-server"].host == "pay"
    assert registry.operators["ada"].role is Role.APPROVER
    assert registry.policy.ref.id == "support-tools"
    assert [name for name, _ in registry.policy.texts] == ["tools.policy.yaml", "more.policy.yaml"]
    assert dict(registry.limits.ttl) == {**LEVEL_TTL, 0: 600}
    assert dict(registry.limits.staleness) == {0: 5, 1: 1}
    assert registry.limits.run_ttl == 7200


def test_what_stands_in_clear_is_an_argument_or_one_of_one_tool(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("clear_fields: [query]", "clear_fields: [query, search_tickets.limit]"))
    assert load_registry(path).hosts["crm"].clear_fields == {"query", "search_tickets.limit"}


def test_look_ups_are_exact(tmp_path: Path) -> None:
    registry = load_registry(write(tmp_path))
    assert registry.agent("clerk") is not None
    for name in ("Clerk", "clerk ", "cler", ""):
        assert registry.agent(name) is None
        assert registry.host_of(name) is None


# (what is replaced, by what, words of the message, place or None)
MISTAKES = [
    ("format: 1", "format: 2", "format must be 1, not 2", "1:1"),
    ("tenant: acme", "tenant: Acme", "1 to 63 of a to z", "2:1"),
    ("tenant: acme", "tenant: _system", "1 to 63 of a to z", "2:1"),
    ("tenant: acme\n", "", "has no tenant; add tenant", None),
    ("agents:", "agent:", "unknown key 'agent' in the file; did you mean agents?", "7:1"),
    ("    grants: [refund]", "    grant: [refund]", "did you mean grants?", "11:5"),
    ("callable_agents: [clerk]", "callable_agents: [cleric]", "may call cleric, which is no agent here", "12:5"),
    ("callable_agents: [clerk]", "callable_agents: [clerk, clerk]", "clerk stands twice", "12:30"),
    ("    tools: [search_tickets]\n    grants", "    tools: [search]\n    grants", "no host serves search", "10:5"),
    ('pay", tools: [refund]', 'pay", tools: [refund, search_tickets]', "exactly one host", "6:3"),
    ('pay", tools: [refund]', 'pay", tools: [refund, refund]', "stands twice", None),
    ('pay", tools: [refund]', 'pay", tools: ["re fund"]', "no tool name", None),
    ('"urn:acme:pay"', '"https://crm.example/mcp"', "give each host its own", None),
    ('"urn:acme:pay"', "pay", "is no audience", None),
    ('"urn:acme:pay"', '"https:///x"', "is no audience", None),
    ('"urn:acme:pay"', '"https://pay.example/#x"', "is no audience", None),
    ('"urn:acme:pay"', '"https://me@pay.example"', "is no audience", None),
    ('"urn:acme:pay"', '"https://pay.example:x"', "is no audience", None),
    ('audience: "urn:acme:pay", ', "", "has no audience; add audience", None),
    ("clear_fields: [query]", "clear_fields: [refund.amount]", "names no tool of the host", "5:86"),
    ("clear_fields: [query]", "clear_fields: [search_tickets.]", "names no tool of the host", None),
    ("clear_fields: [query]", 'clear_fields: [""]', "clear_fields", None),
    ("[search_tickets], clear_fields: [query]", "[a, a.b], clear_fields: [a.b.c]", "either of a, a.b", None),
    ("agent: support,", "agent: suport,", "suport is no agent here", None),
    ("host: pay, secret", "host: pays, secret", "pays is no host here", None),
    ("agent: support,", "agent: support, host: pay,", "either agent: or host:", None),
    ("agent: support, ", "", "either agent: or host:", None),
    (", keys: keys/support.jwks.json}\n  pay", "}\n  pay", "either keys: or secret_sha256:", None),
    ("keys: keys/support.jwks.json}\n  pay", "issuer: x}\n  pay", "does not accept; use", None),
    ("keys/support.jwks.json", "keys/other.jwks.json", "cannot be read", None),
    ("a" * 64, "A" * 64, "64 hex digits", None),
    ("role: approver", "role: chief", "must be one of viewer, approver, operator, admin", None),
    (f', passphrase: "{PASSPHRASE}"', "", "cannot log in", None),
    (PASSPHRASE, "correct horse", "is no scrypt string", None),
    ("groups: [support-leads]", "groups: [others]", "lets support-leads approve, but no operator", "3:1"),
    ('"0": 600', '"0": 901', "from 5 to 900", None),
    ('"0": 600', '"3": 60', "unknown level '3'", None),
    ('"0": 600', "0: 600", "quote it", None),
    ('{"0": 5}', '{"0": 31}', "from 1 to 30", None),
    ('{"0": 5}', '{"1": 2}', "must be 1, not 2", None),
    ("run_ttl: 7200", "run_ttl: 28801", "from 60 to 28800", None),
    ("bind_from_level: 3", "bind_from_level: 4", "from 0 to 3", None),
    ("min_level: 2", "min_level: 3", "from 0 to 2", None),
    ("min_level: 2", "min_level: true", "from 0 to 2", None),
    ("{amount: {max: 50}}", "{amount: {mx: 50}}", "did you mean max?", None),
    ("{amount: {max: 50}}", "{amount: {min: 30}}", "support may call clerk, but", None),
    ("max_calls: 1", "max_calls: 1.5", "max_calls of", None),
    (
        "ceilings: {refund: {args: {amount: {max: 20}}",
        "ceilings: {other: {args: {amount: {max: 20}}",
        "in neither tools",
        None,
    ),
    ("schemas/refund.json", "schemas/none.json", "cannot be read", None),
    ("{type: object}", "{typ: object}", "unknown keyword 'typ'", None),
    ("{type: object}", "[]", "must be a JSON Schema", None),
    ("[tools.policy.yaml, more.policy.yaml]", "[]", "at least one file", "3:1"),
    ("more.policy.yaml", "tools.policy.yaml", "each once", None),
    ("more.policy.yaml", "none.policy.yaml", "cannot be read", None),
    ("  clerk:\n", '  "cl erk":\n', "a name has 1 to 128", None),
    ("  clerk:\n", "  clérk:\n", "a name has 1 to 128", None),
    *(
        ("  support-app:", f"  {taken}:", f"give the client another id, like {taken}-app", None)
        for taken in ("journal", "self", "broker", "policy", "operator", "Self")
    ),
    ("tenant: acme", "tenant: acme\ntenant: acme", "tenant", "3:1"),
    ("tenant: acme", "tenant: &x acme", "anchor", None),
]


@pytest.mark.parametrize(("old", "new", "words", "place"), MISTAKES, ids=[f"{m[1]!r}"[:50] for m in MISTAKES])
def test_a_mistake_is_one_sentence_with_its_place(
    tmp_path: Path, old: str, new: str, words: str, place: str | None
) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load_registry(path)
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert str(path.parent) in message
    if place is not None:
        assert message.startswith(f"{path}:{place}:")


def test_a_mistake_in_a_policy_file_points_into_that_file(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "more.policy.yaml").write_text("tools:\n  search_tickets: [{decision: alow}]\n")
    with pytest.raises(ConfigError, match=r"^more\.policy\.yaml:2:"):
        load_registry(path)
    (tmp_path / "more.policy.yaml").write_text("catalog: {refund: {effect: read}}\n")
    with pytest.raises(ConfigError, match="refund is in two files"):
        load_registry(path)


def test_what_somebody_wrote_for_a_passphrase_is_not_repeated(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace(PASSPHRASE, "hunter2-hunter2"))
    with pytest.raises(ConfigError) as caught:
        load_registry(path)
    assert "hunter2" not in str(caught.value)


def test_secrets_stay_out_of_what_a_registry_shows(tmp_path: Path) -> None:
    registry = load_registry(write(tmp_path))
    shown = repr(registry)
    assert PASSPHRASE not in shown
    assert "a" * 64 not in shown


def test_two_clients_do_not_share_a_secret(tmp_path: Path) -> None:
    twin = f'clients:\n  crm-server: {{host: crm, secret_sha256: "{"a" * 64}"}}'
    with pytest.raises(ConfigError, match="have one secret"):
        load_registry(write(tmp_path, GOOD.replace("clients:", twin)))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"keys": []}, "at least one key"),
        ([], "JWK set"),
        ({"keys": [jwk(private=True)]}, "holds a private key"),
        ({"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}, "not usable"),
        ({"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}, "holds a private key"),
    ],
)
def test_a_key_file_holds_public_keys_that_can_verify(tmp_path: Path, document: object, words: str) -> None:
    path = write(tmp_path)
    (tmp_path / "keys/support.jwks.json").write_text(json.dumps(document))
    with pytest.raises(ConfigError, match=words):
        load_registry(path)


@pytest.mark.parametrize(
    "text", ['{"keys": [], "keys": []}', "{", "NaN", "[" * 5000, "\ufeff{}", '{"keys": ' + "1" * 5000]
)
def test_a_broken_json_file_is_an_error_and_no_crash(tmp_path: Path, text: str) -> None:
    path = write(tmp_path)
    (tmp_path / "keys/support.jwks.json").write_text(text)
    with pytest.raises(ConfigError):
        load_registry(path)


def test_a_file_that_is_no_text_or_too_large_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_registry(path)
    path.write_text("#" * (1 << 20) + "#")
    with pytest.raises(ConfigError, match="split it"):
        load_registry(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_registry(tmp_path / "none.yaml")


def test_a_folder_holds_one_file_per_tenant(tmp_path: Path) -> None:
    write(tmp_path / "acme")
    write(tmp_path / "b", of("other"))
    write(tmp_path, of("third"), "third.carnet.yaml")
    (tmp_path / ".hidden").mkdir()
    write(tmp_path / ".hidden")
    assert set(load_registries(tmp_path)) == {"acme", "other", "third"}
    assert len(find_configs(tmp_path)) == 3
    assert set(load_registries(tmp_path / "acme/carnet.yaml")) == {"acme"}


def test_two_files_do_not_share_a_tenant_a_client_or_an_audience(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b")
    with pytest.raises(ConfigError, match="has another file already"):
        load_registries(tmp_path)
    write(tmp_path / "b", GOOD.replace("tenant: acme", "tenant: other"))
    with pytest.raises(ConfigError, match="belongs to the tenant acme"):
        load_registries(tmp_path)
    write(tmp_path / "b", of("other").replace("urn:other:pay", "urn:acme:pay"))
    with pytest.raises(ConfigError, match="pay has an audience of the tenant acme"):
        load_registries(tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no carnet\.yaml"):
        load_registries(tmp_path)


def test_no_host_is_the_issuer(tmp_path: Path) -> None:
    registries = load_registries(write(tmp_path))
    check_issuer(registries, "https://carnet.example")
    with pytest.raises(ConfigError, match="audience of its own"):
        check_issuer(registries, "https://crm.example/mcp/")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, len(GOOD) - 1), st.sampled_from(["", "\x00", "x", ":", "[", "{", "-", "\t", "é", "&a ", "!!int "])
)
def test_a_spoilt_file_is_refused_or_read_and_never_crashes(tmp_path: Path, at: int, what: str) -> None:
    path = write(tmp_path, GOOD[:at] + what + GOOD[at + 1 :])
    try:
        registry = load_registry(path)
    except ConfigError:
        return
    assert registry.policy.ref.id == "support-tools"
