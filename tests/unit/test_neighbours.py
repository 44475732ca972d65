"""Scores lent to neighbouring turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval.neighbours import Lending, lent
from memctl.domain.retrieval.ranking import USUAL, Candidate, background_of

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


def test_of_two_turns_lent_the_same_the_one_with_more_neighbours_who_know_nothing_stands_behind() -> None:
    told = candidates(
        {"a": (2.0, 4.0), "b": (0.5, 1.0), "c": (0.0, 0.0), "d": (0.0, 0.0), "e": (2.0, 4.0), "f": (0.5, 1.0)}
    )
    found = lent(told, {"b": "a", "c": "b", "d": "c", "f": "e"})
    assert found["b"].words < found["f"].words
    assert (found["b"].near or 0) < (found["f"].near or 0)


@given(strengths)
def test_nobody_loses_by_having_neighbours(told: dict[str, tuple[float, float | None]]) -> None:
    given_ = candidates(told)
    for id, each in lent(given_, chain).items():
        assert each.words >= given_[id].words
        assert (each.near is None) == (given_[id].near is None)
        assert each.near is None or each.near >= (given_[id].near or 0.0)


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
    many = background_of([0.1, 0.3] * 1000)
    assert (many.mean, many.deviation) == (pytest.approx(0.2, abs=0.03), pytest.approx(0.1, abs=0.03))


def test_the_background_of_few_memories_of_one_subject_is_that_of_anything() -> None:
    anything = [0.74, 0.76, 0.78, 0.80]
    about_it = background_of([0.86, 0.88, 0.91], anything)
    assert about_it.above(0.91) > 3
    assert about_it.above(0.77) == pytest.approx(background_of([], anything).above(0.77), abs=0.5)
    assert background_of([], [0.8, 0.8]).above(0.9) > 0  # a model that sees no difference divides by nothing


@given(st.lists(st.floats(-1, 1), max_size=50))
def test_a_background_always_has_a_spread(cosines: list[float]) -> None:
    assert background_of(cosines).deviation > 0
