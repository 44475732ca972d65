"""What git's own files say of a directory, and what git would call a file's content: no program is run, and nothing is
written."""

import hashlib
import os
import stat
from pathlib import Path
from typing import NamedTuple

from memctl.domain.projects.identity import HOME, remote_of
from memctl.domain.support import patterns
from memctl.domain.support.location import normalise, project_of
from memctl.infra.files import NoRegularFile, of_a_stranger, read_file

_LARGEST_CONFIG = 1 << 20
"""Bytes of a repository's configuration: a larger one was not written by git."""
_LARGEST_BLOB = 16 << 20
"""Bytes of a file that is hashed: no source is larger."""
_LARGEST_INDEX = 64 << 20
"""Bytes of an index that are looked through, for the names of some 500,000 files."""
_LONGEST_POINTER = 4096
"""Bytes of a file that holds a path."""
_NO_CLOCK = 1 << 57
"""Microseconds that no clock shows: the year 6537."""
_SECTION = patterns.compile(r'^\s*\[remote "(?P<name>[^"\n]+)"\]', patterns.M)
_URL = patterns.compile(r"^\s*url\s*=\s*(\S+)\s*$", patterns.M)
_WORKTREE = patterns.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", patterns.M)


class Checkout(NamedTuple):
    """What git's files say of the checkout that a directory lies in, as `ProjectIdentified` has it."""

    root: str
    repository: str
    remote: str
    borrows: str = ""
    checked: bool = True


def checkout_at(location: str) -> Checkout | None:
    """What git's files say of a location on this machine; None where it is not there, or no checkout is around it. That
    there is none is said of a place whose name would make it a worktree."""
    directory = Path(location)
    try:
        if not directory.is_absolute() or not directory.is_dir():
            return None
    except (OSError, ValueError):
        return None
    return checkout_of(directory) or (Checkout("", "", "") if project_of(location) != location else None)


def there_since(root: str) -> int:
    """When a checkout or a repository came to lie at that root, in microseconds: the oldest change of what its git
    directory lists, or of the file that leads to one. The kernel dates that, so no archive can; and git makes some of
    it once. 0 where it cannot be read."""
    mark = Path(root) / ".git"
    try:
        if not os.path.lexists(mark):
            mark = mark.parent  # a bare one
        listed = [mark] if mark.is_symlink() or not mark.is_dir() else [*mark.iterdir()]
        since = min((each.lstat().st_ctime_ns for each in listed), default=0) // 1000
        return since if 0 < since < _NO_CLOCK else 0
    except (OSError, ValueError):
        return 0


def checkout_of(directory: Path) -> Checkout | None:
    """The innermost checkout around a directory; None outside of any, and where it cannot be read."""
    try:
        for root in (directory, *directory.parents):
            mark = root / ".git"
            if os.path.lexists(mark) and (of_a_stranger(mark) or not _reaches(root, directory)):
                continue
            if mark.is_symlink():
                return _linked(root, mark.resolve(), by_file=False)
            if mark.is_dir():
                return _own(root, mark)
            if mark.is_file():
                return _linked(root, root / _pointed(mark))
            if root.name != ".git" and _is_gitdir(root) and not of_a_stranger(root / "HEAD"):
                return _own(root, root)
    except (OSError, ValueError, RuntimeError):  # not ours to read, or a path that cannot be one
        pass
    return None


def _reaches(root: Path, directory: Path) -> bool:
    """Whether a directory is of the checkout around it. Who keeps settings in a repository at home keeps other things
    below it: those alone are of it that its index names."""
    if root == directory or not HOME.fullmatch(normalise(str(root))):
        return True
    mark = root / ".git"
    try:
        git = mark if mark.is_dir() else root / _pointed(mark)
        index = read_file(git / "index", _LARGEST_INDEX)
    except (OSError, ValueError):
        return False
    return index[:4] == b"DIRC" and _names(index, os.fsencode(directory.relative_to(root)) + b"/")


def _own(root: Path, git: Path) -> Checkout:
    return Checkout(normalise(str(root)), "", _remote(git), _lender(git))


