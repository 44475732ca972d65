"""The tables of a generation: rows of read models, facts, routes, and the outbox to the vectors.

A row is stored as JSON under (space, key): its type is the schema. Fields that queries sort or filter by get
expression indexes, named by the projection itself.
"""

import hashlib
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, LiteralString, TypeVar, cast

import msgspec
from psycopg import sql
from psycopg.types.json import Jsonb

from memctl.infra.database import Connection, in_parts, single_row
from memctl.projections.kernel import Projection, Stage, projections

R = TypeVar("R")

RowKey = tuple[int, str]
"""Space and key of a row."""

LAYOUT = 5
"""Raise it when the tables of a generation change their columns: read models of another layout are rebuilt."""

OUTBOX_OF = "vector_points"
"""The projection whose changes are queued for Qdrant."""

_FACTS = """
CREATE {unlogged} TABLE memctl.facts_g{generation} (
    at          bigint NOT NULL,
    slots       bigint,
    space_id    integer NOT NULL,
    id          uuid NOT NULL,
    stream      text COLLATE "C" NOT NULL,
    type        text NOT NULL,
    payload     jsonb,
    dealt       text
) WITH ({building})"""

_ROUTES = """
CREATE {unlogged} TABLE memctl.routes_g{generation} (
    space_id     integer NOT NULL,
    source       uuid NOT NULL,
    target       text COLLATE "C" NOT NULL,
    slot         smallint NOT NULL,
    upstream     text,
    upstream_key text
) WITH ({building})"""

_OUTBOX = """
CREATE {unlogged} TABLE memctl.outbox_g{generation} (
    space_id integer NOT NULL,
    key      text COLLATE "C" NOT NULL,
    version  bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (space_id, key)
)"""

_CHANGED = """
CREATE {unlogged} TABLE memctl.changed_g{generation} (
    space_id   integer NOT NULL,
    read_model text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    slots      bigint,
    gone       boolean NOT NULL,
    PRIMARY KEY (space_id, read_model, key)
)"""

_ROWS = """
CREATE {unlogged} TABLE memctl.{name}_g{generation} (
    space_id integer NOT NULL,
    key      text COLLATE "C" NOT NULL,
    {stream}
    row      jsonb NOT NULL
) WITH ({building})"""

_BUILDING = ("autovacuum_enabled", "toast.autovacuum_enabled")
"""Off until a table is finished: it is filled once, by tasks that look at nothing twice."""

_KEYS = {"facts": "space_id, id", "routes": "space_id, source, target"}
"""Primary keys; of rows it is space and key. Those of the outbox and of what changed are there from the
beginning: they are written to twice."""


_INDEXES = {
    "facts": ("(at)", "(space_id, stream)"),
    "routes": ("(target)",),
    "outbox": ("(version)",),
    "changed": ("(read_model, at)", "(at) WHERE gone"),
}


def table(name: str, generation: int) -> str:
    """The table of a read model in a generation, qualified. `name` comes from the register, never from outside."""
    return f"memctl.{name}_g{generation}"


def create_tables(connection: Connection, stage: Stage, generation: int, *, unlogged: bool) -> None:
    """Empty tables for a generation, without the keys and indexes that are cheaper to build once they are full."""
    building = ", ".join(f"{option} = off" for option in _BUILDING)
    how = {"unlogged": "UNLOGGED" if unlogged else "", "generation": generation, "building": building}
    parts = [_FACTS] if stage == 1 else [_ROUTES, _OUTBOX, _CHANGED]
    statements = [part.format(**how) for part in parts]
    stream = 'stream text COLLATE "C" NOT NULL,' if stage == 1 else ""
    statements += [_ROWS.format(name=p.name, stream=stream, **how) for p in projections(stage)]
    for statement in statements:
        connection.execute(_literal(statement))


def finish(connection: Connection, stage: Stage, generation: int) -> None:
    """All that a generation needs before it may go live: see `finish_table`."""
    for name in tables(stage):
        finish_table(connection, stage, generation, name)


