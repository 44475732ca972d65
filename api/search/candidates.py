"""Candidates: what the sources that can be asked say of the memories that may answer a question.

Two rounds. The first asks each source for its best; the second asks each source for its score of what only the other
found, and of the turns before and after the best, so that every candidate is judged by all that is known of it. What
cannot be asked is left out, and the answer says so: without vectors it goes by words, without the vector store by words
in Postgres.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import msgspec

from memctl.api.search.corpus import Corpus, Wanted
from memctl.domain.retrieval.intent import Period
from memctl.domain.retrieval.neighbours import lent
from memctl.domain.retrieval.ranking import ORDINARY, USUAL, Background, Candidate, Source, background_of, word_strength
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.text import sparse_query, tokens
from memctl.infra.embedders import Embedder, Embedders, Recipe, TextsRefused, Vectors
from memctl.infra.vectors import CollectionMissing, VectorStoreUnavailable
from memctl.infra.vectors.searches import Hit, PointsByName, Searches
from memctl.infra.vectors.store import EVERYWHERE, PointScope

log = logging.getLogger("memctl.search")

WHOLE = 300
"""Points asked of each source where a set is small enough to be looked through whole."""

LENDERS = 24
"""First memories of each source's list whose neighbours become candidates too."""

LINE_AWAY = 0.025
"""By how much a line of a memory counts as farther than its cosine says: of many lines one is near by chance."""

SAMPLE = 192
"""Vectors that a query's meaning is compared with to see what it has in common with anything."""

_PATIENCE_S = 3
"""For the vector store; after it, search goes on without."""

_REST_S = 30.0
"""For which an embedder that failed is not asked: each search would wait for it."""

_FEW = 1_000
_LOOK_FOR_S, _LOOK_FEW_FOR_S = 60.0, 5.0
"""How long a look at the collection (its count, its sample) is good for, and while it is small."""

MOST_LOOKS = 64
"""Spaces of which what was seen is kept, those searched last."""

_LOADING = "the embedder is still being loaded"

WORDS_ONLY = "search goes by words alone: "


class Switches(msgspec.Struct, frozen=True):
    """Parts of the pipeline that a measurement turns off, to see what each is worth."""

    words: bool = True
    meaning: bool = True
    neighbours: bool = True
    fill: bool = True
    """The second round: each source asked for what only the other found, and for the turns around the best."""
    time: bool = True
    """That nothing is answered from what came later, that the query's time counts, and that age does."""


ALL_ON = Switches()


class Gathered:
    """Candidates by memory id, and what had to be left out."""

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self.timely: set[str] = set()
        """Those that are known to have happened when the query says."""
        self.settled: set[str] = set()
        """Those that are candidates whatever else was found."""
        self.degraded: list[str] = []


