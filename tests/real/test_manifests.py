"""40 real manifests played as one registry: every parent hands work to its own leaves, and nobody to anybody else."""

from collections.abc import Iterator

import pytest

from tests.cases.handles import Run
from tests.cases.registering import Agent, Setup
from tests.cases.world import World
from tests.real.manifests import COOKBOOKS, READS, WRITES, Manifest, read_all

MANIFESTS = read_all()
PARENTS = [manifest for manifest in MANIFESTS.values() if manifest.is_parent]
LEAVES = {name: manifest for name, manifest in MANIFESTS.items() if not manifest.is_parent}

pytestmark = pytest.mark.skipif(not MANIFESTS, reason=f"no manifests under {COOKBOOKS}: set TEST_DATA_DIR")


def agent_of(manifest: Manifest) -> Agent:
    """A parent may hand out what its leaves need and it does not hold itself."""
    needed: frozenset[str] = frozenset().union(*(LEAVES[name].tools for name in manifest.children))
    return Agent(tools=manifest.tools, grants=needed - manifest.tools, callable_agents=manifest.children)


def effect_of(tool: str) -> str:
    assert tool in READS | WRITES or tool.startswith("mcp:")
    return "write" if tool in WRITES else "read"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    tools = sorted(frozenset().union(*(manifest.tools for manifest in MANIFESTS.values())))
    policy = {
        "id": "cookbooks",
        "version": 1,
        "defaults": {"decision": "deny"},
        "catalog": {tool: {"effect": effect_of(tool)} for tool in tools},
        "tools": {},
    }
    agents = {name: agent_of(manifest) for name, manifest in MANIFESTS.items()}
    with World(Setup(agents=agents, policy=policy)) as made:
        yield made


@pytest.fixture(scope="module")
def runs(world: World) -> dict[str, Run]:
    return {parent.name: world.open_run(parent.name) for parent in PARENTS}


def task(tools: frozenset[str]) -> dict[str, object]:
    facts = {"touches_pii": False, "touches_secrets": False, "reversible": True, "resource_count": 0}
    return {**facts, "tools": sorted(tools)}


def spawn(world: World, bearer: str, target: str, tools: frozenset[str]) -> tuple[int, dict[str, object]]:
    body = {"target": target, "task": task(tools), "hosts": ["*"]}
    answer = world.request("POST", "/v1/delegations", bearer=bearer, json=body)
    return answer.status_code, answer.json()


def test_there_are_10_parents_and_30_leaves() -> None:
    assert (len(PARENTS), len(LEAVES)) == (10, 30)
    assert sum(len(parent.children) for parent in PARENTS) == 30


def test_each_parent_spawns_its_leaves_at_the_level_of_their_tools_and_no_leaf_spawns(
    world: World, runs: dict[str, Run]
) -> None:
    levels: dict[str, int] = {}
    for parent in PARENTS:
        for leaf in sorted(parent.children):
            status, document = spawn(world, runs[parent.name].token, leaf, LEAVES[leaf].tools)
            assert status == 201, document
            child = world.child_of(document)
            assert child.tools == LEAVES[leaf].tools
            levels[leaf] = child.level
            for target in (*sorted(parent.children), parent.name):
                status, refused = spawn(world, child.bearer or "", target, LEAVES[leaf].tools)
                assert (status, refused["reason"]) == (403, "depth_exceeded")
    writers = {name for name, leaf in LEAVES.items() if leaf.tools & WRITES}
    assert {name for name, level in levels.items() if level == 1} == writers
    assert sorted(levels.values()) == [0] * 19 + [1] * 11


def test_no_parent_reaches_into_another_cookbook(world: World, runs: dict[str, Run]) -> None:
    for parent in PARENTS:
        for target in MANIFESTS.values():
            if target.cookbook != parent.cookbook:
                status, refused = spawn(world, runs[parent.name].token, target.name, frozenset({"read"}))
                assert (status, refused["reason"]) == (403, "target_not_allowed"), (parent.name, target.name)
