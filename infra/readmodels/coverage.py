"""Whether those who read the log have read all of it: offsets, leases, and a stream's rows against its events."""

import random
from collections.abc import Collection, Iterable

import msgspec
import psycopg
from psycopg import sql

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row, snapshot
from memctl.infra.log.reach import Reach, next_section, reach_of
from memctl.infra.log.read import StreamKey, read_streams
from memctl.infra.readmodels import facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.generations import Live
from memctl.projections.kernel import Stage, projections
from memctl.projections.stream_state import fold_stream, stored

SAMPLED = 20
"""Streams that are folded again by a sample: half of them the latest, half of them by chance."""


class ShardReader(msgspec.Struct, frozen=True):
    """One shard of a live generation. `limit` is the position it may read up to; `behind_s` since when, in seconds,
    there has been something it has not read (None where it has read all)."""

    stage: int
    shard: int
    position: int
    limit: int
    behind_s: float | None
    owner: str | None
    lease_s: float | None
    """Seconds until its lease runs out; below 0 once it has."""


def readers(connection: Connection, live: Live, mark: Position) -> list[ShardReader]:
    """Every shard of the live generations, and how far it may read: to the mark, or as far as stage 1 has come. Of a
    shard that lags in one space, that space's.

    The mark may have moved on since it was asked for: it is looked at in the same moment as the offsets.
    """
    found = connection.execute(
        """SELECT CASE WHEN generation = %(stage1)s THEN 1 ELSE 2 END AS stage, shard, o.position, o.held, owner,
            extract(epoch FROM lease_until - clock_timestamp())::float8, m.position, m.held
        FROM memctl.offsets o, memctl.mark m WHERE generation IN (%(stage1)s, %(stage2)s) ORDER BY stage, shard""",
        {"stage1": live.stage1, "stage2": live.stage2},
    ).fetchall()
    marks = reach_of(*found[0][6:]) if found else Reach(mark)
    marks = marks if marks.held else Reach(max(mark, marks.position))
    offsets = [generations.Offset(0, row[0], row[1], reach_of(row[2], row[3]), row[4]) for row in found]
    readers = []
    for stage, shard, position, held, owner, lease_s, *_ in found:
        own, may = reach_of(position, held), marks if stage == 1 else generations.may_read(shard, offsets)
        late = next_section(own, may)
        space = late.space_id if late is not None else None
        at, limit = (position, may.position) if space is None else (own.of(space), may.of(space))
        readers.append(
            ShardReader(
                stage, shard, at, limit, None if late is None else _since(connection, at, space), owner, lease_s
            )
        )
    return readers


def _since(connection: Connection, position: Position, space_id: int | None) -> float:
    """For how long the mark (of a space) has been beyond a position, in seconds."""
    row = single_row(
        connection,
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - min(reached_at)), 0)::float8 FROM memctl.mark_history"
        " WHERE CASE WHEN %(space)s::int IS NULL THEN position ELSE memctl.of_space(position, held, %(space)s) END"
        " > %(position)s",
        {"space": space_id, "position": position},
    )
    return float(row[0])


def incomplete(connection: Connection, live: Live) -> list[str]:
    """What the live generations lack of being whole, in words."""
    missing = []
    stages: tuple[tuple[Stage, int], ...] = ((1, live.stage1), (2, live.stage2))
    for stage, generation in stages:
        row = connection.execute(
            "SELECT status, shards, stage, facts_of,"
            " (SELECT count(*) FROM memctl.offsets o WHERE o.generation = g.generation AND shard < g.shards)"
            " FROM memctl.generations g WHERE generation = %s",
            [generation],
        ).fetchone()
        if row is None:
            missing.append(f"generation {generation} of stage {stage} is not registered")
            continue
        status, shards, of_stage, facts_of, offsets = row
        if status != "live" or of_stage != stage:
            missing.append(f"generation {generation} is read as stage {stage}, and is {status} of stage {of_stage}")
        if offsets != shards:
            missing.append(f"generation {generation} has {offsets} offsets for {shards} shards")
        if stage == 2 and facts_of != live.stage1:
            missing.append(f"generation {generation} was folded from facts of generation {facts_of}")
        for name in readmodels.tables(stage):
            table = readmodels.table(name, generation)
            kept = connection.execute(
                "SELECT relpersistence::text FROM pg_class WHERE oid = to_regclass(%s)", [table]
            ).fetchone()
            if kept is None:
                missing.append(f"table {table} is not there")
            elif kept[0] != "p":
                missing.append(f"table {table} would not survive a crash (UNLOGGED)")
    return missing


class Coverage(msgspec.Struct):
    """Streams of the log against what stage 1 made of them. `read`: streams that stage 1 has read something of."""

    read: int = 0
    missing: list[str] = msgspec.field(default_factory=list)
    unfounded: list[str] = msgspec.field(default_factory=list)
    """Streams that have rows, and no event."""
    folded_again: int = 0
    differing: list[str] = msgspec.field(default_factory=list)
    """Of those that were folded again: their facts or rows are not what their events give."""
    unfoldable: list[str] = msgspec.field(default_factory=list)
    """Of those that were folded again: a fold raised, in words."""
    uncited: list[str] = msgspec.field(default_factory=list)
    """Facts that rest on an event that is not in the log."""
    facts: int = 0


