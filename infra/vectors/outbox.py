"""The outbox's tables: points of a generation that are to be sent to Qdrant, and those that wait for a dense vector."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import msgspec
import psycopg
from psycopg import sql

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row
from memctl.infra.embedders import NONE
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.rows import OUTBOX_OF, RowKey, decode_row, table
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.store import EVERYWHERE, PointPayload
from memctl.projections.kernel import Projection, projections
from memctl.projections.vector_points import VectorPoint

PAGE = 500
"""Rows read at once where all of them are."""


@cache
def points() -> Projection[Any]:
    """The projection whose rows the outbox makes the store agree with."""
    return next(p for p in projections(2) if p.name == OUTBOX_OF)


class Queued(msgspec.Struct, frozen=True):
    """A point whose desired state changed. `version` sets a later change apart from the written one."""

    key: RowKey
    version: int


class OutboxState(msgspec.Struct, frozen=True):
    """How a point stands in Postgres: the row that says what it should be (None: it should not be), and whether it is
    queued to be written, or waits for its dense vector of a model."""

    row: VectorPoint | None
    queued: bool = False
    waits_for_dense: bool = False


def collection_of(connection: Connection, generation: int, model: str = "") -> str:
    """Name of the collection in Qdrant of a generation and a model (of the one that serves)."""
    if not model:
        serving = vector_models.models(connection).serving
        model = serving.name if serving is not None else NONE.name
    return f"memctl-{installation(connection)}-g{generation}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def stored_id(key: RowKey) -> str:
    """Id in the store of the point that a row stands for, where a collection holds those of all spaces.

    Two spaces that hold the same session have rows of one key. In the first space the id is the row's; in the others it
    differs from it in its last bits, so that ids are in the order of the keys.
    """
    return str(UUID(int=UUID(key[1]).int ^ max(key[0] - 1, 0)))


def key_of(space_id: int, stored: str) -> RowKey:
    """The row whose point has that id in the store."""
    return space_id, stored_id((space_id, stored))


class Filling(msgspec.Struct, frozen=True):
    """Progress of the embedder that is to serve next: `waiting` of `points` have no dense vector yet."""

    model: str
    points: int
    waiting: int


def backlog(connection: Connection, generation: int, space_id: int | None = None) -> tuple[int, int]:
    """Points to be written, and points that wait for their dense vector of the model that serves: of a space (None: of
    all)."""
    row = single_row(
        connection,
        _of(
            generation,
            "SELECT (SELECT count(*) FROM {table} WHERE space_id = coalesce(%s, space_id)),"
            " (SELECT count(*) FROM memctl.waiting_for_vectors w JOIN memctl.vector_models m USING (model)"
            " WHERE m.status = 'serving' AND w.generation = %s AND w.space_id = coalesce(%s, w.space_id))",
        ),
        [space_id, generation, space_id],
    )
    return row[0], row[1]


def filling(connection: Connection, generation: int) -> Filling | None:
    """How far the model is that is filled beside the one that serves; None where none is."""
    row = connection.execute(
        _of(
            generation,
            f"SELECT m.model, (SELECT count(*) FROM {table(OUTBOX_OF, generation)}),"
            " (SELECT count(*) FROM memctl.waiting_for_vectors w WHERE w.model = m.model AND w.generation = %s)"
            " FROM memctl.vector_models m WHERE m.status = 'filling'",
        ),
        [generation],
    ).fetchone()
    return None if row is None else Filling(row[0], row[1], row[2])


def take(connection: Connection, generation: int, limit: int) -> list[Queued]:
    """Points to be written, in order."""
    found = connection.execute(
        _of(generation, "SELECT space_id, key, version FROM {table} ORDER BY version LIMIT %s"), [limit]
    )
    return [Queued((row[0], row[1]), row[2]) for row in found]


def take_waiting(connection: Connection, generation: int, model: str, limit: int) -> list[Queued]:
    """Points that wait for their dense vector of a model, newest first; those of lines behind all others."""
    found = connection.execute(
        "SELECT space_id, key, version FROM memctl.waiting_for_vectors WHERE generation = %s AND model = %s"
        " ORDER BY version DESC LIMIT %s",
        [generation, model, limit],
    )
    return [Queued((row[0], row[1]), row[2]) for row in found]


def awaiting_dense(connection: Connection, generation: int, model: str) -> list[str]:
    """Ids in the store of the points that wait for their dense vector of a model."""
    found = connection.execute(
        "SELECT space_id, key FROM memctl.waiting_for_vectors WHERE generation = %s AND model = %s",
        [generation, model],
    )
    return [stored_id((row[0], row[1])) for row in found]


def payload_of(row: VectorPoint, space: str) -> PointPayload:
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


def states(connection: Connection, generation: int, model: str, keys: Sequence[RowKey]) -> dict[RowKey, OutboxState]:
    """How points stand in Postgres, one entry for each key; seen in one statement, so row and queue agree."""
    found = connection.execute(
        _of(
            generation,
            "SELECT k.space_id, k.key, p.row, o.key IS NOT NULL, w.key IS NOT NULL"
            " FROM unnest(%b::int4[], %b::text[]) AS k(space_id, key)"
            f" LEFT JOIN {table(OUTBOX_OF, generation)} p USING (space_id, key)"
            " LEFT JOIN {table} o USING (space_id, key)"
            " LEFT JOIN memctl.waiting_for_vectors w"
            " ON w.generation = %b AND w.model = %b AND w.space_id = k.space_id AND w.key = k.key",
        ),
        [[key[0] for key in keys], [key[1] for key in keys], generation, model],
        binary=True,
    )
    return {
        (space, key): OutboxState(None if row is None else decode_row(points(), row), queued, waits)
        for space, key, row, queued, waits in found
    }


def without_vector(connection: Connection, model: str, hashes: Sequence[str]) -> set[str]:
    """Those of the texts, by dense hash, that the model does not take: they have no dense vector."""
    found = connection.execute(
        "SELECT text_hash FROM memctl.embeddings WHERE model = %b AND text_hash = ANY(%b::bytea[]) AND vector = ''",
        [model, [bytes.fromhex(each) for each in hashes]],
        binary=True,
    )
    return {bytes(row[0]).hex() for row in found}


def done(connection: Connection, generation: int, written: Sequence[Queued]) -> None:
    """Take off what was written, unless it has changed since."""
    if written:
        connection.execute(
            _of(generation, f"DELETE FROM {{table}} o USING {_KEYS} WHERE o.version = k.v AND {_SAME}"),
            _columns(written),
        )


def embedded(connection: Connection, generation: int, model: str, those: Sequence[Queued]) -> None:
    """These points have been given their dense vector of a model: they wait no longer.

    Those that wait in another version by now, or not at all, or are to be written, have changed meanwhile: another has
    written them, or is about to, and nobody knows who came last. They are written again.
    """
    if not those:
        return
    with connection.transaction():
        connection.execute(
            _of(
                generation,
                f"INSERT INTO {{table}} AS o (space_id, key) SELECT k.space_id, k.key FROM {_KEYS} WHERE"
                " EXISTS (SELECT FROM {table} q WHERE q.space_id = k.space_id AND q.key = k.key)"
                " OR NOT EXISTS (SELECT FROM memctl.waiting_for_vectors w WHERE w.generation = %b AND w.model = %b"
                " AND w.space_id = k.space_id AND w.key = k.key AND w.version = k.v)"
                " ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT",
            ),
            [*_columns(those), generation, model],
        )
        connection.execute(
            f"DELETE FROM memctl.waiting_for_vectors o USING {_KEYS}"
            f" WHERE o.generation = %b AND o.model = %b AND o.version = k.v AND {_SAME}",
            [*_columns(those), generation, model],
        )


_BEHIND = 1 << 62
"""By how much lines that wait are numbered lower, so that they are embedded behind all memories."""


def await_dense(
    connection: Connection,
    generation: int,
    model: str,
    written: Sequence[Queued],
    waits: Sequence[Queued],
    lines: Sequence[Queued] = (),
) -> None:
    """Of the points that were written, those wait for their dense vector of a model now, and the others do not: those
    of memories, and behind them those of lines."""
    with connection.transaction():
        connection.execute(
            f"DELETE FROM memctl.waiting_for_vectors o USING {_KEYS}"
            f" WHERE o.generation = %b AND o.model = %b AND {_SAME}",
            [*_columns(written), generation, model],
        )
        # Numbered in the order in which they changed, so that the newest are embedded first.
        for those, lower in ((waits, 0), (lines, _BEHIND)):
            connection.execute(
                "INSERT INTO memctl.waiting_for_vectors (generation, model, space_id, key, version)"
                " OVERRIDING SYSTEM VALUE SELECT %b, %b, k.space_id, k.key,"
                " nextval(pg_get_serial_sequence('memctl.waiting_for_vectors', 'version')) - %b"
                f" FROM (SELECT * FROM {_KEYS} ORDER BY k.v) AS k",
                [generation, model, lower, *_columns(those)],
            )


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


def forget_unused(connection: Connection, upto: Position) -> bool:
    """Take from the cache the vectors of texts that no point of any generation has: texts of memories that have changed
    since, or are gone. While the live points are not folded up to there, or a generation is being dropped,
    nobody knows which these are: then none is taken, and it returns False."""
    if generations.lowest_offset(connection, generations.live(connection).stage2) < upto:
        return False
    kept = [
        generation
        for status in ("live", "previous", "building", "scratch")
        for generation, stage, _ in generations.generations(connection, status)
        if stage == 2
    ]
    try:
        connection.execute(sql.SQL("DELETE FROM memctl.embeddings e WHERE {}").format(of_no_point(kept)))
    except psycopg.errors.UndefinedTable:  # one was dropped meanwhile
        return False
    return True


def of_no_point(kept: Iterable[int]) -> sql.Composed:
    """That the text of a cached vector, `e`, is of no point of these generations.

    As a join: `NOT IN` goes through all points for each vector, once they are more than fit into the memory of a query.
    """
    hashes = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT row->>'dense_hash' AS hash FROM {}").format(sql.SQL(table(OUTBOX_OF, generation)))
        for generation in kept
    )
    return sql.SQL("NOT EXISTS (SELECT FROM ({}) p WHERE p.hash = encode(e.text_hash, 'hex'))").format(hashes)


def queue_all(connection: Connection, generation: int) -> int:
    """Queue every point that should stand in the collections: one is new, or lost what it held. Returns how many."""
    queued = connection.execute(
        sql.SQL(
            "INSERT INTO memctl.outbox_g{g} (space_id, key) SELECT space_id, key FROM memctl.{points}_g{g}"
            " ORDER BY (row->>'occurred_at')::bigint ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT"
        ).format(g=sql.SQL(str(generation)), points=sql.SQL(OUTBOX_OF))
    )
    return queued.rowcount


def queue_cached(connection: Connection, generation: int) -> int:
    """Queue the points that wait for a dense vector which the cache holds by now, as another generation's points of the
    same texts were embedded meanwhile. Returns how many."""
    queued = connection.execute(
        _of(
            generation,
            "INSERT INTO {table} (space_id, key) SELECT DISTINCT w.space_id, w.key FROM memctl.waiting_for_vectors w"
            f" JOIN {table(OUTBOX_OF, generation)} p USING (space_id, key)"
            " JOIN memctl.embeddings e ON e.model = w.model AND e.text_hash = decode(p.row->>'dense_hash', 'hex')"
            " WHERE w.generation = %s ON CONFLICT (space_id, key) DO UPDATE SET version = DEFAULT",
        ),
        [generation],
    )
    return queued.rowcount


_KEYS = "unnest(%b::int4[], %b::text[], %b::int8[]) AS k(space_id, key, v)"
_SAME = "o.space_id = k.space_id AND o.key = k.key"


def _columns(those: Sequence[Queued]) -> list[list[int] | list[str]]:
    return [[q.key[0] for q in those], [q.key[1] for q in those], [q.version for q in those]]


def _of(generation: int, statement: str) -> sql.SQL:
    return sql.SQL(statement.replace("{table}", f"memctl.outbox_g{generation:d}"))
