"""Reflections: what several memories show together, one for each topic of a place."""

from uuid import UUID

import msgspec

from memctl.domain.events.event import derived_of
from memctl.domain.knowledge.reflections import MOST_CITED, ReflectionMade, files_of
from memctl.domain.support.bounded import clipped, one_line
from memctl.projections.kernel import Recorded, projection


class Reflection(msgspec.Struct, frozen=True, kw_only=True):
    """The newest reflection on a topic. `memories` are those it cites, `files` what it is about, where it is of files;
    `sources` the newest 8 events that it rests on.

    `occurred_at` in microseconds, `importance` 0 to 1.
    """

    event: str
    topic: str
    title: str
    text: str
    location: str
    occurred_at: int
    importance: float
    memories: tuple[str, ...]
    files: tuple[str, ...]
    made_by: str
    trigger: str
    sources: tuple[UUID, ...] = ()


def reflection_id(location: str, topic: str) -> str:
    """Key of what is thought of a topic at a place."""
    return derived_of("reflection", location, topic)


@projection(
    row=Reflection,
    key=lambda item: reflection_id(item.event.location, item.payload.topic),
    indexes=(("location", "occurred_at"), ("occurred_at",)),
)
def reflections(row: Reflection | None, item: Recorded[ReflectionMade]) -> Reflection:
    """What several memories show together, by topic and place; the newest word counts."""
    event, payload = item.event, item.payload
    at, id = int(event.occurred_at), str(event.delivery_id)
    if row is not None and (row.occurred_at, row.event) > (at, id):
        return row
    return Reflection(
        event=id,
        topic=clipped(payload.topic, 300),
        title=one_line(payload.title, 120),
        text=clipped(payload.text, 2000),
        location=clipped(event.location, 400),
        occurred_at=at,
        importance=round(min(max(payload.importance, 0.0), 1.0), 4) + 0.0,
        memories=tuple(clipped(memory, 64) for memory in payload.memories[:MOST_CITED]),
        files=tuple(clipped(path, 160) for path in files_of(payload.topic)[:2]),
        made_by=clipped(payload.made_by, 120),
        trigger=payload.trigger,
        sources=event.sources[:8],
    )
