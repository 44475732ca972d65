"""How many questions of keys are worked on at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

OF_ONE, OF_ALL = 3, 5
"""Questions of one key that are worked on at once, and of all keys together: fewer than the API has threads and
connections, so that the owner and the hooks find some free."""

PATIENCE_S = 5.0
"""How long a question of a key waits for its turn."""


class Turn:
    """A question's place among those that are worked on; none while it waits for something else, and none once it has
    ended. Several tasks of the question may call at once."""

    def __init__(self, own: asyncio.Semaphore, everybodys: asyncio.Semaphore) -> None:
        self._own, self._everybodys = own, everybodys
        self._one_at_a_time = asyncio.Lock()
        self._held = self._ended = False

    async def take(self) -> None:
        """Wait until the question may be worked on; do nothing where it may, or has ended."""
        async with self._one_at_a_time:
            if self._held or self._ended:
                return
            async with contextlib.AsyncExitStack() as taken:
                for each in (self._own, self._everybodys):
                    await each.acquire()
                    taken.callback(each.release)
                if not self._ended:
                    self._held = True
                    taken.pop_all()

    def give_back(self) -> None:
        """Let others be worked on; do nothing where they are."""
        if self._held:
            self._held = False
            self._own.release()
            self._everybodys.release()

    def end(self) -> None:
        """Give the turn back for good."""
        self._ended = True
        self.give_back()


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
            yield turn if came else None
        finally:
            turn.end()
            count = self._each[key][1] - 1
            if count:
                self._each[key] = own, count
            else:
                del self._each[key]
