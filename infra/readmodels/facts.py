"""Facts and routes: what stage 1 hands to stage 2, and which rows each source of stage 2 went to."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, LiteralString
from uuid import UUID

import msgspec
from psycopg import sql
from psycopg.types.json import Jsonb

from memctl.domain.events.event import Position
from memctl.domain.events.facts import FACT_TYPES, Fact, Identified, fact_type
from memctl.infra.database import Connection, in_parts
from memctl.infra.log.reach import Section
from memctl.projections import layers

SourceKey = tuple[int, UUID]
"""Space, and id of a fact, a recorded event, or an upstream row."""

Dealt = Mapping[int, Sequence[str]]
"""Every `projection:key` that a source goes to, by the slot of the key."""

_dealt = msgspec.json.Decoder(dict[int, list[str]])
_decoders = {tag: msgspec.json.Decoder(cls) for tag, cls in FACT_TYPES.items()}


class FactChange(msgspec.Struct, frozen=True):
    """A fact as it stands now; None when it was retracted."""

    space_id: int
    id: UUID
    fact: Fact | None
    dealt: Dealt | None = None
    """Where it goes, where whoever asserted it said so."""


class RowChange(msgspec.Struct, frozen=True):
    """A row that others are folded from was changed, or is gone. `slots` are those of the rows that it goes to and went
    to; None where they are not known."""

    space_id: int
    read_model: str
    key: str
    gone: bool
    slots: int | None


class Share(msgspec.Struct, frozen=True):
    """What one shard of stage 2 reads: sources of some types, or rows of some read models, that go to its slots."""

    names: tuple[str, ...]
    mask: int


class Route(msgspec.Struct, frozen=True):
    """Where a source went: `keys` are `projection:key`. Upstream rows carry their projection and key."""

    keys: tuple[str, ...]
    upstream: str | None = None
    upstream_key: str | None = None


def assert_facts(
    connection: Connection,
    generation: int,
    at: Position,
    facts: Iterable[tuple[int, Identified]],
    dealt: Mapping[SourceKey, Dealt | None] = MappingProxyType({}),
) -> None:
    """Assert or revise facts (space, fact) as of the position; equal ones stay as they were, with their `at`. `dealt`:
    where they go, as far as that is known; to the slots of it are added those of where they went before.
    """
    statement = sql.SQL(
        "INSERT INTO memctl.facts_g{g} AS f (space_id, id, stream, type, at, payload, slots, dealt)"
        " SELECT space_id, id, stream, type, %b, payload::jsonb, slots, dealt"
        " FROM unnest(%b::int4[], %b::uuid[], %b::text[], %b::text[], %b::text[], %b::int8[], %b::text[])"
        " AS i(space_id, id, stream, type, payload, slots, dealt)"
        " ON CONFLICT (space_id, id) DO UPDATE SET at = excluded.at, type = excluded.type,"
        " payload = excluded.payload, slots = f.slots | excluded.slots, dealt = excluded.dealt"
        " WHERE f.payload IS DISTINCT FROM excluded.payload"
    ).format(g=sql.SQL(str(generation)))
    encoded = ((space_id, fact, msgspec.json.encode(fact).decode()) for space_id, fact in facts)
    for given in in_parts(encoded, lambda row: len(row[2])):
        known = [dealt.get((space_id, fact.id)) for space_id, fact, _ in given]
        connection.execute(
            statement,
            [
                at,
                [space_id for space_id, _, _ in given],
                [fact.id for _, fact, _ in given],
                [fact.stream for _, fact, _ in given],
                [fact_type(fact) for _, fact, _ in given],
                [payload for _, _, payload in given],
                [None if by_slot is None else layers.mask_of_slots(by_slot) for by_slot in known],
                [None if by_slot is None else msgspec.json.encode(by_slot).decode() for by_slot in known],
            ],
        )


def copy_facts(
    connection: Connection, generation: int, at: Position, facts: Iterable[tuple[int, Identified, int | None]]
) -> None:
    """Put facts (space, fact, and slots of where they go) into an empty generation by COPY."""
    statement = sql.SQL(
        "COPY memctl.facts_g{g} (space_id, id, stream, type, at, payload, slots) FROM STDIN WITH (FORMAT binary)"
    ).format(g=sql.SQL(str(generation)))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int4", "uuid", "text", "text", "int8", "jsonb", "int8"])
        for space_id, fact, slots in facts:
            payload = Jsonb(msgspec.json.encode(fact), bytes)
            copy.write_row((space_id, fact.id, fact.stream, fact_type(fact), at, payload, slots))


def retract(connection: Connection, generation: int, at: Position, ids: Sequence[SourceKey]) -> None:
    """Retract facts by id; those that do not stand stay as they were."""
    if not ids:
        return
    connection.execute(
        sql.SQL(
            "UPDATE memctl.facts_g{g} f SET payload = NULL, at = %b"
            " FROM unnest(%b::int4[], %b::uuid[]) AS k(space_id, id)"
            " WHERE f.space_id = k.space_id AND f.id = k.id AND f.payload IS NOT NULL"
        ).format(g=sql.SQL(str(generation))),
        [at, [key[0] for key in ids], [key[1] for key in ids]],
    )


def retract_others(
    connection: Connection, generation: int, at: Position, kept: Mapping[tuple[int, str], Sequence[UUID]]
) -> None:
    """Retract the facts of whole streams that are not among those kept."""
    for (space_id, stream), ids in kept.items():
        connection.execute(
            sql.SQL(
                "UPDATE memctl.facts_g{g} SET payload = NULL, at = %b"
                " WHERE space_id = %b AND stream = %b AND payload IS NOT NULL AND NOT id = ANY(%b::uuid[])"
            ).format(g=sql.SQL(str(generation))),
            [at, space_id, stream, list(ids)],
        )


def batch_end(connection: Connection, generation: int, section: Section, limit: int) -> Position:
    """Up to which `at` a batch of about `limit` changes of a section reaches; facts of one `at` are never parted."""
    row = connection.execute(
        sql.SQL("SELECT at FROM memctl.facts_g{g} WHERE at > %s AND at <= %s{of} ORDER BY at OFFSET %s LIMIT 1").format(
            g=sql.SQL(str(generation)), of=sql.SQL(section.where)
        ),
        [section.after, section.upto, *section.params, limit],
    ).fetchone()
    return Position(row[0]) if row else section.upto


def read_changes(connection: Connection, generation: int, section: Section) -> list[FactChange]:
    """Facts asserted, revised or retracted with an `at` in a section, as they stand now."""
    found = connection.execute(
        sql.SQL(
            "SELECT space_id, id, type, payload FROM memctl.facts_g{g} WHERE at > %s AND at <= %s{of} ORDER BY at, id"
        ).format(g=sql.SQL(str(generation)), of=sql.SQL(section.where)),
        [section.after, section.upto, *section.params],
        binary=True,
    )
    return [_change(row) for row in found]


def read_dealt(
    connection: Connection, generation: int, section: Section, limit: int, share: Share
) -> tuple[list[tuple[Position, FactChange]], Position]:
    """About `limit` facts of a section that a shard reads, as they stand now, each with its `at`; and up to which `at`
    they are all there."""
    if not share.names:
        return [], section.upto
    found = connection.execute(
        sql.SQL(
            "SELECT space_id, id, type, payload, dealt, at FROM memctl.facts_g{g} WHERE at > %s AND at <= %s{of}"
            " AND (slots IS NULL OR slots & %s <> 0) AND type = ANY(%s)"
            " ORDER BY at FETCH FIRST %s ROWS WITH TIES"
        ).format(g=sql.SQL(str(generation)), of=sql.SQL(section.where)),
        [section.after, section.upto, *section.params, share.mask, list(share.names), limit],
        binary=True,
    ).fetchall()
    found.sort(key=lambda row: (row[5], row[1]))
    changes = [(Position(row[5]), _change(row, None if row[4] is None else _dealt.decode(row[4]))) for row in found]
    return changes, section.upto if len(found) < limit else changes[-1][0]


def note_changed(connection: Connection, generation: int, at: Position, rows: Sequence[RowChange]) -> None:
    """Note rows that others are folded from as changed, as of a position, for the shards that read them."""
    if not rows:
        return
    connection.execute(
        sql.SQL(
            "INSERT INTO memctl.changed_g{g} AS c (space_id, read_model, key, at, slots, gone)"
            " SELECT space_id, read_model, key, %b, slots, gone"
            " FROM unnest(%b::int4[], %b::text[], %b::text[], %b::int8[], %b::boolean[])"
            " AS i(space_id, read_model, key, slots, gone)"
            " ON CONFLICT (space_id, read_model, key) DO UPDATE"
            " SET at = excluded.at, slots = c.slots | excluded.slots, gone = excluded.gone"
        ).format(g=sql.SQL(str(generation))),
        [at, [row.space_id for row in rows], [row.read_model for row in rows], [row.key for row in rows],
         [row.slots for row in rows], [row.gone for row in rows]],
    )  # fmt: skip


def read_changed(
    connection: Connection, generation: int, section: Section, limit: int, share: Share
) -> tuple[list[tuple[Position, tuple[str, tuple[int, str]]]], Position]:
    """About `limit` rows (read model, and key) noted as changed in a section that a shard reads, each with its `at` and
    up to which `at` they are all there."""
    if not share.names:
        return [], section.upto
    found = connection.execute(
        sql.SQL(
            "SELECT at, read_model, space_id, key FROM memctl.changed_g{g} WHERE at > %s AND at <= %s{of}"
            " AND read_model = ANY(%s) AND (slots IS NULL OR slots & %s <> 0)"
            " ORDER BY at FETCH FIRST %s ROWS WITH TIES"
        ).format(g=sql.SQL(str(generation)), of=sql.SQL(section.where)),
        [section.after, section.upto, *section.params, list(share.names), share.mask, limit],
    ).fetchall()
    found.sort()
    changed = [(Position(row[0]), (row[1], (row[2], row[3]))) for row in found]
    return changed, section.upto if len(found) < limit else Position(found[-1][0])


def changed_since(connection: Connection, generation: int, position: Position) -> list[tuple[str, tuple[int, str]]]:
    """Rows (read model, and key) noted as changed behind a position."""
    statement = sql.SQL("SELECT read_model, space_id, key FROM memctl.changed_g{g} WHERE at > %s")
    found = connection.execute(statement.format(g=sql.SQL(str(generation))), [position])
    return [(row[0], (row[1], row[2])) for row in found]


def forget_gone(connection: Connection, generation: int, upto: Position) -> None:
    """Take away the notes of rows that are gone, which every shard has read that has read up to a position."""
    connection.execute(
        sql.SQL(
            "DELETE FROM memctl.changed_g{g} WHERE ctid = ANY(ARRAY("
            "SELECT ctid FROM memctl.changed_g{g} WHERE gone AND at <= %s FOR UPDATE SKIP LOCKED))"
        ).format(g=sql.SQL(str(generation))),
        [upto],
    )


def forget_changed(connection: Connection, generation: int, rows: Sequence[tuple[str, tuple[int, str]]]) -> None:
    """Take away the notes of rows (read model, and key) that are gone and of which every shard knows."""
    connection.execute(
        sql.SQL(
            "DELETE FROM memctl.changed_g{g} c USING unnest(%b::int4[], %b::text[], %b::text[])"
            " AS i(space_id, read_model, key) WHERE c.gone AND (c.space_id, c.read_model, c.key)"
            " = (i.space_id, i.read_model, i.key)"
        ).format(g=sql.SQL(str(generation))),
        [[key[0] for _, key in rows], [name for name, _ in rows], [key[1] for _, key in rows]],
    )


def read_changes_of(
    connection: Connection, generation: int, streams: Sequence[tuple[int, str]], since: Position
) -> list[FactChange]:
    """Facts of these streams (space, name) that were last changed at that position or behind it, as they stand now."""
    found = connection.execute(
        sql.SQL(
            "SELECT f.space_id, f.id, f.type, f.payload FROM memctl.facts_g{g} f"
            " JOIN unnest(%b::int4[], %b::text[]) AS s(space_id, stream) USING (space_id, stream) WHERE f.at >= %b"
        ).format(g=sql.SQL(str(generation))),
        [[space_id for space_id, _ in streams], [stream for _, stream in streams], since],
        binary=True,
    )
    return [_change(row) for row in found]


def held(generation: int) -> sql.Composed:
    """As SQL, whether a fact may be in rows of a stage 2: it stands, or that it was retracted is yet to be read."""
    return sql.SQL(
        "(payload IS NOT NULL"
        " OR at > (SELECT min(memctl.of_space(position, held, space_id)) FROM memctl.offsets WHERE generation = {}))"
    ).format(sql.SQL(str(generation)))


def count_facts(connection: Connection, generation: int, upto: Position) -> dict[str, int]:
    """How many facts of each type were last changed at or before a position."""
    found = connection.execute(
        sql.SQL(
            "SELECT type, count(*) FROM memctl.facts_g{g} WHERE payload IS NOT NULL AND at <= %s GROUP BY type"
        ).format(g=sql.SQL(str(generation))),
        [upto],
    )
    return dict(found.fetchall())


def scan_facts(
    connection: Connection,
    generation: int,
    upto: Position,
    types: Sequence[str],
    size: int,
    share: tuple[int, int] = (0, 1),
    mask: int = -1,
) -> Iterator[list[tuple[SourceKey, Fact]]]:
    """The facts of some types that were last changed at or before a position, in batches.

    `share` (n, of): only those that the hash of their id deals to the n-th of so many shares. `mask`: only those that
    may go to one of its slots.
    Reads through a server-side cursor inside a transaction of `connection`.
    """
    with connection.cursor(name="scan_facts") as cursor:
        cursor.execute(
            sql.SQL(
                "SELECT space_id, id, type, payload FROM memctl.facts_g{g} WHERE payload IS NOT NULL AND at <= %s"
                " AND type = ANY(%s) AND mod(uuid_hash(id) & 2147483647, %s::int4) = %s"
                " AND (slots IS NULL OR slots & %s <> 0)"
            ).format(g=sql.SQL(str(generation))),
            [upto, list(types), share[1], share[0], mask],
            binary=True,
        )
        while rows := cursor.fetchmany(size):
            yield [((row[0], row[1]), _decoders[row[2]].decode(row[3])) for row in rows]


def rows_query(generation: int) -> LiteralString:
    """The facts that stand, as `readmodels.digest_of` and `differences_of` take them."""
    columns = "space_id, id::text AS key, payload AS row"
    return f"SELECT {columns} FROM memctl.facts_g{generation} WHERE payload IS NOT NULL"


def read_facts(connection: Connection, generation: int, keys: Sequence[SourceKey]) -> dict[SourceKey, Fact]:
    """Facts by id, as they stand now; retracted ones are left out."""
    if not keys:
        return {}
    found = connection.execute(
        sql.SQL(
            "SELECT f.space_id, f.id, f.type, f.payload FROM memctl.facts_g{g} f"
            " JOIN unnest(%b::int4[], %b::uuid[]) AS k(space_id, id) USING (space_id, id) WHERE f.payload IS NOT NULL"
        ).format(g=sql.SQL(str(generation))),
        [[key[0] for key in keys], [key[1] for key in keys]],
        binary=True,
    )
    return {(row[0], row[1]): _decoders[row[2]].decode(row[3]) for row in found}


def read_routes(
    connection: Connection, generation: int, sources: Sequence[SourceKey], mask: int = -1
) -> dict[SourceKey, Route]:
    """Where these sources went so far, of the rows of some slots."""
    if not sources:
        return {}
    found = connection.execute(
        sql.SQL(
            "SELECT r.space_id, r.source, r.target, r.upstream, r.upstream_key FROM memctl.routes_g{g} r"
            " JOIN unnest(%b::int4[], %b::uuid[]) AS k(space_id, source) USING (space_id, source)"
            " WHERE %b::int8 >> r.slot & 1 = 1 ORDER BY r.target"
        ).format(g=sql.SQL(str(generation))),
        [[key[0] for key in sources], [key[1] for key in sources], mask],
        binary=True,
    )
    return _routes(found)


def routed_to(connection: Connection, generation: int, keys: Sequence[str]) -> dict[SourceKey, Route]:
    """Every source that went to one of these `projection:key`s, in any space. Of its keys only these are returned."""
    found = connection.execute(
        sql.SQL(
            "SELECT space_id, source, target, upstream, upstream_key FROM memctl.routes_g{g}"
            " WHERE target = ANY(%b::text[]) ORDER BY target"
        ).format(g=sql.SQL(str(generation))),
        [list(keys)],
        binary=True,
    )
    return _routes(found)


def save_routes(
    connection: Connection,
    generation: int,
    routes: Mapping[SourceKey, Route],
    before: Mapping[SourceKey, Collection[str]] | None = None,
) -> None:
    """Record where sources go from now on; those that go nowhere are forgotten. With `before`, only what they went to
    before of what is known of here: others know where else they go. Without, nobody asks for some slots alone."""
    if not routes:
        return
    put = [(key, target, route) for key, route in routes.items() for target in route.keys]
    if before is None:
        _forget_routes(connection, generation, routes)
    else:
        put = [each for each in put if each[1] not in before.get(each[0], ())]
        _take_from_routes(connection, generation, routes, before)
    if not put:
        return
    connection.execute(
        sql.SQL(
            "INSERT INTO memctl.routes_g{g} (space_id, source, target, slot, upstream, upstream_key)"
            " SELECT * FROM unnest(%b::int4[], %b::uuid[], %b::text[], %b::int2[], %b::text[], %b::text[])"
        ).format(g=sql.SQL(str(generation))),
        [
            [key[0] for key, _, _ in put],
            [key[1] for key, _, _ in put],
            [target for _, target, _ in put],
            [0 if before is None else layers.slot_of_target(target) for _, target, _ in put],
            [route.upstream for _, _, route in put],
            [route.upstream_key for _, _, route in put],
        ],
    )


def _forget_routes(connection: Connection, generation: int, sources: Collection[SourceKey]) -> None:
    connection.execute(
        sql.SQL(
            "DELETE FROM memctl.routes_g{g} r USING unnest(%b::int4[], %b::uuid[]) AS k(space_id, source)"
            " WHERE r.space_id = k.space_id AND r.source = k.source"
        ).format(g=sql.SQL(str(generation))),
        [[key[0] for key in sources], [key[1] for key in sources]],
    )


def _take_from_routes(
    connection: Connection,
    generation: int,
    routes: Mapping[SourceKey, Route],
    before: Mapping[SourceKey, Collection[str]],
) -> None:
    """Take the targets away that sources went to before and do not go to any more."""
    gone = [(key, target) for key, route in routes.items() for target in before.get(key, ())
            if target not in route.keys]  # fmt: skip
    if not gone:
        return
    connection.execute(
        sql.SQL(
            "DELETE FROM memctl.routes_g{g} r USING unnest(%b::int4[], %b::uuid[], %b::text[])"
            " AS k(space_id, source, target)"
            " WHERE r.space_id = k.space_id AND r.source = k.source AND r.target = k.target"
        ).format(g=sql.SQL(str(generation))),
        [[key[0] for key, _ in gone], [key[1] for key, _ in gone], [target for _, target in gone]],
    )


def copy_routes(connection: Connection, generation: int, routes: Iterable[tuple[SourceKey, Route]]) -> None:
    """Put routes of sources that have none yet to these targets by COPY."""
    statement = sql.SQL(
        "COPY memctl.routes_g{g} (space_id, source, target, slot, upstream, upstream_key)"
        " FROM STDIN WITH (FORMAT binary)"
    ).format(g=sql.SQL(str(generation)))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int4", "uuid", "text", "int2", "text", "text"])
        for (space_id, source), route in routes:
            for target in route.keys:
                slot = layers.slot_of_target(target)
                copy.write_row((space_id, source, target, slot, route.upstream, route.upstream_key))


def _routes(rows: Iterable[tuple[Any, ...]]) -> dict[SourceKey, Route]:
    found: dict[SourceKey, Route] = {}
    for space_id, source, target, upstream, upstream_key in rows:
        known = found.get((space_id, source))
        keys = (*known.keys, target) if known is not None else (target,)
        found[space_id, source] = Route(keys, upstream, upstream_key)
    return found


def _change(row: tuple[Any, ...], dealt: Dealt | None = None) -> FactChange:
    return FactChange(row[0], row[1], None if row[3] is None else _decoders[row[2]].decode(row[3]), dealt)
