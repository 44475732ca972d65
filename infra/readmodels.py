"""The tables of a generation: rows of read models, facts, routes, and the outbox to the vectors.

A row is stored as JSON under (space, key): its type is the schema. Fields that queries sort or filter by get
expression indexes, named by the projection itself.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from psycopg import sql
from psycopg.types.json import Jsonb

from memctl.infra.database import Connection
from memctl.projections.kernel import Projection, Stage, projections

RowKey = tuple[int, str]
"""Space and key of a row."""

LAYOUT = 2
"""Raise it when the tables of a generation change their columns: read models of another layout are rebuilt."""

OUTBOX_OF = "vector_points"
"""The projection whose changes are queued for Qdrant."""

_FACTS = """
CREATE {unlogged} TABLE memctl.facts_g{generation} (
    space_id    integer NOT NULL,
    id          uuid NOT NULL,
    stream      text COLLATE "C" NOT NULL,
    type        text NOT NULL,
    at          bigint NOT NULL,
    payload     jsonb,
    PRIMARY KEY (space_id, id)
)"""

_ROUTES = """
CREATE {unlogged} TABLE memctl.routes_g{generation} (
    space_id     integer NOT NULL,
    source       uuid NOT NULL,
    target       text COLLATE "C" NOT NULL,
    upstream     text,
    upstream_key text,
    PRIMARY KEY (space_id, source, target)
)"""

_OUTBOX = """
CREATE {unlogged} TABLE memctl.outbox_g{generation} (
    space_id integer NOT NULL,
    key      text COLLATE "C" NOT NULL,
    version  bigint GENERATED ALWAYS AS IDENTITY,
    dense    boolean NOT NULL DEFAULT false,
    PRIMARY KEY (space_id, key)
)"""

_ROWS = """
CREATE {unlogged} TABLE memctl.{name}_g{generation} (
    space_id integer NOT NULL,
    key      text COLLATE "C" NOT NULL,
    {stream}
    row      jsonb NOT NULL,
    PRIMARY KEY (space_id, key)
)"""


def table(name: str, generation: int) -> str:
    """The table of a read model in a generation, qualified. `name` comes from the register, never from outside."""
    return f"memctl.{name}_g{generation}"


def create_tables(connection: Connection, stage: Stage, generation: int, *, unlogged: bool) -> None:
    """Empty tables for a generation, without the indexes that are cheaper to build once they are full."""
    how = {"unlogged": "UNLOGGED" if unlogged else "", "generation": generation}
    parts = [_FACTS] if stage == 1 else [_ROUTES, _OUTBOX]
    statements = [part.format(**how) for part in parts]
    stream = 'stream text COLLATE "C" NOT NULL,' if stage == 1 else ""
    statements += [_ROWS.format(name=p.name, stream=stream, **how) for p in projections(stage)]
    for statement in statements:
        connection.execute(_literal(statement))


def finish(connection: Connection, stage: Stage, generation: int) -> None:
    """Indexes beyond the keys, and durability: what a generation needs before it may go live."""
    statements: list[str] = []
    if stage == 1:
        statements += [
            f"CREATE INDEX ON memctl.facts_g{generation} (at)",
            f"CREATE INDEX ON memctl.facts_g{generation} (space_id, stream)",
        ]
    else:
        statements += [
            f"CREATE INDEX ON memctl.routes_g{generation} (target)",
            f"CREATE INDEX ON memctl.outbox_g{generation} (dense, version)",
        ]
    for p in projections(stage):
        name = table(p.name, generation)
        if stage == 1:
            statements.append(f"CREATE INDEX ON {name} (space_id, stream)")
        statements += [f"CREATE INDEX ON {name} (space_id, {_expressions(p, fields)})" for fields in p.indexes]
    for name in _tables(stage, generation):
        statements += [f"ALTER TABLE {name} SET LOGGED", f"ANALYZE {name}"]
    for statement in statements:
        connection.execute(_literal(statement))


def drop_tables(connection: Connection, generation: int) -> None:
    """Drop a generation's tables, also those of projections that the code no longer knows."""
    names = connection.execute(
        "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ %s",
        [f"_g{generation}$"],
    ).fetchall()
    for (name,) in names:
        connection.execute(_literal(f"DROP TABLE {name}"))


