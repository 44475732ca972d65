"""A data set asked of memctl's own pipeline: passages become turns, memories and points by the folds that make the live
ones, stand in a vector server of its own, and are searched by the live engine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, UUID, uuid5

from evaluation import Asked, Dataset, Passage
from evaluation.metrics import Judged
from memctl.api.reading.consolidation_status import ConsolidationStatus
from memctl.api.reading.places import Places
from memctl.api.search.candidates import ALL_ON, Switches
from memctl.api.search.corpus import Wanted
from memctl.api.search.engine import Engine, Question
from memctl.domain.events.event import Micros
from memctl.domain.events.facts import Turn
from memctl.domain.knowledge.memory import lead_of, memory_id
from memctl.domain.retrieval.ranking import Candidate
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.text import sparse
from memctl.projections.memories import of_turn
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory
from memctl.projections.vector_points import VectorPoint, of_memory, point_id

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from memctl.infra.embedders import Embedder, Embedders, Recipe, Vectors
    from memctl.infra.vectors.store import NewPoint

SPACE = "evaluation"
_ELSEWHERE = "hidden"
"""The space that points are in while they are hidden."""
COLLECTION = "evaluation"
_START_S = 30.0
_KEEP_EVERY = 256
"""Texts embedded between two times that the vectors are kept: about half a minute's work."""
DEPTH = 20
"""Results looked at for each question."""

Notify = Callable[[str], None]
"""Called with a line of progress."""


class VectorServerFailed(MemctlError):
    """The evaluation's vector server did not start: {said}"""

    said: str


class Bench:
    """One data set, indexed."""

    def __init__(
        self, dataset: Dataset, engine: Engine, client: QdrantClient, memories: dict[str, Memory], recipe: Recipe
    ) -> None:
        self.dataset = dataset
        self._engine = engine
        self._client = client
        self._memories = memories
        self._recipe = recipe
        self._passages = {_memory_of(each.id): each.id for each in dataset.passages}
        self._dated = any(each.at for each in dataset.passages)
        self._hidden: frozenset[str] = frozenset()

    # --- the corpus that the engine searches ---

    def collection(self) -> str:
        return COLLECTION

    def recipe(self) -> Recipe:
        return self._recipe

    @property
    def space(self) -> str:
        return SPACE

    def alone(self) -> bool:
        return False

    def point(self, memory: str) -> str:
        return point_id(memory)

    def rows(self, ids: Sequence[str]) -> dict[str, Memory]:
        return {id: self._memories[id] for id in ids if id in self._memories and id not in self._hidden}

    def by_words(self, words: Sequence[str], wanted: Wanted) -> dict[str, Candidate]:
        return {}

    def known_errors(self, query: str, places: Places) -> dict[str, float]:
        return {}

    def held(self, query: str, rows: Iterable[Memory]) -> set[str]:
        return set()

    def stale(self, rows: Iterable[Memory]) -> set[str]:
        return set()

    def regards(self, memories: Sequence[str]) -> dict[str, MemoryFeedback]:
        return {}

    def standings(self, rows: Iterable[Memory]) -> dict[str, ConsolidationStatus]:
        return {}

    # --- asking ---

    def ask(
        self,
        questions: Sequence[Asked],
        *,
        profile: str = "bounded",
        switches: Switches = ALL_ON,
        hiding: bool = True,
    ) -> list[Judged]:
        """Each question with its answers there and, where `hiding`, once more without them."""
        judged = []
        for asked in questions:
            began = time.perf_counter()
            found = self._ask(asked, profile, switches)
            took = (time.perf_counter() - began) * 1000
            without: list[tuple[str, float, str]] | None = None
            if hiding and asked.gold:
                with self._hiding(map(_memory_of, asked.gold)):
                    without = self._ask(asked, profile, switches)
            judged.append(
                Judged(
                    ranked=tuple(id for id, _, _ in found),
                    gold=asked.gold,
                    best_class=found[0][2] if found else "none",
                    best_score=found[0][1] if found else 0.0,
                    hidden_class=None if without is None else without[0][2] if without else "none",
                    hidden_score=without[0][1] if without else 0.0,
                    took_ms=took,
                )
            )
        return judged

    @contextlib.contextmanager
    def _hiding(self, memories: Iterable[str]) -> Iterator[None]:
        """Hide these memories for a while, as if they were forgotten.

        If they were only left out of the results, their neighbours would still be found through them. (If points were
        deleted and put back, they would count twice in how rare words are.)
        """
        self._hidden = frozenset(memories)
        self._move(_ELSEWHERE)
        try:
            yield
        finally:
            self._move(SPACE)
            self._hidden = frozenset()

    def _move(self, space: str) -> None:
        from qdrant_client import models

        points = models.PointIdsList(points=list(map(point_id, self._hidden)))
        self._client.set_payload(COLLECTION, {"space": space}, points=points, wait=True)

    def _ask(self, asked: Asked, profile: str, switches: Switches) -> list[tuple[str, float, str]]:
        places = Places(None, "everywhere", None)
        if asked.scope:
            places = Places(asked.scope, "asked", (_location(asked.scope),))
        # Without a date of its own, a question is asked after everything was said; of what has none, none is asked.
        now = asked.now or self._after
        if asked.now is None or not self._dated:
            switches = Switches(switches.words, switches.meaning, switches.neighbours, switches.fill, time=False)
        question = Question(
            query=asked.query, places=places, now=now, limit=DEPTH, profile=profile, switches=switches, on_request=True
        )
        ranking = self._engine.rank(self, question)
        return [(self._passages[each.id], each.score, class_) for each, class_ in ranking.chosen]

    @property
    def _after(self) -> datetime:
        last = max((each.at for each in self.dataset.passages), default=0)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=last, days=1)


