"""The outbox: makes Qdrant agree with `vector_points`. Sparse vectors at once, dense ones as they are embedded.

A queued point is taken off only if its version is still the one that was written, so a change in between is written
again, and a late write cannot bring back what is gone. Only one process at a time does this for a generation.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memctl.domain.text import sparse
from memctl.infra import generations, outbox, readmodels
from memctl.infra.database import Connection, connect
from memctl.infra.log.spaces import installation, space_names
from memctl.infra.vectors import VectorStoreUnavailable, drift, store
from memctl.infra.vectors.drift import Drift
from memctl.projections.vector_points import VectorPoint

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from memctl.infra.embedders import Embedder

log = logging.getLogger("memctl.outbox")

DIMENSIONS = 384
"""Of the dense vectors, where no embedder says otherwise."""

EMBEDDER_NICENESS = 15
"""Of the thread that embeds, and those it starts."""

SYNC_BATCH = 256
EMBED_BATCH = 8

SCRUB_EVERY_S = 3600.0
SCRUB_PAUSE_S = 0.2
"""Between two stretches: a scan of 100,000 points takes about a minute, and leaves the vector server to its queries."""

WRITING, EMBEDDING = 0x6F757462, 0x656D6264  # "outb", "embd"
"""Advisory locks, each with a generation: who writes its points, and who embeds them."""


class Outbox:
    """Writes one generation's queued points to its collection."""

    def __init__(
        self, connection: Connection, client: QdrantClient, generation: int, model: str, dimensions: int = DIMENSIONS
    ) -> None:
        self._connection = connection
        self._client = client
        self._generation = generation
        self._model = model
        self._points = outbox.points()
        self.collection = outbox.collection_of(connection, generation)
        if store.ensure_collection(client, self.collection, dimensions):
            outbox.queue_all(connection, generation)

    def sync(self) -> int:
        """Write one batch of queued points, with the dense vectors that the cache holds; returns how many."""
        queued = outbox.take(self._connection, self._generation, dense=False, limit=SYNC_BATCH)
        if not queued:
            return 0
        keys = [q.key for q in queued]
        rows = readmodels.load(self._connection, self._points, self._generation, keys)
        names = space_names(self._connection)
        cached = self.cached([row.dense_hash for row in rows.values()])
        store.upsert(
            self._client,
            self.collection,
            [
                _point(outbox.stored_id(key), row, names[key[0]], cached.get(row.dense_hash))
                for key, row in rows.items()
            ],
        )
        gone = [outbox.stored_id(key) for key in keys if key not in rows]
        if gone:
            store.delete(self._client, self.collection, gone)
        waits = [q for q in queued if q.key in rows and self._model and rows[q.key].dense_hash not in cached]
        outbox.await_dense(self._connection, self._generation, waits)
        outbox.done(self._connection, self._generation, [q for q in queued if q not in waits])
        return len(queued)

    def embed(self, embedder: Embedder) -> int:
        """Embed one small batch of points that wait for a dense vector, newest first; returns how many."""
        queued = outbox.take(self._connection, self._generation, dense=True, limit=EMBED_BATCH)
        if not queued:
            return 0
        rows = readmodels.load(self._connection, self._points, self._generation, [q.key for q in queued])
        cached = self.cached([row.dense_hash for row in rows.values()])
        missing = {row.dense_hash: row.dense_text for row in rows.values() if row.dense_hash not in cached}
        if missing:
            vectors = embedder.embed_passages(list(missing.values()))
            fresh = {key: _bytes(vector) for key, vector in zip(missing, vectors, strict=True)}
            outbox.remember(self._connection, self._generation, list(rows), self._model, fresh)
            cached.update({key: _floats(vector) for key, vector in fresh.items()})
        dense = {outbox.stored_id(key): cached[row.dense_hash] for key, row in rows.items()}
        store.set_dense(self._client, self.collection, dense)
        # The writer does not wait for the embedder: what it wrote meanwhile, we have just overwritten.
        outbox.requeue_others(self._connection, self._generation, queued)
        outbox.done(self._connection, self._generation, queued)
        return len(queued)

    def backlog(self) -> tuple[int, int]:
        """Points to be written, and points that wait for their dense vector."""
        return outbox.backlog(self._connection, self._generation)

    def cached(self, hashes: Sequence[str]) -> dict[str, list[float]]:
        """Dense vectors by dense hash, as far as the cache holds them."""
        if not self._model or not hashes:
            return {}
        found = self._connection.execute(
            "SELECT text_hash, vector FROM memctl.embeddings WHERE model = %b AND text_hash = ANY(%b::bytea[])",
            [self._model, [bytes.fromhex(h) for h in hashes]],
            binary=True,
        )
        return {bytes(row[0]).hex(): _floats(row[1]) for row in found}


def drop_leftovers(connection: Connection, client: QdrantClient) -> None:
    """Drop the collections of generations that were dropped while Qdrant was out of reach."""
    gone = {outbox.collection_of(connection, g) for g, stage, _ in generations.generations(connection, "dropped")}
    for name in store.list_collections(client, prefix=f"memctl-{installation(connection)}-g"):
        if name in gone:
            store.drop_collection(client, name)


@contextmanager
def only_one(connection: Connection, what: int, generation: int) -> Iterator[bool]:
    """Whether this process is the one that writes (or embeds) a generation's points, for as long as the block lasts."""
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", [what, generation]).fetchone()
    mine = bool(row and row[0])
    try:
        yield mine
    finally:
        if mine and not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", [what, generation])


