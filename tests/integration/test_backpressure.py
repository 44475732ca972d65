"""Whoever appends in bulk waits for folds, and not for nobody."""

from __future__ import annotations

import time

import pytest
from events import prompt
from histories import drained

from memctl.infra import backpressure
from memctl.infra.backpressure import FEW, Backpressure
from memctl.infra.database import Connection
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations


def test_a_lease_that_has_run_out_is_no_sign_that_somebody_folds(
    log: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backpressure, "MOST_UNFOLDED", 0)
    monkeypatch.setattr(backpressure, "IDLE_S", 0.3)
    monkeypatch.setattr(backpressure, "LONGEST_S", 5.0)
    append(log, 1, [prompt(1)])
    live = generations.ensure_live(log, 1)
    assert generations.acquire(log, live.stage1, 0, "of a worker that was killed") is not None
    log.execute("UPDATE memctl.offsets SET lease_until = clock_timestamp() - interval '1 s' WHERE owner IS NOT NULL")
    began = time.monotonic()
    with Backpressure(log, 1).room(FEW + 1):
        assert time.monotonic() - began < 2.0


def test_what_was_in_the_log_already_waits_for_no_fold(log: Connection, database_url: str) -> None:
    """An append of it takes positions, which nobody folds."""
    generations.ensure_live(log, 1)
    events = [prompt(n) for n in range(2 * backpressure.LEAST_UNFOLDED)]
    append(log, 1, events)
    drained(database_url)
    append(log, 1, events)
    slow = Backpressure(log, 1)
    began = time.monotonic()
    with slow.room(FEW + 1):
        assert time.monotonic() - began < backpressure.IDLE_S
