"""One line per step of the story: who, what, decision, reason, milliseconds."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from rich.console import Console
from rich.text import Text

from carnet.cli.visible import visible

__all__ = ["Report", "Step"]


@dataclass(slots=True, kw_only=True)
class Step:
    """What a step had to do and what it did. ok only if `got` was set and equals `expected`."""

    step: str
    who: str
    what: str
    expected: str
    got: str = "nothing"
    ms: float = 0.0
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.got == self.expected


@dataclass(slots=True)
class Report:
    """Prints each step as it ends and keeps the count."""

    as_json: bool
    clock: Callable[[], float] = time.perf_counter
    steps: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str, who: str, what: str, expected: str) -> Iterator[Step]:
        """Time the body; it sets `got`. An exception is what it got, and the story goes on."""
        step = Step(step=name, who=who, what=what, expected=expected)
        begun = self.clock()
        try:
            yield step
        except Exception as error:  # noqa: BLE001 - a failed step is reported, not raised
            step.got = f"{type(error).__name__}: {error}"
        step.ms = step.ms or round((self.clock() - begun) * 1000, 1)
        self.steps.append(step)
        self._print(step)

    @property
    def failed(self) -> int:
        return sum(not step.ok for step in self.steps)

    def close(self) -> None:
        """Print the summary."""
        if self.as_json:
            sys.stdout.write(json.dumps({"summary": {"steps": len(self.steps), "failed": self.failed}}) + "\n")
            return
        tone = "red" if self.failed else "green"
        Console(highlight=False).print(Text(f"\n{len(self.steps)} steps, {self.failed} failed", style=f"bold {tone}"))

    def _print(self, step: Step) -> None:
        if self.as_json:
            shown = asdict(step) | {"ok": step.ok}
            sys.stdout.write(json.dumps(shown) + "\n")
            sys.stdout.flush()
            return
        line = Text("✓ " if step.ok else "✗ ", style="green" if step.ok else "bold red")
        line.append(f"{visible(step.who):<14}", style="bold").append(f"{visible(step.what):<46} ")
        line.append(f"{visible(step.got):<34}", style=_tone(step)).append(f"{step.ms:>8.1f} ms", style="dim")
        if step.note:
            line.append(f"  {visible(step.note)}", style="dim")
        if not step.ok:
            line.append(f"  expected: {step.expected}", style="bold red")
        Console(highlight=False, soft_wrap=True).print(line)


def _tone(step: Step) -> str:
    if not step.ok:
        return "bold red"
    return "green" if step.got.startswith(("allow", "active", "opened", "verified")) else "yellow"
