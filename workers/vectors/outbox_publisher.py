"""The outbox: makes Qdrant agree with `vector_points`. Sparse vectors at once, dense ones as they are embedded.

A queued point is taken off only if its version is still the one that was written, so a change in between is written
again, and a late write cannot bring back what is gone. Only one process at a time does this for a generation.
"""

import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from memctl.domain.support.errors import MemctlError
from memctl.domain.support.text import sparse
from memctl.infra.database import Connection, advisory_lock, connect
from memctl.infra.embedders import PLAIN, Embedder, EmbedderFailed, Embedders, TextsRefused, UnusableVectors, Vectors
from memctl.infra.llm.budget import OverBudget
from memctl.infra.log import erase
from memctl.infra.log.mark import last_position
from memctl.infra.log.spaces import installation, space_names
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.vectors import CollectionMissing, QdrantClient, VectorStoreUnavailable, drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.drift import Drift
from memctl.infra.vectors.models import VectorModel
from memctl.projections.vector_points import VectorPoint
from memctl.workers.watchdog import progress_board as progress

log = logging.getLogger("memctl.outbox")

EMBEDDER_NICENESS = 15
"""Of the thread that embeds, and those it starts."""

RATE_EVERY_S = 5.0
"""How often it is said how many texts a second are embedded."""

SYNC_BATCH = 256

DRIFT_SCAN_EVERY_S = 3600.0
DRIFT_SCAN_PAUSE_S = 0.2
"""Between two stretches: a scan of 100,000 points takes about a minute, and leaves the vector server to its queries."""

WRITING, EMBEDDING = 0x6F757462, 0x656D6264  # "outb", "embd"
"""Advisory locks, each with a generation: who writes its points, and who embeds them."""


class OutboxPublisher:
    """Writes one generation's queued points to its collections: that of the model that serves, and that of the one that
    is filled beside it."""

    def __init__(self, connection: Connection, client: QdrantClient, generation: int) -> None:
        self._connection = connection
        self._client = client
        self._generation = generation
        self._points = outbox.points()
        self._models: tuple[VectorModel, ...] = ()
        self._follow()

    @property
    def collection(self) -> str:
        """Of the model that serves."""
        return self._collection(self._models[0])

    def sync(self) -> int:
        """Write one batch of queued points, with the dense vectors that the cache holds; returns how many."""
        self._follow()
        queued = outbox.take(self._connection, self._generation, SYNC_BATCH)
        if not queued:
            return 0
        keys = [q.key for q in queued]
        with progress.step("points", "written"):
            return self._write(queued, keys)

    def _write(self, queued: Sequence[outbox.Queued], keys: list[readmodels.RowKey]) -> int:
        rows = readmodels.load(self._connection, self._points, self._generation, keys)
        names = space_names(self._connection)
        hashes = [row.dense_hash for row in rows.values()]
        gone = [outbox.stored_id(key) for key in keys if key not in rows]
        for model in self._models:
            cached = self._cached(model, hashes)
            try:
                store.upsert(
                    self._client,
                    self._collection(model),
                    [
                        _point(outbox.stored_id(key), row, names[key[0]], cached.get(row.dense_hash))
                        for key, row in rows.items()
                    ],
                )
                if gone:
                    store.delete(self._client, self._collection(model), gone)
            except CollectionMissing:
                if not self._follow():
                    raise
                return len(queued)  # they are written to the collections of now
            waits = [q for q in queued if q.key in rows and model.embeds and rows[q.key].dense_hash not in cached]
            lines = [q for q in waits if rows[q.key].chunk]
            own = [q for q in waits if not rows[q.key].chunk]
            outbox.await_dense(self._connection, self._generation, model.name, queued, own, lines)
        outbox.done(self._connection, self._generation, queued)
        return len(queued)

    def embed(self, embedder: Embedder) -> int:
        """Embed one small batch of points that wait for this embedder's vector, newest first; returns how many.

        Raises: EmbedderFailed, OverBudget.
        """
        model = next((each for each in self._models if each.name == embedder.name), None)
        if model is None:
            return 0
        queued = outbox.take_waiting(self._connection, self._generation, model.name, embedder.batch)
        if not queued:
            return 0
        rows = readmodels.load(self._connection, self._points, self._generation, [q.key for q in queued])
        cached = self._cached(model, [row.dense_hash for row in rows.values()])
        missing = {row.dense_hash: row.dense_text for row in rows.values() if row.dense_hash not in cached}
        if missing:
            pieces = [key for key, row in rows.items() if row.dense_hash in missing]
            with progress.step("texts", model.name, pieces=pieces):
                vectors = _embedded(embedder, list(missing.values()), model.dimensions)
            fresh = {
                key: b"" if vector is None else _bytes(vector) for key, vector in zip(missing, vectors, strict=True)
            }
            outbox.remember(self._connection, self._generation, list(rows), model.name, fresh)
            cached.update({key: _floats(vector) for key, vector in fresh.items()})
        dense = {outbox.stored_id(key): vector for key, row in rows.items() if (vector := cached[row.dense_hash])}
        store.set_dense(self._client, self._collection(model), dense)
        # The writer does not wait for the embedder: what it wrote meanwhile, we have just overwritten.
        outbox.embedded(self._connection, self._generation, model.name, queued)
        return len(queued)

    def backlog(self) -> tuple[int, int]:
        """Points to be written, and points that wait for their dense vector of the model that serves."""
        return outbox.backlog(self._connection, self._generation)

    def _follow(self) -> bool:
        """See which models are written by now, and have a collection of each; whether that has changed."""
        models = vector_models.models(self._connection).written
        if not models:  # nobody has said which yet: words alone
            vector_models.serve(self._connection)
            models = vector_models.models(self._connection).written
        if models == self._models:
            return False
        for model in models:
            # First, so that whoever is killed in between finds it queued, or no collection.
            if not store.has_collection(self._client, self._collection(model)):
                outbox.queue_all(self._connection, self._generation)
            store.ensure_collection(self._client, self._collection(model), model.dimensions)
        self._models = models
        return True

    def _collection(self, model: VectorModel) -> str:
        return outbox.collection_of(self._connection, self._generation, model.name)

    def _cached(self, model: VectorModel, hashes: Sequence[str]) -> dict[str, list[float] | None]:
        """Dense vectors by dense hash, as far as the cache holds them; None where the model does not take the text."""
        if not model.embeds or not hashes:
            return {}
        found = self._connection.execute(
            "SELECT text_hash, vector FROM memctl.embeddings WHERE model = %b AND text_hash = ANY(%b::bytea[])",
            [model.name, [bytes.fromhex(h) for h in hashes]],
            binary=True,
        )
        return {bytes(row[0]).hex(): _floats(row[1]) for row in found}


