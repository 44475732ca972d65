"""Sessions too long to be folded whole among others: which of them wait for a fold beside those, and its states."""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping

from memctl.domain.events.event import stream_hash
from memctl.infra.log.read import StreamKey
from memctl.projections.stream_state import StreamState

LONG = 4_000
"""Events of sessions that one batch may fold whole again, together: half a second."""

REST = 10
"""How many times as long as its fold took a session waits at least until it is folded whole once more."""

TOGETHER = 64
"""Sessions that are folded one after the other and then written together, as far as they have no more than `LONG`
events: who writes waits for others to let go of what both need."""

MOST_WAITING = 1_000
"""Sessions that wait, and that rest. Others are left to the trial of what is parked, which finds them itself."""

Waiting = tuple[int, StreamKey]
"""A generation of stage 1, and a stream that is parked in it."""


def beyond(lengths: Mapping[StreamKey, int], most: int) -> list[StreamKey]:
    """Which streams are left out for the others to have so many events together: the longest."""
    left, total = [], 0
    for key, length in sorted(lengths.items(), key=lambda each: (each[1], each[0])):
        total += length
        if total > most:
            left.append(key)
    return left


class LongSessions:
    """What one worker has folded beside all else. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Waiting, None] = OrderedDict()
        self._rests: OrderedDict[StreamKey, float] = OrderedDict()
        """Until when it rests, by the monotonic clock."""
        self._made: dict[Waiting, StreamState] = {}
        self.turn = 0
        """How often all was forgotten."""

    def ask(self, generation: int, key: StreamKey) -> None:
        """Have a session folded that is parked."""
        with self._changed:
            if len(self._waiting) < MOST_WAITING:
                self._waiting[generation, key] = None
                self._changed.notify()

    def next(self, timeout_s: float) -> list[Waiting]:
        """What waits for longest and does not rest, some of one generation; none where nothing is due after a while."""
        with self._changed:
            now = time.monotonic()
            due = [of for of in self._waiting if self._rests.get(of[1], 0.0) <= now]
            found = [of for of in due if of[0] == due[0][0]][:TOGETHER]
            if not found:
                self._changed.wait(timeout_s)
            for of in found:
                del self._waiting[of]
            return found

    def rest(self, key: StreamKey, seconds: float) -> None:
        """Fold a session no more for a while, for its fold took so many seconds of processor time."""
        with self._changed:
            until = max(self._rests.pop(key, 0.0), time.monotonic() + REST * seconds)
            self._rests[key] = until
            if len(self._rests) > MOST_WAITING:
                self._rests.popitem(last=False)

    def made(self, of: Waiting, state: StreamState, turn: int) -> None:
        """Hand over a state whose facts and rows are written, begun when all had been forgotten `turn` times."""
        with self._changed:
            if turn == self.turn:
                self._made[of] = state

    def take(self, generation: int, hashes: tuple[int, int]) -> dict[StreamKey, StreamState]:
        """The states that were made for a shard, for who holds its lease."""
        if not self._made:
            return {}
        with self._changed:
            low, high = hashes
            found = [of for of in self._made if of[0] == generation and low <= stream_hash(of[1][1]) <= high]
            return {of[1]: self._made.pop(of) for of in found}

    def forget(self) -> None:
        """Hand over nothing that was begun until now: the log that it was read from may be another one."""
        with self._changed:
            self.turn += 1
            self._made.clear()