class Scrub:
    """Looks for points that drifted from what they should be, a stretch at a time, and queues them to be written again.

    Begins at once, since a vector server that lost power may have lost writes, and again every `SCRUB_EVERY_S`.
    """

    def __init__(self, connection: Connection, client: QdrantClient, *, dense: bool) -> None:
        self._connection = connection
        self._client = client
        self._dense = dense
        self._due = time.monotonic()
        self._scan: tuple[int, Iterator[Drift]] | None = None
        self._found = Drift()

    def step(self, generation: int) -> bool:
        """Compare one stretch of a generation's points, if that is due; True while the scan goes on."""
        if self._scan is None or self._scan[0] != generation:
            if self._scan is None and time.monotonic() < self._due:
                return False
            scan = drift.scan(self._connection, self._client, generation, dense=self._dense)
            self._scan, self._found = (generation, scan), Drift()
        part = next(self._scan[1], None)
        if part is not None:
            drift.queue(self._connection, generation, part)
            self._found.add(part)
            return True
        self._scan, self._due = None, time.monotonic() + SCRUB_EVERY_S
        found = self._found
        if found.keys:
            log.warning(
                "%d of %d points had drifted (%d missing, %d differing, %d without their dense vector, %d too many):"
                " they are written again",
                len(found.keys), found.wanted, len(found.missing), len(found.differing), len(found.without_dense),
                len(found.extra),
            )  # fmt: skip
        return False


class OutboxLoop:
    """Keeps the live generation's collection in step, until told to stop: one thread writes, one embeds."""

    def __init__(self, database_url: str, qdrant_url: str, qdrant_api_key: str | None, embedder: str) -> None:
        self._database_url = database_url
        self._qdrant = (qdrant_url, qdrant_api_key)
        self._embedder_name = embedder
        self._stop = threading.Event()
        self._moved = threading.Event()
        self._embed = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        self._threads = [
            threading.Thread(target=self._write_loop, name="outbox", daemon=True),
            threading.Thread(target=self._embed_loop, name="embedder", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def moved(self) -> None:
        """Stage 2 has moved: there may be points to write."""
        self._moved.set()

    def ask_to_stop(self) -> None:
        """Have both threads end after what they are at; without waiting."""
        self._stop.set()
        self._moved.set()
        self._embed.set()

    def stop(self, within_s: float = 10.0) -> None:
        """End, and wait for it so many seconds at most."""
        self.ask_to_stop()
        deadline = time.monotonic() + within_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _write_loop(self) -> None:
        self._until_stopped(self._write, self._moved)

    def _embed_loop(self) -> None:
        if self._embedder_name == "none":
            return
        # A passage holds a core for 40 to 80 ms: folds and hooks go first. Linux keeps a priority for each thread.
        if sys.platform == "linux":
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), EMBEDDER_NICENESS)
        self._until_stopped(self._embed_some, self._embed)

    def _until_stopped(self, work: Callable[[], None], signal: threading.Event) -> None:
        pause = 1.0
        while not self._stop.is_set():
            try:
                work()
                pause = 1.0
            except VectorStoreUnavailable as problem:
                log.warning("the vector store does not answer (%s); trying again in %.0f s", problem, pause)
                pause = min(pause * 2, 30.0)
            except Exception:
                log.exception("vectors could not be written; trying again in %.0f s", pause)
                pause = min(pause * 2, 30.0)
            signal.wait(pause)
            signal.clear()

    def _write(self) -> None:
        with connect(self._database_url, name="memctl outbox") as connection:
            client = store.connect(*self._qdrant)
            scrub = Scrub(connection, client, dense=bool(self._model()))
            try:
                tidied = None
                while not self._stop.is_set():
                    generation = generations.live(connection).stage2
                    if tidied != generation:
                        drop_leftovers(connection, client)
                        tidied = generation
                    scrubbing = False
                    with only_one(connection, WRITING, generation) as mine:
                        if mine:
                            points = Outbox(connection, client, generation, self._model())
                            while not self._stop.is_set() and points.sync():
                                self._embed.set()
                            scrubbing = scrub.step(generation)
                    self._moved.wait(SCRUB_PAUSE_S if scrubbing else 1.0)
                    self._moved.clear()
            finally:
                client.close()

    def _embed_some(self) -> None:
        from memctl.infra.embedders import load_embedder

        with connect(self._database_url, name="memctl embedder") as connection:
            generation = generations.live(connection).stage2
            if not outbox.backlog(connection, generation)[1]:
                return
            embedder = load_embedder(self._embedder_name)
            if embedder is None:
                return
            client = store.connect(*self._qdrant)
            try:
                with only_one(connection, EMBEDDING, generation) as mine:
                    if not mine:
                        return
                    points = Outbox(connection, client, generation, embedder.name, embedder.dimensions)
                    while not self._stop.is_set() and points.embed(embedder):
                        if generations.live(connection).stage2 != generation:
                            return
            finally:
                client.close()

    def _model(self) -> str:
        from memctl.infra.embedders import load_embedder

        embedder = load_embedder(self._embedder_name)
        return embedder.name if embedder is not None else ""


def _point(id: str, row: VectorPoint, space: str, dense: list[float] | None) -> store.VectorPoint:
    return store.VectorPoint(
        id=id,
        payload=outbox.payload_of(row, space),
        sparse=sparse(row.sparse_text),
        dense=dense,
    )


def _bytes(vector: Sequence[float]) -> bytes:
    import numpy

    return numpy.asarray(vector, dtype="<f4").tobytes()


def _floats(data: bytes) -> list[float]:
    import numpy

    found: list[float] = numpy.frombuffer(bytes(data), dtype="<f4").tolist()
    return found
