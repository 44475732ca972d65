"""Erasing at work: events are emptied, and what was folded from them is folded again, in one transaction.

Every read model is then as if they had never been recorded. What people and processors recorded about things that are
gone with them is erased in the next round, and so on.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import partial
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.domain.events.erasure import Scope, Tombstone, event_tombstones, same_text
from memctl.domain.events.event import Event
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, advisory_lock, past_deadlocks
from memctl.infra.log import erase
from memctl.infra.log.migrate import refuse_newer
from memctl.infra.log.read import names_of
from memctl.infra.readmodels import as_of_snapshots, facts, generations, rebuilds
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.rows import OUTBOX_OF
from memctl.infra.vectors import outbox
from memctl.projections.kernel import folded_as_recorded, projections
from memctl.projections.memory_rows import Memory
from memctl.projections.things import NAMED, THINGS
from memctl.workers.erasure import team_tombstones
from memctl.workers.folding.refold import refold

PATIENCE_S = 120.0
"""How long to wait for a rebuild that another process is at."""


class RebuildAtWork(MemctlError):
    """A rebuild of the read models is at work, which would fold what is to be forgotten."""

    hint = "wait for it to end (`memctl replay --status` shows how far it is), then say the same again"


class Consequence(msgspec.Struct, frozen=True):
    """What becomes of a read model's rows: how many go, and how many change since part of them is erased."""

    read_model: str
    dropped: int
    changed: int


class Round(msgspec.Struct):
    """What was erased at once, and what follows from it."""

    ids: set[UUID] = msgspec.field(default_factory=set)
    """Of the events, as what is said of them names them; of further versions, too."""
    types: Counter[str] = msgspec.field(default_factory=Counter)
    streams: set[str] = msgspec.field(default_factory=set)
    first_at: datetime | None = None
    last_at: datetime | None = None
    consequences: list[Consequence] = msgspec.field(default_factory=list)
    dropped: list[str] = msgspec.field(default_factory=list)
    """Keys of things that are named by them, and ids of facts, that stand no more."""
    things: list[str] = msgspec.field(default_factory=list)
    """Those of them that are ids, and no names of sessions and places."""
    retold: list[str] = msgspec.field(default_factory=list)
    """Ids of memories that stand otherwise."""
    points: list[str] = msgspec.field(default_factory=list)
    """Ids of vector points that stand no more, or otherwise."""
    about: set[UUID] = msgspec.field(default_factory=set)
    """What was recorded about things that are gone, or repeats what they no longer say: to be erased next."""

    @property
    def events(self) -> int:
        return self.types.total()

    def count(self, stream: str, kind: str, events: int, first_at: datetime, last_at: datetime) -> None:
        """Take in events of one stream and type, which happened between those times."""
        self.types[kind] += events
        self.streams.add(stream)
        self.first_at = min(self.first_at or first_at, first_at)
        self.last_at = max(self.last_at or last_at, last_at)


class _Undone(Exception):
    """Raised to roll a preview back."""


@contextlib.contextmanager
def nothing_rebuilt(connection: Connection) -> Iterator[None]:
    """Keep replays away, and drop every generation that is not live, now and after: they were folded from what is to be
    erased, and those that began before anybody could know of it are no better.

    Raises: RebuildAtWork; NewerSchema, for what is to be erased may lie where this memctl does not look.
    """
    refuse_newer(connection)
    with advisory_lock(connection, rebuilds.LOCK, 0, patience_s=PATIENCE_S) as mine:
        if not mine:
            raise RebuildAtWork
        try:
            drop_all_but_live(connection)
            yield
        finally:
            if not connection.closed:
                drop_all_but_live(connection)


def drop_all_but_live(connection: Connection) -> None:
    """Drop what is being built, what is kept, and every look at the past."""
    for purpose in ("replace", "compare", "as_of"):
        for each in rebuilds.running(connection, purpose):
            rebuilds.end(connection, each.id, "dropped", "something was forgotten")
    for status in ("scratch", "building", "previous"):
        for generation, _, _ in reversed(generations.generations(connection, status)):
            generations.drop_alone(connection, generation)
    as_of_snapshots.drop_all(connection)