def coverage(connection: Connection, parked: Collection[StreamKey] = ()) -> Coverage:
    """Compare streams and rows in one snapshot, in which rows, facts and offsets agree. `parked` streams are left out.

    Which streams there are is compared for all; a sample is folded again and compared row by row.
    """
    with snapshot(connection):
        return _coverage(connection, set(parked))


def _coverage(connection: Connection, parked: set[StreamKey]) -> Coverage:
    live = generations.live(connection)
    result = Coverage()
    read = connection.execute(
        """SELECT space_id, stream, max(e.position), min(memctl.of_space(o.position, o.held, space_id))
        FROM memctl.events e
        JOIN memctl.generations g ON g.generation = %(g)s
        JOIN memctl.offsets o ON o.generation = g.generation
            AND e.stream_hash BETWEEN o.shard * 256 / g.shards AND (o.shard + 1) * 256 / g.shards - 1
        WHERE e.position <= memctl.of_space(o.position, o.held, space_id) AND payload IS NOT NULL
            AND stream LIKE 'session/%%/%%'
        GROUP BY space_id, stream""",
        {"g": live.stage1},
    ).fetchall()
    latest = {(row[0], row[1]): row[2] for row in read if (row[0], row[1]) not in parked}
    upto = {(row[0], row[1]): Position(row[3]) for row in read}
    has_rows = _streams_in(connection, "sessions", live)
    everywhere = has_rows.union(*(_streams_in(connection, name, live) for name in readmodels.tables(1)))
    result.read = len(latest)
    result.unfounded = [stream for _, stream in sorted(everywhere - upto.keys())]
    without = sorted(latest.keys() - has_rows)
    newest = sorted(latest, key=lambda key: latest[key])[-SAMPLED // 2 :]
    others = sorted(latest.keys() - set(newest))
    sample = {*newest, *random.sample(others, min(SAMPLED // 2, len(others)))}
    for key in [*without, *sorted(sample - set(without))]:
        try:
            same, any_facts = _folds_the_same(connection, live, key, upto[key])
        except psycopg.Error:
            raise
        except Exception as problem:  # whatever a fold raises; its words may quote what was said
            result.unfoldable.append(f"{key[1]}: cannot be folded: {type(problem).__name__}")
            continue
        result.folded_again += 1
        if key in latest and key not in has_rows:
            if any_facts:
                result.missing.append(key[1])
        elif not same:
            result.differing.append(key[1])
    _evidence(connection, live, result)
    return result


def _streams_in(connection: Connection, name: str, live: Live) -> set[StreamKey]:
    """The streams that a table of stage 1 has something of; of a fact that was retracted nothing is left but its id."""
    there = sql.SQL(" WHERE payload IS NOT NULL" if name == "facts" else "")
    table = sql.SQL(readmodels.table(name, live.stage1))
    found = connection.execute(sql.SQL("SELECT DISTINCT space_id, stream FROM {}{}").format(table, there))
    return {(row[0], row[1]) for row in found}


def _folds_the_same(connection: Connection, live: Live, key: StreamKey, upto: Position) -> tuple[bool, bool]:
    """Whether a stream's events give the facts and rows that are there, and whether they give any fact."""
    events = read_streams(connection, [key], upto)[key]
    _, delta = fold_stream(key[1], events)
    space_id, stream = key
    ids = connection.execute(
        sql.SQL(
            "SELECT space_id, id FROM memctl.facts_g{g} WHERE space_id = %s AND stream = %s AND payload IS NOT NULL"
        ).format(g=sql.SQL(str(live.stage1))),
        [space_id, stream],
    ).fetchall()
    kept = facts.read_facts(connection, live.stage1, [(row[0], row[1]) for row in ids])
    if {fact_id: fact for (_, fact_id), fact in kept.items()} != delta.facts:
        return False, bool(delta.facts)
    # As JSON: what a row type does not know is damage too.
    written = {of: stored(row) for of, row in delta.rows.items() if row is not None}
    expected = {of: msgspec.json.decode(row) for of, row in written.items()}
    there = {}
    for p in projections(1):
        rows = connection.execute(
            sql.SQL("SELECT key, row FROM {} WHERE space_id = %s AND stream = %s").format(
                sql.SQL(readmodels.table(p.name, live.stage1))
            ),
            [space_id, stream],
            binary=True,
        )
        there.update({(p.name, row[0]): msgspec.json.decode(row[1]) for row in rows})
    return there == expected, bool(delta.facts)


def _evidence(connection: Connection, live: Live, result: Coverage) -> None:
    generation = sql.SQL(str(live.stage1))
    row = single_row(
        connection, sql.SQL("SELECT count(*) FROM memctl.facts_g{g} WHERE payload IS NOT NULL").format(g=generation)
    )
    result.facts = row[0]
    rows: Iterable[tuple[str, str]] = connection.execute(
        sql.SQL(
            """SELECT c.stream, c.event FROM (
                SELECT DISTINCT f.space_id, f.stream, s->>'event' AS event
                FROM memctl.facts_g{g} f, jsonb_array_elements(f.payload->'evidence') s) c
            WHERE NOT EXISTS (SELECT FROM memctl.deliveries d JOIN memctl.events USING (position)
                              WHERE d.space_id = c.space_id AND d.event_id = c.event::uuid)
            ORDER BY 1, 2"""
        ).format(g=generation)
    ).fetchall()
    result.uncited = [f"event {event}, of {stream}" for stream, event in rows]