def _embedded(embedder: Embedder, texts: list[str], dimensions: int) -> Sequence[Vectors | None]:
    """A vector of each text; None for one of which the embedder makes none, though it does of others. Without that one
    text would hold up all that wait behind it."""
    if embedder.dimensions != dimensions:
        why = f"they have {embedder.dimensions} dimensions, and those before had {dimensions}"
        raise UnusableVectors(name=embedder.name, why=why)
    try:
        return list(embedder.embed_passages(texts))
    except (TextsRefused, UnusableVectors) as problem:
        if len(texts) > 1:
            return [vector for text in texts for vector in _embedded(embedder, [text], dimensions)]
        if not isinstance(problem, TextsRefused):
            embedder.embed_passages([PLAIN])  # where it makes nothing of this either, it is not the text
        log.warning("a memory is found by its words alone: %s", problem)
        return [None]


def drop_collections(connection: Connection, client: QdrantClient, generation: int) -> None:
    """Drop the collections of a generation, of whatever model."""
    for name in store.list_collections(client, prefix=f"memctl-{installation(connection)}-g{generation}-"):
        store.drop_collection(client, name)


def drop_leftovers(connection: Connection, client: QdrantClient) -> None:
    """Drop the collections that no generation has, or no model that is written, as those of before."""
    found = store.list_collections(client, prefix=f"memctl-{installation(connection)}-g")
    # Looked at second: whatever has a collection was there before it.
    kept = {
        outbox.collection_of(connection, generation, model.name)
        for status in ("building", "live", "previous", "scratch")
        for generation, stage, _ in generations.generations(connection, status)
        for model in vector_models.models(connection).written
        if stage == 2
    }
    for name in found:
        if name not in kept:
            store.drop_collection(client, name)


