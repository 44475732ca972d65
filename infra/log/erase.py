"""Erasing from the log: what events said goes, under a receipt; their places stay, and tombstones are laid.

The order matters: first the tombstones are committed, then every append that could not see them has ended
(`settled`), and only then is it looked up what there is to erase.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec
from psycopg import sql
from psycopg.types.json import Jsonb

from memctl.domain.events.erasure import Scope, Tombstone
from memctl.domain.events.event import Event, Micros, NewEvent, event_types
from memctl.domain.events.observations import Observation, event_id_of
from memctl.domain.knowledge.consolidation import Consolidating
from memctl.domain.support.location import above, by_key, said_of
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.database import Connection, single_row
from memctl.infra.log.append import encode_payload
from memctl.infra.log.mark import position_holders
from memctl.infra.log.read import read_versions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

RECORDS = ("event.skipped", "content.erased")
"""What memctl records about leaving out and forgetting: it holds ids, and is never erased."""

MANY = 2_000
"""So many ids are not sent to be looked up one by one."""

_UUID = 36
"""Characters of an id."""

_FIND = """SELECT DISTINCT coalesce(variant_of, event_id) FROM memctl.events
    WHERE space_id = %(space)s AND payload IS NOT NULL AND type <> ALL(%(records)s) AND """


class SoFar(msgspec.Struct, frozen=True):
    """Ids of things that were gone, and of memories that stood otherwise, when a forgetting was left off. Statements
    recorded meanwhile may name them. Once a receipt is finished, it holds none."""

    dropped: tuple[str, ...] = ()
    retold: tuple[str, ...] = ()


class Receipt(msgspec.Struct, frozen=True):
    """What was forgotten: scope and ids, never what was said. `erased` are deliveries."""

    id: UUID
    space: str
    scope: Scope
    reason: str
    begun_at: datetime
    finished_at: datetime | None
    erased: tuple[UUID, ...]
    outcome: dict[str, Any]
    so_far: SoFar


class Emptied(NamedTuple):
    """An event that was emptied: where it stood, of what kind it was, and when it happened."""

    id: UUID
    stream: str
    type: str
    occurred_at: datetime


_MORE = b"""
UPDATE memctl.receipts SET erased = ARRAY(SELECT DISTINCT id FROM unnest(erased || %s::uuid[]) AS e(id))
WHERE receipt = %s"""


def begin(
    connection: Connection, space_id: int, receipt: UUID, scope: Scope, reason: str, ids: Iterable[UUID] = ()
) -> None:
    """Open a receipt: until it is finished, events may be emptied under it. `ids` are to be, whatever comes between."""
    connection.execute(
        "INSERT INTO memctl.receipts (receipt, space_id, scope, reason, erased) VALUES (%s, %s, %s, %s, %s::uuid[])"
        " ON CONFLICT (receipt) DO NOTHING",  # one that was begun and not finished
        [receipt, space_id, Jsonb(scope, msgspec.json.encode), reason, list(ids)],
    )


def stay(connection: Connection, space_id: int) -> None:
    """Let no space move away before the caller's transaction ends, in which it begins to forget. Raises psycopg's
    error of `SpaceMoved`, where the space lives on another database."""
    connection.execute("SELECT memctl.stay(%s)", [space_id])


def to_come(connection: Connection, receipt: UUID, ids: Iterable[UUID]) -> None:
    """Note more that is to be emptied under a receipt, in the caller's transaction."""
    connection.execute(_MORE, [list(ids), receipt])


def note(connection: Connection, receipt: UUID, dropped: Sequence[str], changed: Sequence[str]) -> None:
    """Note what is gone, and which memories changed, under an unfinished receipt, in the caller's transaction."""
    connection.execute(
        "UPDATE memctl.receipts SET outcome = jsonb_build_object("
        " 'dropped', coalesce(outcome->'dropped', '[]') || to_jsonb(%s::text[]),"
        " 'retold', coalesce(outcome->'retold', '[]') || to_jsonb(%s::text[])) WHERE receipt = %s",
        [list(dropped), list(changed), receipt],
    )


