"""Candidates: what two sources said of one memory comes together, by memory and not by point."""

from __future__ import annotations

import pytest

from memctl.api.search.candidates import _Found
from memctl.domain.retrieval.ranking import background_of, word_strength
from memctl.infra.vectors.searches import Hit


def point(memory: str) -> str:
    return f"point of {memory}"


def a_hit(memory: str, score: float, before: str = "") -> Hit:
    return Hit(point(memory), score, memory, before)


def test_each_source_is_asked_for_what_only_the_other_found() -> None:
    found = _Found()
    found.add([a_hit("a", 0.9), a_hit("b", 0.8)], [a_hit("b", 7.0, before="a"), a_hit("c", 5.0)])
    assert found.missing((), point) == (["point of c"], ["point of a"])
    assert found.missing(("b",), point) == (["point of c"], ["point of a"])
    found.fill([a_hit("c", 0.7)], [])
    background = background_of([0.5] * 400)
    made = {id: found.candidate(id, 4.0, 100, background) for id in "abc"}
    assert made["c"].near == pytest.approx(background.above(0.7))
    assert made["c"].ranks == {"sparse": 2}
    assert made["a"].words == 0.0
    assert made["b"].words == pytest.approx(word_strength(7.0, 4.0, 100))
    assert found.before == {"a": "", "b": "a", "c": ""}


def test_what_was_found_in_two_scopes_keeps_its_better_rank() -> None:
    found = _Found()
    found.add([a_hit("a", 0.9), a_hit("b", 0.8)], [])
    found.add([a_hit("b", 0.8)], [])
    assert found.candidate("b", 1.0, 10, background_of([])).ranks == {"dense": 1}
