"""The command `carnet demo`."""

import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carnet.cli.demo.report import Report
from carnet.cli.output import say
from carnet.cli.problems import Exit, Problem

if TYPE_CHECKING:
    from carnet.cli.demo.processes import Stage

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(as_json: Annotated[bool, typer.Option("--json", help="One JSON object per step.")] = False) -> None:
    """Play the whole story against a real broker and real tool servers on loopback; exit 0 only if every step held."""
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise Problem("The demo needs the server: pip install 'carnet[server]'", Exit.USAGE)
    from carnet.cli.demo.processes import raise_stage

    report = Report(as_json)
    folder = Path(tempfile.mkdtemp(prefix="carnet-demo-"))
    begun = time.perf_counter()
    try:
        with raise_stage(folder) as stage:
            if not as_json:
                say(f"broker {stage.url}, tool servers {', '.join(stage.hosts.values())}", "dim")
            _play(stage, report)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.close()
    if not as_json:
        say(f"the story took {time.perf_counter() - begun:.1f} s", "dim")
    if report.failed:
        raise SystemExit(int(Exit.REFUSED))


def _play(stage: "Stage", report: Report) -> None:
    """Play; a story that cannot go on is one more failed step and no traceback."""
    from carnet.cli.demo.story import play

    try:
        play(stage, report)
    except Exception as error:  # noqa: BLE001 - whatever stopped it is told as what it is
        with report.step("end", "demo", "goes on to its end", "ended") as step:
            step.got = f"stopped: {type(error).__name__}: {error}"