def with_what_cites(connection: Connection, space_id: int, ids: Collection[UUID]) -> set[UUID]:
    """These deliveries, and the recorded events that cite them, and those that cite these, and so on."""
    return {*ids, *erase.citing(connection, space_id, ids)}


def with_counterparts(
    connection: Connection, space_id: int, ids: Collection[UUID]
) -> tuple[set[UUID], list[Tombstone]]:
    """Single deliveries with the other deliveries of the same (by hook and by transcript), and the tombstones that keep
    each of them from being recorded again."""
    found = set(ids)
    tombstones: list[Tombstone] = []
    lookup = _Counterparts(connection, space_id)
    for event in erase.read(connection, space_id, ids):
        counterparts = lookup.counterparts(event)
        found |= counterparts
        tombstones += event_tombstones(
            event.stream, event.type, event.occurred_at, event.payload, has_counterpart=bool(counterparts)
        )
    for event in erase.read(connection, space_id, found - set(ids)):
        tombstones += event_tombstones(event.stream, event.type, event.occurred_at, event.payload, has_counterpart=True)
    return found, tombstones


class _Counterparts:
    """Which events of a stream say the same. Looked up once for each stream and type: by tool call, else by text."""

    def __init__(self, connection: Connection, space_id: int) -> None:
        self._connection, self._space_id = connection, space_id
        self._by_call: dict[tuple[str, str], dict[str, set[UUID]]] = {}
        self._texts: dict[tuple[str, str], list[Event]] = {}

    def counterparts(self, event: Event) -> set[UUID]:
        """The other deliveries that say the same as this one."""
        where = (event.stream, event.type)
        if where not in self._by_call:
            self._by_call[where] = self._calls(*where)
        call = getattr(event.payload, "call", "")
        others = self._by_call[where].get(call, set()) - {event.delivery_id}
        if call:
            return others
        if where not in self._texts:
            without_call = self._by_call[where].get("", set())
            self._texts[where] = list(erase.read(self._connection, self._space_id, without_call))
        return {
            e.delivery_id
            for e in self._texts[where]
            if e.delivery_id in others and e.stream == event.stream and same_text(event.payload, e.payload)
        }

    def _calls(self, stream: str, kind: str) -> dict[str, set[UUID]]:
        found: dict[str, set[UUID]] = {}
        for call, delivery in self._connection.execute(
            "SELECT coalesce(payload->>'call', ''), coalesce(variant_of, event_id) FROM memctl.events"
            " WHERE space_id = %s AND stream = %s AND type = %s AND payload IS NOT NULL",
            [self._space_id, stream, kind],
        ):
            found.setdefault(call, set()).add(delivery)
        return found


def erase_round(
    connection: Connection,
    space_id: int,
    receipt: UUID,
    ids: Collection[UUID],
    *,
    dry: bool = False,
    only: Collection[UUID] | None = None,
) -> Round:
    """Empty these deliveries under a receipt and fold again what was folded from them; `dry`: and undo it all.

    `only`: of the deliveries' variants just these events; the others stand, and are folded in their place.

    Of a dry round the receipt need not be there. Raises: OtherRules, LeaseHeld, LiveChanged, LeaseLost.
    """
    return past_deadlocks(partial(_erased, connection, space_id, receipt, ids, dry=dry, only=only))


