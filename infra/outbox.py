"""The outbox's table: points of a generation that Qdrant has to be told of, or that wait for a dense vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.infra.database import Connection
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import OUTBOX_OF, RowKey, decode_row, table
from memctl.infra.vectors.store import EVERYWHERE, Payload
from memctl.projections.kernel import Projection, projections
from memctl.projections.vector_points import VectorPoint

PAGE = 500
"""Rows read at once where all of them are."""


@cache
def points() -> Projection:
    """The projection whose rows the outbox makes the store agree with."""
    return next(p for p in projections(2) if p.name == OUTBOX_OF)


class Queued(msgspec.Struct, frozen=True):
    """A point whose desired state changed. `version` tells a later change from the one that was written."""

    key: RowKey
    version: int


class State(msgspec.Struct, frozen=True):
    """How a point stands in Postgres: the row that says what it should be (None: it should not be), and whether it is
    queued to be written, or waits for its dense vector."""

    row: VectorPoint | None
    queued: bool = False
    waits_for_dense: bool = False


def collection_of(connection: Connection, generation: int) -> str:
    """Name of a generation's collection in Qdrant."""
    return f"memctl-{installation(connection)}-g{generation}"


def stored_id(key: RowKey) -> str:
    """Id in the store of the point that a row stands for, where a collection holds those of all spaces.

    Two spaces that hold the same session have rows of one key. In the first space the id is the row's; in the others it
    differs from it in its last bits, so that ids are in the order of the keys.
    """
    return str(UUID(int=UUID(key[1]).int ^ max(key[0] - 1, 0)))


def key_of(space_id: int, stored: str) -> RowKey:
    """The row whose point has that id in the store."""
    return space_id, stored_id((space_id, stored))


