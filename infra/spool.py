"""The spool: hook payloads that could not be handed over, one file each, until the door drains them.

Standard library only: hooks import this. A delivery is a header line (JSON: `v`, `id`, `at` in microseconds, `agent`,
`event`, `size` in bytes) and then the raw payload; the same bytes travel over the door's socket.

Names in the folder: `<at>-<id>.delivery` waits, `.<id>.part` is being written, `*.damaged` cannot be read and
`*.refused` cannot be kept for what it holds (both are left for a person), and `refused` counts what found no room.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = 1
MAX_PAYLOAD = 64 * 1024 * 1024
MAX_HEADER = 4096
MOST_FILES = 10_000
MOST_BYTES = 512 * 1024 * 1024
"""The spool is full with either; what was set aside counts, for it takes the same room."""

UNFINISHED_S = 3600.0
"""A file that was not finished in this time never will be: its hook was killed."""

_YEAR_9999 = 253_370_764_800_000_000
_COUNTER = "refused"


class Delivery(NamedTuple):
    """One hook delivery. `id` is 32 hex digits, drawn before the first attempt; `at` microseconds since 1970."""

    id: str
    at: int
    agent: str
    event: str
    payload: bytes

    def encode(self) -> bytes:
        header = {
            "v": VERSION,
            "id": self.id,
            "at": self.at,
            "agent": self.agent,
            "event": self.event,
            "size": len(self.payload),
        }
        return json.dumps(header).encode() + b"\n" + self.payload


class Refusals(NamedTuple):
    """Deliveries that the spool had no room for: how many, and when the last was, in microseconds since 1970."""

    deliveries: int
    last_at: int


class BadDelivery(ValueError):
    """The bytes are not a delivery of this version; the message says what is wrong with them."""


def decode_header(line: bytes) -> tuple[Delivery, int]:
    """The delivery of a header line, its payload still empty, and the payload's size in bytes. Raises: BadDelivery."""
    if len(line) > MAX_HEADER:
        raise BadDelivery(f"a header of {len(line)} bytes; the most is {MAX_HEADER}")
    try:
        header = json.loads(line)
        version, size, identifier, at = header["v"], header["size"], str(header["id"]), header["at"]
        agent, event = str(header["agent"]), str(header.get("event", ""))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise BadDelivery(f"no header: {type(problem).__name__}") from problem
    if version != VERSION:
        raise BadDelivery(f"its version is not {VERSION}")
    if type(size) is not int or not 0 <= size <= MAX_PAYLOAD:
        raise BadDelivery(f"its size is not a number of bytes up to {MAX_PAYLOAD}")
    if len(identifier) != 32 or not all(c in "0123456789abcdef" for c in identifier):
        raise BadDelivery("the id is not 32 hex digits")
    if type(at) is not int or not 0 <= at < _YEAR_9999:
        raise BadDelivery("its time is not in microseconds between 1970 and the year 9999")
    return Delivery(identifier, at, agent, event, b""), size


def spool(folder: Path, delivery: Delivery) -> Path | None:
    """Put a delivery on disk: written whole, synced, then named.

    None where the payload is longer than MAX_PAYLOAD or the spool is full: then only the refusal is counted. Hooks
    that come at the same moment may each find the last free place. Raises: OSError, counted too where that is possible.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        data = delivery.encode()
        if len(delivery.payload) > MAX_PAYLOAD or not _has_room(folder, len(data)):
            _count_refusal(folder)
            return None
        return _write(folder, f"{delivery.at:020d}-{delivery.id}.delivery", folder / f".{delivery.id}.part", data)
    except OSError:
        with contextlib.suppress(OSError):
            _count_refusal(folder)
        raise


def refusals(folder: Path) -> Refusals | None:
    """What the spool had no room for; None where there was always room."""
    try:
        with open(folder / _COUNTER, "rb") as file:
            _lock(file.fileno(), shared=True)
            return _read_counter(file.read())
    except FileNotFoundError:
        return None


def spooled(folder: Path) -> list[Path]:
    """Waiting deliveries, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(".delivery"))
    except FileNotFoundError:
        return []


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


def _write(folder: Path, name: str, unfinished: Path, data: bytes) -> Path:
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        final = unfinished.rename(folder / name)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return final


def _read(path: Path) -> Delivery:
    # Not blocking: what bears the name may be a pipe, and the door would wait for its other end.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path.name} is not a file")
        if found.st_size > MAX_PAYLOAD + MAX_HEADER:
            raise BadDelivery(f"{found.st_size} bytes, more than any delivery has")
        delivery, size = decode_header(file.readline(MAX_HEADER + 1))
        payload = file.read()
    if len(payload) != size:
        raise BadDelivery(f"{len(payload)} bytes of {size}")
    return delivery._replace(payload=payload)


def _has_room(folder: Path, size: int) -> bool:
    files = 0
    for entry in _entries(folder):
        if entry.name == _COUNTER:
            continue
        files += 1
        with contextlib.suppress(FileNotFoundError):  # drained meanwhile
            size += entry.stat(follow_symlinks=False).st_size
    return files < MOST_FILES and size <= MOST_BYTES


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []


def _count_refusal(folder: Path) -> None:
    handle = os.open(folder / _COUNTER, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle)
        known = _read_counter(os.read(handle, 256))
        # Padded to one length, so that rewriting it in place needs no room on a disk that has none.
        text = json.dumps({"count": known.deliveries + 1, "last_at": time.time_ns() // 1000})
        os.pwrite(handle, f"{text:<79}\n".encode(), 0)
    finally:
        os.close(handle)


def _read_counter(data: bytes) -> Refusals:
    try:
        found = json.loads(data)
        return Refusals(int(found["count"]), int(found["last_at"]))
    except (ValueError, KeyError, TypeError):  # new, or torn: from here on the count is a lower bound
        return Refusals(0, 0)


def _lock(handle: int, *, shared: bool = False) -> None:
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
