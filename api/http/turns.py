"""How many questions of keys are worked on at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

OF_ONE, OF_SPACE, OF_ALL = 3, 4, 5
"""Questions of one key that are worked on at once, of one space where there are several, and of all keys together:
fewer than the API has threads and connections, so that the owner and the hooks find some free."""

PATIENCE_S = 5.0
"""How long a question of a key waits for its turn."""


class Turn:
    """A question's place among those that are worked on; none while it waits for something else, and none once it has
    ended. Several tasks of the question may call at once."""

    def __init__(self, *places: asyncio.Semaphore) -> None:
        """`places` are taken in this order: those of the key, of its space, and everybody's."""
        self._places = places
        self._one_at_a_time = asyncio.Lock()
        self._held = self._ended = False

    async def take(self) -> None:
        """Wait until the question may be worked on; do nothing where it may, or has ended."""
        async with self._one_at_a_time:
            if self._held or self._ended:
                return
            async with contextlib.AsyncExitStack() as taken:
                for each in self._places:
                    await each.acquire()
                    taken.callback(each.release)
                if not self._ended:
                    self._held = True
                    taken.pop_all()

    def give_back(self) -> None:
        """Let others be worked on; do nothing where they are."""
        if self._held:
            self._held = False
            for each in self._places:
                each.release()

    def end(self) -> None:
        """Give the turn back for good."""
        self._ended = True
        self.give_back()


class Turns:
    """Lets questions of keys wait for their turn where no thread waits with them. For one event loop."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(OF_ALL)
        self._each: dict[str, tuple[asyncio.Semaphore, int]] = {}
        """By key or space: its own turns, and how many questions have or await one."""

    @contextlib.asynccontextmanager
    async def of(self, key: str, space: str = "") -> AsyncIterator[Turn | None]:
        """The turn of a question, which ends with it; None where none came in time. `space`: where there are several,
        so that no space's questions keep all turns from those of another."""
        holders = {key: OF_ONE, **({f"space {space}": OF_SPACE} if space else {})}
        for holder, most in holders.items():
            own, count = self._each.get(holder, (asyncio.Semaphore(most), 0))
            self._each[holder] = own, count + 1
        turn = Turn(*(self._each[holder][0] for holder in holders), self._all)
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
            for holder in holders:
                own, count = self._each.pop(holder)
                if count > 1:
                    self._each[holder] = own, count - 1
