"""Search: understand, gather candidates, fuse, score, decide. Evidence is read for what is returned, and only that.

The parts that judge are pure and stand in `memctl.domain.intent` and `memctl.domain.scoring`; this file asks the
stores. What cannot be asked is left out, and the answer says so: without vectors it goes by words, without the vector
store by words in Postgres.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from psycopg import sql

from memctl.api import bugs
from memctl.api.evidence import events_of, evidence_of
from memctl.api.pages import projection_named, several, table_of
from memctl.api.places import Places, projects_of
from memctl.api.reader import Reader
from memctl.api.staleness import changed_since
from memctl.api.views import Found, SearchAnswer, SourceRow, moment
from memctl.domain.certainty import Class
from memctl.domain.errors import MemctlError
from memctl.domain.graduation import TIER_NAMES, USER_SAID
from memctl.domain.intent import PREFERRED, Understood, understand
from memctl.domain.memory import memory_id
from memctl.domain.scoring import (
    PROFILES,
    Candidate,
    Known,
    Profile,
    Scored,
    Source,
    Standing,
    decide,
    relevance,
    score,
    word_strength,
    worth_showing,
)
from memctl.domain.signatures import errors_in
from memctl.domain.text import sparse_query, tokens
from memctl.infra.outbox import backlog, collection_of
from memctl.infra.vectors import CollectionMissing, VectorStoreUnavailable
from memctl.projections.memories import Memory

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

    from memctl.infra.embedders import Embedder
    from memctl.infra.vectors.store import Hit

log = logging.getLogger("memctl.search")

MOST_RESULTS = 50

CANDIDATES = 50
"""Points asked of each source."""

_PATIENCE_S = 3
"""For the vector store; after it, search goes on without."""

_SCANNED = 5_000
"""Newest memories that are looked through where there is no vector store."""

_FEW = 1_000
_COUNT_FOR_S, _COUNT_FEW_FOR_S = 60.0, 5.0
"""How long a count of the points is good for, and while there are few."""

_LONGEST = 2_000
"""Characters of a query that words are taken from; the embedder reads fewer."""

WORDS_ONLY = "search goes by words alone: "


class UnknownProfile(MemctlError):
    """There is no scoring profile {profile!r}; the choices are {choices}."""

    exit_code = 2
    profile: str
    choices: str


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A search. `now` has its zone: "yesterday" is the caller's. `kinds` narrows to those kinds of memory."""

    query: str
    places: Places
    now: datetime
    limit: int = 5
    profile: str = "bounded"
    explain: bool = False
    kinds: tuple[str, ...] = ()


