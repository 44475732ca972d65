"""The guard: a process that forks the one which works, sees how that one gets on, and ends it where it does not.

It measures the processor time that a thread has taken since it began a piece of work, as that thread says in
`memctl.workers.watchdog.progress_board`. A thread that waits for a server or for its turn takes none, however busy the
machine is. The guard needs nothing of the other process, so it does not matter whether that one's Python goes on. The
guard writes to no database: the process that it forks next is given what the one before was at (`Stuck`), and sets it
aside. A fork takes a hundredth of what a start takes.
"""

import atexit
import gc
import hashlib
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from memctl.infra.embedded.launch import die_with_parent
from memctl.infra.process import is_stopped, processor_s
from memctl.infra.readmodels.dead_letters import fault_message
from memctl.workers.watchdog import frames
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import At, Board, ThreadWork

log = logging.getLogger("memctl.guard")

LOOK_EVERY_S = 0.1

FROZEN_S = 5.0
"""Seconds in which Python did not go on, though the process computed: something unknown holds it in C."""

END_WITHIN_S = 20.0
"""What a process may take to end once it is asked to; then it is killed. A drain under way and all threads together
(`memctl.workers.runtime.worker.STOP_WITHIN_S`) take less."""

TRIAL_EVERY_S = 60.0
"""Seconds after which it is looked again for what is to be tried apart: a rebuild parks what it cannot fold as well."""

ASKED_EVERY_S = 10.0
"""The same where the process says that there is something."""

LONGEST_PAUSE_S = 30.0
"""Before another process is forked, where none of them could say what it was at; the pause doubles."""

CRASHES = frozenset((signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE))
"""Signals by which code in C ends a process: what a thread was at when one came is likely to bring it again."""

DEATHS = 3
"""How often running a process may die at one piece of work by what need not be the fault of that, such as the kernel's
want of memory, until the piece is set aside."""


class Stuck(msgspec.Struct, frozen=True):
    """What a process was at that had to be ended: the number of the piece, and where in memctl's code. `seconds` are of
    processor time since it had begun that piece; `crash` says what ended the process where it was not the guard."""

    work: ThreadWork
    piece: int
    place: str
    seconds: float
    crash: str = ""

    @property
    def why(self) -> str:
        slow = f"no progress for {self.seconds:.1f} s of processor time"
        how = f"{self.crash} ended the process" if self.crash else slow
        return f"{how} in {_name(self.work)}" + (f", at {self.place}" if self.place != self.crash else "")


class EarlierProcesses(msgspec.Struct, frozen=True):
    """What the processes before this one could not end: all of it, and what nobody has dealt with yet. `pid` is that
    of the last; 0 where this is the first."""

    stuck: tuple[Stuck, ...] = ()
    fresh: tuple[Stuck, ...] = ()
    pid: int = 0


NONE_EARLIER = EarlierProcesses()


def begin(trial: Callable[[], None] | None = None, board: Path | None = None) -> EarlierProcesses:
    """From here on, this process is the guard of another, which returns from this: once, and then another does again
    wherever the one before made no progress. The guard itself ends with the exit code of the last.

    `trial` runs in a third process as this begins, each time after one was ended, and now and then. With it, a process
    that was torn from its work is followed by another. One that died together with its guard counts by what stands in
    the file `board`. To be called before there are threads or connections. Signals that ask to end are passed on. Where
    this system has no /proc, nobody watches.
    """
    return _Guard(trial, board).run() if os.path.isdir("/proc/self/task") else NONE_EARLIER


