"""Rows without what went to them last: so that a source which is revised soon, as an open turn is with each answer, is
folded again without all that the row was made of before it."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.rows import RowKey
from memctl.workers.folding.sources import Item

MOST_NEWEST = 32
"""Sources of one row that are held apart."""

MOST_HELD = 4_000
"""Rows that are held parted, and sources of all of them, together."""


MOST_BYTES = 16 << 20
"""Bytes of these rows' JSON: as objects they take some four times as much."""


class Parted(NamedTuple):
    """A row in two parts, which folded one onto the other are the row: folds do not depend on the order."""

    rest: Any
    """The row without them; None where they are all of it."""
    newest: Mapping[SourceKey, Item]

    def after(self, changes: Mapping[SourceKey, Item | None]) -> dict[SourceKey, Item]:
        """The newest after some of them were revised, or taken off the row (None)."""
        return {source: item for source, item in {**self.newest, **changes}.items() if item is not None}


class NewestSources:
    """The rows that were folded last, parted, in one generation. Good for as long as nobody else writes them."""

    def __init__(self, shares: int = 1) -> None:
        """`shares`: how many such have one's memory together."""
        self._most, self._most_bytes = MOST_HELD // shares, MOST_BYTES // shares
        self._held: OrderedDict[tuple[str, RowKey], Parted] = OrderedDict()
        self._sizes: dict[tuple[str, RowKey], int] = {}
        self._size = self._bytes = 0

    def get(self, projection: str, key: RowKey) -> Parted | None:
        return self._held.get((projection, key))

    def grow(self, projection: str, key: RowKey, row: Any, new: Mapping[SourceKey, Item]) -> None:
        """Sources that are new to a row go to it, which is `row` before."""
        held = self.get(projection, key)
        if held is not None and len(held.newest) + len(new) <= MOST_NEWEST:
            row, new = held.rest, {**held.newest, **new}
        self.put(projection, key, Parted(row, new))

    def put(self, projection: str, key: RowKey, parted: Parted) -> None:
        """Hold a row parted, unless too many sources went to it; those that were not for longest make room."""
        self.drop(projection, key)
        if len(parted.newest) <= MOST_NEWEST:
            self._held[projection, key] = parted
            self._size += 1 + len(parted.newest)
        self._make_room()

    def weigh(self, projection: str, key: RowKey, size: int) -> None:
        """A row that may be held has so many bytes."""
        if (projection, key) in self._held:
            self._bytes += size - self._sizes.get((projection, key), 0)
            self._sizes[projection, key] = size
            self._make_room()

    def _make_room(self) -> None:
        while self._size > self._most or self._bytes > self._most_bytes:
            self.drop(*next(iter(self._held)))

    def drop(self, projection: str, key: RowKey) -> None:
        if (held := self._held.pop((projection, key), None)) is not None:
            self._size -= 1 + len(held.newest)
            self._bytes -= self._sizes.pop((projection, key), 0)

    def clear(self) -> None:
        self._held.clear()
        self._sizes.clear()
        self._size = self._bytes = 0
