"""The public surface is written down exactly: `__all__`, the catalogue of reasons, the pages printed from it."""

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

from carnet.reasons import CATALOGUE, Reason, Refusal
from tests.tree import ROOT, Module, modules, parsed

PUBLIC = [module for module in modules() if not module.is_private]
BARE = {"carnet_broker"}  # packages that are only a namespace of their modules


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
    assert defined(module) <= set(names), f"not in __all__: {sorted(defined(module) - set(names))}"
    loaded = importlib.import_module(module.name)
    missing = [name for name in names if not hasattr(loaded, name)]
    assert not missing, f"{module.name}.__all__ names what is not there: {missing}"


@pytest.mark.parametrize("package", ["carnet", "carnet_policy"])
def test_a_package_shows_nothing_but_its_public_names(package: str) -> None:
    loaded = importlib.import_module(package)
    assert set(loaded.__all__) <= set(dir(loaded))
    submodules = {path.stem for path in Path(loaded.__path__[0]).iterdir()}
    others = {name for name in dir(loaded) if not name.startswith("_")} - set(loaded.__all__) - submodules
    assert not others, f"{package} leaks {sorted(others)}"


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
