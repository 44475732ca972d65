"""Graph indexes over dense vectors, built by a process of its own, so that a build never stops a query.

    python -m memctl.infra.vectors.indexing FOLDER

The engine holds the interpreter while it builds (9 s at 20,000 points). So the server copies a collection's files, a
child of low priority indexes the copy (`main`), and the server brings the copy up to what was written meanwhile and
puts it in the shard's place. A build that fails, or whose server ends, leaves the shard as it was.
"""

from __future__ import annotations

import asyncio
import enum
import errno
import logging
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import qdrant_edge as edge

from memctl.infra.heap import return_freed_memory
from memctl.infra.vectors import wire
from memctl.infra.vectors.shards import SHARD, Collection, Collections, described

log = logging.getLogger("memctl.vectors")

LOOK_S = 10.0
"""Between two looks whether a collection has grown enough."""

LEAST = 10_000
"""Points without an index that a full scan is quick enough for (2 ms)."""

PAUSE_S = 600.0
"""After a build that failed."""

REST = 4
"""After a build so many times as long as it took, where few points came meanwhile: mostly none is at work. Where more
than half of a collection has no index the next begins at once: it at least doubles what is indexed, so all the builds
of a collection that grows take about as long as its last two."""

PROCESSOR_S = 3600
"""Of the processor, for a child that indexes; a million points take an eighth of it. On a machine that has other work
to do it may take far longer by the clock."""

WITHIN_S = 6 * 3600.0
"""By the clock, for a child that hangs."""

OUTRUN_LOOK_S = 1.0
"""Between two looks whether a copy is still worth the work."""

NICENESS = 15

BLOCK = 1 << 20


class IndexingOutcome(enum.Enum):
    """How a build ended: in the shard's place, behind too many writes, beside a collection that went, or not at all."""

    INDEXED = "indexed"
    OUTRUN = "outrun"
    DROPPED = "dropped"
    FAILED = "failed"


def due(collection: Collection) -> bool:
    """Whether enough points were written since the last build: ten thousand, and a fifth of all.

    (What the engine calls indexed counts sparse vectors too, and a point need not have a dense one.)
    """
    if not collection.dense or collection.unindexed < LEAST:
        return False
    return collection.unindexed >= collection.shard.info().points_count // 5


async def when_due(collections: Collections) -> None:
    """Build indexes as collections grow, one after the other, until cancelled."""
    while True:
        await asyncio.sleep(LOOK_S)
        for collection in collections:
            # Some may have been dropped while others were built.
            if collections.get(collection.name) is not collection or not due(collection):
                continue
            began, ended = time.monotonic(), IndexingOutcome.FAILED
            try:
                ended = await build(collections, collection)
            except Exception:
                log.exception("collection %s got no index; it is searched without", collection.name)
            took = time.monotonic() - began
            if collections.get(collection.name) is not collection:
                ended = IndexingOutcome.DROPPED
            log.info("the index of collection %s: %s in %.0f s", collection.name, ended.value, took)
            await asyncio.sleep(pause_after(ended, took, collection))


def pause_after(ended: IndexingOutcome, took: float, collection: Collection) -> float:
    """Seconds to leave the machine alone after a build that took so many."""
    match ended:
        case IndexingOutcome.INDEXED:
            return 0.0 if 2 * collection.unindexed > collection.shard.info().points_count else REST * took
        case IndexingOutcome.OUTRUN:
            return took
        case IndexingOutcome.DROPPED:
            return 0.0
        case IndexingOutcome.FAILED:
            return PAUSE_S


async def build(collections: Collections, collection: Collection) -> IndexingOutcome:
    """Index a collection beside its use. Whatever else it ends in, the shard is as it was."""
    copy = collections.beside(collection)
    try:
        async with collection.writing:
            collection.flush()
            collection.since, taken = [], collection.unindexed
            # Nobody writes, so the files stand still; queries go on. (The engine writes into nearly all of them in
            # place: none can be linked instead.)
            await asyncio.to_thread(shutil.copytree, collection.folder, copy, copy_function=_copied)

        def lost() -> IndexingOutcome | None:
            if collections.get(collection.name) is not collection:
                return IndexingOutcome.DROPPED
            return IndexingOutcome.OUTRUN if collection.since is None else None

        if not await _indexed(copy, useful=lambda: lost() is None):
            return lost() or IndexingOutcome.FAILED
        async with collection.writing:
            if (why := lost()) is not None:
                return why
            assert collection.since is not None
            await _brought_up(copy, collection.since)
            collections.replace(collection, copy, collection.unindexed - taken)
        return IndexingOutcome.INDEXED
    finally:
        collection.since = None
        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
        await asyncio.to_thread(return_freed_memory)  # what was written meanwhile, and the shard whose place was taken


def _copied(source: str, target: str) -> None:
    """Copy a file without its holes: the engine lays out far more than it has written, and writers wait meanwhile."""
    with open(source, "rb") as old, open(target, "wb") as new:
        size = os.fstat(old.fileno()).st_size
        new.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError as why:
                if why.errno != errno.ENXIO:
                    raise
                break  # nothing but a hole is left
            end = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            while at < end:
                at += os.pwrite(new.fileno(), os.pread(old.fileno(), min(end - at, BLOCK), at), at)


async def _indexed(folder: Path, useful: Callable[[], bool]) -> bool:
    """Have a child index the copy, while that is `useful`; it ends when this process does. False where it was stopped,
    failed, or took too long."""
    module = (sys.executable, "-P", "-m")
    child = await asyncio.create_subprocess_exec(
        *module, "memctl.infra.embedded.launch", "--", *module, "memctl.infra.vectors.indexing", str(folder)
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            ended = asyncio.ensure_future(child.wait())
            while useful():
                done, _ = await asyncio.wait({ended}, timeout=OUTRUN_LOOK_S)
                if done:
                    if code := ended.result():
                        log.warning("no index was built: its process ended with %d", code)
                    return not code
            return False
    except TimeoutError:
        log.warning("no index was built within %.0f s", WITHIN_S)
        return False
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


async def _brought_up(folder: Path, since: list[edge.UpdateOperation]) -> None:
    """Repeat on the copy what was done since it was taken."""
    shard = edge.EdgeShard.load(str(folder / SHARD))
    try:
        for operation in since:
            shard.update(operation)
            await asyncio.sleep(0)
        shard.flush()
    finally:
        shard.close()


def main() -> int:
    """Index the collection in the folder that is named."""
    folder = Path(sys.argv[1])
    os.nice(NICENESS)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    if most == resource.RLIM_INFINITY or most > PROCESSOR_S:  # only root may raise a limit
        resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    shard = edge.EdgeShard.load(str(folder / SHARD), wire.shard_config(described(folder), indexed=True))
    shard.optimize()
    shard.flush()
    shard.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
