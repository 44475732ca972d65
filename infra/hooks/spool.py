"""The spool: hook payloads that could not be handed over, one file each, until the door drains them.

What a delivery looks like, and how a hook leaves one here, stands in `memctl.infra.hook`.

Names in the folder: `<at>-<id>.delivery` waits, `.<id>.part` is being written, `*.damaged` cannot be read and
`*.refused` cannot be kept for what it holds (both are left for a person), and `refused` counts what found no room.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from memctl.domain.events.event import YEAR_9999
from memctl.domain.support.errors import MemctlError
from memctl.infra import hook
from memctl.infra.files import NoRegularFile, opened

MAX_HEADER = 4096
"""Bytes of the line before a payload: names and times, of which each has a bound of its own."""

_IN_THE_PAYLOAD = 1
"""The version of deliveries whose payload says how the client was started."""

UNFINISHED_S = 3600.0
"""A file that was not finished in this time never will be: its hook was killed."""


class Delivery(NamedTuple):
    """One hook delivery. `id` is 32 hex digits, drawn before the first attempt; `at` microseconds since 1970."""

    id: str
    at: int
    agent: str
    event: str
    payload: bytes
    space: str = ""
    """The space that is meant; empty for that of the door."""
    started: str = ""
    """How the client was started (`memctl.infra.transcripts.claude.is_unattended`)."""

    def encode(self) -> bytes:
        size = len(self.payload)
        return hook.header(self.id, self.at, self.agent, self.event, size, self.space, self.started) + self.payload


class Refusals(NamedTuple):
    """Deliveries that the spool had no room for: how many, and when the last was, in microseconds since 1970."""

    deliveries: int
    last_at: int


class BadDelivery(MemctlError):
    """Not a delivery of this version: {why}"""

    why: str


class NewerDelivery(BadDelivery):
    """A delivery of a newer memctl, which will know what to do with it: {why}"""


def decode_header(line: bytes) -> tuple[Delivery, int]:
    """The delivery of a header line, its payload still empty, and the payload's size in bytes.

    Raises: BadDelivery; NewerDelivery where a memctl that was upgraded under the running one may know better.
    """
    if len(line) > MAX_HEADER:
        raise BadDelivery(why=f"a header of {len(line)} bytes; the most is {MAX_HEADER}")
    try:
        header = json.loads(line)
        if type(header["v"]) is int and header["v"] > hook.VERSION:
            raise NewerDelivery(why=f"the memctl that runs knows version {hook.VERSION}")
        version, size, identifier, at = header["v"], header["size"], str(header["id"]), header["at"]
        agent, event, space = str(header["agent"]), str(header.get("event", "")), str(header.get("space", ""))
        started = "" if version == _IN_THE_PAYLOAD else str(header["started"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise BadDelivery(why=f"no header: {type(problem).__name__}") from problem
    if version not in (_IN_THE_PAYLOAD, hook.VERSION):
        raise BadDelivery(why=f"its version is not {hook.VERSION}")
    if type(size) is not int or not 0 <= size <= hook.MAX_PAYLOAD:
        raise BadDelivery(why=f"its size is not a number of bytes up to {hook.MAX_PAYLOAD}")
    if len(identifier) != 32 or not all(c in "0123456789abcdef" for c in identifier):
        raise BadDelivery(why="the id is not 32 hex digits")
    if type(at) is not int or not 0 <= at < YEAR_9999:
        raise BadDelivery(why="its time is not in microseconds between 1970 and the year 9999")
    if space and not hook.is_space(space):
        raise BadDelivery(why="no space is called so")
    return Delivery(identifier, at, agent, event, b"", space, started), size


def spool(folder: Path, delivery: Delivery) -> Path | None:
    """Put a delivery on disk. None where it is too long or the spool is full. Raises: OSError."""
    left = hook.spool_delivery(str(folder), delivery.id, delivery.at, delivery.encode())
    return None if left is None else Path(left)


def refusals(folder: Path) -> Refusals | None:
    """What the spool had no room for; None where there was always room. Who writes the counter is not waited for."""
    try:
        with opened(folder / hook.COUNTER) as file:
            found = Refusals(*hook.read_counter(file.read(256)))
            return found if found.deliveries else None
    except (FileNotFoundError, NotADirectoryError, NoRegularFile):
        return None


def make_counter(folder: Path) -> None:
    """Have the file that counts refusals, whatever becomes of the disk. What cannot be made now may be later."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        hook.make_counter(str(folder))


def spooled(folder: Path) -> list[Path]:
    """Waiting deliveries, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(".delivery"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def spooled_since(folder: Path) -> list[float]:
    """When each waiting delivery came, in seconds since 1970, the oldest first."""
    times = (path.name.partition("-")[0] for path in spooled(folder))
    return sorted(int(each) / 1e6 for each in times if each.isdecimal())


def read_spooled(paths: list[Path]) -> Iterator[tuple[Path, Delivery | BadDelivery | OSError]]:
    """Deliveries of spool files, or what is wrong with a file. A file that is gone by now is passed over."""
    for path in paths:
        try:
            yield path, _read(path)
        except FileNotFoundError:
            continue
        except (BadDelivery, OSError) as problem:
            yield path, problem


def set_aside(path: Path, why: str) -> Path:
    """Take a file out of the drain's way, keeping its bytes as `<name>.<why>`. Raises: OSError."""
    return path.rename(path.with_suffix(f".{why}"))


def sweep(folder: Path) -> None:
    """Remove what hooks began to write and never finished."""
    oldest = time.time() - UNFINISHED_S
    for entry in _entries(folder):
        with contextlib.suppress(OSError):
            if entry.name.endswith(".part") and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)


def _read(path: Path) -> Delivery:
    with opened(path) as file:
        if (held := os.fstat(file.fileno()).st_size) > hook.MAX_PAYLOAD + MAX_HEADER:
            raise BadDelivery(why=f"{held} bytes, more than any delivery has")
        delivery, size = decode_header(file.readline(MAX_HEADER + 1))
        payload = file.read()
    if len(payload) != size:
        raise BadDelivery(why=f"{len(payload)} bytes of {size}")
    return delivery._replace(payload=payload)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except (FileNotFoundError, NotADirectoryError):
        return []