def _erased(
    connection: Connection,
    space_id: int,
    receipt: UUID,
    ids: Collection[UUID],
    *,
    dry: bool,
    only: Collection[UUID] | None,
) -> Round:
    live = generations.live(connection)
    wanted = list(ids)
    streams = _session_streams(connection, space_id, wanted)
    result = Round(ids={*wanted, *erase.versions(connection, space_id, wanted)})

    in_files: set[Tombstone] = set()

    def first() -> None:
        in_files.clear()
        if dry:
            erase.begin(connection, space_id, receipt, Scope(kind="id"), "")
        _remember(connection, space_id, live, wanted, streams)
        in_files.update(team_tombstones.entries(connection, space_id, live, "memctl_affected"))
        for gone in erase.empty(connection, space_id, receipt, wanted, only):
            result.count(gone.stream, gone.type, 1, gone.occurred_at, gone.occurred_at)

    def last() -> None:
        _compare(connection, space_id, live, result)
        _forget_vectors(connection, live)
        connection.execute(
            sql.SQL(
                "DELETE FROM memctl.facts_g{g} WHERE space_id = %s AND stream = ANY(%s) AND payload IS NULL"
                " AND at <= (SELECT min(memctl.of_space(position, held, space_id)) FROM memctl.offsets"
                " WHERE generation = %s)"
            ).format(g=sql.SQL(str(live.stage1))),
            [space_id, streams, live.stage2],
        )
        if only is None:
            in_files.difference_update(team_tombstones.entries(connection, space_id, live, "memctl_affected"))
            erase.lay_tombstones(connection, space_id, receipt, in_files)
            # Nobody can ask for it again: what names it is named by nothing that is left.
            result.about = said_about(connection, space_id, result)
            erase.to_come(connection, receipt, result.about)
            erase.note(connection, receipt, result.things, result.retold)
        if dry:
            raise _Undone

    with contextlib.suppress(_Undone):
        refold(
            connection,
            streams=[(space_id, stream) for stream in streams],
            recorded=[(space_id, id) for id in _folded_as_they_are(connection, space_id, wanted)],
            first=first,
            last=last,
        )
    return result


def said_about(connection: Connection, space_id: int, found: Round) -> set[UUID]:
    """What was recorded about things that are gone, the events among them, or repeats what they no longer say."""
    said = erase.naming(connection, space_id, [*found.dropped, *map(str, found.ids)])
    return said | erase.reflecting(connection, space_id, [*found.dropped, *found.retold])


def _session_streams(connection: Connection, space_id: int, ids: Iterable[UUID]) -> list[str]:
    rows = connection.execute(
        "SELECT DISTINCT stream FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s))) AND payload IS NOT NULL"
        " AND stream LIKE 'session/%%/%%' ORDER BY stream",
        [space_id, list(ids)],
    )
    return [row[0] for row in rows]


def _folded_as_they_are(connection: Connection, space_id: int, ids: Iterable[UUID]) -> list[UUID]:
    """Those of the deliveries that stage 2 folds without stage 1."""
    names = list(names_of(folded_as_recorded()))
    rows = connection.execute(
        "SELECT DISTINCT coalesce(variant_of, event_id) FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s))) AND type = ANY(%s)",
        [space_id, list(ids), names],
    )
    return [row[0] for row in rows]


def _remember(
    connection: Connection, space_id: int, live: generations.Live, ids: list[UUID], streams: list[str]
) -> None:
    """Note in temporary tables what stands now and may not stand any more."""
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE memctl_stood ON COMMIT DROP AS SELECT id FROM memctl.facts_g{g}"
            " WHERE space_id = {space} AND stream = ANY({streams}) AND {held}"
        ).format(
            g=sql.SQL(str(live.stage1)),
            space=sql.Literal(space_id),
            streams=sql.Literal(streams),
            held=facts.held(live.stage2),
        )
    )
    connection.execute(
        sql.SQL(
            "CREATE TEMP TABLE memctl_affected ON COMMIT DROP AS WITH RECURSIVE t(target) AS ("
            " SELECT target FROM memctl.routes_g{g} WHERE space_id = {space}"
            " AND (source IN (SELECT id FROM memctl_stood) OR source = ANY({ids}::uuid[]))"
            " UNION SELECT r.target FROM memctl.routes_g{g} r JOIN t ON r.upstream || ':' || r.upstream_key = t.target"
            " WHERE r.space_id = {space})"
            " SELECT split_part(target, ':', 1) AS name, substr(target, strpos(target, ':') + 1) AS key,"
            " NULL::text AS was FROM t"
        ).format(g=sql.SQL(str(live.stage2)), space=sql.Literal(space_id), ids=sql.Literal([str(id) for id in ids]))
    )
    connection.execute(
        "CREATE TEMP TABLE memctl_cached (hash text) ON COMMIT DROP",
    )
    for p in projections():
        generation = live.of(p.stage)
        name = sql.SQL(readmodels.table(p.name, generation))
        if p.stage == 1:
            connection.execute(
                sql.SQL(
                    "INSERT INTO memctl_affected SELECT %s, key, md5(row::text) FROM {}"
                    " WHERE space_id = %s AND stream = ANY(%s)"
                ).format(name),
                [p.name, space_id, streams],
            )
        else:
            connection.execute(
                sql.SQL(
                    "UPDATE memctl_affected a SET was = md5(t.row::text) FROM {} t"
                    " WHERE a.name = %s AND t.space_id = %s AND t.key = a.key"
                ).format(name),
                [p.name, space_id],
            )
    connection.execute(
        sql.SQL(
            "INSERT INTO memctl_cached SELECT DISTINCT t.row->>'dense_hash' FROM {} t"
            " JOIN memctl_affected a ON a.name = {} AND a.key = t.key WHERE t.space_id = {}"
        ).format(sql.SQL(readmodels.table(OUTBOX_OF, live.stage2)), sql.Literal(OUTBOX_OF), sql.Literal(space_id))
    )


