"""The command line as a user runs it: each command a process of its own, on a data directory of the test's own.

They are forked from one that has imported everything: most of what a command takes is its imports. What starts from
nothing are hooks, and all that `up` starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forking import Forked

from memctl.infra.data_dir import Places
from memctl.infra.endpoints import read_endpoints
from memctl.infra.hooks.speaker import AGENTS_VARIABLES


@contextlib.contextmanager
def terminal(typed: bytes = b"") -> Iterator[int]:
    """A file that is a terminal, at which somebody has typed."""
    ours, theirs = os.openpty()
    os.write(ours, typed)
    try:
        yield theirs
    finally:
        os.close(ours)
        os.close(theirs)


def at_a_terminal(*words: str, typed: bytes = b"") -> str:
    """What a command prints that a person gives, in the environment of the test."""
    environment = {name: value for name, value in os.environ.items() if name not in AGENTS_VARIABLES}
    with terminal(typed) as keyboard:
        command = [sys.executable, "-m", "memctl.cli", *words]
        done = subprocess.run(command, env=environment, stdin=keyboard, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Memctl:
    """The command line on one data directory, with `home` as the user's home, at a terminal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "memory"
        self.forked = True
        """Whether commands are forked; where what they import matters, they are not."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("MEMCTL_") and name not in AGENTS_VARIABLES
        }
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "MEMCTL_DATA_DIR": str(self.data),
            "MEMCTL_EMBEDDER": "none",
        }

    def __call__(
        self, *arguments: str, code: int | None = 0, stdin: bytes | None = None, at_a_terminal: bool = True
    ) -> str:
        with terminal() as typed, tempfile.TemporaryDirectory(prefix="memctl-test-") as folder:
            given, out, err = (Path(folder) / name for name in ("given", "out", "err"))
            given.write_bytes(stdin or b"")
            read = os.ttyname(typed) if at_a_terminal and stdin is None else str(given)
            ended = (self._forked if self.forked else self._started)(arguments, read, out, err)
            printed, said = out.read_text(), err.read_text()
        assert code in (None, ended), f"{arguments}: exit {ended}\n{printed}\n{said}"
        self.said = said
        return printed

    def _forked(self, arguments: tuple[str, ...], read: str, out: Path, err: Path) -> int:
        with contextlib.closing(Forked()) as process:
            process.start(*arguments, environment=self.environment, cwd=self.home, out=out, said=err, typed=read)
            return process.wait(180)

    def _started(self, arguments: tuple[str, ...], read: str, out: Path, err: Path) -> int:
        command = [sys.executable, "-m", "memctl.cli", *arguments]
        with open(read, "rb") as typed, out.open("wb") as printed, err.open("wb") as said:
            done = subprocess.run(
                command, env=self.environment, cwd=self.home, stdin=typed, stdout=printed, stderr=said, timeout=180,
                check=False,
            )  # fmt: skip
        return done.returncode

    @property
    def database_url(self) -> str:
        """Of the database that `up` started."""
        return read_endpoints(Places(self.data))["database_url"]

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))
