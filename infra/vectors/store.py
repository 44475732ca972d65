"""memctl's use of Qdrant, the same for the local server and for a real one.

Every function takes a client of `connect` and raises `VectorStoreUnavailable` (or its kind `CollectionMissing`) for
whatever goes wrong in between. Writes are waited for, and repeating one changes nothing.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

from memctl.infra.vectors import DENSE, SPARSE, CollectionMissing, VectorStoreUnavailable

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

T = TypeVar("T")

WRITE_BATCH = (
    64  # points a request: the local server is busy with one for about 20 ms, during which no query is answered
)
SCROLL_PAGE = 1_000
KEYWORDS = ("space", "location", "bucket", "kind", "before")  # payload fields that filters match
_KEPT_OPEN, _KEPT_OPEN_S = 8, 4.0  # connections, and seconds: the local server closes those that rest for 5
_OF_A_HIT = ["memory_id", "before"]  # payload fields that a search reads
RRF_K = 60  # Cormack, Clarke and Büttcher, SIGIR 2009


EVERYWHERE = ""
"""The location of what holds everywhere, so that one filter can ask for a project's places and for this."""


class Payload(TypedDict):
    """What a point carries beside its vectors: `location` every place it was met in, or `EVERYWHERE`,
    `occurred_at` in milliseconds since 1970, `before` the memory of the turn before it (empty for none)."""

    space: str
    location: list[str]
    bucket: str
    kind: str
    memory_id: str
    text_hash: str
    occurred_at: int
    before: str


@dataclass(frozen=True, slots=True)
class VectorPoint:
    """One point. `id` is a UUID, `sparse` is `(indices, values)`, `dense` is None until it was embedded."""

    id: str
    payload: Payload
    sparse: tuple[Sequence[int], Sequence[float]]
    dense: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which points a search may see: one space, and of each other given field any of the values.

    `since` is the first and `before` the first excluded moment, in milliseconds. An empty list matches nothing.
    """

    space: str
    locations: Sequence[str] | None = None
    buckets: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    since: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A point that was found. `score` is a cosine (dense), a BM25 weight (sparse), or a sum of reciprocal ranks;
    `memory_id` and `before` are its payload's, `before` empty on points of an older kind."""

    id: str
    score: float
    memory_id: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class HybridHits:
    """One ranked list a source, best first; `fused` only when weights were given."""

    dense: list[Hit]
    sparse: list[Hit]
    fused: list[Hit]


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """What a point in the store says of itself, to be compared with what is wanted."""

    id: str
    payload: Payload
    has_dense: bool


def connect(url: str, api_key: str | None = None, timeout: int = 10) -> QdrantClient:
    """A client over REST; `timeout` is in seconds and holds for each request. Nothing is asked of the server yet."""
    import httpx
    from qdrant_client import QdrantClient

    # For an address of this machine the client would open a connection for each request.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_OPEN, keepalive_expiry=_KEPT_OPEN_S)
    with warnings.catch_warnings():
        # On loopback the key goes over plain HTTP; a remote server's URL is the user's choice of scheme.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        return QdrantClient(
            url=url, api_key=api_key, timeout=timeout, prefer_grpc=False, check_compatibility=False, limits=limits
        )


def server_version(client: QdrantClient) -> str:
    """What answers there, and its version."""
    with _asked("tell its version"):
        told = client.info()
        return f"{told.title} {told.version}"


def ensure_collection(client: QdrantClient, name: str, dimensions: int) -> bool:
    """Make the collection and its payload indexes where they are absent; True when it was made now.

    Dense vectors are kept as 16-bit floats: half the disk and memory, and on embeddings made by a 4-bit model the
    rounding (1e-3) changes no ranking that means anything.
    """
    from qdrant_client import models

    with _asked("make the collection", name):
        made = not client.collection_exists(name)
        if made:
            try:
                client.create_collection(
                    name,
                    vectors_config={
                        DENSE: models.VectorParams(
                            size=dimensions,
                            distance=models.Distance.COSINE,
                            datatype=models.Datatype.FLOAT16,
                            on_disk=True,
                        )
                    },
                    sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                )
            except Exception as why:  # another process may have made it meanwhile
                if getattr(why, "status_code", None) != 409:
                    raise
                made = False
        present = client.get_collection(name).payload_schema
        for field in KEYWORDS:
            if field not in present:
                # The space leads every filter: a real server lays its points out together.
                schema = models.KeywordIndexParams(
                    type=models.KeywordIndexType.KEYWORD, is_tenant=True if field == "space" else None
                )
                client.create_payload_index(name, field, schema, wait=True)
        if "occurred_at" not in present:
            client.create_payload_index(name, "occurred_at", models.PayloadSchemaType.INTEGER, wait=True)
    return made


