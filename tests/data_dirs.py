"""Data directories for tests, in which the rules of redaction lie compiled as an earlier process leaves them.

Compiling them takes some seconds of processor time, which hundreds of tests and the processes they start would each
spend again. All workers of pytest-xdist share one.
"""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import shared

from memctl.infra.redaction import Redactor, redactor_of, text


def used(folder: Path) -> Path:
    """`folder`, made if it is missing, as a data directory in which memctl was at work before."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(_compiled(), folder / "cache", dirs_exist_ok=True)
    return folder


def compile_once() -> None:
    """From here on the rules are compiled by one process for all, also where no folder is named to keep them in."""
    text.Redactor.__init__.__defaults__ = (None, shared.folder() / "compiled")


@functools.cache
def _compiled() -> Path:
    with shared.made_once("compiled") as folder:
        redactor_of((), anonymize=False, cache=folder)
    return folder


def anonymizing(*patterns: str) -> Redactor:
    """What cuts data about people too, and a user's own patterns."""
    return redactor_of(patterns, anonymize=True, cache=_compiled())