def finish(connection: Connection, receipt: UUID, outcome: dict[str, Any]) -> None:
    """Close a receipt: everything that it is about was looked for, and is not there."""
    connection.execute(
        "UPDATE memctl.receipts SET finished_at = clock_timestamp(), outcome = %s WHERE receipt = %s",
        [Jsonb(outcome, msgspec.json.encode), receipt],
    )


def receipt(connection: Connection, id: UUID) -> Receipt | None:
    """The receipt of that id, finished or not."""
    return next((each for each in receipts(connection) if each.id == id), None)


def receipts(connection: Connection, *, unfinished: bool = False) -> list[Receipt]:
    """Every receipt, or those that were begun and not finished; oldest first."""
    rows = connection.execute(
        "SELECT receipt, s.name, scope, reason, begun_at, finished_at, erased, outcome FROM memctl.receipts r"
        " JOIN memctl.spaces s USING (space_id) WHERE finished_at IS NULL OR NOT %s ORDER BY begun_at, receipt",
        [unfinished],
        binary=True,
    )
    return [
        Receipt(row[0], row[1], msgspec.json.decode(row[2], type=Scope), row[3], row[4], row[5], tuple(row[6]),
                msgspec.json.decode(row[7]) if row[5] else {},
                SoFar() if row[5] else msgspec.json.decode(row[7], type=SoFar))
        for row in rows
    ]  # fmt: skip


def last_finished(connection: Connection) -> datetime | None:
    """When the last receipt was closed."""
    (moment,) = single_row(connection, "SELECT max(finished_at) FROM memctl.receipts")
    return cast("datetime | None", moment)


def now(connection: Connection) -> datetime:
    """What the database's clock shows."""
    (moment,) = single_row(connection, "SELECT clock_timestamp()")
    return cast(datetime, moment)


def erasing_since(
    connection: Connection, moment: datetime, space_id: int | None = None, among: Iterable[UUID] | None = None
) -> bool:
    """Whether something is being forgotten, or was at any time since a moment: what was read then may hold it.

    In that space, where one is named. `among`: what was forgotten since counts only where these deliveries hold some of
    it; of what is under way nobody knows yet what it will find.
    """
    found = connection.execute(
        "SELECT EXISTS (SELECT FROM memctl.receipts WHERE space_id = coalesce(%(space)s, space_id) AND"
        " (finished_at IS NULL OR finished_at >= %(moment)s"
        " AND (%(among)s::uuid[] IS NULL OR erased && %(among)s::uuid[])))",
        {"moment": moment, "space": space_id, "among": None if among is None else list(among)},
    ).fetchone()
    return bool(found and found[0])


def lay_tombstones(connection: Connection, space_id: int, receipt: UUID, tombstones: Iterable[Tombstone]) -> None:
    """Lay tombstones, in the caller's transaction. Appends that begin once it is committed see them."""
    laid = list(dict.fromkeys(tombstones))
    if not laid:
        return
    connection.execute(
        "INSERT INTO memctl.tombstones (space_id, kind, stream, value, since, until, receipt)"
        " SELECT %s, kind, stream, value, coalesce(since, '-infinity'), coalesce(until, 'infinity'), %s"
        " FROM unnest(%s::text[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])"
        " AS t(kind, stream, value, since, until) ON CONFLICT DO NOTHING",
        [space_id, receipt, [t.kind for t in laid], [t.stream for t in laid], [t.value for t in laid],
         [_moment(t.since) for t in laid], [_moment(t.until) for t in laid]],
    )  # fmt: skip
    connection.execute(
        "UPDATE memctl.spaces SET has_tombstones = true WHERE space_id = %s AND NOT has_tombstones", [space_id]
    )


def tombstones_by_receipt(connection: Connection) -> dict[UUID, list[Tombstone]]:
    """Every tombstone, by the receipt that it was laid under."""
    found: dict[UUID, list[Tombstone]] = {}
    for kind, stream, value, since, until, receipt in connection.execute(
        "SELECT kind, stream, value, nullif(since, '-infinity'), nullif(until, 'infinity'), receipt"
        " FROM memctl.tombstones ORDER BY receipt, kind, stream, value"
    ):
        stone = Tombstone(kind=kind, stream=stream, value=value, since=_micros(since), until=_micros(until))
        found.setdefault(receipt, []).append(stone)
    return found