class _Guard:
    def __init__(self, trial: Callable[[], None] | None, board: Path | None) -> None:
        self._trial = trial
        self._board = Board(board)
        self._frames = frames.file()
        self._before = NONE_EARLIER
        self._child = 0
        self._trial_pid = 0
        self._trial_at = 0.0
        """When a trial is due, by the monotonic clock: as this begins, something may be set aside by a guard before it.
        Later what a rebuild parked may be."""
        self._asked: float | None = None
        """When the process was asked to end."""
        self._pass_on = False
        self._pause = 0.0

    def run(self) -> EarlierProcesses:
        gc.collect()
        gc.freeze()  # what is here already is the children's too, for as long as nobody writes to it
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._ask)
        # What a process was at that died with a guard before this one, stands in the file still.
        if isinstance(stuck := self._died("an unknown signal", 0), Stuck):
            self._note(stuck)
        while True:
            self._board.clear()
            self._child = self._fork()
            if not self._child:
                self._be_watched()
                return self._before
            if self._asked is not None:  # in the very moment of the fork
                self._ask()
            ended = self._watch()
            if isinstance(ended, int):
                self._board.clear()
                self._leave(ended if ended >= 0 else 128 - ended)
            self._note(ended)
            if self._asked is not None:
                self._board.clear()
                self._leave(0)

    def _leave(self, code: int) -> NoReturn:
        logging.shutdown()
        os._exit(code)  # what else is to be done at an end is the other's to do

    def _ask(self, signum: int = signal.SIGTERM, _: object = None) -> None:
        self._asked = self._asked or time.monotonic()
        self._pass_on = signum == signal.SIGINT  # a terminal sends it to all
        if self._child and not self._pass_on:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGTERM)

    def _fork(self) -> int:
        """Fork a process that ends with this one, whatever ends it; 0 in that process."""
        guard = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        os.truncate(self._frames, 0)
        if child := os.fork():
            return child
        self._child = self._trial_pid = 0
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        die_with_parent(signal.SIGKILL, guard)
        return 0

    def _be_watched(self) -> None:
        frames.written_on(signal.SIGUSR2, self._frames)
        frames.written_at_a_crash(self._frames)
        progress.watched_on(self._board)
        atexit.register(self._board.leave)
        threading.Thread(target=self._board.pulse, name="pulse", daemon=True).start()

    # --- watching ---

    def _watch(self) -> int | Stuck | None:
        """Until the process ends: its exit code, or what it was at where it crashed or had to be ended (None: nobody
        knows)."""
        ended = os.pidfd_open(self._child)
        began: dict[int, tuple[At, float, float]] = {}
        beats, pulse_at, pulse_cpu = -1, time.monotonic(), 0.0
        try:
            while not select.select([ended], [], [], LOOK_EVERY_S)[0]:
                now = time.monotonic()
                if self._pass_on and self._asked is not None and now > self._asked + 1.0:
                    self._ask()
                if self._asked is not None and now > self._asked + END_WITHIN_S:
                    log.error("the process did not end within %.0f s: it is killed", END_WITHIN_S)
                    return self._end(None, 0.0)
                if self._board.beats != beats:
                    beats, pulse_at, pulse_cpu = self._board.beats, now, _cpu(self._child)
                most = 0.0
                for at in self._board.at():
                    since, cpu = self._taken(at, now, began)
                    most = max(most, cpu)
                    slept = bool(at.wall_s) and now - since > at.wall_s and now - pulse_at < FROZEN_S
                    if (cpu > at.cpu_s or (slept and not is_stopped(self._child))) and self._stays(at):
                        return self._end(at, cpu)
                frozen = _cpu(self._child) - pulse_cpu if now - pulse_at > FROZEN_S else 0.0
                if frozen > FROZEN_S / 2 and most < frozen / 2:
                    return self._end(None, frozen)
                self._start_trial()
        finally:
            os.close(ended)
        return self._ended()

    def _ended(self) -> int | Stuck | None:
        """The exit code of the process that has ended by itself, or what it was at where it crashed (None: nobody
        knows)."""
        code = os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
        if self._asked is not None:
            return 0
        if -code in CRASHES:
            return self._crashed(-code)
        if self._trial is None or self._board.left:
            return code
        return self._died(signal.Signals(-code).name if code < 0 else f"exit code {code}", code)

    def _died(self, how: str, code: int) -> int | Stuck | None:
        """The exit code where the process was at nothing when it died; else None, or what it was at where processes
        before it died at the same."""
        at_work = [(at, work) for at in self._board.at() if (work := self._board.work(at)) is not None]
        before, deaths, found = self._board.deaths, {}, None
        for at, work in at_work:
            log.error("%s ended the process, which was at %s", how, _name(work))
            same = msgspec.json.encode([work.kind, work.name, work.generation, work.piece(at.piece)])
            piece = hashlib.sha256(same).hexdigest()
            deaths[piece] = before.get(piece, 0) + 1
            if deaths[piece] >= DEATHS:
                found = Stuck(work, at.piece, how, 0.0, how)
        self._board.deaths = deaths if found is None else {}
        return found if at_work else code

    def _crashed(self, signum: int) -> Stuck | None:
        """What the thread was at in which the process crashed; None where it was at nothing that is known.

        Threads that code in C made for itself are unknown to Python. Texts are embedded by such, so they are suspected.
        """
        found = frames.read(self._frames)
        ident, stack = frames.crashed_thread(found)
        log.error("%s ended the process; its frames were\n%s", signal.Signals(signum).name, found or "(none)")
        every = [(each, self._board.work(each)) for each in self._board.at()]
        at, work = next(((each, work) for each, work in every if each.ident == ident), (None, None))
        if at is None:
            at, work = next(((each, work) for each, work in every if work and work.kind == "texts"), (None, None))
        if at is None or work is None:
            return None
        return Stuck(work, at.piece, frames.place(stack), 0.0, signal.Signals(signum).name)

    def _taken(self, at: At, now: float, began: dict[int, tuple[At, float, float]]) -> tuple[float, float]:
        """Since when a slot is at its piece of work, as far as was seen (`began`, kept up here), and the seconds of
        processor time it has taken for it since."""
        known = began.get(at.slot)
        if known is None or (known[0].turn, known[0].piece) != (at.turn, at.piece):
            known = began[at.slot] = (at, now, _cpu(self._child, at.thread))
            return now, 0.0
        return known[1], _cpu(self._child, at.thread) - known[2]

    def _stays(self, at: At) -> bool:
        """Whether it is at the same still."""
        return any(each == at for each in self._board.at())

    def _end(self, at: At | None, seconds: float) -> Stuck | None:
        """Keep the frames of the process, end it, and say what it was at."""
        found = frames.asked(self._child, signal.SIGUSR2, self._frames)
        if at is not None and not self._stays(at):
            at = None  # it has gone on in this very moment; what it does now is no reason
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        stack = frames.of_thread(found, at.ident if at is not None else 0)
        log.error("no progress: the process was ended; its frames were\n%s", found or "(none)")
        work = self._board.work(at) if at is not None else None
        if at is None or work is None:
            return None
        return Stuck(work, at.piece, frames.place(stack), seconds)

    def _note(self, stuck: Stuck | None) -> None:
        fresh = () if self._board.dealt_with else self._before.fresh
        self._before = EarlierProcesses(self._before.stuck, fresh, self._child)
        self._child = 0
        if stuck is None:
            self._pause = min(max(1.0, self._pause * 2), LONGEST_PAUSE_S)
            deadline = time.monotonic() + self._pause
            while self._asked is None and (left := deadline - time.monotonic()) > 0:
                time.sleep(min(left, LOOK_EVERY_S))
            return
        self._pause = 0.0
        log.error("%s", stuck.why)
        self._before = EarlierProcesses((*self._before.stuck, stuck), (*fresh, stuck), self._before.pid)
        self._trial_at = 0.0

    def _start_trial(self) -> None:
        """Have what was set aside tried apart, once the process goes on without it."""
        if self._trial_pid and os.waitpid(self._trial_pid, os.WNOHANG)[0]:
            self._trial_pid = 0
        earlier = TRIAL_EVERY_S - ASKED_EVERY_S if self._board.asks else 0.0
        due = time.monotonic() >= self._trial_at - earlier
        if due and not self._trial_pid and self._trial is not None and self._board.dealt_with:
            self._trial_at, self._board.asks = time.monotonic() + TRIAL_EVERY_S, False
            self._trial_pid = self._fork()
            if not self._trial_pid:
                self._be_trial()

    def _be_trial(self) -> NoReturn:
        assert self._trial is not None
        os.nice(19)  # it has all the time there is, and what goes on has work that waits
        try:
            self._trial()
        except Exception as problem:
            log.error("what was set aside could not be tried: %s", fault_message(problem))
        finally:
            self._leave(0)


def _name(work: ThreadWork) -> str:
    return " ".join(part for part in (work.kind, work.name) if part)


def _cpu(pid: int, thread: int | None = None) -> float:
    """Seconds of processor time that a process has taken, or one of its threads; 0 where it is gone."""
    return processor_s(pid, thread) or 0.0
