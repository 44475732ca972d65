"""Published data that tests, evaluations and benchmarks read where this machine has it; none of it is memctl's.

CONTRIBUTING.md says what it is, under which licences, and where to put it. What needs a part that is not there is left
out, with a word why. Nothing of memctl is imported here, so that a script can ask before anything else.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(os.environ.get("MEMCTL_TEST_DATA") or Path(__file__).parents[2] / "shared" / "data").absolute()
SESSIONS = FOLDER / "agent-sessions.tar.xz"
HOOKS = FOLDER / "hook-samples"


def lacking(path: Path) -> str:
    """Why what needs that file or folder is left out."""
    return f"published data: {path} is not there (CONTRIBUTING.md says what it is; MEMCTL_TEST_DATA names its folder)"


@contextmanager
def sessions(folder: Path | None = None) -> Iterator[Path]:
    """That folder of transcripts, or else the published ones, unpacked. Raises FileNotFoundError, saying what to do."""
    if folder is not None:
        yield folder
        return
    if not SESSIONS.exists():
        raise FileNotFoundError(lacking(SESSIONS))
    with tempfile.TemporaryDirectory(prefix="memctl-published-") as unpacked:
        with tarfile.open(SESSIONS) as archive:
            archive.extractall(unpacked)  # as the archive says; `filter` came with 3.11.4
        yield Path(unpacked)
