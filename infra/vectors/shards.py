"""Collections on disk: one folder each, holding a shard of Qdrant's own engine and the description it was created by.

    DIR/lock                        held while a server owns DIR
    DIR/collections/NAME/           collection.json, checkpoint.json, shard/ (and shard.new/, about to replace it)
    DIR/damaged/NAME.TIME/          what could not be opened, kept for a person to look at
    DIR/tmp/                        half made and half deleted, emptied at start

A collection comes into being by one rename out of `tmp` and goes by one rename back into it, so that a process killed
at any moment leaves it whole or absent. The engine's write-ahead log makes every applied operation survive kill -9;
only a power cut may lose what came after the last flush (the engine leaves syncing to it), and then the caller's
comparison of ids and hashes finds the gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import orjson
import qdrant_edge as edge

from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.infra.vectors.wire import Description

log = logging.getLogger("memctl.vectors")

NAME = patterns.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")

_FORMAT = 1
SHARD = "shard"
_INDEXED = "shard.new"  # about to take the shard's place
_INDEX = 2  # how indexes are built; one that was built otherwise is rebuilt
_DESCRIPTION, _CHECKPOINT = "collection.json", "checkpoint.json"
MOST_SINCE = 2_000  # operations, of 64 points at most, that are kept for a copy: some 400 MB
# Ids, vectors and payloads, which only ever grow in a segment that takes writes. (Its journals come and go.)
_GROWING = patterns.compile(r"mutable_id_tracker\..+|chunk_\d+\.mmap|page_\d+\.dat")
# What the engine says when the machine, not the shard, is at fault. Such a shard is intact and must not be set aside.
_MACHINE_AT_FAULT = patterns.compile(
    r"No space left|Too many open files|Permission denied|Cannot allocate memory|Read-only file system"
    r"|WouldBlock|os error (?:1|12|13|23|24|28|30|122)\b"
)


class FolderInUse(MemctlError):
    """Another vector server owns {folder}."""

    hint = "Stop that server first, or give another folder."
    folder: Path


class CannotOpen(MemctlError):
    """The collection {name} cannot be opened now, though nothing says that it is damaged: {reason}"""

    hint = "Free disk space, raise the limit of open files, or mend the permissions, and start again."
    name: str
    reason: str


class _Damaged(Exception):
    """The files of a collection are not what was last known of them."""


@dataclass(slots=True)
class Collection:
    """An open shard. `dense` maps vector names to dimensions ("" is the unnamed vector); `writing` is held by writers.

    `unflushed` counts the points written since the last flush, `unindexed` those written since the last build of an
    index, `written_at` is the monotonic time of the last write.
    `since` holds what was done since a copy was taken, while there is one to be brought up.
    """

    name: str
    folder: Path
    description: Description
    dense: dict[str, int]
    sparse: frozenset[str]
    shard: edge.EdgeShard
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    unflushed: int = 0
    unindexed: int = 0
    written_at: float = 0.0
    since: list[edge.UpdateOperation] | None = None

    def apply(self, operation: edge.UpdateOperation, points: int = 1) -> None:
        """Apply one operation; when this returns, the engine's log holds it."""
        self.unflushed += points
        self.unindexed += points
        self.written_at = time.monotonic()
        self.shard.update(operation)
        if self.since is not None:
            self.since.append(operation)
            if len(self.since) > MOST_SINCE:  # the copy is too far behind to be worth it
                self.since = None

    def flush(self) -> None:
        """Bring segments to disk, shorten the engine's log, and note what the files must at least hold from now on."""
        self.unflushed = 0
        self.shard.flush()
        checkpoint = {
            "format": _FORMAT, "sizes": _sizes(self.folder / SHARD), "unindexed": self.unindexed, "index": _INDEX
        }  # fmt: skip
        _write_atomically(self.folder / _CHECKPOINT, orjson.dumps(checkpoint))

    def close(self) -> None:
        self.flush()
        self.shard.close()


