"""carnet.yaml to a `Registry`; a folder of them to one registry per tenant. Strict: what is not understood is an error.

Everything is read and checked before anything comes into force, so a bad file leaves the last good state untouched.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from carnet.errors import ConfigError
from carnet_broker.config.agents import read_agents
from carnet_broker.config.files import Sources
from carnet_broker.config.limits import read_limits
from carnet_broker.config.names import tenant
from carnet_broker.config.principals import read_clients, read_hosts, read_operators
from carnet_broker.config.references import check_references
from carnet_broker.core.registry import Limits, Registry
from carnet_policy import Policy, PolicyError, load_yaml, loads
from carnet_policy.reading import Part

__all__ = ["Loaded", "check_issuer", "find_configs", "load_all", "load_registries", "load_registry"]

FILE_NAME = "carnet.yaml"
KEYS = ("format", "tenant", "policies", "shadow_policies", "hosts", "agents", "clients", "operators", "limits")
_REQUIRED = {
    "format": "1",
    "tenant": "the name of the tenant",
    "policies": "a list of policy files",
    "hosts": "the tool servers",
    "agents": "the kinds of agents",
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """registries by tenant; sources: digest of every file they were read from."""

    registries: Mapping[str, Registry]
    sources: Mapping[Path, str]


def load_registry(path: Path) -> Registry:
    """The registry of one carnet.yaml. Raises ConfigError: one sentence with place and fix."""
    return _read(path, Sources())


def load_registries(path: Path) -> Mapping[str, Registry]:
    """Registries by tenant, of a file or of a folder (see `find_configs`). Raises ConfigError."""
    return load_all(path).registries


def load_all(path: Path, sources: Sources | None = None) -> Loaded:
    """As `load_registries`, with the digests of all files read. sources: a fresh one of the caller, which then knows
    what was read when this fails, too. Raises ConfigError."""
    sources = Sources() if sources is None else sources
    registries: dict[str, Registry] = {}
    clients: dict[str, str] = {}
    audiences: dict[str, str] = {}
    for file in find_configs(path):
        registry = _read(file, sources)
        if registry.tenant in registries:
            raise ConfigError(f"{file}: the tenant {registry.tenant} has another file already; one tenant has one file")
        registries[registry.tenant] = registry
        for client in sorted(registry.clients):
            # a client's id alone says which tenant it authenticates for
            if client in clients:
                raise ConfigError(f"{file}: the client {client} belongs to the tenant {clients[client]}; rename one")
            clients[client] = registry.tenant
        for host in registry.hosts.values():
            # a guard knows its tokens by issuer and audience: one audience for two tenants would join their tools
            if host.audience in audiences:
                owner = audiences[host.audience]
                raise ConfigError(f"{file}: {host.name} has an audience of the tenant {owner}; give it its own")
            audiences[host.audience] = registry.tenant
    return Loaded(registries, dict(sources.digests))


def find_configs(path: Path) -> tuple[Path, ...]:
    """The file itself; of a folder its carnet.yaml, every NAME.carnet.yaml in it, and the carnet.yaml of each direct
    subfolder, in order of names. Names that begin with a dot are left out. Raises ConfigError when there is none."""
    if not path.is_dir():
        return (path,)
    try:
        inside = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
        files = [entry for entry in inside if entry.name == FILE_NAME or entry.name.endswith(f".{FILE_NAME}")]
        files += [entry / FILE_NAME for entry in inside if entry.is_dir() and (entry / FILE_NAME).exists()]
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}; check path and rights") from None
    if not files:
        raise ConfigError(f"{path}: the folder holds no {FILE_NAME}; add one, or one in a subfolder per tenant")
    return tuple(files)


def check_issuer(registries: Mapping[str, Registry], issuer: str) -> None:
    """No host may have the issuer as its audience: root tokens are for the issuer, and no guard may accept one."""
    for registry in registries.values():
        for host in registry.hosts.values():
            if host.audience.rstrip("/") == issuer.rstrip("/"):
                raise ConfigError(
                    f"the host {host.name} of {registry.tenant} has the issuer {issuer} as its audience; "
                    "give it an audience of its own"
                )


def _read(path: Path, sources: Sources) -> Registry:
    text = sources.read(path)
    with _as_config_error():
        document = load_yaml(text, str(path))
        root = Part(document, document.value)
        given = root.mapping(KEYS)
        for key, what in _REQUIRED.items():
            if key not in given:
                raise root.error(f"the file has no {key}; add {key}: {what}")
        given["format"].integer(1, 1)
        folder = path.parent
        registry = Registry(
            tenant=tenant(given["tenant"]),
            hosts=read_hosts(given["hosts"]),
            agents=read_agents(given["agents"], folder, sources),
            clients=read_clients(given["clients"], folder, sources) if "clients" in given else {},
            operators=read_operators(given["operators"], folder, sources) if "operators" in given else {},
            limits=read_limits(given["limits"]) if "limits" in given else Limits(),
            policy=_policy(given["policies"], folder, sources),
            shadow=_policy(given["shadow_policies"], folder, sources) if "shadow_policies" in given else None,
        )
        check_references(root, registry)
    return registry


def _policy(part: Part, folder: Path, sources: Sources) -> Policy:
    names = [inner.text(1024) for inner in part.sequence()]
    if not names or len(set(names)) != len(names):
        raise part.error(f"{part.name} must name at least one file, and each once")
    # the names as written: guards are sent them, and the broker's folders are nobody's business
    return loads([(name, sources.read(folder / name)) for name in names])


@contextmanager
def _as_config_error() -> Iterator[None]:
    try:
        yield
    except PolicyError as error:
        raise ConfigError(str(error)) from None
