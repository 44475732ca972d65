"""What each thread of a process is at, in memory that another process reads: see `memctl.workers.watchdog.guard`.

A thread writes which piece of which work it has begun, and nothing else: two words in shared memory, no call to the
system. Where nobody watches, nothing is written.
"""

import contextlib
import logging
import math
import mmap
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memctl.domain.events.event import Event

log = logging.getLogger("memctl.worker")

FOLD_CPU_S = 0.5
"""Seconds of processor time that the fold of one stream or row may take, beside `EVENT_CPU_S` for each event,
`FACT_CPU_S` for each fact, and `BYTE_CPU_S` for each byte of an event. The dearest of real sessions take a seventh.
What takes longer is set aside and tried again apart, with `TRIAL_CPU_S` (`memctl.workers.folding.trial`): it is not
short for what is merely slow, and short enough for those that wait meanwhile."""

EVENT_CPU_S, FACT_CPU_S = 0.003, 0.00025
"""What a prompt of five sentences that give rules costs on a slow machine, many times what most events do; and twice
what a fact costs in a row."""

BYTE_CPU_S = 6e-6
"""What a byte of an event may take beside that: more than the dearest outputs found cost on a slow
machine, full of errors of a compiler, each unlike the others."""

BYTES_CPU_S = 20.0
"""What all bytes of a fold may take at most: others wait meanwhile. What takes longer is folded by the trial, apart."""

FOLD_WALL_S, CLOCK = 20.0, 3
"""Seconds for the same by the clock, for a fold that waits for something that never comes; and how many more for each
second of processor time that it may take beyond `FOLD_CPU_S`. A new worker folds a session of 200,000 events from its
beginning: on a busy machine that takes longer than 20 s."""

STEP_CPU_S = 30.0
"""Seconds of processor time for a step that is no fold: a batch read or written, texts embedded, points written, one
look of a processor. The longest of them, over 100,000 memories, take some seconds."""

_SLOTS, _SIZE = 32, 4 << 20
"""How many threads, and bytes for each, of which only those are taken that are written."""
_DEATHS = 1 << 16
"""Bytes for what died, behind the slots."""
_WHOLE = _SLOTS * _SIZE + _DEATHS
_WORDS = 8
_HEAD = 8 * _WORDS
_TURN, _PIECE, _IDENT, _THREAD, _CPU_MS, _WALL_MS, _LENGTH, _PULSE = range(_WORDS)


class ThreadWork(msgspec.Struct, frozen=True):
    """What a thread is at. `pieces` are what it goes through, one after the other: streams, rows, sources; where they
    are too many to be named, none is.

    `kind`: `stream` (space, stream, first position), `row` (space, key), `source` (space, id), or another word for
    what is no fold. `end`: the position up to which the batch goes. `steps`: how many numbers each piece takes up, of
    those that a thread counts.
    """

    kind: str
    name: str = ""
    pieces: Sequence[Any] = ()
    generation: int = 0
    end: int = 0
    steps: int = 1

    def piece(self, number: int) -> Any:
        """The piece that a thread is at which has counted to there; None where that has no name."""
        at = number // self.steps
        return self.pieces[at] if 0 <= at < len(self.pieces) else None


class At(msgspec.Struct, frozen=True):
    """Where a thread stands: which piece of which work, since `turn`. Limits are in seconds; 0: none."""

    slot: int
    turn: int
    piece: int
    ident: int
    thread: int
    cpu_s: float
    wall_s: float