class DriftScan:
    """Looks for points that drifted from what they should be, a stretch at a time, and queues them to be written again.

    Begins at once, since a vector server that lost power may have lost writes, and again every `DRIFT_SCAN_EVERY_S`.
    """

    def __init__(self, connection: Connection, client: QdrantClient) -> None:
        self._connection = connection
        self._client = client
        self._due = time.monotonic()
        self._scans: deque[tuple[str, Iterator[Drift]]] = deque()
        """What is left of this look: collections by name."""
        self._generation = 0
        self._found = Drift()
        self._asked: tuple[str, datetime] | None = None
        self._whole = False

    def whole(self, generation: int, model: VectorModel) -> bool:
        """Whether all of a model's collection was looked through since this was first asked, and nothing had drifted.
        Else it is looked through now."""
        if self._asked != (asked := (outbox.collection_of(self._connection, generation, model.name), model.since)):
            self._asked, self._whole = asked, False
            self._scans.clear()
            self._due = time.monotonic()
        return self._whole

    def step(self, generation: int) -> bool:
        """Compare one stretch of a generation's points, if that is due; True while the scan goes on."""
        if not self._scans or self._generation != generation:
            if self._generation == generation and time.monotonic() < self._due:
                return False
            self._begin(generation)
        collection, scan = self._scans[0]
        part = next(scan, None)
        if part is not None:
            drift.queue(self._connection, generation, part)
            self._found.add(part)
            return True
        self._scans.popleft()
        found, self._found = self._found, Drift()
        if self._asked is not None and self._asked[0] == collection:
            self._whole = not found.keys
            self._asked = None if found.keys else self._asked
        if found.keys:
            log.warning(
                "%d of %d points had drifted (%d missing, %d differing, %d without their dense vector, %d too many):"
                " they are written again",
                len(found.keys), found.wanted, len(found.missing), len(found.differing), len(found.without_dense),
                len(found.extra),
            )  # fmt: skip
        return bool(self._scans)

    def _begin(self, generation: int) -> None:
        self._generation, self._due, self._found = generation, time.monotonic() + DRIFT_SCAN_EVERY_S, Drift()
        self._scans = deque(
            (
                outbox.collection_of(self._connection, generation, model.name),
                drift.scan(self._connection, self._client, generation, model),
            )
            for model in vector_models.models(self._connection).written
        )


def switched(connection: Connection, generation: int, drift_scan: DriftScan) -> bool:
    """Let the model that is filled serve, if nothing of it is missing and all of it was looked through; whether it
    does. To be asked again, with steps of the scan in between, by who alone writes the generation's points."""
    model = vector_models.models(connection).filling
    return (
        model is not None
        and not vector_models.lacking(connection, generation)
        and drift_scan.whole(generation, model)
        and vector_models.switch(connection, generation)
    )


