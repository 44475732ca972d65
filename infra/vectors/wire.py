"""Qdrant's REST bodies, translated to the engine's objects and back.

Only what memctl uses of the API is translated. A field that is not known here is refused by name, never ignored: a
filter that silently lost a condition would show one project's memory to another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import msgspec
import qdrant_edge as edge
from msgspec import Meta, Struct

T = TypeVar("T")

_F32_MAX = 3.4028234663852886e38
_MAX_LIMIT = 100_000  # points of an answer, so that it fits into memory
_INDEXED_FROM_KB = 5_000  # vectors of a segment that has a graph; those of a smaller one are looked through one by one
# Vectors of what a filter leaves that are looked through one by one (26,000 of 384 dimensions, 2 ms). Of fewer a graph
# loses more the fewer they are: of 10,000 in 100,000, as of two worktrees, four in ten of the best were not found.
_FULL_SCAN_KB = 20_000
# Beyond that the graph is walked two steps at a time where at most this share passes the filter. Links for each value
# of each field, the engine's other remedy, took two thirds of a build and found less.
_ACORN_UP_TO = 0.5
_OVERSAMPLED = 1.5  # so many times the points that are asked for are scored by the vectors themselves

Float32 = Annotated[float, Meta(ge=-_F32_MAX, le=_F32_MAX)]
Limit = Annotated[int, Meta(ge=1, le=_MAX_LIMIT)]
Json = dict[str, Any]
OfEngine = Any
"""A condition as the engine takes it: of its many classes this server makes three."""


class Refused(Exception):
    """A request that is answered with an error; the message is for its sender."""

    status = 400  # of HTTP


class NotFound(Refused):
    """What was asked about is not there."""

    status = 404


class BadRequest(Refused):
    """A body that Qdrant would refuse, or that uses a part of its API that this server does not have."""


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what is sent."""


class Nothing(Body, frozen=True):
    """What is sent where nothing is."""


def parsed(content: bytes | bytearray, of: type[T]) -> T:
    """What was sent, as that body. Raises: BadRequest."""
    try:
        return msgspec.json.decode(content or b"{}", type=of)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as why:
        raise BadRequest(f"Format error in JSON body, or not supported by this server: {why}") from why


# --- collections ---


class VectorParams(Body, frozen=True):
    """A dense vector of each point."""

    size: Annotated[int, Meta(ge=1, le=65_536)]
    distance: Literal["Cosine"]
    datatype: Literal["float32", "float16"] = "float32"
    on_disk: bool = True


class SparseParams(Body, frozen=True):
    """A sparse vector of each point."""

    modifier: Literal["none", "idf"] = "none"


class Description(Struct, frozen=True):
    """What a collection is to hold, by names of vectors."""

    dense: dict[str, VectorParams]
    sparse: dict[str, SparseParams]


class Create(Body, frozen=True):
    """A collection to be made."""

    vectors: dict[str, VectorParams] = {}
    sparse_vectors: dict[str, SparseParams] = {}


class KeywordSchema(Body, frozen=True):
    """An index over words."""

    type: Literal["keyword"]
    is_tenant: bool = False


class Index(Body, frozen=True):
    """An index over a field of payloads."""

    field_name: str
    field_schema: Literal["keyword", "integer"] | KeywordSchema


def shard_config(described: Description, *, indexed: bool = False) -> edge.EdgeConfig:
    """How the engine is to hold a collection; `indexed` as a process that builds indexes wants it."""
    # One thread: a build has all the time it needs, and others want the machine.
    graph = edge.HnswIndexConfig(16, 100, _FULL_SCAN_KB, max_indexing_threads=1, payload_m=0, memory=edge.Memory.Cold)
    # A byte a dimension halves a build, and what a search looks at; the best are scored by the vectors themselves.
    bytewise = edge.ScalarQuantizationConfig(edge.ScalarType.Int8, memory=edge.Memory.Cold)
    # Cold everywhere: files are mapped and paged in by use. Measured at 100,000 points of 384 dimensions this is
    # 270 MB resident after loading instead of 470, at the same latency once warm.
    return edge.EdgeConfig(
        vectors={
            name: edge.EdgeVectorParams(
                params.size,
                edge.Distance.Cosine,
                datatype=getattr(edge.VectorStorageDatatype, params.datatype.capitalize()),
                memory=edge.Memory.Cold,
                hnsw_config=graph if indexed else None,
                quantization_config=bytewise if indexed else None,
            )
            for name, params in described.dense.items()
        },
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if params.modifier == "idf" else None, memory=edge.Memory.Cold
            )
            for name, params in described.sparse.items()
        },
        hnsw_config=graph if indexed else None,
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXED_FROM_KB) if indexed else None,
        payload_memory=edge.Memory.Cold,
        id_tracker_memory=edge.Memory.Cold,
        wal_enabled=True,
    )


