"""Candidates: what two sources said of one memory comes together, by memory and not by point."""

from __future__ import annotations

import pytest

from memctl.api.search.candidates import LINE_AWAY, _Found
from memctl.domain.retrieval.ranking import background_of, word_strength
from memctl.infra.vectors.searches import Hit


def point(memory: str) -> str:
    return f"point of {memory}"


def a_hit(memory: str, score: float, before: str = "") -> Hit:
    return Hit(point(memory), score, memory, before)


def test_each_source_is_asked_for_what_only_the_other_found() -> None:
    found = _Found(point)
    found.add([a_hit("a", 0.9), a_hit("b", 0.8)], [a_hit("b", 7.0, before="a"), a_hit("c", 5.0)])
    assert found.missing(()) == (["point of c"], ["point of a"])
    assert found.missing(("b",)) == (["point of c"], ["point of a"])
    found.fill([a_hit("c", 0.7)], [])
    background = background_of([0.5] * 400)
    made = {id: found.candidate(id, 4.0, 100, background) for id in "abc"}
    assert made["c"].near == pytest.approx(background.above(0.7))
    assert made["c"].ranks == {"sparse": 2}
    assert made["a"].words == 0.0
    assert made["b"].words == pytest.approx(word_strength(7.0, 4.0, 100))
    assert found.before == {"a": "", "b": "a", "c": ""}


def test_what_was_found_in_two_scopes_keeps_its_better_rank() -> None:
    found = _Found(point)
    found.add([a_hit("a", 0.9), a_hit("b", 0.8)], [])
    found.add([a_hit("b", 0.8)], [])
    assert found.candidate("b", 1.0, 10, background_of([])).ranks == {"dense": 1}


def a_line(memory: str, number: int, score: float) -> Hit:
    return Hit(f"line {number} of {memory}", score, memory)


def test_a_memory_is_as_near_as_its_nearest_line_which_counts_as_a_little_farther() -> None:
    found = _Found(point)
    found.add(
        [a_line("a", 2, 0.9), a_line("a", 1, 0.8), a_hit("b", 0.7), a_hit("a", 0.6)], [a_hit("a", 3.0, before="b")]
    )
    background = background_of([0.5] * 400)
    a, b = (found.candidate(id, 4.0, 100, background) for id in "ab")
    assert (a.ranks, b.ranks) == ({"dense": 1, "sparse": 1}, {"dense": 2})
    assert (a.scores["dense"], a.nearest) == (pytest.approx(0.9 - LINE_AWAY), "line 2 of a")
    assert a.near == pytest.approx(background.above(0.9 - LINE_AWAY))
    assert found.before == {"a": "b", "b": ""}
    assert found.missing(()) == ([], ["point of b"])


@pytest.mark.parametrize("lines_first", [True, False])
def test_of_a_memory_that_is_nearer_than_its_lines_no_line_is_shown(lines_first: bool) -> None:
    found = _Found(point)
    for hits in ([a_line("a", 1, 0.9)], [a_hit("a", 0.9)])[:: 1 if lines_first else -1]:
        found.add(hits, [])
    assert found.candidate("a", 1.0, 10, background_of([])).nearest == ""


def test_the_score_of_a_line_by_words_is_its_own() -> None:
    found = _Found(point)
    found.add([], [a_line("a", 1, 0.9)])
    assert found.candidate("a", 1.0, 10, background_of([])).scores == {"sparse": 0.9}
