"""Stage 2 at work: facts, recorded events and changed rows are routed, folded and written with one new offset.

Folds do not depend on the order of what they are given, so a fact seen for the first time is simply folded in. A
fact that was revised or retracted makes the rows it went to be folded anew from everything that was routed to them.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, cast
from uuid import UUID

import msgspec

from memctl.domain.event import Event, Payload, Position, derived_id
from memctl.domain.facts import Fact
from memctl.infra import facts, generations, readmodels
from memctl.infra.database import Connection
from memctl.infra.facts import FactChange, Route, SourceKey
from memctl.infra.generations import Lease
from memctl.infra.log.read import read_events, read_types
from memctl.infra.readmodels import RowKey
from memctl.projections.kernel import Changed, Projection, Recorded, projections

KEPT_ROWS = 20_000
"""Rows a worker keeps in memory across batches, over all projections."""

Item = Fact | Recorded[Any] | Changed[Any]


class Source(msgspec.Struct, frozen=True):
    """Something to fold: a fact or a recorded event, or None where it was retracted."""

    key: SourceKey
    item: Fact | Recorded[Any] | None


class Register:
    """Who subscribes to what in stage 2."""

    def __init__(self) -> None:
        self.projections = projections(2)
        self.by_name = {p.name: p for p in self.projections}
        self.by_fact: dict[type[Any], list[Projection]] = defaultdict(list)
        self.by_payload: dict[type[Payload], list[Projection]] = defaultdict(list)
        self.makers = {p.row: p for p in self.projections}
        for p in self.projections:
            for fact in p.facts:
                self.by_fact[fact].append(p)
            for payload in p.recorded:
                self.by_payload[payload].append(p)

    def keys(self, item: Fact | Recorded[Any]) -> tuple[str, ...]:
        """Every `projection:key` that a fact or a recorded event goes to."""
        takers = self.by_payload[type(item.payload)] if isinstance(item, Recorded) else self.by_fact[type(item)]
        return tuple(f"{p.name}:{key}" for p in takers for key in p.keys(item))


class Stage2:
    """Drains stage 2, keeping recent rows for as long as nobody else moves the offset."""

    def __init__(self, batch: int = 4000) -> None:
        self._batch = batch
        self._register = Register()
        self._rows: OrderedDict[tuple[str, RowKey], tuple[Any, bytes]] = OrderedDict()
        self._seen: tuple[int, Position, int] | None = None

    def drain_batch(self, connection: Connection, lease: Lease, facts_of: int, upto: Position) -> Lease:
        """Fold one batch of changes up to a position that every shard of stage 1 has reached.

        Raises: LeaseLost, and then nothing was written.
        """
        end = facts.batch_end(connection, facts_of, lease.position, upto, self._batch)
        changes = [of_fact(c) for c in facts.read_changes(connection, facts_of, lease.position, end)]
        recorded = recorded_sources(connection, self._register.by_payload, lease.position, end)
        return self.fold(connection, lease, facts_of, [*changes, *recorded], end)

    def fold(
        self,
        connection: Connection,
        lease: Lease,
        facts_of: int,
        sources: Sequence[Source],
        end: Position,
        *,
        fresh: bool = False,
    ) -> Lease:
        """Fold sources and move the offset to `end`, in one transaction. `fresh`: none was folded before."""
        if (
            self._seen is None
            or self._seen[:2] != (lease.generation, lease.position)
            or (lease.epoch - self._seen[2] not in (0, 1))
        ):
            self._rows.clear()
        self._seen = None
        try:
            with connection.transaction():
                if not fresh:
                    lease = generations.advance(connection, lease, end)
                _Batch(connection, lease.generation, facts_of, self._register, self._rows).fold(sources, fresh=fresh)
        except BaseException:
            self._rows.clear()
            raise
        while len(self._rows) > KEPT_ROWS:
            self._rows.popitem(last=False)
        self._seen = (lease.generation, lease.position, lease.epoch)
        return lease


class _Batch:
    """One transaction of stage 2."""

    def __init__(
        self,
        connection: Connection,
        generation: int,
        facts_of: int,
        register: Register,
        rows: OrderedDict[tuple[str, RowKey], tuple[Any, bytes]],
    ) -> None:
        self._connection = connection
        self._generation = generation
        self._facts_of = facts_of
        self._register = register
        self._rows = rows
        self._items: dict[SourceKey, Fact | Recorded[Any] | None] = {}
        self._routes: dict[SourceKey, Route] = {}
        """Routes that this batch changes."""
        self._feeds: dict[str, dict[RowKey, list[Item]]] = defaultdict(lambda: defaultdict(list))
        self._refolds: dict[str, set[RowKey]] = defaultdict(set)
        self._changed: dict[str, dict[RowKey, Any]] = defaultdict(dict)

    def fold(self, sources: Sequence[Source], *, fresh: bool) -> None:
        self._items = {source.key: source.item for source in sources}
        self._route(sources, fresh=fresh)
        for p in self._register.projections:
            for row_type in p.upstream:
                self._feed(p, self._register.makers[row_type])
            self._fold_projection(p)
        facts.save_routes(self._connection, self._generation, self._routes)
        readmodels.queue_points(self._connection, self._generation, self._changed.get(readmodels.OUTBOX_OF, {}).keys())

    def _route(self, sources: Sequence[Source], *, fresh: bool) -> None:
        before = {} if fresh else facts.read_routes(self._connection, self._generation, [s.key for s in sources])
        for source in sources:
            was = before[source.key].keys if source.key in before else ()
            now = () if source.item is None else self._register.keys(source.item)
            space_id = source.key[0]
            for target in was:
                name, key = target.split(":", 1)
                self._refolds[name].add((space_id, key))
            for target in now:
                if target not in was:
                    name, key = target.split(":", 1)
                    self._feeds[name][space_id, key].append(cast(Item, source.item))
            if was != now:
                self._routes[source.key] = Route(now)

    def _feed(self, p: Projection, upstream: Projection) -> None:
        """Hand the upstream rows that this batch changed to a projection that reads them."""
        changed = self._changed.get(upstream.name)
        if not changed:
            return
        ids = {key: row_source(upstream.name, key) for key in changed}
        missing = [ids[key] for key in changed if ids[key] not in self._routes]
        before = facts.read_routes(self._connection, self._generation, missing)
        prefix = f"{p.name}:"
        for key, row in changed.items():
            source = ids[key]
            known = self._routes.get(source) or before.get(source) or Route((), upstream.name, key[1])
            was = [target for target in known.keys if target.startswith(prefix)]
            change: Changed[Any] = Changed(key[1], row)
            now = [] if row is None else [prefix + k for k in p.keys(change)]
            # A row that went there before is revised or retracted, as a fact is: what it went to is folded anew.
            for target in was:
                self._refolds[p.name].add((key[0], target[len(prefix) :]))
            for target in now:
                if target not in was:
                    self._feeds[p.name][key[0], target[len(prefix) :]].append(change)
            if was != now:
                others = [target for target in known.keys if not target.startswith(prefix)]
                self._routes[source] = Route((*others, *now), upstream.name, key[1])

    def _fold_projection(self, p: Projection) -> None:
        feeds, refolds = self._feeds.pop(p.name, {}), self._refolds.pop(p.name, set())
        touched = [*refolds, *(key for key in feeds if key not in refolds)]
        if not touched:
            return
        self._load(p, touched)
        members = self._members(p, refolds)
        out: dict[RowKey, bytes | None] = {}
        for key in touched:
            held = self._rows.get((p.name, key))
            row, before = held if held is not None else (None, None)
            items = feeds.get(key, [])
            if key in refolds:
                row, items = None, members.get(key, [])
            for item in items:
                row = p.fold(row, item)
            after = None if row is None else msgspec.json.encode(row)
            if row is None or after is None:
                self._rows.pop((p.name, key), None)
            else:
                self._rows[p.name, key] = (row, after)
                self._rows.move_to_end((p.name, key))
            if after != before:
                out[key] = after
                self._changed[p.name][key] = row
        readmodels.save(self._connection, p, self._generation, out)

    def _load(self, p: Projection, keys: Iterable[RowKey]) -> None:
        missing = [key for key in keys if (p.name, key) not in self._rows]
        for key, row in readmodels.load(self._connection, p, self._generation, missing).items():
            self._rows[p.name, key] = (row, msgspec.json.encode(row))

    def _members(self, p: Projection, keys: set[RowKey]) -> dict[RowKey, list[Item]]:
        """Everything routed to these rows, in order of time and id."""
        if not keys:
            return {}
        targets = {f"{p.name}:{key[1]}" for key in keys}
        routed = facts.routed_to(self._connection, self._generation, sorted(targets))
        routed.update(self._routes)
        wanted: dict[SourceKey, list[RowKey]] = {}
        for source, route in routed.items():
            found = [(source[0], t.split(":", 1)[1]) for t in route.keys if t in targets]
            mine = [key for key in found if key in keys]
            if mine:
                wanted[source] = mine
        items = self._sources_of({source: routed[source] for source in wanted})
        members: dict[RowKey, list[tuple[int, UUID, Item]]] = defaultdict(list)
        for source, item in items.items():
            for key in wanted[source]:
                members[key].append((_when(item), source[1], item))
        return {key: [m[2] for m in sorted(found, key=lambda m: m[:2])] for key, found in members.items()}

    def _sources_of(self, routes: dict[SourceKey, Route]) -> dict[SourceKey, Item]:
        found: dict[SourceKey, Item] = {}
        absent: list[SourceKey] = []
        rows: dict[str, list[tuple[SourceKey, RowKey]]] = defaultdict(list)
        for source, route in routes.items():
            if route.upstream is not None and route.upstream_key is not None:
                rows[route.upstream].append((source, (source[0], route.upstream_key)))
            elif source in self._items:
                item = self._items[source]
                if item is not None:
                    found[source] = item
            else:
                absent.append(source)
        found.update(facts.read_facts(self._connection, self._facts_of, absent))
        events = [source for source in absent if source not in found]
        for space_id in {source[0] for source in events}:
            ids = [source[1] for source in events if source[0] == space_id]
            for delivery_id, event in read_events(self._connection, space_id, ids).items():
                found[space_id, delivery_id] = Recorded(event, event.payload)
        for name, wanted in rows.items():
            upstream = self._register.by_name[name]
            self._load(upstream, [key for _, key in wanted])
            for source, key in wanted:
                held = self._rows.get((name, key))
                if held is not None:
                    found[source] = Changed(key[1], held[0])
        return found


def recorded_sources(
    connection: Connection, payloads: Iterable[type[Payload]], after: Position, upto: Position
) -> list[Source]:
    """Recorded events of some types, one for each delivery: of variants the one that counts."""
    types = list(payloads)
    if not types:
        return []
    found: dict[SourceKey, Event] = {}
    doubtful: dict[int, set[UUID]] = defaultdict(set)
    for event in read_types(connection, types, after, upto):
        key = (event.space_id, event.delivery_id)
        if key in found or event.variant_of is not None:
            doubtful[event.space_id].add(event.delivery_id)
        found[key] = event
    for space_id, ids in doubtful.items():
        for delivery_id, event in read_events(connection, space_id, ids).items():
            found[space_id, delivery_id] = event
    return [Source(key, Recorded(event, event.payload)) for key, event in found.items()]


def row_source(projection: str, key: RowKey) -> SourceKey:
    """The source that a row of an upstream projection is for those that read it."""
    return key[0], derived_id(f"row:{projection}:{key[0]}:{key[1]}")


def of_fact(change: FactChange) -> Source:
    """A changed fact as something to fold."""
    return Source((change.space_id, change.id), change.fact)


def _when(item: Item) -> int:
    if isinstance(item, Fact):
        return item.occurred_at
    return item.event.occurred_at if isinstance(item, Recorded) else 0
