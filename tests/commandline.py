"""The command line as a user runs it: each command a process of its own, on a data directory of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from memctl.infra.data_dir import Places
from memctl.infra.endpoints import read_endpoints


class Memctl:
    """The command line on one data directory, with `home` as the user's home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "memory"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMCTL_")}
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "MEMCTL_DATA_DIR": str(self.data),
            "MEMCTL_EMBEDDER": "none",
        }

    def __call__(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "memctl.cli", *arguments],
            env=self.environment,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            timeout=180,
            check=False,
        )
        said = done.stderr.decode()
        assert done.returncode == code, f"{arguments}: exit {done.returncode}\n{done.stdout.decode()}\n{said}"
        self.said = said
        return done.stdout.decode()

    @property
    def database_url(self) -> str:
        """Of the database that `up` started."""
        return read_endpoints(Places(self.data))["database_url"]

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))