def backlog(connection: Connection, generation: int) -> tuple[int, int]:
    """Points to be written, and points that wait for their dense vector."""
    row = connection.execute(
        _of(generation, "SELECT count(*) FILTER (WHERE NOT dense), count(*) FILTER (WHERE dense) FROM {table}")
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def take(connection: Connection, generation: int, *, dense: bool, limit: int) -> list[Queued]:
    """Points to be written, in order; or (`dense`) those that wait for their dense vector, newest first."""
    order = "DESC" if dense else "ASC"
    found = connection.execute(
        _of(
            generation,
            f"SELECT space_id, key, version FROM {{table}} WHERE dense = %s ORDER BY version {order} LIMIT %s",
        ),
        [dense, limit],
    )
    return [Queued((row[0], row[1]), row[2]) for row in found]


def awaiting_dense(connection: Connection, generation: int) -> list[str]:
    """Ids in the store of the points that wait for their dense vector."""
    found = connection.execute(_of(generation, "SELECT space_id, key FROM {table} WHERE dense"))
    return [stored_id((row[0], row[1])) for row in found]


def payload_of(row: VectorPoint, space: str) -> Payload:
    """What a point carries in the store beside its vectors."""
    return {
        "space": space,
        "location": list(row.locations) or [EVERYWHERE],
        "bucket": row.bucket,
        "kind": row.kind,
        "memory_id": row.memory_id,
        "text_hash": row.text_hash,
        "occurred_at": row.occurred_at // 1000,
        "before": row.before,
    }


def wanted(connection: Connection, generation: int, space_id: int) -> Iterator[tuple[RowKey, VectorPoint]]:
    """What a space's points should be, in order of key, page by page: `(space, id)` and row."""
    statement = f"SELECT key, row FROM {table(OUTBOX_OF, generation)} WHERE space_id = %s AND key > %s"
    last = ""
    while True:
        page = connection.execute(
            sql.SQL(f"{statement} ORDER BY key LIMIT {PAGE:d}"), [space_id, last], binary=True
        ).fetchall()
        for key, row in page:
            yield (space_id, key), decode_row(points(), row)
        if len(page) < PAGE:
            return
        last = page[-1][0]


def states(connection: Connection, generation: int, keys: Sequence[RowKey]) -> dict[RowKey, State]:
    """How points stand in Postgres, one entry for each key; seen in one statement, so row and queue agree."""
    found = connection.execute(
        _of(
            generation,
            "SELECT k.space_id, k.key, p.row, o.dense FROM unnest(%b::int4[], %b::text[]) AS k(space_id, key)"
            f" LEFT JOIN {table(OUTBOX_OF, generation)} p USING (space_id, key)"
            " LEFT JOIN {table} o USING (space_id, key)",
        ),
        [[key[0] for key in keys], [key[1] for key in keys]],
        binary=True,
    )
    return {
        (space, key): State(None if row is None else decode_row(points(), row), dense is False, dense is True)
        for space, key, row, dense in found
    }


def done(connection: Connection, generation: int, written: Sequence[Queued]) -> None:
    """Take off what was written, unless it has changed since."""
    _unchanged(connection, generation, "DELETE FROM {table} o USING {keys} WHERE {same}", written)


def requeue_others(connection: Connection, generation: int, written: Sequence[Queued]) -> None:
    """Queue those again that are no longer waiting in the version that was written: another has written meanwhile."""
    if not written:
        return
    connection.execute(
        _of(
            generation,
            "INSERT INTO {table} AS o (space_id, key)"
            " SELECT k.space_id, k.key FROM unnest(%b::int4[], %b::text[], %b::int8[]) AS k(space_id, key, v)"
            " WHERE NOT EXISTS (SELECT FROM {table} q"
            " WHERE q.space_id = k.space_id AND q.key = k.key AND q.version = k.v)"
            " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT, dense = false",
        ),
        [[q.key[0] for q in written], [q.key[1] for q in written], [q.version for q in written]],
    )


def await_dense(connection: Connection, generation: int, written: Sequence[Queued]) -> None:
    """What was written waits for its dense vector now, unless it has changed since."""
    _unchanged(connection, generation, "UPDATE {table} o SET dense = true FROM {keys} WHERE {same}", written)


def remember(
    connection: Connection, generation: int, keys: Sequence[RowKey], model: str, vectors: Mapping[str, bytes]
) -> None:
    """Put dense vectors, by dense hash, into the cache: those that one of these points has still. To embed takes a
    while, in which the text may be forgotten: then its rows are locked, and gone once they are not."""
    connection.execute(
        _of(
            generation,
            "WITH wanted AS (SELECT decode(p.row->>'dense_hash', 'hex') AS text_hash"
            f" FROM {table(OUTBOX_OF, generation)} p JOIN unnest(%b::int4[], %b::text[]) AS k(space_id, key)"
            " USING (space_id, key) ORDER BY p.space_id, p.key FOR SHARE OF p)"
            " INSERT INTO memctl.embeddings (model, text_hash, vector)"
            " SELECT %b, text_hash, vector FROM unnest(%b::bytea[], %b::bytea[]) AS e(text_hash, vector)"
            " WHERE text_hash IN (SELECT text_hash FROM wanted) ON CONFLICT DO NOTHING",
        ),
        [[key[0] for key in keys], [key[1] for key in keys], model, [bytes.fromhex(key) for key in vectors],
         list(vectors.values())],
    )  # fmt: skip


def queue_all(connection: Connection, generation: int) -> int:
    """Queue every point that should stand in the collection: it is new, or lost what it held. Returns how many."""
    queued = connection.execute(
        sql.SQL(
            "INSERT INTO memctl.outbox_g{g} (space_id, key) SELECT space_id, key FROM memctl.{points}_g{g}"
            " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT, dense = false"
        ).format(g=sql.SQL(str(generation)), points=sql.SQL(OUTBOX_OF))
    )
    return queued.rowcount


def _unchanged(connection: Connection, generation: int, statement: str, written: Sequence[Queued]) -> None:
    if not written:
        return
    keys = "unnest(%b::int4[], %b::text[], %b::int8[]) AS k(space_id, key, v)"
    same = "o.space_id = k.space_id AND o.key = k.key AND o.version = k.v"
    connection.execute(
        _of(generation, statement.replace("{keys}", keys).replace("{same}", same)),
        [[q.key[0] for q in written], [q.key[1] for q in written], [q.version for q in written]],
    )


def _of(generation: int, statement: str) -> sql.SQL:
    return sql.SQL(statement.replace("{table}", f"memctl.outbox_g{generation:d}"))
