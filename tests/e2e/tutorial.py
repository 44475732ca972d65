"""The tutorial, done to the letter: every command of it, in order, in an empty home."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from commandline import Memctl, terminal
from documents import ROOT, Step, reads_as, steps
from waiting import until

TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    memctl = Memctl(tmp_path)
    memctl.environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "TZ": "UTC"}
    del memctl.environment["MEMCTL_EMBEDDER"]
    told = list(steps(TUTORIAL))
    try:
        for step in told:
            until_it_reads(step, memctl)
    finally:
        memctl("down")
    assert len(told) > 12


def until_it_reads(step: Step, memctl: Memctl) -> None:
    """Run a step; a question is asked again until what was told just before has been folded."""
    printed = ""

    def reads() -> bool:
        nonlocal printed
        with terminal() as typed:
            ended = subprocess.run(
                step.command, shell=True, cwd=memctl.home, env=memctl.environment, text=True, timeout=180, check=False,
                stdin=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        printed = ended.stdout
        return reads_as(printed, step.printed)

    try:
        if step.command.startswith(("memctl insights", "memctl search")):
            until(reads)
        else:
            assert reads()
    except (AssertionError, TimeoutError):
        raise AssertionError(
            f"$ {step.command}\nprinted\n{printed}\nwhere the tutorial shows\n{step.printed}"
        ) from None