def settled(connection: Connection, space_id: int, patience_s: float = 90.0) -> bool:
    """Wait for every append to the space that is under way now; False where one has not ended in that time."""
    deadline = time.monotonic() + patience_s
    waiting = position_holders(connection, space_id)
    while waiting:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
        waiting &= position_holders(connection, space_id)
    return True


def has_tombstones(connection: Connection, space_id: int) -> bool:
    """Whether the space has tombstones: something was forgotten in it, and must not be recorded again."""
    row = connection.execute("SELECT has_tombstones FROM memctl.spaces WHERE space_id = %s", [space_id]).fetchone()
    return bool(row and row[0])


def forgotten(connection: Connection, space_id: int, events: Sequence[NewEvent]) -> set[int]:
    """Indices of the events that lie under a tombstone: an append would not keep them, nor what cites what is gone."""
    (found,) = connection.execute(
        "SELECT memctl.forgotten(%s, %s::uuid[], %s::text[], %s::text[], %s::int8[], %s::text[], %s::uuid[],"
        " %s::text[])",
        [space_id, [event_id_of(space_id, e.dedupe_key) for e in events], [e.stream for e in events],
         [e.type for e in events], [e.occurred_at for e in events], [e.location for e in events],
         [None] * len(events), [encode_payload(e).decode() for e in events]],
    ).fetchone() or (None,)  # fmt: skip
    return {number - 1 for number in found or ()}


_CONFINED = "(payload->>'confined' = 'true') IS TRUE"

PLACED = f"""(location = ANY(%(held)s) AND NOT ({_CONFINED} AND type = ANY(%(observed)s || %(naming)s::text[]))
    OR location = ANY(%(keyed)s) AND {_CONFINED})"""
"""That an event lies at one of some places, with `at_places`. What was observed under a limited key lies at no path of
this machine (`by_key`); what was stated lies where it was kept."""


def at_places(places: Collection[str]) -> dict[str, list[str]]:
    """What `PLACED` asks for these places."""
    keyed = [said_of(place) for place in places if said_of(place) != place]
    return {"held": sorted(places), "keyed": sorted(keyed), "observed": observed(), "naming": naming_places()}


_UNPLACED = f"""(location = '' AND type = ANY(%(observed)s) AND coalesce(
    (SELECT l.location FROM memctl.events l WHERE l.space_id = events.space_id AND l.stream = events.stream
     AND l.location <> '' AND l.position < events.position AND l.position >> 10 <= events.position >> 10
     ORDER BY l.position >> 10 DESC, l.position DESC LIMIT 1),
    (SELECT l.location FROM memctl.events l WHERE l.space_id = events.space_id AND l.stream = events.stream
     AND l.location <> '' AND l.position > events.position AND l.position >> 10 >= events.position >> 10
     ORDER BY l.position >> 10, l.position LIMIT 1))
    = ANY(CASE WHEN {_CONFINED} THEN %(keyed)s::text[] ELSE %(held)s END))"""
"""An observation in a session may name no place (a title, a prompt that waits). It belongs to the place named last
before it in its stream, else to the first one named there."""


_UPTO = "least(occurred_at, recorded_at) <= %(until)s"
"""What was recorded by then was said by then, whatever a client's clock showed: it may be a day ahead."""

_BEFORE = """(occurred_at >= %(until)s AND recorded_at < %(until)s
    OR occurred_at < %(until)s AND (occurred_at > timestamptz 'epoch' OR coalesce(
    (SELECT min(l.occurred_at) FROM memctl.events l WHERE l.space_id = events.space_id AND l.stream = events.stream
     AND starts_with(events.stream, 'session/') AND l.occurred_at > timestamptz 'epoch'), recorded_at) < %(until)s))"""
"""What bears no time (a title, all that some clients write) counts as of the moment when its session began, else as of
the moment when it was recorded. (A stream of another kind, such as an import, holds much that is unrelated.)"""