def collection_info(described: Description, info: edge.ShardInfo) -> Json:
    """A collection as the official client reads it."""
    vectors = msgspec.to_builtins(described)
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": info.indexed_vectors_count,
        "points_count": info.points_count,
        "segments_count": info.segments_count,
        "config": {
            "params": {"vectors": vectors["dense"], "sparse_vectors": vectors["sparse"], "on_disk_payload": True},
            # Required by the client's model; graph indexes are built by another process (`indexing`).
            "hnsw_config": {"m": 0, "ef_construct": 0, "full_scan_threshold": 0},
            "optimizer_config": {"default_segment_number": 1, "flush_interval_sec": 0},
        },
        "payload_schema": {
            name: {"data_type": str(field.data_type).rsplit(".", 1)[-1].lower(), "points": field.points}
            for name, field in info.payload_schema.items()
        },
    }


def field_index(body: Index) -> edge.UpdateOperation:
    """The index that is to be made."""
    name, schema = body.field_name, body.field_schema
    if schema == "integer":
        return edge.UpdateOperation.create_field_index(name, edge.IntegerIndexParams(memory=edge.Memory.Cold))
    tenant = isinstance(schema, KeywordSchema) and schema.is_tenant
    params = edge.KeywordIndexParams(is_tenant=tenant, memory=edge.Memory.Cold)
    return edge.UpdateOperation.create_field_index(name, params)


# --- points ---


class Sparse(Body, frozen=True):
    """A sparse vector."""

    indices: list[Annotated[int, Meta(ge=0, le=0xFFFF_FFFF)]]
    values: list[Float32]


class PointVectors(Body, frozen=True):
    """A point's id and vectors, by name."""

    id: UUID
    vector: dict[str, list[Float32] | Sparse]


class Point(PointVectors, frozen=True):
    """A whole point."""

    payload: Json = {}


class Points(Body, frozen=True):
    """Points to be put in place whole."""

    points: list[Point]


class Vectors(Body, frozen=True):
    """Vectors to be added to points that are there."""

    points: list[PointVectors]


class Ids(Body, frozen=True):
    """Points to be deleted."""

    points: list[UUID]


class SetPayload(Ids, frozen=True):
    """Fields of the payload of points."""

    payload: Json


def points(body: Points, dense: Mapping[str, int], sparse: frozenset[str]) -> list[edge.Point]:
    """The points of an upsert."""
    return [refusing(edge.Point, point.id, vectors(point, dense, sparse), point.payload) for point in body.points]


def vectors(point: PointVectors, dense: Mapping[str, int], sparse: frozenset[str]) -> Json:
    """The vectors of one point, checked whole, because the engine applies a batch up to the first point it refuses."""
    for name, vector in point.vector.items():
        if name not in (sparse if isinstance(vector, Sparse) else dense):
            raise BadRequest(f"Wrong input: Not existing vector name error: {name}")
    return {name: vector_of(vector, dense.get(name)) for name, vector in point.vector.items()}


def vector_of(vector: list[float] | Sparse, dimensions: int | None) -> list[float] | edge.SparseVector:
    """A vector as the engine takes it."""
    if isinstance(vector, Sparse):
        if not len(set(vector.indices)) == len(vector.indices) == len(vector.values):
            raise BadRequest("a sparse vector has unique indices, and as many values")
        return edge.SparseVector(vector.indices, vector.values)
    if len(vector) != dimensions:
        raise BadRequest(f"Wrong input: Vector dimension error: expected dim: {dimensions}, got {len(vector)}")
    return vector


def refusing(make: Callable[..., T], *args: object, **named: object) -> T:
    """An object of the engine's. Raises: BadRequest where it is none."""
    try:
        return make(*args, **named)
    except (TypeError, ValueError, OverflowError) as why:
        raise BadRequest(str(why).splitlines()[0]) from why


# --- filters and queries ---


class Match(Body, frozen=True):
    """One value, or any of several."""

    value: str | int | bool | None = None
    any: list[str | int] | None = None