class Sources:
    """The vector store's client and the query embedder: that of the vectors which are searched. Thread-safe.

    Both are loaded by `warm_up`, on a thread of its own: their imports take seconds. So is another embedder, once it is
    found that the vectors are another model's.
    """

    def __init__(self, qdrant_url: str | None, qdrant_api_key: str | None, embedders: Embedders) -> None:
        self._qdrant = (qdrant_url, qdrant_api_key)
        self._embedders = embedders
        self._searches: Searches | None = None
        self._meaning: _Meaning | None = None
        self._why_no_client = (
            "the vector store's client is still being loaded" if qdrant_url else "no vector store is set"
        )
        self._why_no_embedder = _LOADING
        self._again_at = 0.0
        """When an embedder that failed is asked again, by `time.monotonic`."""
        self._loading = threading.Lock()
        self._looking = threading.Lock()
        self._looked: OrderedDict[tuple[str, str | None], _Look] = OrderedDict()
        """By collection and space (None: it holds no other), what was seen there last."""

    @property
    def embeds(self) -> bool:
        """Whether there is an embedder."""
        return self._meaning is not None

    def warm_up(self, recipe: Recipe | None = None) -> None:
        """Load the client and the embedder (that the settings ask for); what fails is reported with every answer."""
        with self._loading:
            url, key = self._qdrant
            if url and self._searches is None:
                try:
                    self._searches = Searches(url, key, timeout=_PATIENCE_S)
                except Exception as why:
                    log.exception("the vector store's client could not be loaded")
                    self._why_no_client = f"the vector store's client could not be loaded ({why})"
        if self._meaning is None:
            self._load(recipe or self._embedders.chosen)

    def _load(self, recipe: Recipe) -> None:
        """Load the embedder of a recipe in the place of the one before."""
        with self._loading:
            if self._meaning is not None and self._meaning.embedder.name == recipe.name:
                return
            try:
                embedder = self._embedders.load(recipe)
                if embedder is not None:
                    embedder.embed_query("warm up")
                    self._meaning = _Meaning(embedder, embedder.embed_passages(ORDINARY))
                    self._embedders.keep_only(embedder.name)
                    self._again_at, self._why_no_embedder = 0.0, _LOADING
            except Exception as why:
                if isinstance(why, MemctlError):
                    log.warning("%s", why)
                else:
                    log.exception("the embedder could not be loaded")
                self._why_no_embedder = f"the embedder could not be loaded ({why})"
                self._again_at = time.monotonic() + _REST_S

    def close(self) -> None:
        if self._searches is not None:
            self._searches.close()

    def gather(self, corpus: Corpus, wanted: Wanted, switches: Switches = ALL_ON) -> Gathered:
        """Candidates of every source that can be asked, by memory id."""
        gathered = Gathered()
        asked = self._embedded(corpus.recipe(), wanted.text) if switches.meaning else None
        if isinstance(asked, str):
            gathered.degraded.append(WORDS_ONLY + asked)
            asked = None
        searches = self._searches
        if searches is None:
            gathered.degraded.append(WORDS_ONLY + self._why_no_client)
        else:
            try:
                self._ask_vectors(searches, corpus, wanted, asked, switches, gathered)
                return gathered
            except CollectionMissing:
                gathered.degraded.append(WORDS_ONLY + "the vector collection is not built yet")
            except VectorStoreUnavailable as why:
                log.warning("a search goes on without the vector store: %s", why)
                gathered.degraded.append(WORDS_ONLY + "the vector store does not answer")
        gathered.candidates = corpus.by_words(list(dict.fromkeys(tokens(wanted.text))), wanted)
        return gathered

    def _embedded(self, recipe: Recipe | None, text: str) -> tuple[_Meaning, Vectors] | str:
        """The query's vector, of the model whose vectors are searched; or why there is none."""
        if self._embedders.chosen.provider == "none":
            return "the setting `embedder` is none"
        if recipe is None or recipe.provider == "none":
            return "no memory has a vector yet"
        meaning, rests = self._meaning, time.monotonic() < self._again_at
        if meaning is None or meaning.embedder.name != recipe.name:
            why_not = self._why_no_embedder
            if not rests and not self._loading.locked():
                threading.Thread(target=self._load, args=[recipe], name="load embedder", daemon=True).start()
            return why_not
        if rests:
            return self._why_no_embedder
        try:
            return meaning, meaning.embedder.embed_query(text)
        except TextsRefused as why:
            return str(why)
        except Exception as why:  # whatever a model or its server does: words are left
            log.warning("a search goes on without meaning: %s", why)
            self._why_no_embedder = f"the embedder does not answer ({why})"
            self._again_at = time.monotonic() + _REST_S
            return self._why_no_embedder

    def _ask_vectors(
        self,
        searches: Searches,
        corpus: Corpus,
        wanted: Wanted,
        asked: tuple[_Meaning, Vectors] | None,
        switches: Switches,
        gathered: Gathered,
    ) -> None:
        vector = None if asked is None else asked[1]
        sparse = sparse_query(wanted.text) if switches.words else ([], [])
        name = corpus.collection()
        space = None if corpus.alone() else corpus.space
        look = self._look(searches, name, space, corpus.space, wanted.latest)
        scope = _scope(wanted, space, look)
        hybrid = partial(searches.hybrid, name, dense=vector, sparse=sparse)
        found = _Found(corpus.point)
        found.add(*hybrid(scope, limit=wanted.most))
        if wanted.period is not None and switches.time:
            # A time is a preference, not a filter; but what happened then must be among the candidates.
            gathered.timely = found.add(*hybrid(_within(scope, wanted.period), limit=wanted.most))
        if kinds := wanted.settled_kinds:
            gathered.settled = found.add(*hybrid(replace(scope, kinds=kinds), limit=WHOLE))
        if switches.fill:
            beside = found.best(LENDERS) if switches.neighbours else []
            by_meaning, by_words = found.missing(beside)
            meant = None if vector is None else (vector, PointsByName(by_meaning, beside))
            found.fill(*searches.of(name, scope, dense=meant, sparse=(sparse, PointsByName(by_words, beside))))
        query = sum(weight * weight for weight in sparse[1])
        background = USUAL if asked is None else _background(*asked, look.sample)
        candidates = {
            id: found.candidate(id, query, max(look.documents, found.words), background) for id in found.before
        }
        gathered.candidates = lent(candidates, found.before) if switches.neighbours else candidates

    def _look(self, searches: Searches, collection: str, space: str | None, named: str, latest: int | None) -> _Look:
        """About how many points the collection holds of the space, by which the rarity of words is measured, some
        vectors, and whether any point is from after `latest` (in milliseconds). `named`: the space where it is alone,
        too."""
        looked = self._looked.get((collection, space), _NOTHING_SEEN)
        good_for = _LOOK_FOR_S if looked.documents > _FEW else _LOOK_FEW_FOR_S
        if looked is not _NOTHING_SEEN and time.monotonic() - looked.at < good_for:
            return looked
        documents = searches.count(collection, None if space is None else PointScope(space))
        over = latest is not None and not searches.count(collection, PointScope(space, since=latest))
        ends = latest if over else None
        sample = None
        if self._meaning is not None:
            same = looked is not _NOTHING_SEEN and documents <= looked.documents * 1.5
            if same and looked.sample is not None and len(looked.sample) == SAMPLE:
                sample = looked.sample
            elif vectors := searches.sample(collection, named, SAMPLE):
                import numpy

                sample = numpy.asarray(vectors, dtype=numpy.float32)
        seen = _Look(documents, sample, ends, time.monotonic())
        with self._looking:
            self._looked[collection, space] = seen
            self._looked.move_to_end((collection, space))
            while len(self._looked) > MOST_LOOKS:
                self._looked.popitem(last=False)
        return seen