_STANDS_ELSEWHERE = """EXISTS (SELECT FROM memctl.events o WHERE o.space_id = events.space_id AND o.payload IS NOT NULL
    AND o.stream <> ALL(%(streams)s) AND o.position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(
        events.space_id, ARRAY[coalesce(events.variant_of, events.event_id)]))))"""
"""Another stream holds the same delivery: what is pruned with a session by itself never takes that along. Whoever has a
key may say what others said in a session of its own that is old."""


def found_by(connection: Connection, space_id: int, scope: Scope) -> set[UUID]:
    """The deliveries that a scope of streams, places or time holds."""
    where, given = _held_by(connection, space_id, scope)
    return _ids(connection, where, **given)


def dated_ahead(connection: Connection, space_id: int, scope: Scope) -> list[Tombstone]:
    """What keeps that from coming back which such a scope holds and which is dated later than its end."""
    where, given = _held_by(connection, space_id, scope)
    found = connection.execute(
        "SELECT stream, max(occurred_at), array_agg(coalesce(variant_of, event_id)) FROM memctl.events"
        " WHERE space_id = %(space)s AND payload IS NOT NULL AND type <> ALL(%(records)s)"
        f" AND occurred_at >= %(until)s AND {where} GROUP BY stream",
        {**given, "records": list(RECORDS)},
        prepare=False,
    ).fetchall()
    stones = [
        Tombstone(kind="session", value=stream, until=_micros(latest))
        for stream, latest, _ in found
        if stream.startswith("session/")
    ]
    return stones + [Tombstone(kind="event", value=str(id)) for _, _, ids in found for id in ids]


def _held_by(connection: Connection, space_id: int, scope: Scope) -> tuple[str, dict[str, Any]]:
    """The condition of what a scope holds, and its parameters."""
    held, keyed = _places_within(connection, space_id, scope.locations)
    where = {
        "session": f"stream = ANY(%(streams)s) AND {_UPTO}"
        f" AND (%(rule)s = '' OR (type = ANY(%(observed)s) AND NOT {_STANDS_ELSEWHERE}))",
        # What git said of a place is recorded elsewhere, and names it.
        "project": f"({PLACED} OR {_UNPLACED} OR type = ANY(%(naming)s) AND NOT {_CONFINED}"
        f" AND payload->>'location' = ANY(%(places)s)) AND {_UPTO}",
        "before": _BEFORE,
    }[scope.kind]
    return where, {
        "space": space_id, "streams": list(scope.streams), "places": list(scope.locations), "held": held,
        "keyed": keyed, "naming": naming_places(), "until": _moment(scope.until), "rule": scope.rule,
        "observed": observed(),
    }  # fmt: skip


def _places_within(connection: Connection, space_id: int, places: Sequence[str]) -> tuple[list[str], list[str]]:
    """Every place ever recorded that is one of these or lies inside one; and those that are so where a limited key
    spoke of them.

    Asked of the places that there are: a thousand patterns held against each of a million events take a minute.
    """
    if not places:
        return [], []
    wanted = frozenset(places)
    found = connection.execute("SELECT DISTINCT location FROM memctl.events WHERE space_id = %s", [space_id])
    recorded = [place for (place,) in found]
    return [place for place in recorded if _within(place, wanted)], [
        place for place in recorded if _within(by_key(place), wanted)
    ]


def _within(place: str, wanted: Set[str]) -> bool:
    return not wanted.isdisjoint((place, *above(place)))


class Holding(NamedTuple):
    """The deliveries in which a text stands in some form, and those in which it nearly does."""

    ids: set[UUID]
    near: set[UUID]


