"""How good a ranking is: the usual measures of retrieval, over one question's results or over many. All in 0 to 1."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import msgspec


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One question's outcome: the ids that came, best first; those that answer it (none: it cannot be answered); class
    and score of the best result, and those of the best with the answers hidden, None where it was not asked so."""

    ranked: tuple[str, ...]
    gold: frozenset[str]
    best_class: str = "none"
    best_score: float = 0.0
    hidden_class: str | None = None
    hidden_score: float = 0.0
    took_ms: float = 0.0

    @property
    def answerable(self) -> bool:
        return bool(self.gold)


def hit(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Whether one of the answers is among the first k."""
    return float(any(id in gold for id in ranked[:k]))


def recall(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Share of the answers that are among the first k."""
    return len(set(ranked[:k]) & set(gold)) / len(gold) if gold else 0.0


def recall_all(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Whether all answers are among the first k."""
    return float(bool(gold) and set(gold) <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float:
    """One over the rank of the first answer; 0 where none came."""
    return next((1 / rank for rank, id in enumerate(ranked, 1) if id in gold), 0.0)


def ndcg(ranked: Sequence[str], gold: Collection[str], k: int) -> float:
    """Normalised discounted cumulative gain with gains of 0 and 1 (Järvelin and Kekäläinen, 2002)."""
    gained = sum(1 / math.log2(rank + 1) for rank, id in enumerate(ranked[:k], 1) if id in gold)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))
    return gained / best if best else 0.0


def percentile(values: Iterable[float], share: float) -> float:
    """The value that a share of the values does not exceed (nearest rank); 0 of none."""
    ordered = sorted(values)
    return ordered[min(max(math.ceil(share * len(ordered)) - 1, 0), len(ordered) - 1)] if ordered else 0.0


def figures(judged: Sequence[Judged]) -> dict[str, float]:
    """Every measure over many questions, by name; those without a single case are left out.

    `abstained` is the share of the unanswerable (marked so, or their answers hidden) that were offered nothing, `lost`
    the share of the answerable that were; `abstention_precision` how many of all that were offered nothing had no
    answer; `high` and `suggested` how often the best result of that class was right.
    """
    asked = [each for each in judged if each.answerable]
    nothing = [each.best_class == "none" for each in judged if not each.answerable]
    nothing += [each.hidden_class == "none" for each in asked if each.hidden_class is not None]
    lost = [each.best_class == "none" for each in asked]
    found = _of_ranking(asked) if asked else {}
    if nothing:
        found["abstained"] = _mean(nothing)
        if sum(nothing) + sum(lost):
            found["abstention_precision"] = sum(nothing) / (sum(nothing) + sum(lost))
    if asked:
        found["lost"] = _mean(lost)
    if any(each.took_ms for each in judged):
        for share in (0.50, 0.95, 0.99):
            found[f"p{share * 100:.0f}_ms"] = percentile((each.took_ms for each in judged), share)
    return found


def _of_ranking(asked: Sequence[Judged]) -> dict[str, float]:
    """Where the right answers stand among the results of answerable questions, at least one."""
    found: dict[str, float] = {}
    for k in (1, 5, 10):
        found[f"hit@{k}"] = _mean(hit(each.ranked, each.gold, k) for each in asked)
    for k in (5, 10):
        found[f"recall@{k}"] = _mean(recall(each.ranked, each.gold, k) for each in asked)
    found["recall_all@10"] = _mean(recall_all(each.ranked, each.gold, 10) for each in asked)
    found["ndcg@10"] = _mean(ndcg(each.ranked, each.gold, 10) for each in asked)
    found["mrr"] = _mean(reciprocal_rank(each.ranked, each.gold) for each in asked)
    for name in ("high", "suggested"):
        those = [hit(each.ranked, each.gold, 1) for each in asked if each.best_class == name]
        if those:
            found[f"precision_{name}"] = _mean(those)
            found[f"share_{name}"] = len(those) / len(asked)
    return found


def abstention_curve(judged: Sequence[Judged], losses: Sequence[float] = (0.05, 0.1, 0.2, 0.3)) -> dict[float, float]:
    """For each share of the answerable that one is ready to lose, the share of the unanswerable that a threshold on the
    best score would keep silent."""
    asked = sorted(each.best_score for each in judged if each.answerable)
    without = [each.hidden_score for each in judged if each.hidden_class is not None]
    without += [each.best_score for each in judged if not each.answerable]
    if not asked or not without:
        return {}
    found = {}
    for loss in losses:
        threshold = asked[min(int(loss * len(asked)), len(asked) - 1)]
        found[loss] = _mean(score < threshold for score in without)
    return found


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
