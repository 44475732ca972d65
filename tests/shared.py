"""A folder that all workers of pytest-xdist share: what the first of them made there, the others take."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_NAMED = "MEMCTL_TEST_SHARED"


def folder() -> Path:
    """It is gone when the process ends that asked for it first: with xdist, the one that starts the workers."""
    if _NAMED not in os.environ:
        os.environ[_NAMED] = tempfile.mkdtemp(prefix="memctl-test-")
        atexit.register(shutil.rmtree, os.environ[_NAMED], ignore_errors=True)
    return Path(os.environ[_NAMED])


@contextlib.contextmanager
def made_once(name: str) -> Iterator[Path]:
    """A path in it, while nobody else is there."""
    with (folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder() / name
