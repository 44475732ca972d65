"""What happened in a session, event by event."""

from __future__ import annotations

import msgspec

from memctl.api.queries import memories as queries
from memctl.api.reading.evidence import origin_of
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import TimelineItem
from memctl.api.reading.views import Page, iso, moment
from memctl.domain.events.event_order import preferred
from memctl.infra.log.read import read_versions

LONGEST_TIMELINE = 200
"""Most events of one page."""


def timeline(reader: Reader, stream: str, *, after: int = 0, limit: int = 50) -> Page[TimelineItem]:
    """Events of a stream in the order in which the log has them, from beyond the position `after`.

    `next` is the position that the next page is asked with. Erased events are left out.
    """
    limit = max(1, min(limit, LONGEST_TIMELINE))
    rows = reader.connection.execute(
        "SELECT coalesce(variant_of, event_id), position FROM memctl.events e WHERE space_id = %s AND stream = %s"
        " AND position > %s AND (variant_of IS NULL OR NOT EXISTS (SELECT FROM memctl.events f"
        " WHERE f.space_id = e.space_id AND (f.event_id = e.variant_of OR f.variant_of = e.variant_of)"
        " AND f.stream = e.stream AND f.position < e.position)) ORDER BY position LIMIT %s",
        [reader.space_id, stream, after, limit + 1],
    ).fetchall()
    versions_by_id = read_versions(reader.connection, reader.space_id, [id for id, _ in rows[:limit]])
    here = {id: [each for each in versions if each.stream == stream] for id, versions in versions_by_id.items()}
    found = {id: preferred(versions) for id, versions in here.items() if versions}
    items = [
        TimelineItem(
            id=str(event.event_id),
            position=event.position,
            type=event.type,
            actor=event.actor,
            occurred_at=iso(moment(event.occurred_at)),
            source=origin_of(event),
            payload=msgspec.to_builtins(event.payload),
        )
        for event in (found[id] for id, _ in rows[:limit] if id in found)
    ]
    return Page(items, str(rows[limit - 1][1]) if len(rows) > limit else None)


def position_of(reader: Reader, event_id: str) -> int:
    """Where an event stands in the log. Raises: NotFound, Ambiguous."""
    return queries.event(reader, event_id).position
