"""Libraries, services and people that the work has to do with, and what was said of them."""

from __future__ import annotations

import msgspec

from memctl.domain.code.entities import EntityDescribed, entity_id
from memctl.domain.events.facts import EntityMentioned, Span
from memctl.domain.support.bounded import LOCATIONS, Seen, clipped, newest, seen
from memctl.projections.kernel import Recorded, projection


class Mention(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first time in a session that it was named (with that version): how, where, and in which event."""

    at: int
    id: str
    how: str
    stream: str
    version: str = ""
    path: str = ""
    location: str = ""
    span: Span | None = None


class Description(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody said it is. Empty fields say nothing."""

    at: int
    id: str
    by: str
    display_name: str = ""
    summary: str = ""
    interests: tuple[str, ...] = ()
    notes: str = ""
    trust: float | None = None


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """One library, service or person. Times in microseconds.

    `name` is, of spellings that differ in case, the one with its capitals first. `interactions` counts sessions that
    named it (a session that saw two versions counts twice). The newest 16 mentions and 8 descriptions are kept.
    """

    kind: str
    platform: str
    name: str
    interactions: int = 0
    first_seen: int = 0
    last_seen: int = 0
    mentions: tuple[Mention, ...] = ()
    locations: tuple[Seen, ...] = ()
    files: tuple[Seen, ...] = ()
    versions: tuple[Seen, ...] = ()
    """Versions that manifests and install commands named, newest first."""
    sources: tuple[Seen, ...] = ()
    """How it was named: import, manifest, install, command, commit."""
    descriptions: tuple[Description, ...] = ()

    @property
    def display_name(self) -> str:
        return next((each.display_name for each in self.descriptions if each.display_name), self.name)

    @property
    def summary(self) -> str:
        return next((each.summary for each in self.descriptions if each.summary), "")

    @property
    def interests(self) -> tuple[str, ...]:
        return next((each.interests for each in self.descriptions if each.interests), ())

    @property
    def notes(self) -> str:
        return next((each.notes for each in self.descriptions if each.notes), "")

    @property
    def trust(self) -> float:
        """0 to 1; 0.5 until somebody says otherwise."""
        return next((each.trust for each in self.descriptions if each.trust is not None), 0.5)


def _key(item: EntityMentioned | Recorded[EntityDescribed]) -> str:
    said = item if isinstance(item, EntityMentioned) else item.payload
    return entity_id(said.kind, said.platform, said.name)


@projection(row=Entity, key=_key, indexes=(("kind", "last_seen"), ("interactions",), ("last_seen",)))
def entities(row: Entity | None, item: EntityMentioned | Recorded[EntityDescribed]) -> Entity | None:
    """Libraries with versions, services and people: how often, where and since when they were met."""
    if isinstance(item, EntityMentioned):
        return _mentioned(row, item)
    said, at = item.payload, int(item.event.occurred_at)
    description = Description(
        at=at,
        id=str(item.event.delivery_id),
        by=clipped(said.by, 40),
        display_name=clipped(said.display_name, 120),
        summary=clipped(said.summary, 600),
        interests=tuple(clipped(each, 80) for each in said.interests[:12]),
        notes=clipped(said.notes, 400),
        trust=None if said.trust is None else round(min(max(said.trust, 0.0), 1.0), 4) + 0.0,
    )
    row = _spelled(row, said.kind, said.platform, said.name)
    return msgspec.structs.replace(row, descriptions=newest(row.descriptions, description, 8))


def _spelled(row: Entity | None, kind: str, platform: str, name: str) -> Entity:
    """The row, under a name that hangs on no order of arrival."""
    name = clipped(name, 160)
    if row is None:
        return Entity(kind=clipped(kind, 20), platform=clipped(platform, 40), name=name)
    return row if row.name <= name else msgspec.structs.replace(row, name=name)


def _mentioned(row: Entity | None, fact: EntityMentioned) -> Entity:
    at = int(fact.occurred_at)
    row = _spelled(row, fact.kind, fact.platform, fact.name)
    mention = Mention(
        at=at,
        id=str(fact.id),
        how=clipped(fact.how, 20),
        stream=clipped(fact.stream, 120),
        version=clipped(fact.version, 40),
        path=clipped(fact.path, 160),
        location=clipped(fact.location, 200),
        span=fact.evidence[0] if fact.evidence else None,
    )
    return msgspec.structs.replace(
        row,
        interactions=row.interactions + 1,
        first_seen=min(row.first_seen, at) if row.interactions else at,
        last_seen=max(row.last_seen, at),
        mentions=newest(row.mentions, mention, 16),
        locations=seen(row.locations, fact.location, at, LOCATIONS),
        files=seen(row.files, fact.path, at, 16),
        versions=seen(row.versions, fact.version, at, 6, 40),
        sources=seen(row.sources, fact.how, at, 8, 20),
    )
