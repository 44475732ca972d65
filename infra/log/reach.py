"""How far the log is settled, or was read, by space: one position, and the spaces that are held below it.

Who reads up to such a reach reads in sections: each of one space that lags, or of all the others.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from memctl.domain.events.event import Position


class Reach(msgspec.Struct, frozen=True):
    """A position for every space: `position`, but for those in `held`, which are lower."""

    position: Position
    held: Mapping[int, Position] = {}

    def of(self, space_id: int) -> Position:
        """How far one space is."""
        return self.held.get(space_id, self.position)

    @property
    def lowest(self) -> Position:
        """How far all of them are."""
        return min(self.held.values(), default=self.position)

    def covers(self, other: "Reach") -> bool:
        """Whether no space is further in the other."""
        spaces = {*self.held, *other.held}
        return self.position >= other.position and all(self.of(space) >= other.of(space) for space in spaces)


class Section(NamedTuple):
    """Events to read next, with `after < position <= upto`: those of one space, or of all but some."""

    after: Position
    upto: Position
    space_id: int | None = None
    without: tuple[int, ...] = ()

    def holds(self, space_id: int) -> bool:
        return space_id == self.space_id if self.space_id is not None else space_id not in self.without

    @property
    def where(self) -> str:
        """As SQL, to be put behind a condition; `params` go with it."""
        if self.space_id is not None:
            return " AND space_id = %s"
        return " AND space_id <> ALL(%s)" if self.without else ""

    @property
    def params(self) -> list[Any]:
        if self.space_id is not None:
            return [self.space_id]
        return [list(self.without)] if self.without else []

    def reached(self, read: Reach, end: Position) -> Reach:
        """How far has read who had read so far, once this section is read up to `end`."""
        if self.space_id is None:
            return Reach(end, {space: read.of(space) for space in self.without})
        held = {space: at for space, at in read.held.items() if space != self.space_id or end < read.position}
        return Reach(read.position, held | {self.space_id: end} if self.space_id in held else held)


def next_section(read: Reach, upto: Reach) -> Section | None:
    """What to read next, by who has read so far and may read up to there; None where nothing is left.

    A space that lags is brought to where the others are first; from there on it goes with them.
    """
    for space, after in read.held.items():
        if after < (end := min(upto.of(space), read.position)):
            return Section(after, end, space)
    stay = {space for space, end in upto.held.items() if end <= read.position}
    without = tuple(sorted({*read.held, *stay}))
    end = min((at for space, at in upto.held.items() if space not in without), default=upto.position)
    return Section(read.position, end, None, without) if read.position < end else None


def at_end(read: Reach) -> Section:
    """Nothing more to read, of the spaces that do not lag, by who has read so far."""
    return Section(read.position, read.position, None, tuple(read.held))


def least(reaches: Iterable[Reach]) -> Reach:
    """How far each space is in all of them."""
    found = list(reaches)
    position = min(reach.position for reach in found)
    spaces = {space for reach in found for space in reach.held}
    by_space = {space: min(reach.of(space) for reach in found) for space in spaces}
    return Reach(position, {space: at for space, at in by_space.items() if at < position})


_held = msgspec.json.Decoder(dict[int, Position])


def reach_of(position: int, held: bytes) -> Reach:
    """As the tables have it, the spaces that are held as JSON."""
    return Reach(Position(position), _held.decode(held))


def as_json(held: Mapping[int, Position]) -> str:
    """The spaces that are held, as the tables have them."""
    return msgspec.json.encode(held).decode()
