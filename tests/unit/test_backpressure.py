"""How many events may wait to be folded as somebody appends in bulk."""

from __future__ import annotations

import pytest

from memctl.domain.events.event import Position
from memctl.infra.backpressure import LATELY_S, LEAST_UNFOLDED, MOST_UNFOLDED, WORK_S, Pace


@pytest.mark.parametrize(
    ("rate", "most"),
    [(0, LEAST_UNFOLDED), (100, LEAST_UNFOLDED), (3_000, 3_000 * WORK_S), (1_000_000, MOST_UNFOLDED)],
)
def test_as_many_events_may_wait_as_the_folds_take_half_a_second_for(rate: int, most: float) -> None:
    pace = Pace()
    for step in range(20):
        pace.saw(step / 10, Position(step * rate // 10))
    assert pace.most == most


def test_what_the_folds_did_a_while_ago_does_not_count() -> None:
    pace = Pace()
    for step in range(20):
        pace.saw(step / 10, Position(step * 500))
    pace.saw(LATELY_S + 3, Position(20_000))
    pace.saw(LATELY_S + 4, Position(22_000))
    assert pace.most == 2_000 * WORK_S
