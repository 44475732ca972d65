"""The memories that a search looks among, and which of them may answer."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from memctl.api.queries import bugs
from memctl.api.reading import models
from memctl.api.reading.consolidation_status import ConsolidationStatus, standings
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import Where, select, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.reading.staleness import stale
from memctl.domain.failures.matching import held_in
from memctl.domain.failures.signatures import errors_in
from memctl.domain.knowledge.memory import MemoryKind, memory_id
from memctl.domain.retrieval.intent import Period
from memctl.domain.retrieval.ranking import Candidate
from memctl.infra.embedders import Recipe
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.models import VectorModel
from memctl.infra.vectors.outbox import collection_of, stored_id
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory
from memctl.projections.vector_points import point_id

CANDIDATES = 50
"""Points asked of each source."""

SETTLED: tuple[MemoryKind, ...] = ("knowledge", "strategy")
"""Kinds of which a project has some hundreds at most: what is settled is a candidate whatever else was said."""

_SCANNED = 5_000
"""Newest memories that are looked through where there is no vector store."""

_MIDDLING = 0.6
"""Share of the greatest IDF that a word is given whose IDF is not known."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for: a text, and which memories may answer: those of the places and kinds, and of the time from
    `since` until `before` (in microseconds). A `period` is preferred, and no limit."""

    text: str
    places: Places
    kinds: tuple[str, ...] = ()
    period: Period | None = None
    since: int | None = None
    before: int | None = None
    settled: bool = False
    """Whether all that is settled there is a candidate."""
    most: int = CANDIDATES
    """Points asked of each source."""

    @property
    def latest(self) -> int | None:
        """`before` in milliseconds, as the store keeps them; the rows that come of it are looked at once more."""
        return None if self.before is None else -(-self.before // 1000)

    @property
    def settled_kinds(self) -> list[MemoryKind]:
        """Kinds of which all there is is a candidate."""
        return [kind for kind in SETTLED if not self.kinds or kind in self.kinds] if self.settled else []


class Corpus:
    """The memories that are searched, beside the vector store: those of a request's snapshot. A measurement has others,
    with the same methods."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def collection(self) -> str:
        """Name of their collection in the vector store."""
        model = self._model
        return collection_of(self._reader.connection, self._reader.live.stage2, model.name if model else "")

    def recipe(self) -> Recipe | None:
        """How its dense vectors were made; None where nothing is known of them."""
        return self._model.recipe if self._model is not None else None

    @cached_property
    def _model(self) -> VectorModel | None:
        return vector_models.models(self._reader.connection).serving

    @property
    def space(self) -> str:
        """Name of the space that they are of."""
        return self._reader.space

    def alone(self) -> bool:
        """Whether that collection holds nothing of another space."""
        return self._reader.alone

    def point(self, memory: str) -> str:
        """Id of a memory's point in it."""
        return stored_id((self._reader.space_id, point_id(memory)))

    def rows(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Memories by id; those that are gone are left out."""
        return several(self._reader, models.memories, ids)

    def known_errors(self, query: str, places: Places) -> dict[str, float]:
        """Memory ids of known errors that the query shows, with their likeness (0 to 1)."""
        errors = errors_in(query, "", failed=False)
        if not errors:
            return {}
        found = bugs.like(self._reader, errors, places)
        return {memory_id("bug_pattern", each.pattern.signature): each.match.score for each in found[:CANDIDATES]}

    def held(self, query: str, rows: Iterable[Memory]) -> set[str]:
        """Those of these that are known errors whose very message the query holds."""
        ids = {row.source.key: row.id for row in rows if row.kind == "bug_pattern"}
        patterns = several(self._reader, models.bug_patterns, list(ids)) if ids else {}
        templates = {ids[key]: pattern.template for key, pattern in patterns.items()}
        return held_in(query, templates)

    def stale(self, rows: Iterable[Memory]) -> set[str]:
        """Claims about files that have changed since the claim was last seen to hold."""
        return stale(self._reader, rows)

    def regards(self, memories: Sequence[str]) -> Mapping[str, MemoryFeedback]:
        """What people said of memories, by their id; those that nobody spoke of are left out."""
        return regards(self._reader, memories)

    def standings(self, rows: Iterable[Memory]) -> Mapping[str, ConsolidationStatus]:
        """How memories stand to each other, by their id; those of which nothing was recorded are left out."""
        return standings(self._reader, rows)

    def by_words(self, looked_for: Sequence[str], wanted: Wanted) -> dict[str, Candidate]:
        """Without a vector store: those of the newest memories that hold most of the words, by plain matching."""
        p = models.memories
        places, kinds, period = wanted.places, wanted.kinds, wanted.period
        words = [word for word in looked_for if len(word) > 1][:24]
        if not words and period is None:
            return {}
        conditions = Where(p).within(places, or_everywhere=True).between("occurred_at", wanted.since, wanted.before)
        if kinds:
            conditions = conditions.one_of("kind", kinds)
        if period is not None and not words:
            conditions = conditions.between("occurred_at", period.since, period.before)
        found = select(
            self._reader, p,
            "SELECT key, held FROM (SELECT key, at,"
            " (SELECT count(*) FROM unnest(%s::text[]) AS w WHERE position(w IN said) > 0) AS held"
            " FROM (SELECT key, lower(row->>'search_text') AS said, (row->>'occurred_at')::bigint AS at FROM {rows}"
            "  ORDER BY (row->>'occurred_at')::bigint DESC LIMIT %s) AS newest) AS counted"
            " WHERE held > 0 OR %s ORDER BY held DESC, at DESC LIMIT %s",
            _SCANNED, not words, 2 * CANDIDATES, conditions=conditions, before=[words],
        )  # fmt: skip
        return {
            # Without the index nobody knows how rare a word is: each counts as middling.
            key: Candidate(key, words=_MIDDLING * held / math.sqrt(max(len(words), 1))).seen("words", rank, float(held))
            for rank, (key, held) in enumerate(found, 1)
        }
