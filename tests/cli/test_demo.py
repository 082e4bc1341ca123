"""`carnet demo`: real processes play the whole story, and the exit code tells whether every step held."""

import json
import os
import subprocess
import sys
import time

from carnet.cli.demo.report import Report

STEPS = {
    "open", "spawn-0", "read", "scope", "spawn-1", "write", "spawn-2", "approve", "ask", "answer", "refund", "second",
    "sibling", "depth", "target", "audience", "grant", "revoke", "silence", "trace",
    "refused", "verify",
}  # fmt: skip


def test_every_step_of_the_story_holds_in_under_20_seconds() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("CARNET_")}
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "carnet.cli", "demo", "--json"], env=environ, capture_output=True, text=True, timeout=120
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines[:-1] if not line["ok"]] == []
    assert {line["step"] for line in lines[:-1]} == STEPS
    assert all({"step", "ok", "expected", "got", "ms"} <= line.keys() for line in lines[:-1])
    assert lines[-1] == {"summary": {"steps": len(STEPS), "failed": 0}}
    assert done.returncode == 0, done.stderr
    story = sum(line["ms"] for line in lines[:-1]) / 1000
    assert story < 20, f"the story took {story:.1f} s of {time.monotonic() - begun:.1f} s"


def test_a_step_that_does_something_else_fails_the_story() -> None:
    report = Report(as_json=True)
    with report.step("a", "who", "what", "allow") as step:
        step.got = "deny"
    with report.step("b", "who", "what", "allow"):
        pass
    with report.step("c", "who", "what", "allow") as step:
        step.got = str(int("broken"))
    with report.step("d", "who", "what", "allow") as step:
        step.got = "allow"
    assert report.failed == 3
    assert [step.got for step in report.steps] == [
        "deny",
        "nothing",
        "ValueError: invalid literal for int() with base 10: 'broken'",
        "allow",
    ]
