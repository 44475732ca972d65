"""Figures that take long to count are counted when something is new, and seldom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memctl.api.checks.counting import GOOD_FOR_S, KEPT, SHARE, Counted


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


class Counting:
    """Counts how often it is asked, and takes its time."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds, self.times = clock, seconds, 0

    def __call__(self) -> int:
        self.clock.at += self.seconds
        self.times += 1
        return self.times


def test_the_same_memory_is_counted_once_and_another_again_after_a_while() -> None:
    clock = Clock()
    count = Counting(clock, 0.5)
    counted = Counted()
    assert [counted.of("a", "1", count, clock) for _ in range(3)] == [1, 1, 1]
    assert counted.of("a", "2", count, clock) == 1
    clock.at += SHARE * 0.5
    assert counted.of("a", "1", count, clock) == 1  # nothing is new
    assert counted.of("a", "2", count, clock) == 2
    assert counted.of("b", "2", count, clock) == 3
    clock.at += GOOD_FOR_S
    assert counted.of("b", "2", count, clock) == 4  # days pass


@given(st.lists(st.floats(0.001, 5), min_size=1, max_size=60), st.floats(0.01, 2))
def test_however_often_it_is_asked_for_counting_takes_a_twentieth_of_the_time(waits: list[float], takes: float) -> None:
    clock = Clock()
    count, counted = Counting(clock, takes), Counted()
    for version, wait in enumerate(waits):
        counted.of("a", str(version), count, clock)
        clock.at += wait
    assert (count.times - 1) * takes * (SHARE + 1) <= clock.at + 1e-6


def test_only_so_many_figures_are_kept() -> None:
    clock = Clock()
    count, counted = Counting(clock, 0.1), Counted()
    for key in range(KEPT + 1):
        counted.of(key, "1", count, clock)
    assert counted.of(KEPT, "1", count, clock) == KEPT + 1
    assert counted.of(0, "1", count, clock) == KEPT + 2
