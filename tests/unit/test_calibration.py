"""The chance that what was found bears on what was asked."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval.calibration import COEFFICIENTS, LIKELY, chance, logistic, parts, sort_of
from memctl.domain.retrieval.ranking import Candidate, Known, RankingFeatures, Scored, decide

SCORES = st.floats(min_value=0, max_value=1)


@given(SCORES, SCORES, SCORES)
def test_a_better_score_and_a_weaker_rival_never_lower_the_chance(low: float, high: float, rival: float) -> None:
    low, high = sorted((low, high))
    assert 0 <= chance(low, rival) <= chance(high, rival) <= 1
    assert chance(rival, high) <= chance(rival, low)


def test_a_low_score_that_nothing_comes_near_is_likely_and_one_among_equals_is_not() -> None:
    assert chance(0.5, 0.1) >= LIKELY
    assert chance(0.4, 0.4) < LIKELY
    assert chance(0.1, 0.01) < LIKELY


def test_the_coefficients_are_those_that_the_labels_give() -> None:
    labels = [Path(__file__).parents[1] / "eval" / f"{name}.json" for name in ("bearing", "needed", "answered")]
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in labels)).hexdigest()[:16]
    assert COEFFICIENTS.fitted_on == digest, "run `make calibrate`"


def test_a_memory_of_the_files_at_hand_is_likelier_and_an_unanswered_prompt_is_not() -> None:
    assert chance(0.3, 0.2) < LIKELY <= chance(0.3, 0.2, in_play=1) < chance(0.3, 0.2, in_play=2)
    assert chance(0.3, 0.2, "unanswered") <= chance(0.3, 0.2, "said") < chance(0.3, 0.2, "lesson")
    assert sort_of("turn", answered=False) == "unanswered"
    assert chance(0.3, 0.2) == logistic(sum(parts(0.3, 0.2).values()))


def ranked(**scores: float) -> list[Scored]:
    standing = RankingFeatures(age_days=1)
    return [Scored(Known(Candidate(id), standing), score, score, {}) for id, score in scores.items()]


def test_what_leads_all_other_sessions_is_suggested_with_what_stands_beside_it() -> None:
    found = ranked(a1=0.5, a2=0.4, a3=0.1, b=0.1)
    together = lambda one, other: one[0] == other[0]  # noqa: E731
    assert decide(found, together) == ["suggested", "suggested", "none", "none"]
    assert decide(found) == ["none"] * 4
    assert decide(ranked(a1=0.4, b=0.38), together) == ["none", "none"]
    assert decide([], together) == []
