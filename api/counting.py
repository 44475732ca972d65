"""Figures that take long to count, for pages and probes that are asked for again and again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

SHARE = 20
"""A figure is as old as it took to count, times this, before it is counted again: at most a twentieth of the time goes
into it, however much there is to count."""

GOOD_FOR_S = 60.0
"""Seconds after which a figure is counted again even where nothing seems to be new: days pass, and rows that are folded
again move no offset."""

KEPT = 64
"""Figures that are kept at most, those asked for last."""


class Counted:
    """What was counted last, until something is new and counting it again is worth it. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[object, tuple[str, float, float, Any]] = OrderedDict()

    def of(self, key: object, version: str, count: Callable[[], T], now: Callable[[], float] = time.monotonic) -> T:
        """What `count` answers, or answered for this key when memory was of this version, or a short while ago."""
        with self._lock:
            version_then, ended, took, former = self._found.get(key, ("", 0.0, 0.0, None))
            good_for = max(SHARE * took, GOOD_FOR_S if version_then == version else 0.0)
            if version_then and now() < ended + good_for:
                self._found.move_to_end(key)
                return former  # type: ignore[no-any-return]
        began = now()
        found = count()
        ended = now()
        with self._lock:
            self._found[key] = (version, ended, ended - began, found)
            self._found.move_to_end(key)
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return found