def list_collections(client: QdrantClient, prefix: str = "") -> list[str]:
    with _asked("list its collections"):
        names = (collection.name for collection in client.get_collections().collections)
        return sorted(name for name in names if name.startswith(prefix))


def drop_collection(client: QdrantClient, name: str) -> bool:
    """False when there was none."""
    with _asked("drop the collection", name):
        return client.delete_collection(name)


def upsert(client: QdrantClient, name: str, points: Iterable[VectorPoint]) -> None:
    """Put whole points in place: a point that is sent without its dense vector loses the one it had."""
    from qdrant_client import models

    for batch in _batches(points):
        structs = [
            models.PointStruct(id=point.id, vector=_vectors(point), payload=cast("dict[str, object]", point.payload))
            for point in batch
        ]
        with _asked("write points", name):
            client.upsert(name, structs, wait=True)


def set_dense(client: QdrantClient, name: str, dense: Mapping[str, Sequence[float]]) -> None:
    """Add dense vectors, by point id, to points that are there. Points deleted meanwhile stay deleted."""
    from qdrant_client import models
    from qdrant_client.http.exceptions import UnexpectedResponse

    for batch in _batches(dense.items()):
        rows = [models.PointVectors(id=id, vector={DENSE: list(vector)}) for id, vector in batch]
        with _asked("write vectors", name):
            try:
                client.update_vectors(name, rows, wait=True)
            except UnexpectedResponse as why:
                # Qdrant gives up somewhere in a batch that names a point it does not have.
                if b"No point with id" not in (why.content or b""):
                    raise
                present = retrieve_present(client, name, [str(row.id) for row in rows])
                if rows := [row for row in rows if row.id in present]:
                    client.update_vectors(name, rows, wait=True)


def delete(client: QdrantClient, name: str, ids: Iterable[str]) -> None:
    from qdrant_client import models

    for batch in _batches(ids):
        with _asked("delete points", name):
            client.delete(name, models.PointIdsList(points=list(batch)), wait=True)


def delete_in(client: QdrantClient, name: str, scope: Scope) -> None:
    """Delete every point of the scope."""
    from qdrant_client import models

    with _asked("delete points", name):
        client.delete(name, models.FilterSelector(filter=_filter(scope)), wait=True)


def count(client: QdrantClient, name: str, scope: Scope | None = None) -> int:
    with _asked("count points", name):
        return client.count(name, count_filter=_filter(scope) if scope else None, exact=True).count


