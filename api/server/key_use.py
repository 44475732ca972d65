"""What keys do: how much at once, and who read what, in the API's log."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from memctl.api.http.access import rule_of

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


OF_ONE, OF_ALL = 3, 5
"""Questions of one key that are worked on at once, and of all keys together: fewer than the API has threads and
connections, so that the owner and the hooks find some free."""

PATIENCE_S = 5.0
"""How long a question of a key waits for its turn."""


class Turn:
    """A question's place among those that are worked on; none while it waits for something else."""

    def __init__(self, own: asyncio.Semaphore, everybodys: asyncio.Semaphore) -> None:
        self._both, self._held = (own, everybodys), 0

    async def take(self) -> None:
        """Wait until the question may be worked on; do nothing where it may."""
        for each in self._both[self._held :]:
            await each.acquire()
            self._held += 1

    def give_back(self) -> None:
        """Let others be worked on; do nothing where they are."""
        for each in self._both[: self._held]:
            each.release()
        self._held = 0


class Turns:
    """Lets questions of keys wait for their turn where no thread waits with them. For one event loop."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OF_ALL)
        self._each: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """By key: its own turns, and how many questions have or await one."""

    @contextlib.asynccontextmanager
    async def of(self, key: str) -> AsyncIterator[Turn | None]:
        """The turn of a question, which ends with it; None where none came in time."""
        own, count = self._each.get(key, (asyncio.Semaphore(OF_ONE), 0))
        self._each[key] = own, count + 1
        turn = Turn(own, self._all)
        try:
            came = True
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await turn.take()
            except TimeoutError:
                came = False
                turn.give_back()
            yield turn if came else None
        finally:
            turn.give_back()
            count = self._each[key][1] - 1
            if count:
                self._each[key] = own, count
            else:
                del self._each[key]


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
