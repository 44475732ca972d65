"""Data directories for tests, in which the rules of redaction lie compiled as an earlier process leaves them.

Compiling them takes most of a second, which hundreds of tests and the processes they start would each spend anew.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from pathlib import Path

from memctl.infra.redaction import redactor_of


def used(folder: Path) -> Path:
    """`folder`, made if it is missing, as a data directory in which memctl was at work before."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(_compiled(), folder / "cache", dirs_exist_ok=True)
    return folder


@functools.cache
def _compiled() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="memctl-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    redactor_of([], anonymize=False, cache=folder)
    return folder
