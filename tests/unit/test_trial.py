"""A fold that is tried apart ends, or is ended, whatever its process was forked with."""

from __future__ import annotations

import os
import threading
import time

import pytest

from memctl.infra.readmodels.dead_letters import NoProgress
from memctl.workers.folding import trial


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "BLOCKED_S", 0.6)


def test_a_lock_that_another_thread_had_at_the_fork_is_no_fault_of_the_fold() -> None:
    held = [lock := threading.Lock()]
    lock.acquire()
    # In the first child it is held for ever, in whatever is forked after that by nobody.
    os.register_at_fork(after_in_parent=lambda: held and held.pop().release())
    trial.tried(lock.acquire, 2)
    assert not held


def test_a_fold_that_waits_for_ever_makes_no_progress() -> None:
    with pytest.raises(NoProgress):
        trial.tried(threading.Event().wait, 2)


def test_a_fold_that_goes_on_for_ever_is_ended_by_its_processor_time() -> None:
    def endless() -> None:
        while time.process_time() < 20:
            pass

    with pytest.raises(NoProgress):
        trial.tried(endless, 1)


def test_a_fold_that_raises_does_so_here() -> None:
    with pytest.raises(ZeroDivisionError):
        trial.tried(lambda: 1 // 0, 2)
