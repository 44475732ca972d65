"""What can be done with one collection: a body in, plain values for the answer out.

Called on the server's one event loop; large writes let it go between slices.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import qdrant_edge as edge

from memctl.infra.vectors import wire
from memctl.infra.vectors.shards import Collection

T = TypeVar("T")

WRITE_SLICE = 64  # points per engine call: 3 to 6 ms at 384 dimensions, the longest a query waits for a write


class EngineFailed(wire.Refused):
    """The engine could not do what was rightly asked."""

    status = 500


async def info(collection: Collection, _: wire.Nothing) -> Any:
    return wire.collection_info(collection.description, collection.shard.info())


async def upsert(collection: Collection, body: wire.Points) -> None:
    points = wire.points(body, collection.dense, collection.sparse)
    await _in_slices(collection, points, edge.UpdateOperation.upsert_points)


async def update_vectors(collection: Collection, body: wire.Vectors) -> None:
    rows = [
        edge.PointVectors(point.id, wire.vectors(point, collection.dense, collection.sparse)) for point in body.points
    ]
    await _in_slices(collection, rows, edge.UpdateOperation.update_vectors)


async def delete(collection: Collection, body: wire.Ids) -> None:
    await _in_slices(collection, body.points, lambda some: edge.UpdateOperation.delete_points([*some]))


async def set_payload(collection: Collection, body: wire.SetPayload) -> None:
    await _in_slices(
        collection, body.points, lambda some: wire.refusing(edge.UpdateOperation.set_payload, some, body.payload)
    )


async def create_index(collection: Collection, body: wire.Index) -> None:
    _apply(collection, wire.field_index(body))


async def retrieve(collection: Collection, body: wire.Retrieve) -> Any:
    found = _engine(collection.shard.retrieve, body.ids, body.payload, body.with_vector)
    return [wire.record(record) for record in found]


async def scroll(collection: Collection, body: wire.Scroll) -> Any:
    asked = edge.ScrollRequest(
        offset=body.offset,
        limit=body.limit,
        filter=wire.condition_filter(body.filter),
        with_payload=body.payload,
        with_vector=body.with_vector,
    )
    found, following = _engine(collection.shard.scroll, asked)
    return {"points": [wire.record(record) for record in found], "next_page_offset": following}


async def count(collection: Collection, body: wire.Count) -> Any:
    request = edge.CountRequest(exact=body.exact, filter=wire.condition_filter(body.filter))
    return {"count": _engine(collection.shard.count, request)}


async def query_batch(collection: Collection, body: wire.Queries) -> Any:
    requests = [wire.query_request(search, collection.dense) for search in body.searches]
    found = _engine(collection.shard.query_batch, edge.QueryBatchRequest(requests))
    return [{"points": [wire.scored(point) for point in points]} for points in found]


async def _in_slices(
    collection: Collection, whole: Sequence[T], operation: Callable[[list[T]], edge.UpdateOperation]
) -> None:
    """Apply a large write piece by piece, letting queries in between."""
    for start in range(0, len(whole), WRITE_SLICE):
        part = list(whole[start : start + WRITE_SLICE])
        _apply(collection, operation(part), len(part))
        await asyncio.sleep(0)


def _apply(collection: Collection, operation: edge.UpdateOperation, points: int = 1) -> None:
    _engine(collection.apply, operation, points)


def _engine(call: Callable[..., T], *args: Any) -> T:
    try:
        return call(*args)
    except Exception as why:
        raise _engine_refused(why) from why


def _engine_refused(why: Exception) -> Exception:
    """The engine raises bare exceptions; their wording shows whose fault it was."""
    if "No point with id" in str(why):
        return wire.NotFound(f"Not found: {why}")
    if "Service runtime error" in str(why) or isinstance(why, OSError):
        return EngineFailed(f"Service internal error: {why}")
    return wire.BadRequest(f"Wrong input: {why}")