class OutboxLoop:
    """Keeps the live generation's collections in step, until asked to stop: one thread writes, one embeds.

    Where the settings ask for another model than the one that serves, its vectors are made beside, and it takes the
    other's place once none is missing.
    """

    def __init__(
        self,
        database_url: str,
        qdrant_url: str,
        qdrant_api_key: str | None,
        embedders: Embedders,
        noted: Callable[[bool, float | None], None] = lambda *_: None,
    ) -> None:
        """`noted` is called with whether texts wait to be embedded, and with how many a second are: when the first
        waits, when some were embedded (now and then), and when none waits any more."""
        self._noted = noted
        self._texts_wait: bool | None = None
        self._database_url = database_url
        self._qdrant = (qdrant_url, qdrant_api_key)
        self._embedders = embedders
        self._asked_for = False
        self._stop = threading.Event()
        self._moved = threading.Event()
        self._embed = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, after_s: float = 0.0) -> None:
        """Start both threads; points are written from so many seconds on."""
        self._threads = [
            threading.Thread(target=self._write_loop, args=[after_s], name="outbox", daemon=True),
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

    def _write_loop(self, after_s: float) -> None:
        if after_s:
            log.error("points are written in %.0f s: the process ended as it wrote some", after_s)
            self._stop.wait(after_s)
        self._until_stopped(self._write, self._moved)

    def _embed_loop(self) -> None:
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
            except (EmbedderFailed, OverBudget) as problem:
                log.warning("%s; trying again in %.0f s", problem, pause)
                pause = min(pause * 2, 300.0)
            except Exception:
                log.exception("vectors could not be written; trying again in %.0f s", pause)
                pause = min(pause * 2, 30.0)
            signal.wait(pause)
            signal.clear()

    def _write(self) -> None:
        with connect(self._database_url, name="memctl outbox") as connection:
            vector_models.begin(connection, self._embedders)
            client = store.connect(*self._qdrant)
            drift_scan = DriftScan(connection, client)
            try:
                tidied, unused = None, None
                while not self._stop.is_set():
                    generation = generations.live(connection).stage2
                    now = (generation, vector_models.models(connection), erase.last_finished(connection))
                    if tidied != now:
                        drop_leftovers(connection, client)
                        vector_models.prune(connection)
                        tidied, unused = now, last_position(connection)
                    # What was forgotten may have had other words before, and a backup may bring back vectors of them.
                    if unused is not None and outbox.forget_unused(connection, unused):
                        unused = None
                    scanning = False
                    with advisory_lock(connection, WRITING, generation) as mine:
                        if mine:
                            points = OutboxPublisher(connection, client, generation)
                            while not self._stop.is_set() and points.sync():
                                self._embed.set()
                            with progress.step("points", "compared"):
                                scanning = drift_scan.step(generation)
                            switched(connection, generation, drift_scan)
                    self._moved.wait(DRIFT_SCAN_PAUSE_S if scanning else 1.0)
                    self._moved.clear()
            finally:
                client.close()

    def _embed_some(self) -> None:
        with connect(self._database_url, name="memctl embedder") as connection:
            failed = self._ask_for_chosen(connection)
            generation = generations.live(connection).stage2
            models = vector_models.models(connection).written
            waits = any(outbox.take_waiting(connection, generation, each.name, 1) for each in models if each.embeds)
            if waits != self._texts_wait:
                self._noted(waits, None)
                self._texts_wait = waits
            if waits:
                client = store.connect(*self._qdrant)
                try:
                    with advisory_lock(connection, EMBEDDING, generation) as mine:
                        if mine:
                            self._embed_all(
                                connection, OutboxPublisher(connection, client, generation), generation, failed
                            )
                finally:
                    client.close()
        for problem in failed.values():
            raise problem

    def _ask_for_chosen(self, connection: Connection) -> dict[str, MemctlError]:
        """Have the model that the settings ask for filled, where it does not serve; once, when it is known what it is.
        Of several workers with other settings, the one that was started last is heard."""
        chosen = self._embedders.chosen
        if not self._asked_for:
            try:
                vector_models.want(connection, chosen, vector_models.dimensions_of(self._embedders))
            except (EmbedderFailed, OverBudget) as problem:
                return {chosen.name: problem}
            self._asked_for = True
            self._moved.set()
        return {}

    def _embed_all(
        self, connection: Connection, points: OutboxPublisher, generation: int, failed: dict[str, MemctlError]
    ) -> None:
        """Embed what waits: what is new for the searches of now first, then for those to come. One embedder that fails
        holds up no other; what it raised is put among the `failed`, by model."""
        began, made = time.monotonic(), 0
        while not self._stop.is_set() and generations.live(connection).stage2 == generation:
            if made and (took := time.monotonic() - began) > RATE_EVERY_S:
                self._noted(True, made / took)
                began, made = time.monotonic(), 0
            models = vector_models.models(connection).written
            self._embedders.keep_only(*(each.name for each in models))
            for model in models:
                if model.embeds and model.name not in failed:
                    try:
                        embedder = self._embedders.load(model.recipe)
                        if embedder is not None and (count := points.embed(embedder)):
                            made += count
                            break
                    except (EmbedderFailed, OverBudget) as problem:
                        failed[model.name] = problem
            else:
                break
        if made:  # what waited is embedded: what comes waits from then on
            self._texts_wait = False
            self._noted(False, None)
        self._moved.set()


def _point(id: str, row: VectorPoint, space: str, dense: list[float] | None) -> store.NewPoint:
    return store.NewPoint(
        id=id,
        payload=outbox.payload_of(row, space),
        sparse=sparse(row.sparse_text),
        dense=dense,
    )


def _bytes(vector: Vectors) -> bytes:
    import numpy

    return numpy.asarray(vector, dtype="<f4").tobytes()


def _floats(data: bytes) -> list[float] | None:
    import numpy

    found: list[float] = numpy.frombuffer(bytes(data), dtype="<f4").tolist()
    return found or None