def memory_of(passage: Passage, before: str = "") -> Memory:
    """The memory that a passage makes, by the fold that makes those of live turns; `before` is the text of the one
    before it."""
    return of_turn(
        Turn(
            id=_turn_of(passage.id),
            stream=passage.session or passage.id,
            occurred_at=Micros(passage.at),
            location=_location(passage.scope),
            evidence=(),
            prompt=passage.text,
            before=_turn_of(passage.before) if passage.before else None,
            lead=lead_of(before, passage.text) if before else "",
        )
    )


@contextlib.contextmanager
def indexed(dataset: Dataset, embedders: Embedders, notify: Notify) -> Iterator[Bench]:
    """The data set in a vector server of its own, which ends with the block. Raises: VectorServerFailed."""
    from memctl.infra.vectors import store

    texts = {passage.id: passage.text for passage in dataset.passages}
    made = (memory_of(passage, texts.get(passage.before, "")) for passage in dataset.passages)
    memories = {memory.id: memory for memory in made}
    points = [of_memory(memory) for memory in memories.values()]
    model = embedders.load()
    with _server() as (url, token):
        client = store.connect(url, token, timeout=60)
        try:
            store.ensure_collection(client, COLLECTION, model.dimensions if model else 384)
            dense = embedded([point.dense_text for point in points], model, notify) if model else None
            store.upsert(
                client,
                COLLECTION,
                (_stored(point, None if dense is None else dense[place]) for place, point in enumerate(points)),
            )
            engine = Engine(url, token, embedders)
            engine.warm_up()
            try:
                yield Bench(dataset, engine, client, memories, embedders.chosen)
            finally:
                engine.close()
        finally:
            client.close()


def embedded(texts: Sequence[str], embedder: Embedder, notify: Notify) -> Vectors:
    """The passages' vectors; kept in the user's cache directory as they are made, since that takes minutes."""
    import numpy

    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memctl-eval"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / (hashlib.sha256(embedder.name.encode()).hexdigest()[:12] + ".npz")
    known = _kept(kept)
    keys = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
    for start in range(0, len(missing), _KEEP_EVERY):
        part = missing[start : start + _KEEP_EVERY]
        made = embedder.embed_passages([text for _, text in part])
        # Another run may have kept some meanwhile.
        known |= _kept(kept) | {key: vector for (key, _), vector in zip(part, made, strict=True)}
        new = kept.with_suffix(f".{os.getpid()}.npz")
        numpy.savez(new, keys=numpy.array(list(known)), vectors=numpy.stack(list(known.values())))
        new.replace(kept)
        notify(f"embedded {start + len(part):,} of {len(missing):,}")
    return numpy.stack([known[key] for key in keys])


def _kept(file: Path) -> dict[str, Vectors]:
    import numpy

    if not file.exists():
        return {}
    with numpy.load(file) as stored:
        return dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))


@contextlib.contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """URL and token of a vector server in a folder of its own."""
    import orjson

    with tempfile.TemporaryDirectory(prefix="memctl-eval-") as folder:
        token = secrets.token_hex(16)
        token_file, announced = Path(folder, "token"), Path(folder, "vectors", "server.json")
        token_file.write_text(token)
        module = [sys.executable, "-P", "-m"]
        # It ends when we do, however that is.
        command = [*module, "memctl.infra.embedded.launch", "--", *module, "memctl.infra.vectors.server"]
        with Path(folder, "log").open("w+b") as log:
            process = subprocess.Popen(
                [*command, "--dir", str(announced.parent), "--token-file", str(token_file), "--port", "0"],
                stdout=log,
                stderr=log,
            )
            try:
                deadline = time.monotonic() + _START_S
                while not announced.exists():
                    if process.poll() is not None or time.monotonic() > deadline:
                        log.seek(0)
                        raise VectorServerFailed(said=log.read().decode("utf-8", "replace")[-500:])
                    time.sleep(0.02)
                yield orjson.loads(announced.read_bytes())["url"], token
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=20)


def _stored(point: VectorPoint, dense: Vectors | None) -> NewPoint:
    from memctl.infra.vectors.outbox import payload_of
    from memctl.infra.vectors.store import NewPoint

    return NewPoint(
        id=point.id,
        payload=payload_of(point, SPACE),
        sparse=sparse(point.sparse_text),
        dense=None if dense is None else dense.tolist(),
    )


def _turn_of(passage: str) -> UUID:
    return uuid5(NAMESPACE_URL, passage)


def _memory_of(passage: str) -> str:
    return memory_id("turn", str(_turn_of(passage)))


def _location(scope: str) -> str:
    return f"/{scope}" if scope else ""