class Engine:
    """What searching needs beside the database: the vector store's client and the query embedder. Thread-safe.

    Both are loaded by `warm_up`, on a thread of its own: their imports take seconds.
    """

    def __init__(self, qdrant_url: str | None, qdrant_api_key: str | None, embedder: str, space: str) -> None:
        self._qdrant = (qdrant_url, qdrant_api_key)
        self._embedder_name = embedder
        self._space = space
        self._client: QdrantClient | None = None
        self._embedder: Embedder | None = None
        self._why_no_client = (
            "the vector store's client is still being loaded" if qdrant_url else "no vector store is set"
        )
        self._why_no_embedder = (
            "the setting `embedder` is none" if embedder == "none" else "the embedder is still being loaded"
        )
        self._loading = threading.Lock()
        self._counted = ("", 0, 0.0)

    def warm_up(self) -> None:
        """Load the client and the embedder; what fails is told with every answer."""
        with self._loading:
            url, key = self._qdrant
            if url and self._client is None:
                try:
                    from memctl.infra.vectors import store

                    self._client = store.connect(url, key, timeout=_PATIENCE_S)
                except Exception as why:
                    log.exception("the vector store's client could not be loaded")
                    self._why_no_client = f"the vector store's client could not be loaded ({why})"
            if self._embedder_name != "none" and self._embedder is None:
                try:
                    from memctl.infra.embedders import load_embedder

                    embedder = load_embedder(self._embedder_name)
                    if embedder is not None:
                        embedder.embed_query("warm up")
                    self._embedder = embedder
                except Exception as why:
                    log.exception("the embedder could not be loaded")
                    self._why_no_embedder = f"the embedder could not be loaded ({why})"

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def condition(self, reader: Reader) -> list[str]:
        """What searches must do without right now, in words; empty when all is well."""
        gathered = self._gather(reader, "memctl", Places(None, "everywhere", None), (), None)
        missing = list(gathered.degraded)
        to_write, to_embed = backlog(reader.connection, reader.live.stage2)
        if to_write:
            missing.append(f"{to_write} memories are not in the vector store yet")
        if to_embed and self._embedder is not None:
            missing.append(f"{to_embed} memories wait for their dense vector")
        return missing

    def search(self, reader: Reader, asked: Question) -> SearchAnswer:
        """The best memories for a question. Raises: UnknownProfile."""
        profile_of(asked.profile)
        began = time.perf_counter()
        query = asked.query[:_LONGEST]
        meant = understand(query, asked.now)
        # Words that told a time are looked for elsewhere; of a query that is nothing else, all of it is kept.
        gathered = self._gather(reader, meant.content or query, asked.places, asked.kinds, meant)
        if not asked.kinds:
            for id, likeness in self._known_errors(reader, asked, query).items():
                had = gathered.candidates.get(id, Candidate(id))
                gathered.candidates[id] = msgspec.structs.replace(had, matched=likeness)
        rows, chosen = self._chosen(reader, asked, meant, gathered)
        return SearchAnswer(
            query=asked.query,
            scope=asked.places.scope,
            intent=meant.intent,
            profile=asked.profile,
            degraded=gathered.degraded,
            results=_told(reader, asked, meant, chosen, rows),
            took_ms=round((time.perf_counter() - began) * 1000, 1),
        )

    def bugs_like(self, reader: Reader, text: str, places: Places) -> dict[str, float]:
        """Signatures of known errors that a text may tell of in other words, with the chance that it does (0 to 1)."""
        gathered = self._gather(reader, text[:_LONGEST], places, ("bug_pattern",), None)
        rows: dict[str, Memory] = several(reader, projection_named("memories"), list(gathered.candidates))
        return {row.source.key: relevance(gathered.candidates[id]) for id, row in rows.items()}

    def episodes_like(self, reader: Reader, text: str, places: Places, now: datetime) -> list[str]:
        """Ids of the episodes most like a text, best first."""
        asked = Question(query=text, places=places, now=now, limit=MOST_RESULTS, kinds=("episode",))
        return [found.source.key for found in self.search(reader, asked).results]

    # --- candidates ---

    def _gather(
        self,
        reader: Reader,
        text: str,
        places: Places,
        kinds: Sequence[str],
        meant: Understood | None,
        *,
        dense: bool = True,
    ) -> _Gathered:
        """Candidates of every source that can be asked, by memory id, with the words that were looked for."""
        gathered = _Gathered()
        vector = self._embedded(text, gathered) if dense else None
        client = self._client
        if client is None:
            gathered.degraded.append(WORDS_ONLY + self._why_no_client)
        else:
            try:
                self._ask_vectors(client, reader, text, vector, places, kinds, meant, gathered)
                return gathered
            except CollectionMissing:
                gathered.degraded.append(WORDS_ONLY + "the vector collection is not built yet")
            except VectorStoreUnavailable as why:
                log.warning("a search goes on without the vector store: %s", why)
                gathered.degraded.append(WORDS_ONLY + "the vector store does not answer")
        looked_for = list(dict.fromkeys(tokens(text)))
        gathered.candidates = _by_words(reader, looked_for, places, kinds, meant)
        return gathered

    def _embedded(self, text: str, gathered: _Gathered) -> list[float] | None:
        if self._embedder is None:
            gathered.degraded.append(WORDS_ONLY + self._why_no_embedder)
            return None
        vector: list[float] = self._embedder.embed_query(text).tolist()
        return vector

    def _ask_vectors(
        self,
        client: QdrantClient,
        reader: Reader,
        text: str,
        vector: list[float] | None,
        places: Places,
        kinds: Sequence[str],
        meant: Understood | None,
        gathered: _Gathered,
    ) -> None:
        from memctl.infra.vectors import store

        name = collection_of(reader.connection, reader.live.stage2)
        documents = self._documents(client, name)
        period = meant.period if meant else None
        locations = None if places.locations is None else [*places.locations, store.EVERYWHERE]
        scopes = [store.Scope(self._space, locations=locations, kinds=list(kinds) or None)]
        if period is not None:
            # A time is a preference, not a filter; but what happened then must be among the candidates.
            since, before = period.since // 1000, period.before // 1000
            scopes.append(store.Scope(self._space, locations, kinds=list(kinds) or None, since=since, before=before))
        indices, weights = sparse_query(text)
        for scope in scopes:
            hits = store.hybrid_query(client, name, scope, dense=vector, sparse=(indices, weights), limit=CANDIDATES)
            gathered.add(hits.dense, hits.sparse, documents, sum(weight * weight for weight in weights))
            if scope.since is not None:
                gathered.timely = {hit.payload["memory_id"] for hit in (*hits.dense, *hits.sparse)}

    def _known_errors(self, reader: Reader, asked: Question, query: str) -> dict[str, float]:
        """Memory ids of known errors that the query shows, with their likeness (0 to 1)."""
        errors = errors_in(query, "", failed=False)
        if not errors:
            return {}
        found = bugs.like(reader, errors, asked.places)
        return {memory_id("bug_pattern", each.pattern.signature): each.match.score for each in found[:CANDIDATES]}

    def _documents(self, client: QdrantClient, collection: str) -> int:
        """About how many points the collection holds: rarity of words is measured by it."""
        from memctl.infra.vectors import store

        known, count, at = self._counted
        if known != collection or time.monotonic() - at > (_COUNT_FOR_S if count > _FEW else _COUNT_FEW_FOR_S):
            count = store.count(client, collection)
            self._counted = (collection, count, time.monotonic())
        return count

    # --- judgement ---

    def _chosen(
        self, reader: Reader, asked: Question, meant: Understood, gathered: _Gathered
    ) -> tuple[dict[str, Memory], list[tuple[Scored, Class]]]:
        """Results with their classes, best first, and the memories they are."""
        worth = [c for c in gathered.candidates.values() if worth_showing(c, c.id in gathered.timely)]
        worth.sort(key=lambda c: (c.id not in gathered.timely, -relevance(c), c.id))
        # No profile lifts what is far down in relevance to the top; rows cost more than ranks.
        worth = worth[: asked.limit + CANDIDATES]
        rows: dict[str, Memory] = several(reader, projection_named("memories"), [c.id for c in worth])
        # A row that is missing was forgotten, or refolded, since the vector store heard of it.
        stale = _stale(reader, rows.values())
        known = [_known(c, row, asked, meant, stale=row.id in stale) for c, row in _distinct(worth, rows)]
        words = (
            {id: frozenset(tokens(f"{row.title} {row.gist}")) for id, row in rows.items()} if _diverse(asked) else {}
        )
        ranked = score(known, profile_of(asked.profile), lambda a, b: _overlap(words[a], words[b]), asked.limit)
        return rows, list(zip(ranked, decide(ranked), strict=True))


