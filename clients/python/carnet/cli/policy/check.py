"""`carnet policy check`: what is wrong with a policy, or worth a second look, before it comes into force."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carnet.cli.policy.definitions import read_tools
from carnet.cli.policy.sources import read_text
from carnet.cli.problems import Exit, Problem
from carnet_policy import Marked, PolicyError, load_yaml

if TYPE_CHECKING:
    from carnet_policy.lint import Finding

__all__ = ["register"]

MAX_BYTES = 1 << 20


class Format(StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


def register(group: typer.Typer) -> None:
    group.command("check")(check)


def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="The files of one policy, or a carnet.yaml.")],
    tools: Annotated[
        list[Path] | None,
        typer.Option(
            "--tools", help="Tool definitions (MCP tools/list, OpenAI, Anthropic) to check arguments against."
        ),
    ] = None,
    registry: Annotated[Path | None, typer.Option(help="A carnet.yaml, to compare tools with.")] = None,
    form: Annotated[Format, typer.Option("--format", help="How to print the findings.")] = Format.TEXT,
) -> None:
    """Lint a policy. Exit code 0: no finding of severity error; 1: there is one."""
    from carnet.cli.policy.report import write
    from carnet_policy.lint import Severity

    findings = _findings(files, tools or [], registry)
    write(findings, form)
    if any(found.severity is Severity.ERROR for found in findings):
        raise typer.Exit(int(Exit.REFUSED))


def _findings(files: list[Path], tools: list[Path], registry: Path | None) -> tuple["Finding", ...]:
    from carnet_policy.lint import check, registered_tools, unreadable

    definitions = read_tools(tools) if tools else None
    policies, around = _expand(files)
    around = around if registry is None else _document(registry)
    try:
        known = None if around is None else registered_tools(around)
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None
    texts, broken = [], []
    for path in policies:
        text, problem = _text(path)
        if problem is None:
            texts.append((str(path), text))
        else:
            broken.append(unreadable(str(path), problem))
    return tuple(broken) if broken else check(texts, definitions, known)


def _expand(files: list[Path]) -> tuple[list[Path], Marked | None]:
    """A registry stands for the policy files that it names, and is then what tools are compared with."""
    from carnet_policy.lint import registered_policies

    if len(files) == 1 and files[0].is_file():
        text, problem = _text(files[0])
        try:
            document = load_yaml(text, str(files[0])) if problem is None else None
        except PolicyError:
            document = None  # lint tells it, with its place
        named = None if document is None else registered_policies(document)
        if named is not None:
            return [files[0].parent / name for name in named], document
    return files, None


def _document(path: Path) -> Marked:
    try:
        return load_yaml(read_text(path, MAX_BYTES), str(path))
    except PolicyError as error:
        raise Problem(str(error), Exit.USAGE) from None


def _text(path: Path) -> tuple[str, str | None]:
    """The text, or why there is none."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return "", f"the file is larger than {MAX_BYTES} bytes; split it"
        return path.read_text("utf-8"), None
    except OSError as error:
        return "", f"the file can not be read ({error.strerror or error}); check path and rights"
    except UnicodeDecodeError:
        return "", "the file is no UTF-8 text; save it as UTF-8"