def holding(connection: Connection, space_id: int, sought: WrittenForms, after: int = 0) -> Holding:
    """The deliveries in which a text stands, in whatever form it was written; of those recorded after a position."""
    found = Holding(set(), set())
    query = sql.SQL(
        "COPY (SELECT coalesce(variant_of, event_id), concat_ws(' ', payload::text, location, session_id, stream)"
        " FROM memctl.events WHERE space_id = {} AND position > {} AND payload IS NOT NULL AND type <> ALL({}))"
        " TO STDOUT"
    ).format(sql.Literal(space_id), sql.Literal(after), sql.Literal(list(RECORDS)))
    with connection.cursor() as cursor, cursor.copy(query) as rows:
        for row in rows:
            held = sought.within(bytes(row[_UUID:]).replace(b"\\\\", b"\\"))
            for texts, ids in zip(held, found, strict=True):
                if texts:
                    ids.add(UUID(bytes(row[:_UUID]).decode()))
    return found


def between(connection: Connection, space_id: int, stream: str, since: Micros, until: Micros) -> set[UUID]:
    """The deliveries of a stream within a time, both ends included."""
    where = "stream = %(stream)s AND occurred_at BETWEEN %(since)s AND %(until)s"
    return _ids(connection, where, space=space_id, stream=stream, since=_moment(since), until=_moment(until))


def calls_between(
    connection: Connection, space_id: int, stream: str, after: Micros, before: Micros | None
) -> set[UUID]:
    """The calls of tools in a stream after a moment, and before another moment where there is one."""
    where = "stream = %(stream)s AND type = 'tool.called' AND occurred_at > %(after)s AND occurred_at < %(before)s"
    until = "infinity" if before is None else _moment(before)
    return _ids(connection, where, space=space_id, stream=stream, after=_moment(after), before=until)


def citing(connection: Connection, space_id: int, ids: Iterable[UUID]) -> set[UUID]:
    """The deliveries whose sources are among these, and those that cite them, and so on; without these themselves.

    A source is an event's own id, a variant's too.
    """
    known, fresh = set(ids), set(ids)
    if len(fresh) > MANY:
        return _citing_many(connection, space_id, fresh)
    while fresh:
        cited = [*fresh, *versions(connection, space_id, fresh)]
        fresh = _ids(connection, "sources && %(cited)s::uuid[]", space=space_id, cited=cited) - known
        known |= fresh
    return known - set(ids)


def versions(connection: Connection, space_id: int, ids: Iterable[UUID]) -> set[UUID]:
    """The own ids of the further versions of these deliveries."""
    found = connection.execute(
        "SELECT event_id FROM memctl.events WHERE space_id = %s AND variant_of = ANY(%s)", [space_id, list(ids)]
    )
    return {row[0] for row in found}


def _citing_many(connection: Connection, space_id: int, ids: Set[UUID]) -> set[UUID]:
    """As `citing`, from everything that cites: most events do not, and a list this long takes seconds to send."""
    variants = connection.execute(
        "SELECT variant_of, event_id FROM memctl.events WHERE space_id = %s AND variant_of IS NOT NULL", [space_id]
    )
    delivery_of = {event: delivery for delivery, event in variants}
    cited_by: dict[UUID, set[UUID]] = {}
    for delivery, sources in connection.execute(
        "SELECT coalesce(variant_of, event_id), sources FROM memctl.events WHERE space_id = %s"
        " AND sources IS NOT NULL AND payload IS NOT NULL AND type <> ALL(%s)",
        [space_id, list(RECORDS)],
    ):
        for source in sources:
            cited_by.setdefault(delivery_of.get(source, source), set()).add(delivery)
    found: set[UUID] = set()
    fresh = set().union(*(citing for cited, citing in cited_by.items() if cited in ids)) - ids
    while fresh:
        found |= fresh
        fresh = set().union(*(cited_by.get(each, set()) for each in fresh)) - found - ids
    return found


def naming(connection: Connection, space_id: int, keys: Sequence[str]) -> set[UUID]:
    """What people and processors said about things of these ids: statements that name one in a field of its own, and
    events that state how memories relate to each other, where one of them is named.

    What was recalled holds nothing but ids, and stays.
    """
    where = (
        "type <> ALL(%(excluded)s) AND (EXISTS (SELECT FROM jsonb_each_text(payload) f WHERE f.value = ANY(%(keys)s))"
        " OR type = ANY(%(comparing)s) AND EXISTS (SELECT FROM jsonb_path_query(payload, '$.**') f"
        " WHERE jsonb_typeof(f) = 'string' AND f #>> '{}' = ANY(%(keys)s)))"
    )
    if not keys:
        return set()
    excluded = [*observed(), "project.identified"]
    return _ids(connection, where, space=space_id, excluded=excluded, comparing=comparing(), keys=list(keys))


