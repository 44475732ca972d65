"""The spool: hook payloads that could not be handed over, one file each, until the door drains them.

Standard library only: hooks import this. A delivery is a header line (JSON: `v`, `id`, `at` in microseconds, `agent`,
`event`, `size` in bytes) and then the raw payload; the same bytes travel over the door's socket.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = 1
MAX_PAYLOAD = 64 * 1024 * 1024


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


class BadDelivery(ValueError):
    """The bytes are not a delivery of this version; the message says what is wrong with them."""


def decode_header(line: bytes) -> tuple[Delivery, int]:
    """The delivery of a header line, its payload still empty, and the payload's size in bytes. Raises: BadDelivery."""
    try:
        header = json.loads(line)
        if header["v"] != VERSION:
            raise BadDelivery(f"version {header['v']!r} is not {VERSION}")
        size, identifier = int(header["size"]), str(header["id"])
        if not 0 <= size <= MAX_PAYLOAD:
            raise BadDelivery(f"a payload of {size} bytes; the most is {MAX_PAYLOAD}")
        if len(identifier) != 32 or not all(c in "0123456789abcdef" for c in identifier):
            raise BadDelivery("the id is not 32 hex digits")
        return Delivery(identifier, int(header["at"]), str(header["agent"]), str(header.get("event", "")), b""), size
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise problem if isinstance(problem, BadDelivery) else BadDelivery(f"no header: {problem}") from problem


def spool(folder: Path, delivery: Delivery) -> Path:
    """Put a delivery on disk: written whole, synced, then named. Raises: OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    final = folder / f"{delivery.at:020d}-{delivery.id}.delivery"
    unfinished = folder / f".{delivery.id}.part"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(delivery.encode())
        file.flush()
        os.fsync(file.fileno())
    os.rename(unfinished, final)
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return final


def spooled(folder: Path) -> list[Path]:
    """Waiting deliveries, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if path.name.endswith(".delivery"))
    except FileNotFoundError:
        return []


def read_spooled(paths: list[Path]) -> Iterator[tuple[Path, Delivery | BadDelivery]]:
    """Deliveries of spool files, or what is wrong with a file. A file that is gone by now is passed over."""
    for path in paths:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue
        line, _, payload = data.partition(b"\n")
        try:
            delivery, size = decode_header(line)
            if len(payload) != size:
                raise BadDelivery(f"{len(payload)} bytes of {size}")
            yield path, delivery._replace(payload=payload)
        except BadDelivery as problem:
            yield path, problem