def _compare(connection: Connection, space_id: int, live: generations.Live, result: Round) -> None:
    """What became of the rows and facts that were noted."""
    for p in projections():
        generation = live.of(p.stage)
        rows = connection.execute(
            sql.SQL(
                "SELECT a.key, t.key IS NULL FROM memctl_affected a"
                " LEFT JOIN {} t ON t.space_id = %s AND t.key = a.key"
                " WHERE a.name = %s AND a.was IS NOT NULL AND md5(t.row::text) IS DISTINCT FROM a.was"
            ).format(sql.SQL(readmodels.table(p.name, generation))),
            [space_id, p.name],
        ).fetchall()
        gone = [key for key, dropped in rows if dropped]
        if rows:
            result.consequences.append(Consequence(p.name, len(gone), len(rows) - len(gone)))
        if p.name == OUTBOX_OF:
            result.points += [key for key, _ in rows]
        if p.row is Memory:
            result.retold += [key for key, dropped in rows if not dropped]
        if p.name in NAMED:
            result.dropped += gone
        if p.name in THINGS.values():
            result.things += gone
    retracted = connection.execute(
        sql.SQL(
            "SELECT s.id::text FROM memctl_stood s LEFT JOIN memctl.facts_g{} f ON f.space_id = %s AND f.id = s.id"
            " WHERE f.payload IS NULL"
        ).format(sql.SQL(str(live.stage1))),
        [space_id],
    )
    facts_gone = [row[0] for row in retracted]
    result.dropped += facts_gone
    result.things += facts_gone


def _forget_vectors(connection: Connection, live: generations.Live) -> None:
    """Take the dense vectors of texts that no point has any more from the cache."""
    connection.execute(
        sql.SQL(
            "DELETE FROM memctl.embeddings e WHERE text_hash IN (SELECT decode(hash, 'hex') FROM memctl_cached) AND {}"
        ).format(outbox.of_no_point([live.stage2]))
    )


def lineage(connection: Connection, space_id: int, projection: str, key: str) -> set[UUID]:
    """The deliveries that a row of stage 2 rests on and that stand, through facts and the rows of other read models."""
    live = generations.live(connection)
    found: set[UUID] = set()
    waiting, seen = [(projection, key)], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        routed = facts.routed_to(connection, live.stage2, [f"{at[0]}:{at[1]}"])
        sources = []
        for source, route in routed.items():
            if source[0] != space_id:
                continue
            if route.upstream is not None and route.upstream_key is not None:
                waiting.append((route.upstream, route.upstream_key))
            else:
                sources.append(source)
        known = facts.read_facts(connection, live.stage1, sources)
        for source in sources:
            fact = known.get(source)
            found |= {source[1]} if fact is None else {span.event for span in fact.evidence}
    # A fact that was retracted since the row was folded is no event, nor is what another log calls one.
    return {event.delivery_id for event in erase.read(connection, space_id, found)}