class Slot:
    """What one thread writes."""

    def __init__(self, words: memoryview, text: memoryview) -> None:
        self._words = words
        self._text = text
        words[_IDENT], words[_THREAD] = threading.get_ident(), threading.get_native_id()

    def over(self, work: ThreadWork, cpu_s: float = STEP_CPU_S, wall_s: float = 0.0) -> None:
        """Begin another work, at its first piece."""
        if not self._text:
            return
        encoded = msgspec.json.encode(work)
        if len(encoded) > len(self._text):
            encoded = msgspec.json.encode(msgspec.structs.replace(work, name=work.name[:1000], pieces=()))
        words = self._words
        self._erase(beyond=len(encoded))
        self._text[: len(encoded)] = encoded
        words[_PIECE], words[_CPU_MS], words[_WALL_MS] = 0, int(cpu_s * 1000), int(wall_s * 1000)
        words[_LENGTH] = len(encoded)
        words[_TURN] = abs(words[_TURN]) + 1

    def _erase(self, beyond: int = 0) -> None:
        """Keep no name of what is over, for the memory may be a file."""
        length, self._words[_LENGTH] = self._words[_LENGTH], 0
        if length > beyond:
            self._text[beyond:length] = bytes(length - beyond)

    def fold(self, work: ThreadWork) -> None:
        """Begin folds, of the pieces of this work."""
        self.over(work, FOLD_CPU_S, FOLD_WALL_S)

    def piece(self, number: int, inputs: int = 1) -> None:
        """Begin the fold of a piece, over so many events or facts."""
        self._words[_PIECE] = number
        self._may_take(FACT_CPU_S * inputs)

    def stream(self, number: int, events: Sequence[Event], most_s: float = math.inf) -> None:
        """Begin the fold of a stream: it may take longer the more events there are, and the more they hold, but no
        longer than `most_s`."""
        if not self._text:
            return
        size = sum(len(msgspec.json.encode(event.payload)) for event in events)
        self._words[_PIECE] = number
        self._may_take(min(EVENT_CPU_S * len(events) + min(BYTE_CPU_S * size, BYTES_CPU_S), most_s))

    def _may_take(self, more_s: float) -> None:
        words = self._words
        words[_CPU_MS] = int((FOLD_CPU_S + more_s) * 1000)
        if words[_WALL_MS]:
            words[_WALL_MS] = int((FOLD_WALL_S + CLOCK * more_s) * 1000)

    def goes_on(self) -> None:
        """The same work is a step further, and may take as long again."""
        words = self._words
        if words[_TURN] > 0:
            words[_TURN] += 1

    def pass_to(self, number: int) -> None:
        """Begin the fold of a piece that may take as long as all of this work may."""
        self._words[_PIECE] = number

    @property
    def watched(self) -> bool:
        """Whether somebody watches."""
        return bool(self._text)

    @property
    def folds(self) -> bool:
        """Whether somebody watches, and a fold is under way: nothing else has a limit by the clock."""
        return bool(self._text) and self._words[_TURN] > 0 and self._words[_WALL_MS] > 0

    def idle(self) -> None:
        """Nothing is under way."""
        turn = self._words[_TURN]
        self._words[_TURN] = -turn if turn > 0 else turn
        self._erase()


_UNWATCHED = Slot(memoryview(bytearray(_HEAD)).cast("q"), memoryview(b""))
"""What nobody reads."""


