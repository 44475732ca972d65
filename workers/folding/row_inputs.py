"""What a row of stage 2 is folded from: everything that was routed to it, as it stands now."""

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec

from memctl.domain.events.event import Position
from memctl.domain.events.facts import Fact
from memctl.infra.database import Connection
from memctl.infra.log.read import read_events
from memctl.infra.readmodels import facts
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.facts import Route, SourceKey
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Changed, Projection, Recorded, folded_as_recorded
from memctl.workers.folding.sources import Item, Register, parts, when

RowOf = tuple[str, RowKey]
"""Name of a projection, and key of a row."""


MOST_FACTS = 50_000
"""Facts that are kept from one row of a batch to the next: some 50 MB, until it is written."""


class Rows:
    """Rows at hand with their JSON, those used last at the end."""

    def __init__(self) -> None:
        self._rows: OrderedDict[RowOf, tuple[Any, bytes]] = OrderedDict()
        self.bytes = 0
        """Of the JSON of all of them."""

    def __contains__(self, of: RowOf) -> bool:
        return of in self._rows

    def get(self, of: RowOf) -> tuple[Any, bytes | None]:
        """A row and its JSON; None twice where it is not at hand."""
        return self._rows.get(of, (None, None))

    def put(self, of: RowOf, row: Any, encoded: bytes) -> None:
        self.drop(of)
        self._rows[of] = (row, encoded)
        self.bytes += len(encoded)

    def drop(self, of: RowOf) -> None:
        _, encoded = self._rows.pop(of, (None, b""))
        self.bytes -= len(encoded)

    def shrink(self, most: int, most_bytes: int) -> None:
        """Let go of the rows that were not used for longest, until so many rows and bytes are left."""
        while self._rows and (len(self._rows) > most or self.bytes > most_bytes):
            self.drop(next(iter(self._rows)))

    def keep(self, names: Collection[str]) -> None:
        """Let go of the rows of all but some read models."""
        for of in [of for of in self._rows if of[0] not in names]:
            self.drop(of)

    def clear(self) -> None:
        self._rows.clear()
        self.bytes = 0


class RowInputs:
    """Reads what rows are folded from, in one generation and up to one position. Writes nothing.

    `items` and `routes` are what a batch knows better than the tables do, before it has written them.
    """

    def __init__(
        self,
        connection: Connection,
        generation: int,
        facts_of: int,
        upto: Position,
        register: Register,
        rows: Rows | None = None,
        *,
        keeps: bool = False,
    ) -> None:
        """`keeps`: for one batch, in which no fact is read twice."""
        self._keeps = keeps
        self._connection = connection
        self._generation = generation
        self._facts_of = facts_of
        self._upto = upto
        self._register = register
        self._rows = Rows() if rows is None else rows
        self.items: Mapping[SourceKey, Fact | Recorded[Any] | None] = {}
        self.routes: dict[SourceKey, Route] = {}
        self._facts: dict[SourceKey, Fact] = {}
        """Some that were read: of what very many rows of one thing rest on, each row wants the same."""

    def of(self, p: Projection[Any], keys: Collection[RowKey]) -> dict[RowKey, list[tuple[SourceKey, Item]]]:
        """Everything routed to these rows, in order of time and id."""
        if not keys:
            return {}
        targets = {f"{p.name}:{key[1]}" for key in keys}
        routed = facts.routed_to(self._connection, self._generation, sorted(targets))
        routed.update(self.routes)
        wanted: dict[SourceKey, list[RowKey]] = {}
        for source, route in routed.items():
            found = [(source[0], parts(t)[1]) for t in route.keys if t in targets]
            mine = [key for key in found if key in keys]
            if mine:
                wanted[source] = mine
        items = self.sources({source: routed[source] for source in wanted})
        members: dict[RowKey, list[tuple[SourceKey, Item]]] = defaultdict(list)
        for source, item in items.items():
            for key in wanted[source]:
                members[key].append((source, item))
        return {key: sorted(found, key=lambda m: (when(m[1]), m[0][1])) for key, found in members.items()}

    def sources(self, routes: Mapping[SourceKey, Route]) -> dict[SourceKey, Item]:
        """Sources as they stand now; those that are gone are left out. Of a route, only its upstream row is asked."""
        found: dict[SourceKey, Item] = {}
        absent: list[SourceKey] = []
        rows: dict[str, list[tuple[SourceKey, RowKey]]] = defaultdict(list)
        for source, route in routes.items():
            if route.upstream is not None and route.upstream_key is not None:
                rows[route.upstream].append((source, (source[0], route.upstream_key)))
            elif source in self.items:
                item = self.items[source]
                if item is not None:
                    found[source] = item
            else:
                absent.append(source)
        found.update(self._read(absent))
        events = [source for source in absent if source not in found]
        for space_id in {source[0] for source in events}:
            ids = [source[1] for source in events if source[0] == space_id]
            recorded = read_events(self._connection, space_id, ids, self._upto, folded_as_recorded())
            found.update(((space_id, id), Recorded(event, event.payload)) for id, event in recorded.items())
        for name, wanted in rows.items():
            upstream = self._register.by_name[name]
            self.load(upstream, [key for _, key in wanted])
            for source, key in wanted:
                if (name, key) in self._rows:
                    found[source] = Changed(key[1], self._rows.get((name, key))[0])
        return found

    def _read(self, sources: Iterable[SourceKey]) -> dict[SourceKey, Fact]:
        """Facts by id, as they stood when they were read first."""
        found, missing = dict[SourceKey, Fact](), list[SourceKey]()
        for source in sources:
            if (fact := self._facts.get(source)) is None:
                missing.append(source)
            else:
                found[source] = fact
        read = facts.read_facts(self._connection, self._facts_of, missing)
        if self._keeps and len(self._facts) + len(read) <= MOST_FACTS:
            self._facts.update(read)
        return {**found, **read}

    def source(self, source: SourceKey, upstream: str | None = None, upstream_key: str | None = None) -> Item | None:
        """One source as it stands now, a row of another read model with its name and key; None where it is gone."""
        return self.sources({source: Route((), upstream, upstream_key)}).get(source)

    def load(self, p: Projection[Any], keys: Iterable[RowKey]) -> None:
        """Have these rows at hand, where they are there."""
        missing = [key for key in keys if (p.name, key) not in self._rows]
        for key, row in readmodels.load(self._connection, p, self._generation, missing).items():
            self._rows.put((p.name, key), row, msgspec.json.encode(row))

    def forget(self) -> None:
        """Have no row at hand any more."""
        self._rows.clear()
