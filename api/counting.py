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

KEPT = 64
"""Figures that are kept at most, those asked for last."""


class Counted:
    """What was counted last, until something is new and counting it again is worth it. For any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[object, tuple[str, float, Any]] = OrderedDict()

    def of(self, key: object, version: str, count: Callable[[], T], now: Callable[[], float] = time.monotonic) -> T:
        """What `count` answers, or answered for this key when memory was of this version, or a short while ago."""
        with self._lock:
            version_then, until, former = self._found.get(key, ("", 0.0, None))
            if version_then and (version_then == version or now() < until):
                self._found.move_to_end(key)
                return former  # type: ignore[no-any-return]
        began = now()
        found = count()
        ended = now()
        with self._lock:
            self._found[key] = (version, ended + SHARE * (ended - began), found)
            self._found.move_to_end(key)
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return found