def finish_table(connection: Connection, stage: Stage, generation: int, name: str, *, durable: bool = True) -> None:
    """Give a table its key and its indexes, which are cheaper to build once it is full, and make it durable."""
    full = table(name, generation)
    indexes = list(_INDEXES.get(name, ()))
    for p in projections(stage):
        if p.name == name:
            indexes += ["(space_id, stream)"] if stage == 1 else []
            for fields in p.indexes:
                indexes.append(f"(space_id, {', '.join(expression(p, field) for field in fields)})")
    if durable:
        # First, because it rewrites the table and every index that is there.
        connection.execute(_literal(f"ALTER TABLE {full} SET LOGGED"))
    if name not in ("outbox", "changed"):
        key = _KEYS.get(name, "space_id, key")
        connection.execute(_literal(f"ALTER TABLE {full} ADD PRIMARY KEY ({key}), RESET ({', '.join(_BUILDING)})"))
    for index in indexes:
        connection.execute(_literal(f"CREATE INDEX ON {full} {index}"))
    connection.execute(_literal(f"ANALYZE {full}"))


def tables(stage: Stage) -> list[str]:
    """Names of the tables of a stage's generations."""
    return [*(("facts",) if stage == 1 else ("routes", "outbox", "changed")), *(p.name for p in projections(stage))]


def drop_tables(connection: Connection, generation: int) -> None:
    """Drop a generation's tables, also those of projections that the code no longer knows."""
    names = connection.execute(
        "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ %s"
        " ORDER BY 1",
        [f"_g{generation}$"],
    ).fetchall()
    for (name,) in names:
        connection.execute(_literal(f"DROP TABLE IF EXISTS {name}"))  # another may be at it, too


def expression(p: Projection[Any], field: str) -> str:
    """The SQL expression of a row's field, as the indexes have it.

    Raises: KeyError when the row type has no such field.
    """
    kind = _types_of(p)[field]
    cast = {int: "::bigint", float: "::float8", bool: "::boolean"}.get(getattr(kind, "__supertype__", kind), "")
    return f"((row->>'{field}'){cast})"


_types: dict[type[Any], dict[str, Any]] = {}


def _types_of(p: Projection[Any]) -> dict[str, Any]:
    if p.row not in _types:
        _types[p.row] = typing.get_type_hints(p.row)
    return _types[p.row]


def _literal(statement: str) -> sql.SQL:
    return sql.SQL(statement)  # names of this module and of the register only, never values


_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decode_row(p: Projection[R], data: bytes) -> R:
    """A stored row as the projection's row type."""
    decoder = _decoders.get(p.row)
    if decoder is None:
        decoder = _decoders[p.row] = msgspec.json.Decoder(p.row)
    return cast(R, decoder.decode(data))


def load(connection: Connection, p: Projection[R], generation: int, keys: Sequence[RowKey]) -> dict[RowKey, R]:
    """Rows under those keys; absent ones are left out."""
    if not keys:
        return {}
    found = connection.execute(
        _literal(
            f"SELECT t.space_id, t.key, t.row FROM {table(p.name, generation)} t"
            " JOIN unnest(%b::int4[], %b::text[]) AS k(space_id, key) USING (space_id, key)"
        ),
        [[key[0] for key in keys], [key[1] for key in keys]],
        binary=True,
    )
    return {(row[0], row[1]): decode_row(p, row[2]) for row in found}


def save(
    connection: Connection,
    p: Projection[Any],
    generation: int,
    rows: Mapping[RowKey, bytes | None],
    streams: Mapping[RowKey, str] | None = None,
) -> None:
    """Put rows (as JSON) and delete those that are None, in the caller's transaction. Equal rows are not rewritten."""
    name = table(p.name, generation)
    gone = [key for key, row in rows.items() if row is None]
    if gone:
        connection.execute(
            _literal(
                f"DELETE FROM {name} t USING unnest(%b::int4[], %b::text[]) AS k(space_id, key)"
                " WHERE t.space_id = k.space_id AND t.key = k.key"
            ),
            [[key[0] for key in gone], [key[1] for key in gone]],
        )
    for put in in_parts([(key, row) for key, row in rows.items() if row is not None], lambda each: len(each[1])):
        extra, values, kind = (", stream", ", stream", ", %b::text[]") if streams is not None else ("", "", "")
        parameters: list[Any] = [[k[0] for k, _ in put], [k[1] for k, _ in put], [row.decode() for _, row in put]]
        if streams is not None:
            parameters.append([streams[k] for k, _ in put])
        connection.execute(
            _literal(
                f"INSERT INTO {name} AS t (space_id, key, row{extra})"
                f" SELECT space_id, key, row::jsonb{values} FROM unnest(%b::int4[], %b::text[], %b::text[]{kind})"
                f" AS k(space_id, key, row{extra})"
                " ON CONFLICT (space_id, key) DO UPDATE SET row = excluded.row"
                " WHERE t.row IS DISTINCT FROM excluded.row"
            ),
            parameters,
        )


