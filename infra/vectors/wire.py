"""Qdrant's REST bodies, translated to the engine's objects and back.

Only what memctl and its tests use of the API is translated. A field that is not known here is refused by name, never
ignored: a filter that silently lost a condition would show one project's memory to another.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import qdrant_edge as edge

from memctl.domain.support import patterns

JsonObject = dict[str, Any]

_F32_MAX = 3.4028234663852886e38
_U32_MAX = 0xFFFF_FFFF
_MAX_LIMIT = 100_000  # points of an answer, so that it fits into memory
_MAX_DEPTH = 16  # of filters within filters, far within what the interpreter can follow
_CANONICAL = patterns.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # a UUID, as it is written
_INDEXED_FROM_KB = 5_000  # vectors of a segment that has a graph; those of a smaller one are looked through one by one
# Vectors of what a filter leaves that are looked through one by one (26,000 of 384 dimensions, 2 ms). Of fewer a graph
# loses more the fewer they are: of 10,000 in 100,000, as of two worktrees, four in ten of the best were not found.
_FULL_SCAN_KB = 20_000
# Beyond that the graph is walked two steps at a time where at most this share passes the filter. Links for each value
# of each field, the engine's other remedy, took two thirds of a build and found less.
_ACORN_UP_TO = 0.5
_OVERSAMPLED = 1.5  # so many times the points that are asked for are scored by the vectors themselves
_DISTANCES = {kind: getattr(edge.Distance, kind) for kind in ("Cosine", "Euclid", "Dot", "Manhattan")}
_DATATYPES = {"float32": "Float32", "float16": "Float16", "uint8": "Uint8"}
_INDEXES: dict[str, Callable[..., Any]] = {
    "keyword": edge.KeywordIndexParams,
    "integer": edge.IntegerIndexParams,
    "float": edge.FloatIndexParams,
    "bool": edge.BoolIndexParams,
    "datetime": edge.DatetimeIndexParams,
    "uuid": edge.UuidIndexParams,
}


class Refused(Exception):
    """A request that is answered with an error; the message is for its sender."""

    status = 400  # of HTTP


class NotFound(Refused):
    """What was asked about is not there."""

    status = 404


class BadRequest(Refused):
    """A body that Qdrant would refuse, or that uses a part of its API that this server does not have."""


def take(body: object, where: str, required: Iterable[str] = (), optional: Iterable[str] = ()) -> JsonObject:
    """The fields of a JSON object, absent and null ones as None. Any other field is refused."""
    if not isinstance(body, dict):
        raise BadRequest(f"{where} must be an object")
    fields = dict.fromkeys([*required, *optional]) | {key: value for key, value in body.items() if value is not None}
    if unknown := fields.keys() - {*required, *optional}:
        raise BadRequest(f"{where}: not supported by this server: {', '.join(sorted(unknown))}")
    for name in required:
        if fields[name] is None:
            raise BadRequest(f"{where}: missing field `{name}`")
    return fields


def items(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadRequest(f"{where} must be a list")
    return value


def integer(value: object, where: str, default: int, low: int = 0, high: int = _MAX_LIMIT) -> int:
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(f"{where} must be an integer from {low} to {high}")
    return value


def _number(value: object, where: str) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadRequest(f"{where} must be a number")
    return float(value)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise BadRequest(f"{where} must be a string")
    return value


# --- collections ---


def description(body: object) -> JsonObject:
    """What a collection is to hold, from the body of its creation: `{"dense": {name: params}, "sparse": {name: ...}}`.

    The unnamed vector of Qdrant has the name "".
    """
    fields = take(body, "collection", optional=("vectors", "sparse_vectors", "on_disk_payload"))
    vectors = fields["vectors"] or {}
    if isinstance(vectors, dict) and "size" in vectors:
        vectors = {"": vectors}
    dense, sparse = {}, {}
    for name, params in take(vectors, "vectors", optional=vectors).items():
        given = take(params, f"vector `{name}`", ("size", "distance"), ("datatype", "on_disk"))
        size = integer(given["size"], "size", 0, low=1, high=65_536)
        if given["distance"] not in _DISTANCES:
            raise BadRequest(f"distance must be one of {', '.join(_DISTANCES)}")
        datatype = given["datatype"] or "float32"
        if datatype not in _DATATYPES:
            raise BadRequest(f"datatype must be one of {', '.join(_DATATYPES)}")
        dense[name] = {"size": size, "distance": given["distance"], "datatype": datatype}
    given_sparse = fields["sparse_vectors"] or {}
    for name, params in take(given_sparse, "sparse_vectors", optional=given_sparse).items():
        given = take(params, f"sparse vector `{name}`", optional=("modifier", "index"))
        take(given["index"] or {}, "index", optional=("on_disk",))
        if given["modifier"] not in (None, "none", "idf"):
            raise BadRequest("modifier must be none or idf")
        sparse[name] = {"modifier": given["modifier"] or "none"}
    if not dense and not sparse:
        raise BadRequest("a collection needs at least one vector")
    return {"dense": dense, "sparse": sparse}


def shard_config(described: JsonObject, *, indexed: bool = False) -> edge.EdgeConfig:
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
                params["size"],
                _DISTANCES[params["distance"]],
                datatype=getattr(edge.VectorStorageDatatype, _DATATYPES[params["datatype"]]),
                memory=edge.Memory.Cold,
                hnsw_config=graph if indexed else None,
                quantization_config=bytewise if indexed and params["datatype"] != "uint8" else None,
            )
            for name, params in described["dense"].items()
        },
        sparse_vectors={
            name: edge.EdgeSparseVectorParams(
                modifier=edge.Modifier.Idf if params["modifier"] == "idf" else None, memory=edge.Memory.Cold
            )
            for name, params in described["sparse"].items()
        },
        hnsw_config=graph if indexed else None,
        optimizers=edge.EdgeOptimizersConfig(indexing_threshold=_INDEXED_FROM_KB) if indexed else None,
        payload_memory=edge.Memory.Cold,
        id_tracker_memory=edge.Memory.Cold,
        wal_enabled=True,
    )


def collection_info(described: JsonObject, info: edge.ShardInfo) -> JsonObject:
    dense = described["dense"]
    return {
        "status": "green",
        "optimizer_status": "ok",
        "indexed_vectors_count": info.indexed_vectors_count,
        "points_count": info.points_count,
        "segments_count": info.segments_count,
        "config": {
            "params": {"vectors": dense.get("", dense), "sparse_vectors": described["sparse"], "on_disk_payload": True},
            # Required by the client's model; graph indexes are built by another process (`indexing`).
            "hnsw_config": {"m": 0, "ef_construct": 0, "full_scan_threshold": 0},
            "optimizer_config": {"default_segment_number": 1, "flush_interval_sec": 0},
        },
        "payload_schema": {
            name: {"data_type": str(field.data_type).rsplit(".", 1)[-1].lower(), "points": field.points}
            for name, field in info.payload_schema.items()
        },
    }


def field_index(body: object) -> edge.UpdateOperation:
    fields = take(body, "index", ("field_name", "field_schema"))
    schema = fields["field_schema"]
    params = {"type": schema} if isinstance(schema, str) else take(schema, "field_schema", ("type",), _INDEX_OPTIONS)
    kind = params.pop("type")
    if kind not in _INDEXES:
        raise BadRequest(f"field_schema must be one of {', '.join(_INDEXES)}")
    given = {name: value for name, value in params.items() if value is not None}
    try:
        index = _INDEXES[kind](**given, memory=edge.Memory.Cold)
    except TypeError as why:
        raise BadRequest(f"field_schema: {why}") from why
    return edge.UpdateOperation.create_field_index(_text(fields["field_name"], "field_name"), index)


_INDEX_OPTIONS = ("is_tenant", "is_principal", "lookup", "range")


# --- points ---


def point_id(value: object) -> int | str:
    """An unsigned integer or a UUID in its canonical form."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return value
    if isinstance(value, str):
        if _CANONICAL.fullmatch(value):  # as memctl writes them: a hundred in a search, which parsing takes a while for
            return value
        try:
            return str(uuid.UUID(value))
        except ValueError:
            pass
    raise BadRequest(f"{value!r} is not a point id: an unsigned integer or a UUID is")


