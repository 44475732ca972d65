"""Scores lent to neighbouring turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.neighbours import Lending, lent
from memctl.domain.scoring import USUAL, Candidate, background_of

strengths = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.floats(0, 5), st.none() | st.floats(-5, 9)), min_size=1
)
chain = {"b": "a", "c": "b", "d": "c", "e": "", "f": "f"}


def candidates(told: dict[str, tuple[float, float | None]]) -> dict[str, Candidate]:
    return {id: Candidate(id, words=words, near=near) for id, (words, near) in told.items()}


def test_a_turn_is_lent_the_more_the_nearer_its_neighbours_stand() -> None:
    told = candidates({"a": (1.0, 4.0), "b": (0.0, 0.0), "c": (2.0, -3.0), "d": (0.0, 0.0), "e": (3.0, 5.0)})
    found = lent(told, chain, Lending(words=0.5, near=0.5, spread=0.0))
    assert found["b"].words == pytest.approx(0.5 * 1.0 + 0.5 * 2.0)
    assert found["d"].words == pytest.approx(0.5 * 2.0 + 0.125 * 1.0)
    assert found["b"].near == pytest.approx(0.5 * 4.0)  # what is far lends nothing
    assert (found["e"].words, found["e"].near) == (3.0, 5.0)


def test_of_two_equal_turns_the_one_whose_neighbours_know_nothing_stands_behind() -> None:
    found = lent(candidates({"a": (0.0, 0.0), "b": (1.0, 4.0), "e": (1.0, 4.0)}), chain)
    assert found["b"].words < found["e"].words
    assert (found["b"].near or 0) < (found["e"].near or 0)


@given(strengths)
def test_nobody_comes_in_and_nobody_gets_more_than_all_have_together(
    told: dict[str, tuple[float, float | None]],
) -> None:
    given_ = candidates(told)
    found = lent(given_, chain)
    assert found.keys() == given_.keys()
    for id, each in found.items():
        assert 0 <= each.words <= sum(other.words for other in given_.values()) + 1e-9
        assert (each.near is None) == (given_[id].near is None)
        assert (each.near or 0) <= max(given_[id].near or 0, 0) + sum(max(o.near or 0, 0) for o in given_.values())


def test_a_ring_of_turns_ends() -> None:
    ring = candidates({"a": (1.0, None), "b": (1.0, None)})
    assert lent(ring, {"a": "b", "b": "a"}).keys() == {"a", "b"}


def test_the_background_of_hardly_anything_is_the_usual_one() -> None:
    assert background_of([]).mean == pytest.approx(USUAL.mean)
    assert background_of([]).deviation == pytest.approx(USUAL.deviation)
    many = background_of([0.1, 0.3] * 200)
    assert (many.mean, many.deviation) == (pytest.approx(0.2, abs=0.03), pytest.approx(0.1, abs=0.03))


@given(st.lists(st.floats(-1, 1), max_size=50))
def test_a_background_always_has_a_spread(cosines: list[float]) -> None:
    assert background_of(cosines).deviation > 0