def differing(
    connection: Connection, p: Projection[Any], generation: int, rows: Mapping[RowKey, bytes | None]
) -> list[RowKey]:
    """The keys whose rows are not these (as JSON; None: there is none), in order of the keys."""
    given = sorted(rows.items())
    found = connection.execute(
        _literal(
            f"SELECT k.space_id, k.key FROM unnest(%b::int4[], %b::text[], %b::text[]) AS k(space_id, key, row)"
            f" LEFT JOIN {table(p.name, generation)} t USING (space_id, key)"
            " WHERE t.row IS DISTINCT FROM k.row::jsonb ORDER BY k.space_id, k.key"
        ),
        [[key[0] for key, _ in given], [key[1] for key, _ in given],
         [None if row is None else row.decode() for _, row in given]],
    )  # fmt: skip
    return [(row[0], row[1]) for row in found]


def all_rows(connection: Connection, p: Projection[Any], generation: int) -> Iterator[tuple[str, bytes]]:
    """Key and JSON of every row, in order of space and key."""
    with connection.transaction(), connection.cursor(name="all_rows") as cursor:
        cursor.execute(
            _literal(f"SELECT key, row FROM {table(p.name, generation)} ORDER BY space_id, key"), binary=True
        )
        while rows := cursor.fetchmany(2000):
            yield from rows


def rows_of(connection: Connection, p: Projection[R], generation: int, space_id: int) -> Iterator[R]:
    """Every row of a space, decoded, in order of its key; for read models that are small."""
    found = connection.execute(
        _literal(f"SELECT row FROM {table(p.name, generation)} WHERE space_id = %b ORDER BY key"),
        [space_id],
        binary=True,
    )
    return (decode_row(p, row) for (row,) in found)


def copy_rows(
    connection: Connection, p: Projection[Any], generation: int, rows: Iterable[tuple[RowKey, str, bytes]]
) -> None:
    """Put rows (key, stream, JSON) into an empty generation by COPY. The stream is left out in stage 2."""
    columns, kinds = ("space_id, key, stream, row", ["int4", "text", "text", "jsonb"])
    if p.stage == 2:
        columns, kinds = "space_id, key, row", ["int4", "text", "jsonb"]
    statement = _literal(f"COPY {table(p.name, generation)} ({columns}) FROM STDIN WITH (FORMAT binary)")
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(kinds)
        for key, stream, row in rows:
            value = Jsonb(row, bytes)
            copy.write_row((*key, stream, value) if p.stage == 1 else (*key, value))


def count(connection: Connection, p: Projection[Any], generation: int) -> int:
    """How many rows a read model has."""
    row = single_row(connection, _literal(f"SELECT count(*) FROM {table(p.name, generation)}"))
    return int(row[0])


def disk_size(connection: Connection, p: Projection[Any], generation: int) -> int:
    """Bytes that the rows of a read model take on disk, where long ones are compressed."""
    row = single_row(connection, _literal(f"SELECT pg_table_size('{table(p.name, generation)}')"))
    return int(row[0])


def scan(
    connection: Connection, p: Projection[R], generation: int, size: int, share: tuple[int, int] = (0, 1)
) -> Iterator[list[tuple[RowKey, R]]]:
    """Every row in batches, through a server-side cursor inside a transaction of `connection`.

    `share` (n, of): only those that the hash of their key deals to the n-th of so many shares.
    """
    for rows in raw_rows(connection, p, generation, size, share):
        yield [(key, decode_row(p, row)) for key, row in rows]