def profile_of(name: str) -> Profile:
    """The scoring profile of that name. Raises: UnknownProfile."""
    found = PROFILES.get(name)
    if found is None:
        raise UnknownProfile(profile=name, choices=", ".join(PROFILES))
    return found


def _distinct(worth: Iterable[Candidate], rows: Mapping[str, Memory]) -> Iterator[tuple[Candidate, Memory]]:
    """The candidates whose memories are there; a claim of several worktrees of a project is one to who asks."""
    told: set[str] = set()
    for candidate in worth:
        row = rows.get(candidate.id)
        if row is None or row.text in told:
            continue
        if row.kind == "knowledge":
            told.add(row.text)
        yield candidate, row


def _stale(reader: Reader, rows: Iterable[Memory]) -> set[str]:
    """Claims about files that have changed since the claim was last seen to hold."""
    claims = [row for row in rows if row.kind == "knowledge" and row.files]
    changed = changed_since(reader, (path for row in claims for path in row.files))
    return {row.id for row in claims if any(changed.get(path, 0) > row.last_at for path in row.files)}


def _known(candidate: Candidate, row: Memory, asked: Question, meant: Understood, *, stale: bool) -> Known:
    """A candidate with what its memory says. What is stale is demoted as if something spoke against it."""
    now = (asked.now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    period = meant.period
    in_period = None if period is None else period.since <= row.occurred_at < period.before
    if asked.profile == "hybrid_search":
        from rapidfuzz import fuzz

        alike = fuzz.token_set_ratio(asked.query[:300].lower(), row.title.lower()) / 100
        candidate = msgspec.structs.replace(candidate, fuzzy=alike)
    if in_period and len(tokens(meant.content)) < 2:
        # Little else was asked for than the time, and this is of it.
        candidate = msgspec.structs.replace(candidate, matched=max(candidate.matched, row.importance))
    standing = Standing(
        age_days=max(now - row.occurred_at, 0) / 86_400e6,
        importance=row.importance,
        confidence=row.confidence,
        confirmed=(row.status == "verified" and not stale) or (row.kind == "bug_pattern" and row.outcome == "solved"),
        conflicted=row.status == "conflicted" or stale,
        preferred=row.bucket in PREFERRED[meant.intent],
        in_period=in_period,
    )
    return Known(candidate, standing)


def _diverse(asked: Question) -> bool:
    return profile_of(asked.profile).diverse


def _overlap(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 0.0


def _told(
    reader: Reader, asked: Question, meant: Understood, chosen: Sequence[tuple[Scored, Class]], rows: dict[str, Memory]
) -> list[Found]:
    events = events_of(reader, [span for each, _ in chosen for span in rows[each.id].evidence])
    found = []
    for each, class_ in chosen:
        row = rows[each.id]
        found.append(
            Found(
                id=row.id,
                text=row.text,
                title=row.title,
                score=each.score,
                class_=class_,
                bucket=row.bucket,
                kind=row.kind,
                project=projects_of(reader).name_of(row.location),
                occurred_at=moment(row.occurred_at),
                evidence=evidence_of(row.evidence, events),
                why=_why(each, row, meant),
                source=SourceRow(row.source.projection, row.source.key),
                status=row.status,
                outcome=row.outcome,
                confidence=row.confidence,
                explain=_explained(each) if asked.explain else msgspec.UNSET,
            )
        )
    return found


class _Gathered:
    """Candidates by memory id, and what had to be left out."""

    def __init__(self) -> None:
        self.candidates: dict[str, Candidate] = {}
        self.timely: set[str] = set()
        """Those that are known to have happened when the query says."""
        self.degraded: list[str] = []

    def add(self, dense: Sequence[Hit], sparse: Sequence[Hit], documents: int, words: float) -> None:
        """Take in one scope's ranked lists; a memory that came in already keeps its better rank. `words` is what the
        query's words weigh together."""
        # What a full list of the nearest leaves out is no nearer than its last; a short list leaves out only what has
        # no vector yet, of which nothing is known.
        farthest = dense[-1].score if len(dense) >= CANDIDATES else None
        near = {hit.payload["memory_id"]: hit.score for hit in dense}
        lists: tuple[tuple[Source, Sequence[Hit]], ...] = (("dense", dense), ("sparse", sparse))
        for source, hits in lists:
            for rank, hit in enumerate(hits, 1):
                id = hit.payload["memory_id"]
                had = self.candidates.get(id, Candidate(id)).seen(source, rank, hit.score)
                if source == "sparse":
                    strength = word_strength(hit.score, words, max(documents, len(sparse)))
                    had = msgspec.structs.replace(had, words=max(had.words, strength))
                if had.cosine is None or id in near:
                    had = msgspec.structs.replace(had, cosine=near.get(id, farthest))
                self.candidates[id] = had


_MIDDLING = 0.6
"""Share of the greatest IDF that a word is given whose IDF is not known."""


def _by_words(
    reader: Reader, looked_for: Sequence[str], places: Places, kinds: Sequence[str], meant: Understood | None
) -> dict[str, Candidate]:
    """Without a vector store: those of the newest memories that hold most of the words, by plain matching."""
    p = projection_named("memories")
    period = meant.period if meant else None
    words = [word for word in looked_for if len(word) > 1][:24]
    if not words and period is None:
        return {}
    conditions = [sql.SQL("space_id = %(space)s")]
    values: dict[str, Any] = {"space": reader.space_id, "scanned": _SCANNED}
    if places.locations is not None:
        conditions.append(sql.SQL("row->>'location' = ANY(%(locations)s::text[])"))
        values["locations"] = [*places.locations, ""]
    if kinds:
        conditions.append(sql.SQL("row->>'kind' = ANY(%(kinds)s::text[])"))
        values["kinds"] = list(kinds)
    if not words and period is not None:
        conditions.append(sql.SQL("(row->>'occurred_at')::bigint BETWEEN %(since)s AND %(before)s"))
        values |= {"since": period.since, "before": period.before}
    values |= {"words": words, "limit": CANDIDATES * 2}
    found = reader.connection.execute(
        sql.SQL(
            "SELECT key, held FROM (SELECT key, at,"
            " (SELECT count(*) FROM unnest(%(words)s::text[]) AS w WHERE position(w IN said) > 0) AS held"
            " FROM (SELECT key, lower(row->>'search_text') AS said, (row->>'occurred_at')::bigint AS at FROM {table}"
            "  WHERE {where} ORDER BY (row->>'occurred_at')::bigint DESC LIMIT %(scanned)s) AS newest) AS counted"
            " WHERE held > 0 OR %(words)s::text[] = '{{}}' ORDER BY held DESC, at DESC LIMIT %(limit)s"
        ).format(table=table_of(reader, p), where=sql.SQL(" AND ").join(conditions)),
        values,
    )
    return {
        # Without the index nobody knows how rare a word is: each counts as middling.
        key: Candidate(key, words=_MIDDLING * held / math.sqrt(max(len(words), 1))).seen("words", rank, float(held))
        for rank, (key, held) in enumerate(found, 1)
    }


def _why(scored: Scored, row: Memory, meant: Understood) -> str:
    """How it was found and what speaks for it, in a few words."""
    candidate = scored.known.candidate
    how = []
    if candidate.matched:
        how.append("the same error" if candidate.matched >= 1 else "a like error")
    if "sparse" in candidate.ranks or "words" in candidate.ranks:
        how.append("same words")
    if "dense" in candidate.ranks:
        how.append("near in meaning")
    if meant.period is not None and scored.known.standing.in_period:
        how.append(f"from {meant.period.words}")
    if row.status == "verified" and not scored.known.standing.conflicted:
        how.append("verified" if row.confidence < 1 else TIER_NAMES[USER_SAID])
    elif row.status == "conflicted":
        how.append("contradicted")
    if scored.known.standing.conflicted and row.status != "conflicted":
        how.append("its file has changed since")
    if row.kind in ("bug_pattern", "episode") and row.outcome:
        how.append(row.outcome)
    return ", ".join(how)


def _explained(scored: Scored) -> dict[str, Any]:
    candidate = scored.known.candidate
    return {
        "ranks": candidate.ranks,
        "raw": candidate.scores,
        "word_strength": round(candidate.words, 4),
        "cosine": None if candidate.cosine is None else round(candidate.cosine, 4),
        "matched": candidate.matched,
        "parts": {name: round(value, 4) for name, value in scored.parts.items()},
        "age_days": round(scored.known.standing.age_days, 1),
    }
