"""What keys do: how often, and who read what, in the API's log."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from memctl.api.http.access import rule_of

log = logging.getLogger("memctl.keys")

A_SECOND, AT_ONCE = 50.0, 500.0
"""Requests of one key in the long run, and those that it may make at once after a rest."""

SPACE_A_SECOND, SPACE_AT_ONCE = 4 * A_SECOND, 4 * AT_ONCE
"""The same of all keys of one space together."""

MOST_KEYS = 1_000
"""Keys and spaces that are counted apart; of more, those that asked longest ago begin again."""


class Rates:
    """How many requests each key has left, or each space: a bucket that fills with time. Safe to use from several
    threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, of_spaces: bool = False) -> None:
        self._clock = clock
        self._a_second, self._at_once = (SPACE_A_SECOND, SPACE_AT_ONCE) if of_spaces else (A_SECOND, AT_ONCE)
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}
        """By key: requests that were left, and when."""

    def wait(self, key: str) -> float:
        """Take one request of a key. How many seconds it has to wait first; 0 where it may come now."""
        now = self._clock()
        with self._lock:
            left, at = self._left.pop(key, (self._at_once, now))
            left = min(self._at_once, left + (now - at) * self._a_second)
            if len(self._left) >= MOST_KEYS:
                del self._left[next(iter(self._left))]
            self._left[key] = (max(left - 1, 0) if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self._a_second


class Audit:
    """The log of what keys ask for. What a key repeats within `REPEATED_S` is one line with a count, so that no key can
    fill the log until its earlier lines are gone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._noted: dict[tuple[str, str, str, int], tuple[float, int]] = {}
        """By key, method, route and status: when the last line was, and how often since."""

    def note(self, key: str, method: str, scope: Mapping[str, Any], status: int) -> None:
        """Log what a key asked for."""
        asked, now = (key, *route_of(method, scope), status), self._clock()
        with self._lock:
            since, again = self._noted.get(asked, (-REPEATED_S, 0))
            if now - since < REPEATED_S:
                self._noted[asked] = since, again + 1
                return
            self._noted.pop(asked, None)
            if len(self._noted) >= MOST_KEYS:
                del self._noted[next(iter(self._noted))]
            self._noted[asked] = now, 0
        log.info("key %s: %s %s %d%s", *asked, f", and {again} times since the last such line" if again else "")


def route_of(method: str, scope: Mapping[str, Any]) -> tuple[str, str]:
    """What may be logged of a request: its method and its route, never what stands in it."""
    route: str = getattr(scope.get("route"), "path", "")
    if not route:
        known = rule_of(method, scope["path"])
        route = "/".join(scope["path"].split("/", 3)[:3]) if known else "no route of a key's"
    return method if method in _METHODS else "another method", route


REPEATED_S = 60.0
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