class Range(Body, frozen=True):
    """The first value, and the first one beyond."""

    gte: float | None = None
    lt: float | None = None


class Condition(Body, frozen=True):
    """What must hold of a point: exactly one of a field's value or range, its id, or that it has a vector."""

    key: str = ""
    match: Match | None = None
    range: Range | None = None
    has_id: list[UUID] | None = None
    has_vector: str | None = None


class Filter(Body, frozen=True):
    """Which points are meant."""

    must: list[Condition] | None = None
    should: list[Condition] | None = None


class Shown(Body, frozen=True, kw_only=True):
    """What is to be shown of points."""

    with_payload: bool | list[str] = True
    with_vector: bool | list[str] = False

    @property
    def payload(self) -> Any:
        shown = self.with_payload
        return edge.PayloadSelector.Include(shown) if isinstance(shown, list) else shown


class Retrieve(Shown, frozen=True, kw_only=True):
    """Points by id."""

    ids: list[UUID]


class Scroll(Shown, frozen=True, kw_only=True):
    """A page of points, in order of id."""

    offset: UUID | None = None
    limit: Limit = 10
    filter: Filter | None = None


class Count(Body, frozen=True):
    """How many points there are."""

    filter: Filter | None = None
    exact: bool = True


class SearchParams(Body, frozen=True):
    """How a search is done."""

    exact: bool = False


class Query(Shown, frozen=True, kw_only=True):
    """The points nearest to a vector."""

    query: list[Float32] | Sparse
    using: str
    filter: Filter | None = None
    limit: Limit = 10
    params: SearchParams = SearchParams()


class Queries(Body, frozen=True):
    """Several searches at once."""

    searches: list[Query]


def condition_filter(given: Filter | None) -> edge.Filter | None:
    """A filter as the engine takes it."""
    if given is None:
        return None
    return edge.Filter(_conditions(given.must), _conditions(given.should))


def _conditions(given: list[Condition] | None) -> list[OfEngine] | None:
    return None if given is None else list(map(_condition, given))


def _condition(given: Condition) -> OfEngine:
    of_field = [each for each in (given.match, given.range) if each is not None]
    if len([*of_field, *(each for each in (given.has_id, given.has_vector) if each is not None)]) != 1:
        raise BadRequest("a condition has exactly one of `match`, `range`, `has_id`, `has_vector`")
    if bool(given.key) != bool(of_field):
        raise BadRequest("`match` and `range` are of a `key`")
    if given.has_id is not None:
        return edge.HasIdCondition(set(given.has_id))
    if given.has_vector is not None:
        return edge.HasVectorCondition(given.has_vector)
    if given.range is not None:
        return edge.FieldCondition(given.key, range=edge.RangeFloat(gte=given.range.gte, lt=given.range.lt))
    assert given.match is not None
    value, any_of = given.match.value, given.match.any
    if (value is None) == (any_of is None):
        raise BadRequest("match has exactly one of `value`, `any`")
    wanted = refusing(edge.MatchAny, any_of) if any_of is not None else refusing(edge.MatchValue, value)
    return edge.FieldCondition(given.key, match=wanted)


_EXACT = edge.QuantizationSearchParams(ignore=True)
_RESCORED = edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLED)
_ACORN = edge.AcornSearchParams(enable=True, max_selectivity=_ACORN_UP_TO)


def query_request(asked: Query, dense: Mapping[str, int]) -> edge.QueryRequest:
    """A search as the engine takes it."""
    exact = asked.params.exact
    return edge.QueryRequest(
        limit=asked.limit,
        with_vector=asked.with_vector,
        with_payload=asked.payload,
        query=edge.Query.Nearest(vector_of(asked.query, dense.get(asked.using)), using=asked.using),
        filter=condition_filter(asked.filter),
        params=edge.SearchParams(exact=exact, quantization=_EXACT if exact else _RESCORED, acorn=_ACORN),
    )


# --- answers: ids are UUIDs, which orjson writes ---


def record(found: edge.Record | edge.ScoredPoint) -> Json:
    """A point as it is listed."""
    response: Json = {"id": found.id, "payload": found.payload}
    if isinstance(found.vector, dict):
        response["vector"] = {
            name: {"indices": vector.indices, "values": vector.values}
            if isinstance(vector, edge.SparseVector)
            else vector
            for name, vector in found.vector.items()
        }
    return response


def scored(found: edge.ScoredPoint) -> Json:
    """A point as it was found."""
    return {**record(found), "version": found.version, "score": found.score}
