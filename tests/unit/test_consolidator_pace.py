"""A round of consolidation gives way to the folds of its process."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from memctl.workers.processors import consolidator
from memctl.workers.processors.consolidator import LONGEST_REST_S, PART, REST, GivesWay


def work(parts: int, seconds: float) -> Iterator[int]:
    """As many things as are in so many parts, each part of which takes so long."""
    for number in range(parts * PART + 1):
        until = time.thread_time() + seconds / PART
        while time.thread_time() < until:
            pass
        yield number


@pytest.mark.parametrize(("parts", "seconds", "rest"), [(4, 0.05, 0.05 * REST), (1, 0.7, LONGEST_REST_S)])
def test_it_rests_several_times_as_long_as_it_works_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, parts: int, seconds: float, rest: float
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    assert list(GivesWay()(work(parts, seconds))) == list(range(parts * PART + 1))
    assert sum(rests) == pytest.approx(parts * rest, rel=0.25)


def test_all_parts_of_a_round_rest_only_so_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    monkeypatch.setattr(consolidator, "MOST_REST_S", 0.3)
    pace = GivesWay()
    for _ in range(3):
        list(pace(work(1, 0.05)))
    assert sum(rests) == pytest.approx(0.3)