class Collections:
    """All collections of one folder. Opening it takes the lock, clears leftovers and sets damaged collections aside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._live, self._damaged, self._tmp = (folder / part for part in ("collections", "damaged", "tmp"))
        self._open: dict[str, Collection] = {}
        for path in (folder, self._live, self._damaged):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _own(folder)
        shutil.rmtree(self._tmp, ignore_errors=True)
        self._tmp.mkdir(mode=0o700, exist_ok=True)
        for path in sorted(self._live.iterdir()):
            try:
                self._open[path.name] = _load(path)
            except _Damaged as why:
                self._set_aside(path, str(why))

    def names(self) -> list[str]:
        return sorted(self._open)

    def __iter__(self) -> Iterator[Collection]:
        return iter(list(self._open.values()))

    def get(self, name: str) -> Collection | None:
        return self._open.get(name)

    def damaged(self) -> list[str]:
        """Names of the folders that were set aside, `NAME.TIME`, oldest first by name."""
        return sorted(path.name for path in self._damaged.iterdir())

    def create(self, name: str, description: Description, config: edge.EdgeConfig) -> Collection:
        """Make a collection; `description` is what was asked for, kept so that it can be returned."""
        made = self._tmp / f"{name}.{uuid.uuid4().hex}"
        (made / SHARD).mkdir(mode=0o700, parents=True)
        shard = edge.EdgeShard.create(str(made / SHARD), config)
        shard.flush()
        shard.close()
        (made / _DESCRIPTION).write_bytes(msgspec.json.encode({"format": _FORMAT, **msgspec.to_builtins(description)}))
        _sync_tree(made)
        path = self._live / name
        made.rename(path)
        _sync(self._live)
        self._open[name] = _load(path)
        return self._open[name]

    def remove(self, name: str) -> Path:
        """Take a collection out of service for good; the folder returned is garbage for the caller to delete."""
        collection = self._open.pop(name)
        with contextlib.suppress(Exception):  # what cannot be closed properly is deleted all the same
            collection.shard.close()
        gone = self._tmp / f"{name}.{uuid.uuid4().hex}"
        collection.folder.rename(gone)
        _sync(self._live)
        return gone

    def beside(self, collection: Collection) -> Path:
        """Where a copy of a collection may stand; emptied at start."""
        return self._tmp / f"{collection.name}.{uuid.uuid4().hex}"

    def replace(self, collection: Collection, copy: Path, unindexed: int) -> None:
        """Put the shard of a copy, which holds all that the collection's own does, in its place; so many of its points
        were written since it was indexed. A process killed in between leaves one of the two. Where the new one cannot
        be opened, the old one stays in service, or the collection is given up."""
        old, new, gone = collection.folder / SHARD, collection.folder / _INDEXED, self.beside(collection)
        _sync_tree(copy / SHARD)
        # The new shard's files are others than the checkpoint names.
        (collection.folder / _CHECKPOINT).unlink(missing_ok=True)
        (copy / SHARD).rename(new)
        collection.shard.close()
        try:
            old.rename(gone)
            new.rename(old)
            _sync(collection.folder)
            collection.shard = edge.EdgeShard.load(str(old))
        except BaseException:  # a panic of the engine is one
            self._put_back(collection, gone)
            raise
        collection.unindexed = unindexed
        collection.flush()
        shutil.rmtree(gone, ignore_errors=True)

    def _put_back(self, collection: Collection, gone: Path) -> None:
        old = collection.folder / SHARD
        try:
            if gone.exists():
                shutil.rmtree(old, ignore_errors=True)
                gone.rename(old)
            shutil.rmtree(collection.folder / _INDEXED, ignore_errors=True)
            collection.shard = edge.EdgeShard.load(str(old))
        except BaseException as why:
            self.give_up(collection, f"it was closed, and cannot be opened again: {why}")

    def give_up(self, collection: Collection, why: str) -> None:
        """Set aside an open collection whose engine broke; it stays open and unused until the process ends."""
        if self._open.pop(collection.name, None) is not None:
            self._set_aside(collection.folder, why)

    def close(self) -> None:
        """Flush and close everything, each collection whatever happened to the others, and give the lock back."""
        for collection in self:
            try:
                collection.close()
            except Exception:
                log.exception(
                    "collection %s was not closed cleanly; its log is replayed at the next start", collection.name
                )
        self._open.clear()
        os.close(self._lock)

    def _set_aside(self, path: Path, why: str) -> None:
        target = self._damaged / f"{path.name}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
        while target.exists():
            target = target.with_name(target.name + "+")
        path.rename(target)
        _sync(self._live)
        _sync(self._damaged)
        log.error("collection %s is damaged and was set aside as %s: %s", path.name, target, why)


def _load(path: Path) -> Collection:
    """Open one collection's folder, or raise `_Damaged`, or `CannotOpen` where the machine is at fault."""
    try:
        _finish_replacing(path)
        description = described(path)
        dense = {name: params.size for name, params in description.dense.items()}
        sparse = frozenset(description.sparse)
        unindexed = _checked(path)
        shard = edge.EdgeShard.load(str(path / SHARD))
    except (KeyError, TypeError, ValueError, AttributeError, FileNotFoundError, NotADirectoryError) as why:
        raise _Damaged(f"{type(why).__name__}: {why}") from why
    except OSError as why:
        raise CannotOpen(name=path.name, reason=str(why)) from why
    except _Damaged:
        raise
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as why:  # the engine raises bare Exception, and a panic as a BaseException
        if _MACHINE_AT_FAULT.search(str(why)):
            raise CannotOpen(name=path.name, reason=str(why)) from why
        raise _Damaged(str(why)) from why
    found = Collection(path.name, path, description, dense, sparse, shard)
    found.unindexed = shard.info().points_count if unindexed is None else unindexed
    return found