def reflecting(connection: Connection, space_id: int, memories: Sequence[str]) -> set[UUID]:
    """Reflections on these memories. They quote a memory, which rests on more than it shows as evidence."""
    where = "type = 'reflection.made' AND payload->'memories' ?| %(memories)s::text[]"
    return _ids(connection, where, space=space_id, memories=list(memories)) if memories else set()


@cache
def observed() -> list[str]:
    """The types of events observed in sessions, recalls for agents included; not of what anybody stated."""
    return [
        *(name for name, entry in event_types().items() if issubclass(entry.payload, Observation)),
        "memory.recalled",
    ]


@cache
def comparing() -> list[str]:
    """The types of recorded events that state how memories relate to each other."""
    return [name for name, entry in event_types().items() if issubclass(entry.payload, Consolidating)]


@cache
def naming_places() -> list[str]:
    """The types of recorded events that name in their payload the place that they are about."""
    return [name for name, entry in event_types().items() if "location" in entry.payload.__struct_fields__]


def read(connection: Connection, space_id: int, ids: Iterable[UUID], size: int = 2000) -> Iterator[Event]:
    """Those of the deliveries that are not erased, in all their versions; in no order."""
    wanted = list(ids)
    for start in range(0, len(wanted), size):
        for versions in read_versions(connection, space_id, wanted[start : start + size]).values():
            yield from versions


def empty(
    connection: Connection,
    space_id: int,
    receipt: UUID,
    ids: Iterable[UUID],
    only: Iterable[UUID] | None = None,
) -> list[Emptied]:
    """Empty deliveries with all their variants, or `only` some of their events, in the caller's transaction.

    Those that are empty already stay so.

    A variant's id and key are derived from what it said, so it gets others.
    """
    wanted = list(ids)
    connection.execute("SELECT set_config('memctl.receipt', %s, true)", [str(receipt)])
    rows = connection.execute(
        "UPDATE memctl.events e SET payload = NULL, salt = NULL, payload_hash = NULL, sources = NULL,"
        " causation_id = NULL, correlation_id = NULL, location = '',"
        " event_id = CASE WHEN e.variant_of IS NULL THEN e.event_id ELSE n.id END,"
        " dedupe_key = CASE WHEN e.variant_of IS NULL THEN e.dedupe_key"
        " ELSE split_part(e.dedupe_key, '#' || e.event_id::text, 1) || '#' || n.id END"
        " FROM (SELECT position, gen_random_uuid() AS id FROM memctl.events"
        " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%(space)s, %(ids)s)))"
        " AND payload IS NOT NULL AND type <> ALL(%(records)s)"
        " AND (%(only)s::uuid[] IS NULL OR event_id = ANY(%(only)s)) FOR UPDATE) n"
        " WHERE e.position = n.position RETURNING coalesce(e.variant_of, e.event_id), e.stream, e.type,"
        " e.occurred_at",
        {"space": space_id, "ids": wanted, "records": list(RECORDS), "only": None if only is None else list(only)},
    ).fetchall()
    emptied = [Emptied(*row) for row in rows]
    to_come(connection, receipt, (each.id for each in emptied))
    return emptied


def _ids(connection: Connection, where: str, **given: Any) -> set[UUID]:
    # Planned with what is given each time: a plan for any lists holds every field of every event against each id.
    rows = connection.execute((_FIND + where).encode(), {**given, "records": list(RECORDS)}, prepare=False)
    return {row[0] for row in rows}


def _moment(at: Micros | None) -> datetime | None:
    return None if at is None else _EPOCH + timedelta(microseconds=at)


def _micros(at: datetime | None) -> Micros | None:
    return None if at is None else Micros((at - _EPOCH) // timedelta(microseconds=1))
