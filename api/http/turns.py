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