def _tables(stage: Stage, generation: int) -> list[str]:
    own = ["facts"] if stage == 1 else ["routes", "outbox"]
    return [table(name, generation) for name in (*own, *(p.name for p in projections(stage)))]


def _expressions(p: Projection, fields: Sequence[str]) -> str:
    return ", ".join(expression(p, field) for field in fields)


def expression(p: Projection, field: str) -> str:
    """The SQL expression of a row's field, as the indexes have it.

    Raises: KeyError when the row type has no such field.
    """
    kind = typing.get_type_hints(p.row)[field]
    cast = {int: "::bigint", float: "::float8", bool: "::boolean"}.get(getattr(kind, "__supertype__", kind), "")
    return f"((row->>'{field}'){cast})"


def _literal(statement: str) -> sql.SQL:
    return sql.SQL(statement)  # names of this module and of the register only, never values


_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decode_row(p: Projection, data: bytes) -> Any:
    """A stored row as the projection's row type."""
    decoder = _decoders.get(p.row)
    if decoder is None:
        decoder = _decoders[p.row] = msgspec.json.Decoder(p.row)
    return decoder.decode(data)


def load(connection: Connection, p: Projection, generation: int, keys: Sequence[RowKey]) -> dict[RowKey, Any]:
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
    p: Projection,
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
    put = [(key, row) for key, row in rows.items() if row is not None]
    if put:
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


def copy_rows(
    connection: Connection, p: Projection, generation: int, rows: Iterable[tuple[int, str, str, bytes]]
) -> None:
    """Put rows of stage 1 (space, key, stream, JSON) into an empty generation by COPY."""
    with (
        connection.cursor() as cursor,
        cursor.copy(
            _literal(f"COPY {table(p.name, generation)} (space_id, key, stream, row) FROM STDIN WITH (FORMAT binary)")
        ) as copy,
    ):
        copy.set_types(["int4", "text", "text", "jsonb"])
        for space_id, key, stream, row in rows:
            copy.write_row((space_id, key, stream, Jsonb(row, _as_is)))


def delete_streams_rows(
    connection: Connection, p: Projection, generation: int, kept: Mapping[tuple[int, str], Sequence[str]]
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


def digest(connection: Connection, p: Projection, generation: int) -> tuple[int, str]:
    """Number of rows, and a digest over space, key and canonical JSON of every row in order of key."""
    row = connection.execute(
        _literal(
            "SELECT count(*),"
            " encode(sha256(convert_to(coalesce(string_agg(h, '' ORDER BY space_id, key), ''), 'UTF8')), 'hex')"
            " FROM (SELECT space_id, key,"
            " encode(sha256(convert_to(space_id || E'\\n' || key || E'\\n' || row::text, 'UTF8')), 'hex') AS h"
            f" FROM {table(p.name, generation)}) rows"
        )
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def differences(connection: Connection, p: Projection, one: int, other: int, limit: int = 20) -> list[str]:
    """Keys whose rows differ between two generations, or are in only one of them."""
    found = connection.execute(
        _literal(
            f"SELECT coalesce(a.key, b.key) FROM {table(p.name, one)} a"
            f" FULL JOIN {table(p.name, other)} b ON a.space_id = b.space_id AND a.key = b.key"
            " WHERE a.row IS DISTINCT FROM b.row ORDER BY 1 LIMIT %s"
        ),
        [limit],
    ).fetchall()
    return [row[0] for row in found]


def queue_points(connection: Connection, generation: int, keys: Iterable[RowKey]) -> None:
    """Queue vector points whose desired state changed, in the transaction that changed it."""
    wanted = list(keys)
    if wanted:
        connection.execute(
            _literal(
                f"INSERT INTO memctl.outbox_g{generation} (space_id, key) SELECT * FROM unnest(%b::int4[], %b::text[])"
                " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT, dense = false"
            ),
            [[key[0] for key in wanted], [key[1] for key in wanted]],
        )


def _as_is(data: bytes) -> bytes:
    return data
