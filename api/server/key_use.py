"""What keys do: how much at once, and who read what, in the API's log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

log = logging.getLogger("memctl.keys")

A_SECOND, AT_ONCE = 50.0, 500.0
"""Requests of one key in the long run, and those that it may make at once after a rest."""

MOST_KEYS = 1_000
"""Keys that are counted apart; of more, those that asked longest ago begin again."""


class Rates:
    """How many requests each key has left: a bucket that fills with time. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        """By key: requests that were left, and when."""

    def wait(self, key: str) -> float:
        """Take one request of a key. How many seconds it has to wait first; 0 where it may come now."""
        now = self._clock()
        with self._lock:
            left, at = self._left.pop(key, (AT_ONCE, now))
            left = min(AT_ONCE, left + (now - at) * A_SECOND)
            if len(self._left) >= MOST_KEYS:
                del self._left[next(iter(self._left))]
            self._left[key] = (max(left - 1, 0) if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / A_SECOND


def note(key: str, method: str, scope: Mapping[str, Any], status: int) -> None:
    """Log what a key asked for: the route, never what stands in it."""
    route = getattr(scope.get("route"), "path", "") or "/".join(scope["path"].split("/", 3)[:3])
    log.info("key %s: %s %s %d", key, method, route, status)
