"""An embedded memctl that has read one published set of sessions, without an embedder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SETS = ("agent-sessions", "agent-sessions-2")
"""Set 1, which rules were fitted to, and set 2, which none was."""

Memctl = Callable[..., str]
"""Runs memctl with those words there and returns what it prints. Raises: CalledProcessError."""


@contextmanager
def folded(archive: Path) -> Iterator[Memctl]:
    """One that runs as long as the block does."""
    with tempfile.TemporaryDirectory(prefix="memctl-folded-") as folder:
        home = Path(folder)
        environment = {
            **os.environ, "HOME": folder, "MEMCTL_DATA_DIR": str(home / "memory"), "MEMCTL_EMBEDDER": "none"
        }  # fmt: skip

        def memctl(*words: str) -> str:
            command = [sys.executable, "-m", "memctl.cli", *words]
            return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

        with tarfile.open(archive) as sessions:
            sessions.extractall(home / "sessions")  # as the archive says; `filter` came with 3.11.4
        memctl("up")
        try:
            memctl("ingest", str(home / "sessions"), "--wait")
            yield memctl
        finally:
            memctl("down")