def described(folder: Path) -> Description:
    """What a collection's folder says it was created by."""
    return msgspec.json.decode((folder / _DESCRIPTION).read_bytes(), type=Description)


def _finish_replacing(path: Path) -> None:
    new = path / _INDEXED
    if not new.exists():
        return
    if (path / SHARD).exists():
        shutil.rmtree(new)
    else:
        new.rename(path / SHARD)


def _checked(path: Path) -> int | None:
    """Compare with the last checkpoint: the engine opens a shard whose files were cut short or deleted as if empty.

    Returns how many points had no index then; None where that is not known.
    """
    if not any((path / SHARD / "segments").glob("*/segment.json")):
        raise _Damaged("the shard holds no segment")
    try:
        checkpoint = orjson.loads((path / _CHECKPOINT).read_bytes())
    except FileNotFoundError:  # killed before its first flush
        return None
    sizes = _sizes(path / SHARD)
    for name, size in checkpoint["sizes"].items():
        if sizes.get(name, -1) < size:
            raise _Damaged(f"{name} is missing or shorter than its {size} bytes at the last checkpoint")
    unindexed: int | None = checkpoint.get("unindexed")
    return unindexed if checkpoint.get("index") == _INDEX else None


def _sizes(shard: Path) -> dict[str, int]:
    files = (file for file in (shard / "segments").rglob("*") if _GROWING.fullmatch(file.name))
    return {str(file.relative_to(shard)): file.stat().st_size for file in files}


def _own(folder: Path) -> int:
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as why:
        os.close(descriptor)
        raise FolderInUse(folder=folder) from why
    return descriptor


def _write_atomically(path: Path, content: bytes) -> None:
    new = path.with_name(path.name + ".new")
    with open(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def _sync_tree(root: Path) -> None:
    for folder, _, files in os.walk(root):
        for name in files:
            _sync(Path(folder, name))
        _sync(Path(folder))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
