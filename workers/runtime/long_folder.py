"""Folds long sessions in a thread of the worker, while it goes on with all others.

Such a session is parked meanwhile. Its facts and rows are written when its fold is done, and its state is handed to who
folds the others, so that what comes next is folded on to it.
"""

import logging
import threading
import time
from collections.abc import Collection, Sequence

import psycopg

from memctl.domain.events.event import Event
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.read import StreamKey, newest_position, read_streams
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import DeadLetter, Target, fault_message
from memctl.infra.readmodels.generations import LeaseHeld
from memctl.workers.folding.drain import OtherRules
from memctl.workers.folding.long_sessions import LONG, LongSessions, Waiting
from memctl.workers.folding.refold import LiveChanged, refold
from memctl.workers.folding.stage1 import APART, FoldedAhead, fold_ahead
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork

log = logging.getLogger("memctl.worker")

LOOK_EVERY_S = 0.5
"""How often is looked whether one that rests is due, and whether to stop."""

BRIEF_S, OTHERS, LONGEST_S = 1.0, 3, 30.0
"""What takes longer until stage 2 has read it is followed by so many times as long for all others, at most so long."""


class LongFolder:
    """Folds what a worker set aside since it is long."""

    def __init__(self, database_url: str, sessions: LongSessions, trial_only: Collection[StreamKey] = ()) -> None:
        """`trial_only`: streams that only a trial may fold whole."""
        self._url = database_url
        self._sessions = sessions
        self._trial_only = frozenset(trial_only)

    def run(self, stop: threading.Event) -> None:
        """Work until asked to stop. What cannot be folded is left to the trial, which finds out why."""
        begun = False
        while not stop.is_set():
            few: list[Waiting] = []
            try:
                if not begun:
                    with connect(self._url, name="memctl long folds") as connection:
                        self.take_over(connection)
                    begun = True
                few = self._sessions.next(LOOK_EVERY_S)
                if few:
                    with connect(self._url, name="memctl long folds") as connection:
                        began = time.monotonic()
                        self.fold(connection, few)
                        _leave_time(connection, began, stop)
            except MemoryError as problem:
                progress.end_for_memory(problem)
            except (LeaseHeld, LiveChanged, DatabaseUnavailable, psycopg.OperationalError) as problem:
                log.info("%d long sessions are folded again later: %s", len(few), fault_message(problem))
                for generation, key in few:
                    self._sessions.rest(key, LOOK_EVERY_S)
                    self._sessions.ask(generation, key)
                stop.wait(LOOK_EVERY_S)
            except OtherRules:
                continue  # all is rebuilt
            except Exception as problem:
                log.error("%d long sessions could not be folded beside others: %s", len(few), fault_message(problem))
                progress.ask_for_trial()
            finally:
                progress.slot().idle()

    def take_over(self, connection: Connection) -> None:
        """Ask for what a process before this one set aside and did not come to fold."""
        generation = generations.live(connection).stage1
        for letter in dead_letters.parked(connection, generation):
            key = (letter.target.space_id, letter.target.key or "")
            if letter.fault.place == APART and key not in self._trial_only:
                self._sessions.ask(generation, key)

    def fold(self, connection: Connection, few: Sequence[Waiting]) -> None:
        """Fold sessions of one generation that are parked, unless they no longer are, until these are long together;
        the others wait on. Raises: whatever `refold` or a fold raises."""
        generation, turn = few[0][0], self._sessions.turn
        if generations.live(connection).stage1 != generation:
            return
        letters, ready, left = list[DeadLetter](), dict[StreamKey, FoldedAhead](), [key for _, key in few]
        while left and sum(len(each.events) for each in ready.values()) < LONG:
            key = left.pop(0)
            if found := _waits(connection, generation, key):
                letters += found
                ready[key] = self._folded(connection, found[0])
        for key in left:
            self._sessions.ask(generation, key)
        if not ready:
            return

        def hand_over() -> None:
            for key, each in ready.items():
                if each.state.read:  # else it is not kept, as where something was left out of it
                    self._sessions.made((generation, key), each.state, turn)

        refold(connection, letters=letters, ready=ready, last=hand_over, follows=True)
        for key, each in ready.items():
            log.info("%s was folded beside others: %d events", Target("", *key), len(each.events))
            if _waits(connection, generation, key):
                self._sessions.ask(generation, key)  # what came meanwhile belongs before what was folded

    def _folded(self, connection: Connection, letter: DeadLetter) -> FoldedAhead:
        key, generation = (letter.target.space_id, letter.target.key or ""), letter.generation
        shard = generations.shard_of(key[1], generations.shards(connection, generation))
        reach = next(offset.reach for offset in generations.offsets(connection, generation) if offset.shard == shard)
        events = read_streams(connection, [key], reach.of(key[0]))[key]
        slot, began = progress.slot(), time.thread_time()
        pieces = [(*key, letter.fault.position)]
        slot.fold(ThreadWork("stream", pieces=pieces, generation=generation, end=reach.of(key[0])))

        def step(some: Sequence[Event]) -> None:
            slot.goes_on()
            slot.stream(0, some)

        ready = fold_ahead(key, events, step)
        slot.over(ThreadWork("stage 1", str(shard), generation=generation))
        self._sessions.rest(key, time.thread_time() - began)
        return ready


def _leave_time(connection: Connection, began: float, stop: threading.Event) -> None:
    """Wait until stage 2 has read what was folded, and then give all others their time: rows that very many sessions
    went to are folded whole for each late one, or for all that come together meanwhile."""
    live = generations.live(connection)
    upto = newest_position(connection)
    while time.monotonic() - began < LONGEST_S and not stop.wait(LOOK_EVERY_S / 5):
        if generations.offset_of(connection, live.stage2).position >= upto:
            break
    if (took := time.monotonic() - began) > BRIEF_S:
        stop.wait(min(OTHERS * took, LONGEST_S))


def _waits(connection: Connection, generation: int, key: StreamKey) -> list[DeadLetter]:
    """The letter of a session that waits for its fold, if it does."""
    letters = dead_letters.parked_at(connection, generation, [Target("", *key)])
    return [letter for letter in letters if letter.fault.place == APART]
