"""What git's own files say of a directory, and what git would call a file's content: no program is run, and nothing is
written."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from memctl.domain.projects.identity import remote_of
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise

_LARGEST_CONFIG = 1 << 20
"""Bytes of a repository's configuration: a larger one was not written by git."""
_LARGEST_BLOB = 16 << 20
"""Bytes of a file that is hashed: no source is larger."""
_SECTION = patterns.compile(r'^\s*\[remote "(?P<name>[^"\n]+)"\]', patterns.M)
_URL = patterns.compile(r"^\s*url\s*=\s*(\S+)\s*$", patterns.M)


class Checkout(NamedTuple):
    """A checkout that a directory lies in: its root, the root of the repository whose worktree it is (else empty), and
    the normalised remote (`domain.projects.identity.remote_of`; empty where there is none on another host)."""

    root: str
    repository: str
    remote: str


def checkout_of(directory: Path) -> Checkout | None:
    """The innermost checkout around a directory; None outside of any, and where it cannot be read."""
    try:
        for root in (directory, *directory.parents):
            mark = root / ".git"
            if mark.is_dir():
                return Checkout(normalise(str(root)), "", _remote(mark))
            if mark.is_file():
                return _linked(root, mark)
    except (OSError, ValueError):  # not ours to read, or a path that cannot be one
        pass
    return None


def _linked(root: Path, mark: Path) -> Checkout:
    """A worktree or a submodule: its `.git` is a file that names its directory inside the repository's."""
    gitdir = mark.read_text("utf-8", "replace")[:4096].removeprefix("gitdir:").strip()
    own = root / gitdir
    common = own / "commondir"
    if not common.is_file():
        return Checkout(normalise(str(root)), "", _remote(own))  # a submodule is a repository of its own
    shared = (own / common.read_text("utf-8", "replace")[:4096].strip()).resolve()
    # A bare repository's worktrees belong to the folder that is the repository.
    repository = shared.parent if shared.name == ".git" else shared
    return Checkout(normalise(str(root)), normalise(str(repository)), _remote(shared))


def _remote(git: Path) -> str:
    """The remote `origin`, else the only one."""
    config = git / "config"
    if not config.is_file() or config.stat().st_size > _LARGEST_CONFIG:
        return ""
    text = config.read_text("utf-8", "replace")
    remotes: dict[str, str] = {}
    for section in _SECTION.finditer(text):
        until = text.find("\n[", section.end())
        url = _URL.search(text, section.end(), until if until >= 0 else len(text))
        if url and (remote := remote_of(url[1])):
            remotes[section["name"]] = remote
    return remotes.get("origin", "") or (next(iter(remotes.values())) if len(remotes) == 1 else "")


def blob_of(path: Path) -> str | None:
    """The id that git gives a file's content; empty where there is no such file, None where it is none to read: not a
    regular file (a link among them), larger than 16 MB, or not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST_BLOB:
            return None
        content = file.read(_LARGEST_BLOB + 1)
    # SHA-1 is what git names content by; nothing here rests on its strength.
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
