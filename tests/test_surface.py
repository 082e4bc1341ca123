"""The public surface is written down exactly: `__all__`, the catalogue of reasons, the pages printed from it."""

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from carnet.reasons import CATALOGUE, Reason, Refusal
from tests.tree import ROOT, Module, modules, parsed

PUBLIC = [module for module in modules() if not module.is_private]
PLUMBING = {"TYPE_CHECKING", "import_module", "annotations"}  # what importing on first use needs


def declared(module: Module) -> list[str] | None:
    for node in parsed(module.path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def defined(module: Module) -> set[str]:
    """Public classes and functions that the module itself defines."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in parsed(module.path).body if isinstance(node, kinds) and not node.name.startswith("_")}


@pytest.mark.parametrize("module", PUBLIC, ids=str)
def test_all_names_exactly_what_a_module_offers(module: Module) -> None:
    names = declared(module)
    if names is None:
        assert not defined(module), f"{module.name} defines {sorted(defined(module))} and has no __all__"
        return
    assert len(names) == len(set(names)), "a name stands twice"
    if "register" not in names:  # commands are registered by their module, and offered to nobody else
        assert defined(module) <= set(names), f"not in __all__: {sorted(defined(module) - set(names))}"
    loaded = importlib.import_module(module.name)
    missing = [name for name in names if not hasattr(loaded, name)]
    assert not missing, f"{module.name}.__all__ names what is not there: {missing}"


def test_nobody_takes_a_name_that_a_module_does_not_offer() -> None:
    offered = {module.name: declared(module) for module in modules()}
    inside = {f"{module.name}.{other.name.rpartition('.')[2]}" for module in modules() for other in modules()}
    taken = [
        f"{module.name} takes {node.module}.{alias.name}"
        for module in modules()
        for node in ast.walk(parsed(module.path))
        if isinstance(node, ast.ImportFrom) and node.module in offered
        for alias in node.names
        if alias.name not in (offered[node.module] or [])
        and f"{node.module}.{alias.name}" not in inside & offered.keys()
        and not alias.name.startswith("__")
        and len(alias.name) > 1  # type variables are how a signature is written, not what a module offers
    ]
    assert not taken, "\n".join(taken)


@pytest.mark.parametrize("package", ["carnet", "carnet_policy"])
def test_a_package_shows_nothing_but_its_public_names(package: str) -> None:
    code = f"import json, {package} as p; print(json.dumps([p.__all__, dir(p), list(p.__path__)]))"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )  # nothing else loaded
    offered, shown, (path,) = json.loads(told.stdout)
    submodules = {file.stem for file in Path(path).iterdir()}
    public = {name for name in shown if not name.startswith("_")}
    assert public <= set(offered) | submodules | PLUMBING, f"{package} leaks names"


def test_every_reason_has_a_sentence_a_status_and_a_line_in_the_docs() -> None:
    assert set(CATALOGUE) == set(Reason)
    page = (ROOT / "docs/reasons.md").read_text()
    for reason, entry in CATALOGUE.items():
        assert entry.sentence.endswith("."), reason
        assert 200 <= entry.status < 600
        assert f"| `{reason.value}` |" in page


def test_pages_printed_from_the_code_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, page in generate.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == page(), f"docs/{name} is out of date: python docs/generate.py"


def test_a_refusal_cannot_be_taken_for_a_yes_or_a_no() -> None:
    with pytest.raises(TypeError):
        bool(Refusal(Reason.REVOKED))