def _scope(wanted: Wanted, space: str | None, look: _Look) -> PointScope:
    """The points that may answer. What leaves nothing out is not asked for: the store would look it up for each point
    that it comes by."""
    since, latest, places = wanted.since, wanted.latest, wanted.places.locations
    if latest is not None and look.ends is not None and look.ends <= latest:
        latest = None
    return PointScope(
        space,
        None if places is None else [*places, EVERYWHERE],
        kinds=list(wanted.kinds) or None,
        since=None if since is None else since // 1000,
        before=latest,
    )


def _within(scope: PointScope, period: Period) -> PointScope:
    """What of a scope happened in a period."""
    since, before = period.since // 1000, period.before // 1000
    return replace(scope, since=max(since, scope.since or since), before=min(before, scope.before or before))


class _Meaning(NamedTuple):
    """An embedder, and its vectors of what is said in any talk."""

    embedder: Embedder
    ordinary: Vectors


def _background(meaning: _Meaning, vector: Vectors, sample: Vectors | None) -> Background:
    """What a query's meaning has in common with anything that is said, and with anything that is remembered."""
    remembered, ordinary = ([] if those is None else (those @ vector).tolist() for those in (sample, meaning.ordinary))
    return background_of(remembered, ordinary)


class _Look(NamedTuple):
    """What was seen of a collection at a moment."""

    documents: int
    sample: Vectors | None
    ends: int | None
    """A moment, in milliseconds, from which on nothing had happened; None where none is known."""
    at: float


_NOTHING_SEEN = _Look(0, None, None, 0.0)


class _Found:
    """What the sources returned, by memory."""

    def __init__(self, point: Callable[[str], str]) -> None:
        """`point` gives the id of the point that stands for a memory."""
        self._point = point
        self.before: dict[str, str] = {}
        """Of each memory, the one before it."""
        self.nearest: dict[str, str] = {}
        """Of each memory the point of the line that is nearest in meaning; empty where it is nearer itself."""
        self.scores: dict[Source, dict[str, float]] = {"dense": {}, "sparse": {}}
        self.ranks: dict[Source, dict[str, int]] = {"dense": {}, "sparse": {}}

    @property
    def words(self) -> int:
        return len(self.scores["sparse"])

    def add(self, dense: Sequence[Hit], sparse: Sequence[Hit]) -> set[str]:
        """Take in one scope's ranked lists, and return the memories in them; one that came in already keeps its better
        rank."""
        self.fill(dense, sparse)
        for ranks, hits in zip(self.ranks.values(), (dense, sparse), strict=True):
            for rank, id in enumerate(dict.fromkeys(hit.memory_id for hit in hits), 1):
                ranks[id] = min(rank, ranks.get(id, rank))
        return {hit.memory_id for hit in (*dense, *sparse)}

    def best(self, most: int) -> list[str]:
        """The first memories of each source's list."""
        return [id for id in self.before if any(ranks.get(id, most + 1) <= most for ranks in self.ranks.values())]

    def missing(self, beside: Sequence[str]) -> tuple[list[str], list[str]]:
        """Points of memories whose score by meaning is not known, and whose score by words is not: those found, and
        those that came before the memories `beside`."""
        wanted = dict.fromkeys((*self.before, *(before for each in beside if (before := self.before[each]))))
        one, other = ([self._point(id) for id in wanted if id not in self.scores[source]] for source in self.scores)
        return one, other

    def fill(self, dense: Sequence[Hit], sparse: Sequence[Hit]) -> None:
        """Take in scores, of memories that may be new; those that were asked for by name have no rank."""
        for scores, hits in zip(self.scores.values(), (dense, sparse), strict=True):
            for hit in hits:
                id = hit.memory_id
                self.before[id] = hit.before or self.before.get(id, "")
                of_line = scores is self.scores["dense"] and hit.id != self._point(id)
                score = hit.score - LINE_AWAY * of_line
                if score > scores.get(id, -math.inf):
                    scores[id] = score
                    if scores is self.scores["dense"]:
                        self.nearest[id] = hit.id if of_line else ""

    def candidate(self, id: str, query: float, documents: int, background: Background) -> Candidate:
        """What is known of one memory. `query` is the sum of the squared weights of the query's words."""
        cosine = self.scores["dense"].get(id)
        return Candidate(
            id,
            ranks={source: ranks[id] for source, ranks in self.ranks.items() if id in ranks},
            scores={source: scores[id] for source, scores in self.scores.items() if id in scores},
            near=None if cosine is None else background.above(cosine),
            words=word_strength(self.scores["sparse"].get(id, 0.0), query, documents),
            nearest=self.nearest.get(id, ""),
        )
