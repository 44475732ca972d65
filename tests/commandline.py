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
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from forking import Ran, ran

from memctl.infra.data_dir import Folders
from memctl.infra.endpoints import read_endpoints
from memctl.infra.hooks.agent_shell import AGENTS_VARIABLES


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
        done = ran(*words, environment=environment, terminal=keyboard)
    assert done.code == 0, done.said
    return done.out


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
        with terminal() as keyboard:
            read = keyboard if at_a_terminal and stdin is None else None
            done = (self._forked if self.forked else self._started)(arguments, read, stdin or b"")
        assert code in (None, done.code), f"{arguments}: exit {done.code}\n{done.out}\n{done.said}"
        self.said = done.said
        return done.out

    def _forked(self, arguments: tuple[str, ...], keyboard: int | None, stdin: bytes) -> Ran:
        return ran(*arguments, environment=self.environment, cwd=self.home, stdin=stdin, terminal=keyboard)

    def _started(self, arguments: tuple[str, ...], keyboard: int | None, stdin: bytes) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "memctl.cli", *arguments],
            env=self.environment,
            cwd=self.home,
            **({"stdin": keyboard} if keyboard is not None else {"input": stdin}),
            capture_output=True,
            timeout=180,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    @property
    def database_url(self) -> str:
        """Of the database that `up` started."""
        return read_endpoints(Folders(self.data))["database_url"]

    def asked(self, path: str) -> tuple[int, str]:
        """Status and body of what the API answers that `up` started."""
        found = read_endpoints(Folders(self.data))
        asked = Request(found["api_url"] + path, headers={"Authorization": f"Bearer {found['api_token']}"})
        try:
            with urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refused:
            return refused.code, refused.read().decode()

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))
