"""How long the sweeper waits."""

from __future__ import annotations

import pytest
from redis import Redis

from memctl.infra.database import DatabaseUnavailable
from memctl.workers.folding.drain import Drainer
from memctl.workers.runtime.sweeper import EVERY_S, LONGEST_PAUSE_S, Sweeper

ROUNDS = 9


class Stop:
    """Asks to stop after some rounds; notes how long each is waited for, and waits for none."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def wait(self, pause: float) -> bool:
        self.waited.append(pause)
        return len(self.waited) > ROUNDS


@pytest.fixture
def nowhere() -> Sweeper:
    return Sweeper(Drainer("postgresql:///?host=/nowhere/at/all"), Redis(), "1", lambda: None)


def test_a_sweep_that_fails_from_the_first_waits_longer_each_time(nowhere: Sweeper) -> None:
    stop = Stop()
    nowhere.run(stop)  # type: ignore[arg-type]
    first, *then = stop.waited
    assert (first, then[0], then[-1]) == (0.0, EVERY_S, LONGEST_PAUSE_S)
    assert then == sorted(then)


def test_what_keeps_a_sweep_from_going_on_is_raised(nowhere: Sweeper) -> None:
    with pytest.raises(DatabaseUnavailable):
        nowhere.sweep()