def point_ids(value: object, where: str = "points") -> list[int | str]:
    return [point_id(item) for item in items(value, where)]


def dense_vector(value: object, dimensions: int | None, where: str) -> list[float]:
    vector = items(value, where)
    if dimensions is not None and len(vector) != dimensions:
        raise BadRequest(f"Wrong input: Vector dimension error: expected dim: {dimensions}, got {len(vector)}")
    _check_numbers(vector, where)
    return vector


def sparse_vector(value: object, where: str) -> edge.SparseVector:
    fields = take(value, where, ("indices", "values"))
    indices, values = items(fields["indices"], where), items(fields["values"], where)
    if len(indices) != len(values):
        raise BadRequest(f"{where}: indices and values must be of one length")
    if not all(type(index) is int and 0 <= index <= _U32_MAX for index in indices):
        raise BadRequest(f"{where}: indices must be unsigned 32-bit integers")
    if len(set(indices)) != len(indices):
        raise BadRequest(f"{where}: indices must be unique")
    _check_numbers(values, where)
    return edge.SparseVector(indices, values)


def _check_numbers(values: list[Any], where: str) -> None:
    try:
        if values and max(map(abs, values)) <= _F32_MAX:
            return
    except TypeError:
        pass
    if values:
        raise BadRequest(f"{where} must hold finite 32-bit numbers only")


