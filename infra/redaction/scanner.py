"""Which rules a text may break: one pass of Hyperscan over memctl's own, and of RE2 over each of a user's."""

import contextlib
import fcntl
import hashlib
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import hyperscan

from memctl.domain.support.patterns import Pattern
from memctl.infra.heap import return_freed_memory

PATIENCE = 30.0
"""Seconds that a process waits for another one to compile, before it compiles by itself."""

Scan = Callable[[bytes], set[int]]
"""Indices of the patterns that occur in some bytes. Safe to call from several threads."""


def scanner(
    patterns: Sequence[str],
    of_characters: Collection[int] = (),
    *,
    shared: bool = False,
    cache: Path | None = None,
) -> Scan:
    """A scan for patterns that Hyperscan takes.

    Those `of_characters` are read over characters, the others over bytes. Compiling takes Hyperscan some seconds of
    CPU: what is `shared` is compiled once in a process, and kept in `cache`, a folder, for the next one.
    """
    by_letters = hyperscan.HS_FLAG_UTF8 | hyperscan.HS_FLAG_UCP
    flagged = tuple((pattern, by_letters if n in of_characters else 0) for n, pattern in enumerate(patterns))
    database = _shared(flagged, cache) if shared else _compiled(flagged)
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


def filtered(compiled: Sequence[Pattern[str]]) -> Scan:
    """A scan for patterns over characters by RE2, one by one. Each is compiled when it is first used, so a user's new
    pattern delays no process."""

    def scan(data: bytes) -> set[int]:
        text = data.decode("utf-8", "surrogateescape")
        return {index for index, pattern in enumerate(compiled) if pattern.search(text)}

    return scan


Flagged = tuple[str, int]
"""A pattern, and Hyperscan's flags for it."""


def _compiled(patterns: tuple[Flagged, ...]) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(
        expressions=[pattern.encode() for pattern, _ in patterns],
        ids=list(range(len(patterns))),
        elements=len(patterns),
        flags=[hyperscan.HS_FLAG_SINGLEMATCH | flags for _, flags in patterns],
    )
    return database


def _note(index: int, start: int, end: int, flags: int, found: set[int]) -> None:
    found.add(index)


_once = lru_cache(maxsize=4)(_compiled)


def _shared(patterns: tuple[Flagged, ...], folder: Path | None) -> Any:
    """The database as an earlier process left it, if it was made of the same patterns by the same Hyperscan here. Of
    processes that start together one compiles, and the others wait for it."""
    if folder is None:
        return _once(patterns)
    made_of = "\n".join([version("hyperscan"), platform.platform(), platform.processor(), *map(str, patterns)])
    file = folder / f"rules-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}.hsdb"
    if (database := _loaded(file)) is not None:
        return database
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time only
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder / "rules.lock"):
            if (database := _loaded(file)) is not None:
                return database
            data = hyperscan.dumpb(_once(patterns))
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as written:  # created 0600
                written.write(hashlib.sha256(data).digest() + data)
            os.replace(written.name, file)
    database = _once(patterns)
    return_freed_memory()  # what compiling took: 30 MB
    return database


def _loaded(file: Path) -> Any:
    """The database that a file holds; None where there is none, or none that is whole."""
    try:
        stored = file.read_bytes()
        if hashlib.sha256(stored[32:]).digest() == stored[:32]:
            return hyperscan.loadb(stored[32:], hyperscan.HS_MODE_BLOCK)
    except (OSError, hyperscan.HyperscanError):
        pass
    return None


@contextlib.contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold a lock, for which a process waits so long as compiling may take."""
    with open(file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as handle:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.05)
        yield
