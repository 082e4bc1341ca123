"""Rules of the house that a machine can check: sizes, names, and purity of the parts that decide."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import ROOT, Module, modules, parsed, repository_files

FILE_LINES, TEST_LINES, FUNCTION_LINES = 400, 600, 40
PURE = ("carnet_policy", "carnet_broker.core", "carnet.token", "carnet.audit", "carnet.reasons")
IMPURE = {"os", "time", "random", "secrets", "socket", "sqlite3", "logging", "yaml", "jwt", "subprocess"}
# What a pure module may import all the same, and why.
ALLOWED = {
    "carnet_policy.strictyaml": {"yaml"},  # the one reader of policy text
}
CLOCKS = {"now", "utcnow", "today", "monotonic", "perf_counter", "time_ns", "urandom", "uuid4", "token_hex"}
VAGUE_MODULES = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "impl", "base_impl", "stuff"}
VAGUE_CLASS = re.compile(r"(Manager|Helper|Impl|Util|Utils)$")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")


def limit_of(path: Path) -> int:
    return TEST_LINES if path.is_relative_to(ROOT / "tests") else FILE_LINES


def test_no_file_is_too_long() -> None:
    long = [
        f"{path.relative_to(ROOT)}: {count} lines, at most {limit_of(path)}"
        for path in repository_files(".py")
        if (count := len(path.read_text().splitlines())) > limit_of(path)
    ]
    assert not long, "\n".join(long)


def test_half_of_the_source_files_are_short() -> None:
    counts = sorted(len(module.path.read_text().splitlines()) for module in modules() if not module.is_package)
    assert counts[len(counts) // 2] <= 120


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the end, without the docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def test_no_function_is_too_long() -> None:
    long = [
        f"{module.name}.{function.name}: {length(function)} lines, at most {FUNCTION_LINES}"
        for module in modules()
        for function in functions(parsed(module.path))
        if length(function) > FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def pure_modules() -> list[Module]:
    return [m for m in modules() if any(m.name == name or m.name.startswith(f"{name}.") for name in PURE)]


def imported(nodes: Iterator[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def at_import_time(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run when the module is imported; blocks for type checkers only do not."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from at_import_time(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            yield from at_import_time(node.body)
        else:
            yield node


@pytest.mark.parametrize("module", pure_modules(), ids=str)
def test_a_pure_module_imports_no_clock_no_randomness_and_no_io(module: Module) -> None:
    found = imported(at_import_time(parsed(module.path).body)) & IMPURE
    assert found <= ALLOWED.get(module.name, set()), f"{module.name} imports {sorted(found)}"


@pytest.mark.parametrize("module", pure_modules(), ids=str)
def test_a_pure_module_reads_no_clock_and_draws_no_randomness(module: Module) -> None:
    read = {
        node.attr
        for node in ast.walk(parsed(module.path))
        if isinstance(node, ast.Attribute)
        and node.attr in CLOCKS
        and isinstance(node.value, ast.Name)
        and node.value.id in {"time", "datetime", "date", "os", "uuid", "secrets", "random"}
    }
    assert not read, f"{module.name} reads {sorted(read)}: time, ids and randomness are arguments of pure code"
    everywhere = imported(ast.walk(parsed(module.path)))
    assert not everywhere & {"time", "random", "secrets", "socket", "sqlite3"}, module.name


def test_names_say_what_a_thing_is() -> None:
    vague = [module.name for module in modules() if module.name.rpartition(".")[2] in VAGUE_MODULES]
    vague += [
        f"{module.name}.{node.name}"
        for module in modules()
        for node in ast.walk(parsed(module.path))
        if isinstance(node, ast.ClassDef) and VAGUE_CLASS.search(node.name)
    ]
    assert not vague, vague


def test_nothing_is_left_unfinished() -> None:
    marks = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in repository_files(".py", ".sh", ".toml")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line)
    ]
    stubs = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(parsed(module.path))
        if isinstance(node, ast.Raise) and node.exc is not None and "NotImplemented" in ast.dump(node.exc)
    ]
    assert not marks + stubs, marks + stubs


def test_no_exception_is_swallowed_without_a_word() -> None:
    silent = [
        f"{module.name}:{node.lineno}"
        for module in modules()
        for node in ast.walk(parsed(module.path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}))
        and all(isinstance(statement, ast.Pass) for statement in node.body)
    ]
    assert not silent, silent
