"""Which rules a text may break: one pass of Hyperscan over all of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import tempfile
import threading
from collections.abc import Callable, Collection, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hyperscan

Scan = Callable[[bytes], set[int]]
"""Indices of the patterns that occur in some bytes. Safe to call from several threads."""


def scanner(
    patterns: Sequence[str],
    compiled: Sequence[Callable[[bytes], object]],
    cache: Path | None = None,
    of_characters: Collection[int] = (),
) -> Scan:
    """A scan for patterns.

    `compiled` are their searches by RE2, for those that Hyperscan does not take (look-around). Those `of_characters`
    are read over characters, the others over bytes.

    Compiling takes Hyperscan about two seconds of CPU; in `cache`, a folder, the result is kept for the next process.
    """
    by_letters = hyperscan.HS_FLAG_UTF8 | hyperscan.HS_FLAG_UCP
    flagged = [(pattern, by_letters if n in of_characters else 0) for n, pattern in enumerate(patterns)]
    try:
        return _hyperscan(flagged, cache)
    except hyperscan.HyperscanError:
        taken = [index for index, each in enumerate(flagged) if _takes(each)]
        others = [(index, compiled[index]) for index in range(len(patterns)) if index not in set(taken)]
        scan = _hyperscan([flagged[index] for index in taken], cache)
        return lambda data: {taken[n] for n in scan(data)} | {index for index, search in others if search(data)}


Flagged = tuple[str, int]
"""A pattern, and Hyperscan's flags for it."""


def _takes(pattern: Flagged) -> bool:
    try:
        _hyperscan([pattern], None)
    except hyperscan.HyperscanError:
        return False
    return True


def _hyperscan(patterns: Sequence[Flagged], cache: Path | None) -> Scan:
    def compiled() -> Any:
        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[pattern.encode() for pattern, _ in patterns],
            ids=list(range(len(patterns))),
            elements=len(patterns),
            flags=[hyperscan.HS_FLAG_SINGLEMATCH | flags for _, flags in patterns],
        )
        return database

    database = _cached(patterns, cache, compiled) if cache else compiled()
    local = threading.local()

    def scan(data: bytes) -> set[int]:
        found: set[int] = set()
        # A scratch space serves one scan at a time.
        scratch = getattr(local, "scratch", None)
        if scratch is None:
            scratch = local.scratch = hyperscan.Scratch(database)
        database.scan(data, match_event_handler=_note, context=found, scratch=scratch)
        return found

    return scan


def _note(index: int, start: int, end: int, flags: int, found: set[int]) -> None:
    found.add(index)


def _cached(patterns: Sequence[Flagged], folder: Path, compiled: Callable[[], Any]) -> Any:
    """The database as an earlier process left it, if it was made of the same patterns by the same Hyperscan here."""
    made_of = "\n".join([version("hyperscan"), platform.platform(), platform.processor(), *map(str, patterns)])
    file = folder / f"rules-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.hsdb"
    try:
        stored = file.read_bytes()
        if hashlib.sha256(stored[32:]).digest() == stored[:32]:
            return hyperscan.loadb(stored[32:], hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.HyperscanError):
        pass
    database = compiled()
    data = hyperscan.dumpb(database)
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as written:  # created 0600
            written.write(hashlib.sha256(data).digest() + data)
        os.replace(written.name, file)
    return database