class Board:
    """The memory: made before a process is forked, written by that one, read by the one that forked it. With a file it
    outlasts both."""

    def __init__(self, file: Path | None = None) -> None:
        self._memory = memoryview(_mapped(file) if file is not None else mmap.mmap(-1, _WHOLE))
        self._lock = threading.Lock()
        self._taken = 0

    def _words_of(self, slot: int) -> memoryview:
        return self._memory[slot * _SIZE : slot * _SIZE + _HEAD].cast("q")

    def slot(self) -> Slot:
        """One for the thread that asks; where none is left, one that nobody looks at."""
        with self._lock:
            if self._taken == _SLOTS:
                return _UNWATCHED
            number = self._taken
            self._taken += 1
        return Slot(self._words_of(number), self._memory[number * _SIZE + _HEAD : (number + 1) * _SIZE])

    def pulse(self) -> None:
        """Move a word again and again, for good: Python goes on."""
        words = self._words_of(0)
        while True:
            words[_PULSE] += 1
            time.sleep(0.1)

    @property
    def beats(self) -> int:
        return int(self._words_of(0)[_PULSE])

    @property
    def dealt_with(self) -> bool:
        """Whether the process has dealt with what those before it could not end."""
        return bool(self._words_of(1)[_PULSE])

    def deal_with(self) -> None:
        self._words_of(1)[_PULSE] = 1

    @property
    def left(self) -> bool:
        """Whether the process ends as Python ends one: nothing tore it from its work."""
        return bool(self._words_of(2)[_PULSE])

    def leave(self) -> None:
        self._words_of(2)[_PULSE] = 1

    @property
    def asks(self) -> bool:
        """Whether the process has set something aside by itself, to be tried apart."""
        return bool(self._words_of(3)[_PULSE])

    @asks.setter
    def asks(self, asks: bool) -> None:
        self._words_of(3)[_PULSE] = asks

    def at(self) -> Iterator[At]:
        """Where each thread stands that is at something."""
        for number in range(_SLOTS):
            words = self._words_of(number)
            if words[_TURN] > 0:
                yield At(
                    number, words[_TURN], words[_PIECE], words[_IDENT], words[_THREAD],
                    words[_CPU_MS] / 1000, words[_WALL_MS] / 1000,
                )  # fmt: skip

    def work(self, at: At) -> ThreadWork | None:
        """What it is at; None where that cannot be read, for it was about to change."""
        length = self._words_of(at.slot)[_LENGTH]
        start = at.slot * _SIZE + _HEAD
        try:
            return msgspec.json.decode(bytes(self._memory[start : start + length]), type=ThreadWork)
        except msgspec.DecodeError:
            return None

    def clear(self) -> None:
        """Nobody is at anything: another process begins."""
        for number in range(_SLOTS):
            used = _HEAD + min(max(self._words_of(number)[_LENGTH], 0), _SIZE - _HEAD)
            self._memory[number * _SIZE : number * _SIZE + used] = bytes(used)

    @property
    def deaths(self) -> dict[str, int]:
        """Digests of what the process was at that died last, and how often running one died at that."""
        try:
            return msgspec.json.decode(
                bytes(self._memory[_SLOTS * _SIZE :]).rstrip(b"\0") or b"{}", type=dict[str, int]
            )
        except msgspec.DecodeError:
            return {}

    @deaths.setter
    def deaths(self, found: dict[str, int]) -> None:
        encoded = msgspec.json.encode(found)
        self._memory[_SLOTS * _SIZE :] = (encoded if len(encoded) <= _DEATHS else b"").ljust(_DEATHS, b"\0")


def _mapped(file: Path) -> mmap.mmap:
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b") as opened:
        opened.truncate(_WHOLE)
        return mmap.mmap(opened.fileno(), _WHOLE)


_board: Board | None = None
_own = threading.local()


def watched_on(board: Board | None) -> None:
    """Have this process write there from now on."""
    global _board, _own
    _board, _own = board, threading.local()


def slot() -> Slot:
    """That of this thread."""
    if _board is None:
        return _UNWATCHED
    found: Slot | None = getattr(_own, "slot", None)
    if found is None:
        found = _own.slot = _board.slot()
    return found


def dealt_with() -> None:
    """What processes before this one could not end is dealt with."""
    if _board is not None:
        _board.deal_with()


@contextlib.contextmanager
def step(kind: str, name: str = "", cpu_s: float = STEP_CPU_S, pieces: Sequence[Any] = ()) -> Iterator[None]:
    """A step that is no fold, for as long as the block lasts."""
    own = slot()
    own.over(ThreadWork(kind, name, pieces), cpu_s)
    try:
        yield
    finally:
        own.idle()


def end_for_memory(problem: BaseException) -> None:
    """End this process where no memory is left for a fold: the one that follows begins with none taken, and its guard
    knows what this one was at. Returns where nobody watches, or no fold is under way."""
    if slot().folds:
        log.error("no memory is left for a fold, and another process takes over: %s", problem or "MemoryError")
        os.kill(os.getpid(), signal.SIGKILL)


def ask_for_trial() -> None:
    """Something was set aside that ends, only not among others."""
    if _board is not None:
        _board.asks = True
