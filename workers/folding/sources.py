"""What stage 2 folds: facts, recorded events and rows of other read models, and who subscribes to which."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.events.event import Event, Payload, derived_id, event_types
from memctl.domain.events.facts import Fact
from memctl.domain.events.skipping import Undecodable
from memctl.infra.database import Connection
from memctl.infra.log.reach import Section
from memctl.infra.log.read import names_of, read_events, read_types
from memctl.infra.readmodels.facts import Dealt, FactChange, SourceKey
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Changed, Projection, Recorded, folded_as_recorded, projections

Item = Fact | Recorded[Any] | Changed[Any]


class SourceItem(msgspec.Struct, frozen=True):
    """Something to fold: a fact or a recorded event, or None where it was retracted."""

    key: SourceKey
    item: Fact | Recorded[Any] | None
    dealt: Dealt | None = None
    """Where it goes, where that is known."""


class Register:
    """Who subscribes to what in stage 2, or among some of its read models."""

    def __init__(self, some: Sequence[Projection[Any]] | None = None) -> None:
        every = projections(2)
        self.projections = every if some is None else tuple(some)
        self.by_name = {p.name: p for p in every}
        self.places = {p.name: place for place, p in enumerate(every)}
        self.by_fact: dict[type[Any], list[Projection[Any]]] = defaultdict(list)
        self.by_payload: dict[type[Payload], list[Projection[Any]]] = defaultdict(list)
        self.makers = {p.row: p for p in every}
        self.takers_of: dict[str, list[Projection[Any]]] = {p.name: [] for p in every}
        """Who reads rows of a read model under other keys."""
        for p in every:
            for row in () if p.same_key else p.upstream:
                self.takers_of[self.makers[row].name].append(p)
        for p in self.projections:
            for fact in p.facts:
                self.by_fact[fact].append(p)
            for payload in p.recorded:
                self.by_payload[payload].append(p)

    def takers(self, item: Fact | Recorded[Any]) -> Sequence[Projection[Any]]:
        """Who folds a fact or a recorded event. Of a payload that could not be read: who folds its type."""
        if isinstance(item, Recorded):
            unread = isinstance(item.payload, Undecodable)
            kind = event_types()[item.event.type].payload if unread else type(item.payload)
            return self.by_payload.get(kind, ())
        return self.by_fact.get(type(item), ())


def recorded_sources(connection: Connection, payloads: Iterable[type[Payload]], section: Section) -> list[SourceItem]:
    """Recorded events of some types in a section, one for each delivery: of several versions the one that counts, if it
    is of them.

    Which one counts does not depend on the types asked for: it is the same for all read models.
    """
    types = frozenset(payloads)
    if not types:
        return []
    found: dict[SourceKey, Event] = {}
    doubtful: dict[int, set[UUID]] = defaultdict(set)
    for event, has_versions in read_types(connection, types, section):
        if has_versions:
            doubtful[event.space_id].add(event.delivery_id)
        else:
            found[event.space_id, event.delivery_id] = event
    wanted = names_of(types)
    for space_id, ids in doubtful.items():
        for delivery_id, event in read_events(connection, space_id, ids, section.upto, folded_as_recorded()).items():
            if event.type in wanted:
                found[space_id, delivery_id] = event
    return [SourceItem(key, Recorded(event, event.payload)) for key, event in found.items()]


def parts(target: str) -> tuple[str, str]:
    """A route's `projection:key`, taken apart."""
    name, _, key = target.partition(":")
    return name, key


def row_source(projection: str, key: RowKey) -> SourceKey:
    """The source that a row of an upstream projection is for those that read it."""
    return key[0], derived_id(f"row:{projection}:{key[0]}:{key[1]}")


def upstream_of(register: Register, p: Projection[Any], source: SourceKey, item: Item) -> tuple[str, str] | None:
    """The read model and the key of the row that a source is; None where it is none."""
    if not isinstance(item, Changed):
        return None
    names = (register.makers[row].name for row in p.upstream)
    return next((name, item.key) for name in names if row_source(name, (source[0], item.key)) == source)


def of_fact(change: FactChange) -> SourceItem:
    """A changed fact as something to fold."""
    return SourceItem((change.space_id, change.id), change.fact, change.dealt)


def when(item: Item) -> int:
    """When it happened, in microseconds; rows of other read models come first."""
    if isinstance(item, Fact):
        return item.occurred_at
    return item.event.occurred_at if isinstance(item, Recorded) else 0
