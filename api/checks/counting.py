"""Figures that take long to count, for pages and probes that are asked for again and again."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

SHARE = 20
"""A figure is as old as it took to count, times this, before it is counted again: at most a twentieth of the time goes
into it, however much there is to count."""

GOOD_FOR_S = 60.0
"""Seconds after which a figure is counted again even where nothing seems to be new: days pass, and rows that are folded
again move no offset."""

KEPT = 256
"""Figures that are kept at most, those asked for last."""


class _Figure(NamedTuple):
    """What was counted when memory was of a version, how long that took, and when it was done, in seconds."""

    value: Any
    version: str
    took: float
    ended: float

    def holds(self, version: str, now: float) -> bool:
        good_for = GOOD_FOR_S if version == self.version else 0.0
        return now < self.ended + max(SHARE * self.took, good_for)


class Counted:
    """What was counted last, until something is new and counting it again is worth it. For any number of threads. No
    words of memory are kept here: what was forgotten would be shown for a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[object, _Figure] = OrderedDict()

    def of(self, key: object, version: str, count: Callable[[], T], now: Callable[[], float] = time.monotonic) -> T:
        """What `count` answers, or answered for this key when memory was of this version, or a short while ago."""
        with self._lock:
            former = self._found.get(key)
            if former is not None and former.holds(version, now()):
                self._found.move_to_end(key)
                kept: T = former.value
                return kept
        began = now()
        value = count()
        ended = now()
        with self._lock:
            self._found[key] = _Figure(value, version, ended - began, ended)
            self._found.move_to_end(key)
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return value