def raw_rows(
    connection: Connection, p: Projection[Any], generation: int, size: int, share: tuple[int, int] = (0, 1)
) -> Iterator[list[tuple[RowKey, bytes]]]:
    """`scan`, with the rows as they are stored: JSON that may be no row of the type."""
    with connection.cursor(name="raw_rows") as cursor:
        cursor.execute(
            _literal(
                f"SELECT space_id, key, row FROM {table(p.name, generation)}"
                " WHERE mod(hashtext(key) & 2147483647, %s::int4) = %s"
            ),
            [share[1], share[0]],
            binary=True,
        )
        while rows := cursor.fetchmany(size):
            yield [((row[0], row[1]), row[2]) for row in rows]


def delete_streams_rows(
    connection: Connection, p: Projection[Any], generation: int, kept: Mapping[tuple[int, str], Sequence[str]]
) -> None:
    """Delete the rows of whole streams (stage 1) whose keys are not among those kept."""
    for (space_id, stream), keys in kept.items():
        connection.execute(
            _literal(
                f"DELETE FROM {table(p.name, generation)}"
                " WHERE space_id = %s AND stream = %s AND NOT key = ANY(%s::text[])"
            ),
            [space_id, stream, list(keys)],
        )


class Digest(msgspec.Struct, frozen=True):
    """Of a table: number of rows, a digest of all, and digests of its 256 ranges of keys (by hash of the key).

    Rows are hashed as canonical JSON with space and key; equal tables have equal digests, in any database.
    """

    rows: int
    ranges: tuple[bytes, ...]

    @property
    def hex(self) -> str:
        return hashlib.sha256(b"".join(self.ranges)).hexdigest()


RANGES = 256
_NOTHING = hashlib.sha256(b"").digest()


def digest_of(connection: Connection, source: LiteralString) -> Digest:
    """The digest of what a query yields as (space_id integer, key text, row jsonb)."""
    rows = connection.execute(
        sql.SQL(
            "SELECT get_byte(of_key, 0), count(*), sha256(string_agg(of_row, ''::bytea ORDER BY of_row))"
            " FROM (SELECT sha256(convert_to(space_id || E'\\n' || key, 'UTF8')) AS of_key,"
            " sha256(convert_to(space_id || E'\\n' || key || E'\\n' || row::text, 'UTF8')) AS of_row"
            " FROM ({}) t) hashed GROUP BY 1"
        ).format(sql.SQL(source)),
        binary=True,
    ).fetchall()
    ranges = {row[0]: row[2] for row in rows}
    return Digest(sum(row[1] for row in rows), tuple(ranges.get(n, _NOTHING) for n in range(RANGES)))


def digest(connection: Connection, p: Projection[Any], generation: int) -> Digest:
    """Digest of a read model."""
    return digest_of(connection, rows_query(p, generation))


def differences_of(
    connection: Connection, one: LiteralString, other: LiteralString, ranges: Sequence[int], limit: int
) -> list[str]:
    """Keys within some ranges whose rows differ between two queries as `digest_of` takes them, or are in one only."""
    inside = "get_byte(sha256(convert_to(space_id || E'\\n' || key, 'UTF8')), 0) = ANY(%s)"
    found = connection.execute(
        sql.SQL(
            f"SELECT coalesce(a.key, b.key) FROM (SELECT * FROM ({{}}) t WHERE {inside}) a"
            f" FULL JOIN (SELECT * FROM ({{}}) t WHERE {inside}) b ON a.space_id = b.space_id AND a.key = b.key"
            " WHERE a.row IS DISTINCT FROM b.row ORDER BY 1 LIMIT %s"
        ).format(sql.SQL(one), sql.SQL(other)),
        [list(ranges), list(ranges), limit],
    ).fetchall()
    return [row[0] for row in found]


def rows_query(p: Projection[Any], generation: int) -> LiteralString:
    """A read model's rows, as `digest_of` and `differences_of` take them."""
    return f"SELECT space_id, key, row FROM {table(p.name, generation)}"


def queue_points(connection: Connection, generation: int, keys: Iterable[RowKey]) -> None:
    """Queue vector points whose desired state changed, in the transaction that changed it."""
    wanted = list(keys)
    if wanted:
        connection.execute(
            _literal(
                f"INSERT INTO memctl.outbox_g{generation} (space_id, key) SELECT * FROM unnest(%b::int4[], %b::text[])"
                " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT"
            ),
            [[key[0] for key in wanted], [key[1] for key in wanted]],
        )
