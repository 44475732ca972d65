"""Reading what may be no file: a pipe, whose opening would wait for somebody who writes, or a device without an end."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


class NoRegularFile(OSError):
    """What bears the name is a pipe, a device or a folder."""


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A regular file, to be read; it may be reached by a link. Raises: NoRegularFile, OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NoRegularFile(0, "it is not a file", str(path))
    with os.fdopen(handle, "rb") as file:
        yield file


def of_a_stranger(path: Path) -> bool:
    """Whether something belongs neither to root, nor to this user, nor to whose folder it lies in: another user of the
    machine put it into a folder that is open to all. So it counts where nobody can look."""
    try:
        return path.lstat().st_uid not in (0, os.geteuid(), path.parent.stat().st_uid)
    except OSError:
        return True


def read_file(path: Path, most: int = 1 << 20) -> bytes:
    """The first bytes of a regular file, at most so many. Raises: NoRegularFile, OSError."""
    with opened(path) as file:
        return file.read(most)
