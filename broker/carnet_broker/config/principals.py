"""The `hosts`, `clients` and `operators` of carnet.yaml."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from carnet.reasons import Refusal
from carnet.token.keyset import parse_client_jwks
from carnet_broker.config.files import Sources, strict_json
from carnet_broker.config.names import audience, client, name, sha256_hex
from carnet_broker.config.passphrase import is_passphrase_hash
from carnet_broker.core.registry import Client, Host, Operator, Role
from carnet_policy.reading import Part

__all__ = ["read_clients", "read_hosts", "read_operators"]

_LATER = ("issuer", "subject")
_PRIVATE = frozenset({"d", "k", "p", "q", "dp", "dq", "qi", "oth"})  # RFC 7518 section 6: members of private keys


def read_hosts(part: Part) -> dict[str, Host]:
    hosts: dict[str, Host] = {}
    audiences: dict[str, str] = {}
    for key, entry in part.mapping().items():
        given = entry.mapping(("audience", "tools", "clear_fields"))
        own = _required(entry, given, "audience", "the URI that its tokens are for")
        uri = audience(own)
        if uri in audiences:
            raise own.error(f"{key} and {audiences[uri]} have the audience {uri}; give each host its own")
        audiences[uri] = key
        tools = [inner.tool() for inner in _required(entry, given, "tools", "the tools that it serves").sequence()]
        if len(set(tools)) != len(tools):
            raise given["tools"].error(f"a tool stands twice in {given['tools'].name}; remove one")
        fields = [_clear(inner, tools) for inner in given["clear_fields"].sequence()] if "clear_fields" in given else []
        hosts[_key(entry, key, "a host")] = Host(
            name=key, audience=uri, tools=frozenset(tools), clear_fields=frozenset(fields)
        )
    return hosts


def _clear(part: Part, tools: Collection[str]) -> str:
    """An entry of the allow-list: `argument`, or `tool.argument` with one tool of the host."""
    entry = part.text(256)
    fitting = [tool for tool in tools if entry.startswith(f"{tool}.") and entry != f"{tool}."]
    if "." in entry and len(fitting) != 1:
        why = "no tool of the host" if not fitting else f"either of {', '.join(sorted(fitting))}"
        raise part.error(f"{entry} names {why}; write argument, or tool.argument with one of the host's tools")
    if not entry:
        raise part.error(f"{part.name} is empty; write argument or tool.argument")
    return entry


def read_clients(part: Part, folder: Path, sources: Sources) -> dict[str, Client]:
    return {
        client(_named(entry, key, "a client")): _client(key, entry, folder, sources)
        for key, entry in part.mapping().items()
    }


def _client(key: str, entry: Part, folder: Path, sources: Sources) -> Client:
    given = _given(entry, ("agent", "host", "keys", "secret_sha256"))
    if ("agent" in given) == ("host" in given):
        raise entry.error(f"{entry.name} must have either agent: or host:, and not both")
    if ("keys" in given) == ("secret_sha256" in given):
        raise entry.error(
            f"{entry.name} must have either keys: or secret_sha256: (the SHA-256 of a secret of 32 or more bytes, such "
            'as python -c "import secrets; print(secrets.token_urlsafe(32))" prints), and not both'
        )
    return Client(
        id=key,
        agent=name(given["agent"]) if "agent" in given else None,
        host=name(given["host"]) if "host" in given else None,
        jwks=_keys(given["keys"], folder, sources) if "keys" in given else (),
        secret_sha256=sha256_hex(given["secret_sha256"]) if "secret_sha256" in given else None,
    )


def read_operators(part: Part, folder: Path, sources: Sources) -> dict[str, Operator]:
    return {
        _key(entry, key, "an operator"): _operator(key, entry, folder, sources) for key, entry in part.mapping().items()
    }


def _operator(key: str, entry: Part, folder: Path, sources: Sources) -> Operator:
    given = _given(entry, ("role", "groups", "passphrase", "keys"))
    role = _required(entry, given, "role", "viewer, approver, operator or admin")
    if "passphrase" not in given and "keys" not in given:
        raise entry.error(f"{entry.name} cannot log in: add passphrase: (a person) or keys: (automation)")
    passphrase = given["passphrase"].value if "passphrase" in given else None
    if passphrase is not None and not (type(passphrase) is str and is_passphrase_hash(passphrase)):
        # the value stays out of the message: somebody may have written the passphrase itself
        raise given["passphrase"].error(f"{given['passphrase'].name} is no scrypt string; make one with carnet init")
    return Operator(
        name=key,
        role=Role[role.word_of([word.name.lower() for word in Role]).upper()],
        groups=given["groups"].words() if "groups" in given else frozenset(),
        passphrase=passphrase,
        jwks=_keys(given["keys"], folder, sources) if "keys" in given else (),
    )


def _keys(part: Part, folder: Path, sources: Sources) -> tuple[Mapping[str, Any], ...]:
    path = folder / part.text(1024)
    document = strict_json(sources.read(path), path)
    found = document.get("keys") if type(document) is dict else None
    if type(found) is not list or not found or not all(type(key) is dict for key in found):
        raise part.error(f'{path} must be a JWK set with at least one key: {{"keys": [...]}}')
    if any(_PRIVATE & key.keys() for key in found):
        raise part.error(f"{path} holds a private key; keep that with the client and put only its public part here")
    parsed = parse_client_jwks(document)
    if isinstance(parsed, Refusal):
        raise part.error(
            f"{path} is not usable: {(parsed.detail or str(parsed)).removesuffix('.')}; correct the key set"
        )
    return tuple(found)


def _given(entry: Part, known: tuple[str, ...]) -> Mapping[str, Part]:
    for word in _LATER:
        if type(entry.value) is dict and word in entry.value:
            raise entry.mapping()[word].error(
                f"{entry.name} names a foreign {word}, which this release does not accept; use {known[-1]}"
            )
    return entry.mapping(known)


def _required(entry: Part, given: Mapping[str, Part], key: str, what: str) -> Part:
    if key not in given:
        raise entry.error(f"{entry.name} has no {key}; add {key}: {what}")
    return given[key]


def _key(entry: Part, key: str, what: str) -> str:
    return name(_named(entry, key, what))


def _named(entry: Part, key: str, what: str) -> Part:
    return Part(entry.document, key, entry.path, what)