def retrieve_present(client: QdrantClient, name: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids that the store holds: the probe after an erasure."""
    with _asked("look points up", name):
        found = client.retrieve(name, ids=list(ids), with_payload=False, with_vectors=False)
        return {str(record.id) for record in found}


def scroll_points(client: QdrantClient, name: str, scope: Scope | None = None) -> Iterator[StoredPoint]:
    """Every point in order of id, page by page, without its vectors: whether it has a dense one costs a second, short
    request a page, where the vectors themselves would cost 8 KB a point."""
    offset: models.ExtendedPointId | None = None
    while True:
        with _asked("list its points", name):
            records, offset = client.scroll(
                name,
                scroll_filter=_filter(scope) if scope else None,
                limit=SCROLL_PAGE,
                offset=offset,
                with_payload=True,
            )
        yield from _stored(client, name, records)
        if offset is None:
            return


def look_up(client: QdrantClient, name: str, ids: Sequence[str]) -> dict[str, StoredPoint]:
    """Those of the points that the store holds, by id."""
    with _asked("look points up", name):
        records = client.retrieve(name, ids=list(ids), with_payload=True, with_vectors=False)
    return {point.id: point for point in _stored(client, name, records)}


def _stored(client: QdrantClient, name: str, records: Sequence[models.Record]) -> list[StoredPoint]:
    from qdrant_client import models

    if not records:
        return []
    those: list[models.Condition] = [
        models.HasIdCondition(has_id=[record.id for record in records]),
        models.HasVectorCondition(has_vector=DENSE),
    ]
    with _asked("list its points", name):
        embedded, _ = client.scroll(
            name, scroll_filter=models.Filter(must=those), limit=len(records), with_payload=False
        )
    dense = {record.id for record in embedded}
    return [
        StoredPoint(str(record.id), cast("Payload", record.payload or {}), record.id in dense) for record in records
    ]


def hybrid_query(
    client: QdrantClient,
    name: str,
    scope: Scope,
    *,
    dense: Sequence[float] | None = None,
    sparse: tuple[Sequence[int], Sequence[float]] | None = None,
    limit: int,
    rrf_weights: tuple[float, float] | None = None,
) -> HybridHits:
    """The best `limit` points of the scope by each source, in one round trip.

    The sources come apart, each with its own scores, so that fusion happens, and is explained, in our own rules. With
    `rrf_weights` (dense, sparse) the server's own reciprocal rank fusion is asked for as well.
    """
    from qdrant_client import models

    vectors: dict[str, models.SparseVector | list[float]] = {}
    if dense is not None:
        vectors[DENSE] = list(dense)
    if sparse is not None and sparse[0]:
        vectors[SPARSE] = _sparse(sparse)
    condition = _filter(scope)
    requests = {
        source: models.QueryRequest(query=vector, using=source, filter=condition, limit=limit, with_payload=_OF_A_HIT)
        for source, vector in vectors.items()
    }
    if rrf_weights is not None and requests:
        weights = [weight for source, weight in zip((DENSE, SPARSE), rrf_weights, strict=True) if source in vectors]
        requests["fused"] = models.QueryRequest(
            prefetch=[
                models.Prefetch(query=vector, using=source, filter=condition, limit=limit)
                for source, vector in vectors.items()
            ],
            query=models.RrfQuery(rrf=models.Rrf(k=RRF_K, weights=weights)),
            limit=limit,
            with_payload=_OF_A_HIT,
        )
    if not requests:
        return HybridHits([], [], [])
    with _asked("search", name):
        answers = _answers(client, name, list(requests.values()))
    found = {source: _hits(answer) for source, answer in zip(requests, answers, strict=True)}
    return HybridHits(found.get(DENSE, []), found.get(SPARSE, []), found.get("fused", []))


@dataclass(frozen=True, slots=True)
class Named:
    """Points by name, and those whose `before` is one of the memories `after`."""

    ids: Sequence[str]
    after: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.ids or self.after)


def hits_of(
    client: QdrantClient,
    name: str,
    scope: Scope,
    *,
    dense: tuple[Sequence[float], Named] | None,
    sparse: tuple[tuple[Sequence[int], Sequence[float]], Named] | None,
) -> tuple[list[Hit], list[Hit]]:
    """What each source says of the points named, as far as they are in the scope: `(vector, points)` each.

    Hits of the dense and of the sparse vectors; a point without such a vector, or without a word of the query, is left
    out. One round trip, none where there is nothing to ask.
    """
    from qdrant_client import models

    asked: dict[str, tuple[models.SparseVector | list[float], Named]] = {}
    if dense is not None and dense[1]:
        asked[DENSE] = (list(dense[0]), dense[1])
    if sparse is not None and sparse[1] and sparse[0][0]:
        asked[SPARSE] = (_sparse(sparse[0]), sparse[1])
    if not asked:
        return [], []
    within = _filter(scope)
    requests = []
    for source, (vector, those) in asked.items():
        any_of: list[models.Condition] = [models.HasIdCondition(has_id=list(those.ids))] if those.ids else []
        if those.after:
            any_of.append(models.FieldCondition(key="before", match=models.MatchAny(any=list(those.after))))
        requests.append(
            models.QueryRequest(
                query=vector,
                using=source,
                filter=models.Filter(must=within.must, should=any_of),
                limit=len(those.ids) + 2 * len(those.after),
                with_payload=_OF_A_HIT,
            )
        )
    with _asked("search", name):
        answers = _answers(client, name, requests)
    told = {source: _hits(answer) for source, answer in zip(asked, answers, strict=True)}
    return told.get(DENSE, []), told.get(SPARSE, [])


def _hits(answer: models.QueryResponse) -> list[Hit]:
    hits = []
    for point in answer.points:
        told = point.payload or {}
        hits.append(Hit(str(point.id), point.score, told["memory_id"], told.get("before", "")))
    return hits


def _answers(
    client: QdrantClient, name: str, requests: Sequence[models.QueryRequest]
) -> Sequence[models.QueryResponse]:
    """The client's own `query_batch_points` copies every request deeply, in case it holds texts to embed, which took as
    long as the server's answer."""
    from qdrant_client import models

    batch = models.QueryRequestBatch(searches=list(requests))
    return client.http.search_api.query_batch_points(name, query_request_batch=batch).result or []


def sample_dense(client: QdrantClient, name: str, space: str, limit: int) -> list[list[float]]:
    """Dense vectors of some points of a space, as good as drawn by lot: ids are hashes, and these are the first."""
    from qdrant_client import models

    those = _filter(Scope(space)).must
    assert isinstance(those, list)
    with _asked("list its vectors", name):
        records, _ = client.scroll(
            name,
            scroll_filter=models.Filter(must=[*those, models.HasVectorCondition(has_vector=DENSE)]),
            limit=limit,
            with_payload=False,
            with_vectors=[DENSE],
        )
    return [cast("list[float]", record.vector[DENSE]) for record in records if isinstance(record.vector, dict)]


def _vectors(point: VectorPoint) -> models.VectorStruct:
    vectors: dict[str, models.Vector] = {}
    # A text without a single word has no sparse vector; an empty one is refused by some servers.
    if point.sparse[0]:
        vectors[SPARSE] = _sparse(point.sparse)
    if point.dense is not None:
        vectors[DENSE] = list(point.dense)
    return cast("models.VectorStruct", vectors)


def _sparse(vector: tuple[Sequence[int], Sequence[float]]) -> models.SparseVector:
    from qdrant_client import models

    return models.SparseVector(indices=list(vector[0]), values=list(vector[1]))


def _filter(scope: Scope) -> models.Filter:
    from qdrant_client import models

    must: list[models.Condition] = [models.FieldCondition(key="space", match=models.MatchValue(value=scope.space))]
    for key, values in (("location", scope.locations), ("bucket", scope.buckets), ("kind", scope.kinds)):
        if values is not None:
            must.append(models.FieldCondition(key=key, match=models.MatchAny(any=list(values))))
    if scope.since is not None or scope.before is not None:
        moments = models.Range(gte=scope.since, lt=scope.before)
        must.append(models.FieldCondition(key="occurred_at", range=moments))
    return models.Filter(must=must)


def _batches(things: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(things)
    while batch := list(islice(rest, WRITE_BATCH)):
        yield batch


@contextlib.contextmanager
def _asked(action: str, collection: str | None = None) -> Iterator[None]:
    """Whatever the client raises becomes one of our errors, saying what was asked."""
    from httpx import HTTPError
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as why:
        if why.status_code == 404 and collection is not None and b"doesn't exist" in (why.content or b""):
            raise CollectionMissing(action=action, reason="it is not there", collection=collection) from why
        said = (why.content or b"").decode("utf-8", "replace")[:500]
        raise VectorStoreUnavailable(action=action, reason=f"{why.status_code} {said}") from why
    except (ApiException, QdrantException, HTTPError, OSError) as why:
        raise VectorStoreUnavailable(action=action, reason=str(why) or type(why).__name__) from why
