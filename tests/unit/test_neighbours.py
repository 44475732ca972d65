"""Scores lent to neighbouring turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.neighbours import LENT, lent
from memctl.domain.scoring import USUAL, Candidate, background_of

strengths = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.floats(0, 5), st.none() | st.floats(-5, 9)), min_size=1
)
chain = {"b": "a", "c": "b", "d": "c", "e": "", "f": "f"}


def candidates(told: dict[str, tuple[float, float | None]]) -> dict[str, Candidate]:
    return {id: Candidate(id, words=words, near=near) for id, (words, near) in told.items()}


def test_a_turn_is_lent_a_share_of_what_stands_before_and_after_it() -> None:
    found = lent(candidates({"a": (1.0, 4.0), "b": (0.0, 0.0), "c": (2.0, -3.0), "e": (3.0, 5.0)}), chain)
    assert found["b"].words == pytest.approx(LENT * 3.0)
    assert found["b"].near == pytest.approx(LENT * 4.0)  # what is far lends nothing
    assert (found["a"].words, found["c"].words) == (1.0, 2.0)
    assert (found["e"].words, found["e"].near) == (3.0, 5.0)


@given(strengths)
def test_nobody_loses_and_nobody_comes_in(told: dict[str, tuple[float, float | None]]) -> None:
    given_ = candidates(told)
    found = lent(given_, chain)
    assert found.keys() == given_.keys()
    for id, each in found.items():
        assert each.words >= given_[id].words
        assert (each.near is None) == (given_[id].near is None)
        assert (each.near or 0) >= (given_[id].near or 0)


def test_the_background_of_hardly_anything_is_the_usual_one() -> None:
    assert background_of([]).mean == pytest.approx(USUAL.mean)
    assert background_of([]).deviation == pytest.approx(USUAL.deviation)
    many = background_of([0.1, 0.3] * 200)
    assert (many.mean, many.deviation) == (pytest.approx(0.2, abs=0.03), pytest.approx(0.1, abs=0.03))


@given(st.lists(st.floats(-1, 1), max_size=50))
def test_a_background_always_has_a_spread(cosines: list[float]) -> None:
    assert background_of(cosines).deviation > 0