def _linked(root: Path, git: Path, *, by_file: bool = True) -> Checkout:
    """A worktree, a submodule, or a checkout whose git directory lies elsewhere. Anyone may write a pointer to a git
    directory of somebody else's; only where that points back is it one's own."""
    here, git = root.resolve(), git.resolve()
    common = git / "commondir"
    if common.is_file():
        shared = (git / _pointer(common)).resolve()
        repository = _repository_of(shared)
        back = git / _pointer(git / "gitdir") if (git / "gitdir").is_file() else git
        mutual = git.parent == shared / "worktrees" and back.name == ".git" and back.parent.resolve() == here
        if by_file and mutual and _is_gitdir(shared):
            return Checkout(normalise(str(root)), repository, _remote(shared), _lender(shared))
        return Checkout(normalise(str(root)), "", "", repository)
    worktree = _WORKTREE.search(_config(git))
    if git.is_relative_to(here) or (by_file and worktree and (git / worktree[1]).resolve() == here):
        return _own(root, git)
    return Checkout(normalise(str(root)), "", "", _repository_of(git) if git.is_dir() else "")


def _lender(git: Path) -> str:
    """The repository whose objects a git directory names as its own too."""
    alternates = git / "objects" / "info" / "alternates"
    if not alternates.is_file():
        return ""
    named = _pointer(alternates).partition("\n")[0]
    return _repository_of((git / "objects" / named).resolve().parent) if named else ""


def _repository_of(git: Path) -> str:
    """The root of the repository that a git directory is of: of `.git` where it lies, of a submodule's where its
    configuration says, if that points back. Any other is its own, in whichever repository it is kept."""
    if git.name == ".git":
        return normalise(str(git.parent))
    worktree = _WORKTREE.search(_config(git))
    named = git.parent if git.name == ".bare" else (git / worktree[1]).resolve() if worktree else git
    mark = named / ".git"
    if mark.is_file() and not mark.is_symlink() and (named / _pointed(mark)).resolve() == git:
        return normalise(str(named))
    # By habit, what lies beside `.bare` is of it, though no file says so.
    alone = git.name == ".bare" and not any(os.path.lexists(at / ".git") for at in git.parents)
    return normalise(str(git.parent if alone else git))


def _is_gitdir(git: Path) -> bool:
    return (git / "HEAD").is_file() and (git / "objects").is_dir() and (git / "refs").is_dir()


def _pointer(file: Path) -> str:
    """What a file of git's points to: as git reads it, only line breaks at its end are none of it."""
    return read_file(file, _LONGEST_POINTER).decode("utf-8", "replace").rstrip("\r\n")


def _pointed(file: Path) -> str:
    return _pointer(file).removeprefix("gitdir:").removeprefix(" ")


def _config(git: Path) -> str:
    try:
        text = read_file(git / "config", _LARGEST_CONFIG + 1)
    except (FileNotFoundError, NoRegularFile):
        return ""
    return text.decode("utf-8", "replace") if len(text) <= _LARGEST_CONFIG else ""


def _remote(git: Path) -> str:
    """The remote `origin`, else the only one."""
    text = _config(git)
    remotes: dict[str, str] = {}
    of = ""
    for line in text.splitlines():
        if section := _SECTION.search(line):
            of = section["name"]
        elif line.lstrip().startswith("["):
            of = ""
        elif of and (url := _URL.search(line)):
            if remote := remote_of(url[1]):
                remotes[of] = remote
            of = ""  # the first is where it is fetched from
    return remotes.get("origin", "") or (next(iter(remotes.values())) if len(remotes) == 1 else "")


def tracks(path: Path) -> Path | None:
    """The root of the checkout whose repository has a file of that name in its index; None where none has.

    Whoever clones a repository has its files from others. An index of version 4 shortens names: all that lies in its
    checkout counts as tracked.
    """
    for root in path.parents:
        mark = root / ".git"
        try:
            git = mark if mark.is_dir() else root / _pointed(mark)
            held = read_file(git / "index", _LARGEST_INDEX)
        except (OSError, ValueError):
            continue
        if held[:4] == b"DIRC":
            name = os.fsencode(path.relative_to(root))
            return root if held[4:8] == b"\0\0\0\4" or _names(held, name) else None
    return None


def _names(index: bytes, name: bytes) -> bool:
    """Whether an entry of an index has that very name, or begins with it where it ends with a slash. Flags stand before
    an entry, which end in its length, and in some entries further flags."""
    sought = name if name.endswith(b"/") else name + b"\0"
    at = index.find(sought)
    while at >= 0:
        length = min(index.find(b"\0", at, at + _LONGEST_POINTER) - at, 0xFFF)
        flags = (int.from_bytes(index[at - back : at - back + 2], "big") for back in (2, 4))
        if any(each & 0xFFF == length for each in flags):
            return True
        at = index.find(sought, at + 1)
    return False


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
