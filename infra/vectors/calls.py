"""What can be done with one collection: a parsed JSON body in, plain values for the answer out.

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


async def info(collection: Collection, _: Any) -> Any:
    return wire.collection_info(collection.description, collection.shard.info())


async def upsert(collection: Collection, body: Any) -> None:
    points = wire.points(body, collection.dense, collection.sparse)
    await _in_slices(collection, points, edge.UpdateOperation.upsert_points)


async def update_vectors(collection: Collection, body: Any) -> None:
    rows = wire.point_vectors(body, collection.dense, collection.sparse)
    await _in_slices(collection, rows, edge.UpdateOperation.update_vectors)


async def delete(collection: Collection, body: Any) -> None:
    fields = wire.take(body, "delete", optional=("points", "filter"))
    if fields["points"] is not None and fields["filter"] is None:
        ids = wire.point_ids(fields["points"])
        await _in_slices(collection, ids, lambda some: edge.UpdateOperation.delete_points([*some]))
    elif fields["filter"] is not None and fields["points"] is None:
        condition = wire.condition_filter(fields["filter"])
        _apply(collection, edge.UpdateOperation.delete_points_by_filter(condition or edge.Filter()))
    else:
        raise wire.BadRequest("delete has either `points` or `filter`")


async def set_payload(collection: Collection, body: Any) -> None:
    await _change_payload(
        collection, body, edge.UpdateOperation.set_payload, edge.UpdateOperation.set_payload_by_filter
    )


async def overwrite_payload(collection: Collection, body: Any) -> None:
    await _change_payload(
        collection, body, edge.UpdateOperation.overwrite_payload, edge.UpdateOperation.overwrite_payload_by_filter
    )


async def _change_payload(
    collection: Collection,
    body: Any,
    by_ids: Callable[..., edge.UpdateOperation],
    by_filter: Callable[..., edge.UpdateOperation],
) -> None:
    fields = wire.take(body, "payload", ("payload",), ("points", "filter"))
    payload = wire.payload(fields["payload"])
    if fields["points"] is not None and fields["filter"] is None:
        ids = wire.point_ids(fields["points"])
        await _in_slices(collection, ids, lambda some: by_ids(some, payload))
    elif fields["filter"] is not None and fields["points"] is None:
        condition = wire.condition_filter(fields["filter"])
        _apply(collection, by_filter(condition or edge.Filter(), payload))
    else:
        raise wire.BadRequest("a payload change has either `points` or `filter`")


async def create_index(collection: Collection, body: Any) -> None:
    _apply(collection, wire.field_index(body))


async def retrieve(collection: Collection, body: Any) -> Any:
    fields = wire.take(body, "request", ("ids",), ("with_payload", "with_vector"))
    with_payload = wire.selector(fields["with_payload"])
    found = _engine(
        collection.shard.retrieve,
        wire.point_ids(fields["ids"], "ids"),
        True if with_payload is None else with_payload,
        wire.vector_selector(fields["with_vector"]),
    )
    return [wire.record(record) for record in found]


async def scroll(collection: Collection, body: Any) -> Any:
    fields = wire.take(body, "scroll", optional=("offset", "limit", "filter", "with_payload", "with_vector"))
    with_payload = wire.selector(fields["with_payload"])
    found, following = _engine(
        collection.shard.scroll,
        edge.ScrollRequest(
            offset=None if fields["offset"] is None else wire.point_id(fields["offset"]),
            limit=wire.integer(fields["limit"], "limit", 10, low=1),
            filter=wire.condition_filter(fields["filter"]),
            with_payload=True if with_payload is None else with_payload,
            with_vector=wire.vector_selector(fields["with_vector"]),
        ),
    )
    return {"points": [wire.record(record) for record in found], "next_page_offset": following}


async def count(collection: Collection, body: Any) -> Any:
    fields = wire.take(body, "count", optional=("filter", "exact"))
    exact = True if fields["exact"] is None else bool(fields["exact"])
    request = edge.CountRequest(exact=exact, filter=wire.condition_filter(fields["filter"]))
    return {"count": _engine(collection.shard.count, request)}


async def query(collection: Collection, body: Any) -> Any:
    found = _engine(collection.shard.query, wire.query_request(body, collection.dense))
    return {"points": [wire.scored(point) for point in found]}


async def query_batch(collection: Collection, body: Any) -> Any:
    searches = wire.items(wire.take(body, "batch", ("searches",))["searches"], "searches")
    requests = [wire.query_request(search, collection.dense) for search in searches]
    found = _engine(collection.shard.query_batch, edge.QueryBatchRequest(requests))
    return [{"points": [wire.scored(point) for point in points]} for points in found]


def _slices(whole: Sequence[T]) -> list[list[T]]:
    return [list(whole[start : start + WRITE_SLICE]) for start in range(0, len(whole), WRITE_SLICE)]


async def _in_slices(
    collection: Collection, whole: Sequence[T], operation: Callable[[list[T]], edge.UpdateOperation]
) -> None:
    """Apply a large write piece by piece, letting queries in between."""
    for part in _slices(whole):
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
