"""Where one instance keeps its things: a data directory, and a short folder for its sockets."""

import contextlib
import os
import stat
import string
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from memctl.domain.support.errors import MemctlError
from memctl.infra.hook import API_FILE, DOOR_FILE

_PLAIN = frozenset(string.ascii_letters + string.digits + "_./-")
_LONGEST = 107 - len("/supervisor.sock.1234567")
"""Longest socket folder, in bytes: unix(7) ends a socket's path at 107, and this is the longest name used."""


_SHARED = Path("/tmp")  # noqa: S108  # TMPDIR may be long, and differ between processes


def default_data_dir() -> Path:
    import platformdirs

    return platformdirs.user_data_path("memctl", appauthor=False)


class FolderNotPrivate(MemctlError):
    """{folder} cannot be used: {why}."""

    def __init__(self, folder: Path, why: str) -> None:
        super().__init__(folder=folder, why=why, hint="remove it, or let MEMCTL_DATA_DIR name another data directory")


@dataclass(frozen=True)
class Folders:
    """The files of the instance that lives in `data`, an absolute path."""

    data: Path

    @property
    def run(self) -> Path:
        return self.data / "run"

    @property
    def log(self) -> Path:
        return self.data / "log"

    @property
    def postgres(self) -> Path:
        return self.data / "postgres"

    @property
    def valkey(self) -> Path:
        return self.data / "valkey"

    @property
    def vectors(self) -> Path:
        return self.data / "vectors"

    @property
    def spool(self) -> Path:
        return self.data / "spool"

    @property
    def door_file(self) -> Path:
        """Where the running instance's door listens, as a hook reads it."""
        return self.run / DOOR_FILE

    @property
    def api_file(self) -> Path:
        """The running instance's API, as a hook reads it: its socket, and its token."""
        return self.run / API_FILE

    @property
    def endpoints(self) -> Path:
        """What the running instance answers on; see `memctl.infra.endpoints`."""
        return self.run / "endpoints.json"

    @property
    def keys(self) -> Path:
        """Tokens and ports, kept from one `up` to the next."""
        return self.data / "keys.json"

    @property
    def lock(self) -> Path:
        """Held while an `up` or `down` is at work. It stays: removing a lock file lets two hold it."""
        return self.data / "lock"

    @property
    def supervisor_record(self) -> Path:
        return self.run / "supervisor.pid"

    @property
    def sockets(self) -> Path:
        return socket_folder(self.run)

    def record_of(self, program: str) -> Path:
        return self.run / f"{program}.pid"

    def make(self) -> None:
        """Create what is missing, private to us. Raises FolderNotPrivate where another user owns the place."""
        for folder in (self.data, self.run, self.log):
            make_private(folder)
        make_socket_folder(self.run)


def socket_folder(beside: Path) -> Path:
    """Where servers that belong to the folder `beside` listen: the same place for everyone who asks.

    Inside it, where only we come in and nobody tidies up. /tmp, under a name that no other folder has, where the path
    is too long for a socket or has characters that URLs and configurations of servers do not agree on. Where another
    user has taken that name, a link inside leads to a folder whose name nobody can guess (`make_socket_folder`). Not
    the user's runtime folder: that goes away when they log out, and the servers stay.
    """
    inside = beside / "sockets"
    if inside.is_symlink():
        return inside.readlink()
    if len(os.fsencode(inside)) <= _LONGEST and frozenset(str(inside)) <= _PLAIN:
        return inside
    name = sha256(os.fsencode(os.path.realpath(beside))).hexdigest()[:16]
    return _SHARED / f"memctl-{os.geteuid()}-{name}"


def make_socket_folder(beside: Path) -> Path:
    """Create the folder that `socket_folder` names. Raises FolderNotPrivate."""
    folder = socket_folder(beside)
    try:
        make_private(folder)
    except FolderNotPrivate:
        if folder.parent != _SHARED:
            raise
        folder = Path(tempfile.mkdtemp(prefix=f"memctl-{os.geteuid()}-", dir=_SHARED))
        link = beside / "sockets"
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
    return folder


def make_private(folder: Path) -> None:
    """Create `folder` with mode 0700, or check that it is a folder of ours and close it to others.

    Folders above it are created the same way where they are missing and never changed where they exist.
    """
    try:
        _make_missing(folder)
        found = folder.lstat()
    except FileExistsError:
        raise FolderNotPrivate(folder, "it is not a folder") from None
    except OSError as failure:
        raise FolderNotPrivate(folder, failure.strerror or str(failure)) from failure
    if stat.S_ISLNK(found.st_mode) and folder.parent.stat().st_mode & stat.S_IWOTH:
        raise FolderNotPrivate(folder, "it is a symbolic link in a folder that everyone may write to")
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise FolderNotPrivate(folder, "it is not a folder")
    if found.st_uid != os.geteuid():
        raise FolderNotPrivate(folder, f"it belongs to the user with number {found.st_uid}")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)


def open_log(file: Path) -> IO[bytes]:
    """A log to append to, which only we may read."""
    return open(file, "ab", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600))


@contextlib.contextmanager
def open_private(file: Path) -> Iterator[IO[bytes]]:
    """A file to write that only we may read; it takes its name once it is whole and on disk. Several may at once."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", suffix=".part", dir=file.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as written:
            yield written
            written.flush()
            os.fsync(written.fileno())
        part.replace(file)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def write_private(file: Path, text: str) -> None:
    """Write a file that only we may read, whole or not at all, and on disk once this returns."""
    with open_private(file) as written:
        written.write(text.encode())


def sync_folder(folder: Path) -> None:
    """Make renames inside `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_missing(folder: Path) -> None:
    missing = []
    while not folder.is_dir() and not folder.is_symlink():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(mode=0o700, exist_ok=True)
