"""Measures of retrieval: worked examples, and what holds for every ranking."""

from __future__ import annotations

import pytest
from evaluation.metrics import (
    Judged,
    abstention_curve,
    figures,
    hit,
    ndcg,
    percentile,
    recall,
    recall_all,
    reciprocal_rank,
)
from hypothesis import given
from hypothesis import strategies as st

ids = st.lists(st.sampled_from("abcdefgh"), unique=True)
golds = st.frozensets(st.sampled_from("abcdefgh"), min_size=1)


def judged(ranked: str, gold: str, best: str = "suggested", score: float = 0.8, hidden: str | None = None) -> Judged:
    return Judged(
        ranked=tuple(ranked), gold=frozenset(gold), best_class=best, best_score=score, hidden_class=hidden,
        hidden_score=0.3,
    )  # fmt: skip


def test_a_worked_example() -> None:
    ranked, gold = "xaybz", {"a", "b"}
    assert (hit(ranked, gold, 1), hit(ranked, gold, 2)) == (0.0, 1.0)
    assert (recall(ranked, gold, 2), recall(ranked, gold, 4)) == (0.5, 1.0)
    assert (recall_all(ranked, gold, 3), recall_all(ranked, gold, 4)) == (0.0, 1.0)
    assert reciprocal_rank(ranked, gold) == 0.5
    # (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3))
    assert ndcg(ranked, gold, 10) == pytest.approx(0.6509, abs=1e-4)


@given(ids, golds)
def test_more_results_never_lower_a_measure(ranked: list[str], gold: frozenset[str]) -> None:
    for measure in (hit, recall, recall_all):
        values = [measure(ranked, gold, k) for k in range(9)]
        assert values == sorted(values)
        assert all(0 <= value <= 1 for value in values)


@given(golds)
def test_the_best_ranking_has_every_measure_at_one(gold: frozenset[str]) -> None:
    ranked = [*sorted(gold), "z"]
    found = [hit(ranked, gold, 1), recall(ranked, gold, 8), reciprocal_rank(ranked, gold), ndcg(ranked, gold, 8)]
    assert found == pytest.approx([1.0] * 4)


def test_silence_is_right_without_an_answer_and_a_loss_with_one() -> None:
    found = figures(
        [
            judged("ab", "a", hidden="none"),
            judged("ba", "a", hidden="suggested"),
            judged("ab", "a", best="none", hidden="none"),
            judged("ab", "", best="none"),
        ]
    )
    assert found["abstained"] == pytest.approx(3 / 4)
    assert found["lost"] == pytest.approx(1 / 3)
    assert found["abstention_precision"] == pytest.approx(3 / 4)
    assert found["precision_suggested"] == pytest.approx(1 / 2)
    assert found["hit@1"] == pytest.approx(2 / 3)


def test_the_curve_tells_what_a_stricter_threshold_would_keep_silent() -> None:
    many = [judged("a", "a", score=score / 10, hidden="none") for score in range(1, 11)]
    curve = abstention_curve(many, losses=(0.0, 0.3))
    assert curve[0.0] == 0.0  # the threshold .1 keeps no best of .3 silent
    assert curve[0.3] == 1.0
    assert abstention_curve([]) == {}


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile([3.0, 1.0, 2.0, 4.0], share) for share in (0.5, 0.75, 0.99)] == [2.0, 3.0, 4.0]
    assert percentile([], 0.5) == 0.0