def vectors(value: object, dense: Mapping[str, int], sparse: frozenset[str]) -> Any:
    """The vectors of one point, checked whole, because the engine applies a batch up to the first point it refuses."""
    if isinstance(value, list):
        value = {"": value}
    if not isinstance(value, dict):
        raise BadRequest("vector must be a list, or an object of named vectors")
    checked: dict[str, Any] = {}
    for name, vector in value.items():
        if name in dense:
            checked[name] = dense_vector(vector, dense[name], f"vector `{name}`")
        elif name in sparse:
            checked[name] = sparse_vector(vector, f"vector `{name}`")
        else:
            raise BadRequest(f"Wrong input: Not existing vector name error: {name}")
    return checked[""] if checked.keys() == {""} else checked


def payload(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise BadRequest("payload must be an object")
    return value


def points(body: object, dense: Mapping[str, int], sparse: frozenset[str]) -> list[edge.Point]:
    """The points of an upsert, given as `points` (records) or as `batch` (columns)."""
    fields = take(body, "upsert", optional=("points", "batch"))
    if fields["batch"] is not None:
        rows = _rows(fields["batch"])
    else:
        listed = items(fields["points"], "points")
        rows = [take(point, "point", ("id", "vector"), ("payload",)) for point in listed]
    return [
        _refusing(edge.Point, point_id(row["id"]), vectors(row["vector"], dense, sparse), payload(row["payload"] or {}))
        for row in rows
    ]


def _rows(batch: object) -> list[JsonObject]:
    fields = take(batch, "batch", ("ids", "vectors"), ("payloads",))
    ids = items(fields["ids"], "ids")
    columns = fields["vectors"]
    if isinstance(columns, list):
        columns = {"": columns}
    columns = {
        name: items(column, f"vectors `{name}`") for name, column in take(columns, "vectors", (), columns).items()
    }
    payloads = items(fields["payloads"] or [None] * len(ids), "payloads")
    if any(len(column) != len(ids) for column in [*columns.values(), payloads]):
        raise BadRequest("batch: ids, vectors and payloads must be of one length")
    return [
        {"id": ids[k], "vector": {name: column[k] for name, column in columns.items()}, "payload": payloads[k]}
        for k in range(len(ids))
    ]


def point_vectors(body: object, dense: Mapping[str, int], sparse: frozenset[str]) -> list[edge.PointVectors]:
    listed = items(take(body, "update", ("points",))["points"], "points")
    rows = [take(point, "point", ("id", "vector")) for point in listed]
    return [edge.PointVectors(point_id(row["id"]), vectors(row["vector"], dense, sparse)) for row in rows]


def _refusing(make: Callable[..., Any], *args: Any, **named: Any) -> Any:
    try:
        return make(*args, **named)
    except (TypeError, ValueError, OverflowError) as why:
        raise BadRequest(str(why).splitlines()[0]) from why


# --- filters and queries ---


def condition_filter(value: object, depth: int = 0) -> edge.Filter | None:
    if value is None:
        return None
    if depth > _MAX_DEPTH:
        raise BadRequest(f"filters nest at most {_MAX_DEPTH} deep")
    fields = take(value, "filter", optional=("must", "should", "must_not", "min_should"))
    clauses = {}
    for clause in ("must", "should", "must_not"):
        listed = fields[clause]
        if listed is not None:
            listed = listed if isinstance(listed, list) else [listed]
            clauses[clause] = [_condition(item, depth) for item in listed]
    least = None
    if fields["min_should"] is not None:
        given = take(fields["min_should"], "min_should", ("conditions", "min_count"))
        conditions = [_condition(item, depth) for item in items(given["conditions"], "conditions")]
        least = edge.MinShould(conditions, integer(given["min_count"], "min_count", 0))
    return edge.Filter(**clauses, min_should=least)


def _condition(value: object, depth: int) -> Any:
    if not isinstance(value, dict):
        raise BadRequest("a condition must be an object")
    if "key" in value:
        return _field_condition(value)
    if "has_id" in value:
        return edge.HasIdCondition(set(point_ids(take(value, "condition", ("has_id",))["has_id"], "has_id")))
    if "has_vector" in value:
        return edge.HasVectorCondition(_text(take(value, "condition", ("has_vector",))["has_vector"], "has_vector"))
    for name, kind in (("is_empty", edge.IsEmptyCondition), ("is_null", edge.IsNullCondition)):
        if name in value:
            key = take(take(value, "condition", (name,))[name], name, ("key",))["key"]
            return _refusing(kind, _text(key, "key"))
    return condition_filter(value, depth + 1)


def _field_condition(value: JsonObject) -> edge.FieldCondition:
    fields = take(value, "condition", ("key",), ("match", "range"))
    if (fields["match"] is None) == (fields["range"] is None):
        raise BadRequest("a field condition has either `match` or `range`")
    named: dict[str, Any] = {}
    if fields["match"] is not None:
        match = take(fields["match"], "match", optional=("value", "any", "except"))
        given = [(name, wanted) for name, wanted in match.items() if wanted is not None]
        if len(given) != 1:
            raise BadRequest("match has exactly one of `value`, `any`, `except`")
        name, wanted = given[0]
        kinds: dict[str, Any] = {"value": edge.MatchValue, "any": edge.MatchAny, "except": edge.MatchExcept}
        named["match"] = _refusing(kinds[name], wanted)
    else:
        bounds = take(fields["range"], "range", optional=("lt", "gt", "lte", "gte"))
        named["range"] = edge.RangeFloat(
            **{name: _number(bound, name) for name, bound in bounds.items() if bound is not None}
        )
    return _refusing(edge.FieldCondition, _text(fields["key"], "key"), **named)  # type: ignore[no-any-return]


def selector(value: object) -> Any:
    """`with_payload` as the engine takes it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, list):
        return edge.PayloadSelector.Include([_text(key, "with_payload") for key in value])
    fields = take(value, "with_payload", optional=("include", "exclude"))
    if fields["include"] is not None and fields["exclude"] is None:
        return selector(fields["include"])
    if fields["exclude"] is not None and fields["include"] is None:
        return edge.PayloadSelector.Exclude([_text(key, "exclude") for key in items(fields["exclude"], "exclude")])
    raise BadRequest("with_payload has either `include` or `exclude`")


def vector_selector(value: object) -> bool | list[str]:
    if value is None or isinstance(value, bool):
        return bool(value)
    return [_text(name, "with_vector") for name in items(value, "with_vector")]


_OF_QUERY = (
    "query", "using", "filter", "params", "score_threshold", "limit", "offset", "with_vector", "with_payload",
)  # fmt: skip


def query_request(body: object, dense: Mapping[str, int]) -> edge.QueryRequest:
    fields = take(body, "query", optional=_OF_QUERY)
    threshold = fields["score_threshold"]
    return _refusing(  # type: ignore[no-any-return]
        edge.QueryRequest,
        limit=integer(fields["limit"], "limit", 10),
        offset=integer(fields["offset"], "offset", 0),
        with_vector=vector_selector(fields["with_vector"]),
        with_payload=selector(fields["with_payload"]) or False,
        query=_scoring(fields["query"], fields["using"], dense),
        filter=condition_filter(fields["filter"]),
        score_threshold=None if threshold is None else _number(threshold, "score_threshold"),
        params=_search_params(fields["params"]),
    )


def _scoring(value: object, using: object, dense: Mapping[str, int]) -> Any:
    if value is None:
        return None
    name = "" if using is None else _text(using, "using")
    if isinstance(value, list):
        return edge.Query.Nearest(dense_vector(value, dense.get(name), "query"), using=name or None)
    if not isinstance(value, dict):
        raise BadRequest("a query by point id is not supported by this server")
    if "nearest" in value:
        return _scoring(take(value, "query", ("nearest",))["nearest"], using, dense)
    if "indices" in value:
        return edge.Query.Nearest(sparse_vector(value, "query"), using=name or None)
    raise BadRequest(f"this kind of query is not supported by this server: {', '.join(sorted(value))}")


_EXACT = edge.QuantizationSearchParams(ignore=True)
_RESCORED = edge.QuantizationSearchParams(rescore=True, oversampling=_OVERSAMPLED)
_ACORN = edge.AcornSearchParams(enable=True, max_selectivity=_ACORN_UP_TO)


def _search_params(value: object) -> edge.SearchParams:
    fields = take({} if value is None else value, "params", optional=("hnsw_ef", "exact", "indexed_only", "idf"))
    idf = None
    if fields["idf"] is not None:
        idf = edge.IdfParams(condition_filter(take(fields["idf"], "idf", optional=("corpus",))["corpus"]))
    return _refusing(  # type: ignore[no-any-return]
        edge.SearchParams,
        hnsw_ef=fields["hnsw_ef"],
        exact=bool(fields["exact"]),
        quantization=_EXACT if fields["exact"] else _RESCORED,
        acorn=_ACORN,
        indexed_only=bool(fields["indexed_only"]),
        idf=idf,
    )


# --- answers: ids are whole numbers and UUIDs, both of which orjson writes ---


def _vector_json(value: Any) -> Any:
    if isinstance(value, edge.SparseVector):
        return {"indices": value.indices, "values": value.values}
    if isinstance(value, dict):
        return {name: _vector_json(vector) for name, vector in value.items()}
    return value


def record(found: edge.Record) -> JsonObject:
    response: JsonObject = {"id": found.id, "payload": found.payload}
    if found.vector is not None:
        response["vector"] = _vector_json(found.vector)
    return response


def scored(found: edge.ScoredPoint) -> JsonObject:
    response: JsonObject = {"id": found.id, "version": found.version, "score": found.score}
    if found.payload is not None:
        response["payload"] = found.payload
    if found.vector is not None:
        response["vector"] = _vector_json(found.vector)
    return response
