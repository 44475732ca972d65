"""Peers: simple and strong ways to search the same passages, asked the same questions in the same run."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import Stemmer
from evaluation import Asked, Dataset, Passage
from evaluation.bench import embedded
from evaluation.metrics import Judged
from mem0_peer import Mem0, lacking

from memctl.domain.support import patterns

if TYPE_CHECKING:
    from memctl.infra.embedders import Embedder, Vectors

Ranks = Callable[[Asked], list[str]]
"""Ids of passages for a question, best first."""

_WORDS = patterns.compile(r"\w+")
_K1, _B, _RRF_K = 1.2, 0.75, 60
_DEPTH = 100


def judged(questions: Sequence[Asked], rank: Ranks) -> list[Judged]:
    """Each question's outcome; a peer has no classes, so it abstains from nothing."""
    found = []
    for asked in questions:
        began = time.perf_counter()
        ranked = tuple(rank(asked))
        took = (time.perf_counter() - began) * 1000
        found.append(Judged(ranked=ranked, gold=asked.gold, best_class="", took_ms=took))
    return found


def peers(dataset: Dataset, embedder: Embedder | None) -> dict[str, Ranks]:
    """The peers that can be asked, by name."""
    scopes: dict[str, list[Passage]] = defaultdict(list)
    for passage in dataset.passages:
        scopes[passage.scope].append(passage)
    by_words = {scope: BM25(passages) for scope, passages in scopes.items()}
    found: dict[str, Ranks] = {"BM25, stemmed": lambda asked: by_words[asked.scope].rank(asked.query)}
    if embedder is not None:
        vectors = embedded([each.text for each in dataset.passages], embedder, lambda line: None)
        dense = _Dense(dataset.passages, vectors, embedder)

        def fused(asked: Asked) -> list[str]:
            scores: Counter[str] = Counter()
            for ranked in (by_words[asked.scope].rank(asked.query), dense.rank(asked)):
                for rank, id in enumerate(ranked, 1):
                    scores[id] += 1 / (_RRF_K + rank)  # type: ignore[assignment]
            return sorted(scores, key=lambda id: -scores[id])

        found[f"{embedder.name} alone"] = dense.rank
        found["plain RRF of both"] = fused
        if lacking(embedder) is None:
            mem0 = Mem0(dataset.passages, vectors, embedder)
            found[mem0.name] = mem0.rank
    return found


def left_out(embedder: Embedder | None) -> dict[str, str]:
    """Peers that are not asked, each with the reason."""
    why = lacking(embedder)
    return {} if why is None else {"mem0": why}


class BM25:
    """Okapi BM25 over lowered words, stemmed in English; nothing else."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._ids = [each.id for each in passages]
        counts = [Counter(_stems(each.text)) for each in passages]
        average = sum(count.total() for count in counts) / max(len(counts), 1) or 1.0
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, count in enumerate(counts):
            norm = _K1 * (1 - _B + _B * count.total() / average)
            for word, times in count.items():
                self._postings[word].append((place, times * (_K1 + 1) / (times + norm)))

    def rank(self, query: str) -> list[str]:
        scores: dict[int, float] = defaultdict(float)
        for word in set(_stems(query)):
            postings = self._postings.get(word, ())
            idf = math.log(1 + (len(self._ids) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, weight in postings:
                scores[place] += idf * weight
        return [self._ids[place] for place in sorted(scores, key=lambda place: (-scores[place], place))[:_DEPTH]]


class _Dense:
    """Cosines of whole passages, as far as the embedder reads them."""

    def __init__(self, passages: Sequence[Passage], vectors: Vectors, embedder: Embedder) -> None:
        import numpy

        self._embedder = embedder
        rows: dict[str, list[int]] = defaultdict(list)
        for row, each in enumerate(passages):
            rows[each.scope].append(row)
        self._scopes = {
            scope: ([passages[row].id for row in those], vectors[numpy.array(those)]) for scope, those in rows.items()
        }

    def rank(self, asked: Asked) -> list[str]:
        ids, vectors = self._scopes[asked.scope]
        near = vectors @ self._embedder.embed_query(asked.query)
        return [ids[place] for place in near.argsort()[::-1][:_DEPTH].tolist()]


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _WORDS.findall(text.lower())]


@cache
def _stemmer() -> Stemmer.Stemmer:
    return Stemmer.Stemmer("english")


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem
