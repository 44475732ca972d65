"""Folds long sessions in a thread of the worker, while it goes on with all others.

Such a session is parked meanwhile. Its facts and rows are written when its fold is done, and its state is handed to who
folds the others, so that what comes next is folded on to it.
"""

import logging
import threading
import time
from collections.abc import Sequence

import psycopg

from memctl.domain.events.event import Event
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.read import StreamKey, read_streams
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import DeadLetter, Target, fault_message
from memctl.infra.readmodels.generations import LeaseHeld
from memctl.workers.folding.drain import OtherRules
from memctl.workers.folding.long_sessions import LongSessions
from memctl.workers.folding.refold import LiveChanged, refold
from memctl.workers.folding.stage1 import APART, folded_before
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork

log = logging.getLogger("memctl.worker")

LOOK_EVERY_S = 0.5
"""How often is looked whether one that rests is due, and whether to stop."""


class LongFolder:
    """Folds what a worker set aside since it is long, one session after the other."""

    def __init__(self, database_url: str, sessions: LongSessions) -> None:
        self._url = database_url
        self._sessions = sessions

    def run(self, stop: threading.Event) -> None:
        """Work until asked to stop. What cannot be folded is left to the trial, which finds out why."""
        while not stop.is_set():
            of = self._sessions.next(LOOK_EVERY_S)
            if of is None:
                continue
            try:
                with connect(self._url, name="memctl long folds") as connection:
                    self.fold(connection, *of)
            except MemoryError as problem:
                progress.end_for_memory(problem)
            except (LeaseHeld, LiveChanged, DatabaseUnavailable, psycopg.OperationalError) as problem:
                log.info("%s is folded again later: %s", Target("", *of[1]), fault_message(problem))
                self._sessions.rest(of[1], LOOK_EVERY_S)
                self._sessions.ask(*of)
            except OtherRules:
                continue  # all is rebuilt
            except Exception as problem:
                log.error("%s could not be folded beside others: %s", Target("", *of[1]), fault_message(problem))
                progress.ask_for_trial()
            finally:
                progress.slot().idle()

    def fold(self, connection: Connection, generation: int, key: StreamKey) -> None:
        """Fold a session that is parked, unless it no longer is. Raises: whatever `refold` or the fold raises."""
        letters = _waits(connection, generation, key)
        if generations.live(connection).stage1 != generation or not letters:
            return
        turn = self._sessions.turn
        shard = generations.shard_of(key[1], generations.shards(connection, generation))
        reach = next(offset.reach for offset in generations.offsets(connection, generation) if offset.shard == shard)
        events = read_streams(connection, [key], reach.of(key[0]))[key]
        slot, began = progress.slot(), time.thread_time()
        pieces = [(*key, letters[0].fault.position)]
        slot.fold(ThreadWork("stream", pieces=pieces, generation=generation, end=reach.of(key[0])))

        def step(some: Sequence[Event]) -> None:
            slot.goes_on()
            slot.stream(0, some)

        ready = folded_before(key, events, step)
        slot.over(ThreadWork("stage 1", str(shard), generation=generation))
        self._sessions.rest(key, time.thread_time() - began)

        def hand_over() -> None:
            if ready.state.read:  # else it is not kept, as where something was left out of it
                self._sessions.made((generation, key), ready.state, turn)

        refold(connection, letters=letters, ready={key: ready}, last=hand_over)
        log.info("%s was folded beside others: %d events", Target("", *key), len(events))
        if _waits(connection, generation, key):
            self._sessions.ask(generation, key)  # what came meanwhile belongs before what was folded


def _waits(connection: Connection, generation: int, key: StreamKey) -> list[DeadLetter]:
    """The letter of a session that waits for its fold, if it does."""
    letters = dead_letters.parked_at(connection, generation, [Target("", *key)])
    return [letter for letter in letters if letter.fault.place == APART]
