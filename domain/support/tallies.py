"""Counts by name that stay bounded, whatever pieces they are counted in."""

from uuid import UUID

import msgspec

from memctl.domain.support.bounded import clipped

LONGEST_NAME = 160
"""Characters of what is counted: longer names are cut, so that a table of them has a size."""


class Tally(msgspec.Struct, frozen=True, array_like=True):
    """How often something was, how often it went wrong, when last (microseconds), and an event that shows it."""

    count: int = 0
    failed: int = 0
    at: int = 0
    event: UUID | None = None


Tallies = dict[str, Tally]


def count(table: Tallies, name: str, at: int, event: UUID | None, limit: int, *, ok: bool = True) -> None:
    """Count `name` once more, in place. Where there is no room for a new name, the rarest goes, of those the oldest.

    One at a time, so in how many pieces the counting is done changes nothing. The event is of the last that went well.
    """
    was = table.get(name) or table.get(name := clipped(name, LONGEST_NAME))
    if was is None:
        if len(table) >= limit:
            del table[min(table, key=lambda known: (table[known].count, table[known].at, known))]
        was = Tally()
    if not ok and was.event is not None:
        event = was.event
    table[name] = Tally(was.count + 1, was.failed + (not ok), at if at > was.at else was.at, event)
