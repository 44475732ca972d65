"""memctl's use of Qdrant, the same for the local server and for a real one.

Every function takes a client of `connect` and raises `VectorStoreUnavailable` (or its kind `CollectionMissing`) for
whatever goes wrong in between. Writes are waited for, and repeating one changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import orjson

from memctl.infra.vectors import DENSE, SPARSE, CollectionMissing, VectorStoreUnavailable

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

T = TypeVar("T")

WRITE_BATCH = (
    64  # points a request: the local server is busy with one for about 20 ms, during which no query is answered
)
SCROLL_PAGE = 1_000
DIGEST_PAGE = 500  # a page with its vectors
KEYWORDS = ("space", "location", "bucket", "kind", "before")  # payload fields that filters match
PORT = 6333  # of an address that names none, as the official client takes it
KEPT_OPEN, KEPT_OPEN_S = 8, 4.0  # connections, and seconds: the local server closes those that rest for 5


EVERYWHERE = ""
"""The location of what holds everywhere, so that one filter can ask for a project's places and for this."""


class PointPayload(TypedDict):
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
class NewPoint:
    """One point. `id` is a UUID, `sparse` is `(indices, values)`, `dense` is None until it was embedded."""

    id: str
    payload: PointPayload
    sparse: tuple[Sequence[int], Sequence[float]]
    dense: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class PointScope:
    """Which points a search may see: one space (None: the collection holds no other), and of each other given field any
    of the values.

    `since` is the first and `before` the first excluded moment, in milliseconds. An empty list matches nothing.
    """

    space: str | None
    locations: Sequence[str] | None = None
    buckets: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    since: int | None = None
    before: int | None = None

    @property
    def conditions(self) -> list[dict[str, Any]]:
        """What must hold of a point, as the REST API takes it."""
        must: list[dict[str, Any]] = []
        if self.space is not None:
            must.append({"key": "space", "match": {"value": self.space}})
        for key, values in (("location", self.locations), ("bucket", self.buckets), ("kind", self.kinds)):
            if values is not None:
                must.append({"key": key, "match": {"any": list(values)}})
        bounds = {name: at for name, at in (("gte", self.since), ("lt", self.before)) if at is not None}
        if bounds:
            must.append({"key": "occurred_at", "range": bounds})
        return must


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """What a point in the store says of itself, to be compared with what is wanted."""

    id: str
    payload: PointPayload
    has_dense: bool


def connect(url: str, api_key: str | None = None, timeout: int = 10) -> QdrantClient:
    """A client over REST; `timeout` is in seconds and holds for each request. Nothing is asked of the server yet."""
    import httpx
    from qdrant_client import QdrantClient

    # For an address of this machine the client would open a connection for each request.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=KEPT_OPEN, keepalive_expiry=KEPT_OPEN_S)
    with warnings.catch_warnings():
        # On loopback the key goes over plain HTTP; a remote server's URL is the user's choice of scheme.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        return QdrantClient(
            url=url, api_key=api_key, timeout=timeout, prefer_grpc=False, check_compatibility=False, limits=limits
        )


def has_collection(client: QdrantClient, name: str) -> bool:
    with asked("look for the collection", name):
        return client.collection_exists(name)


def ensure_collection(client: QdrantClient, name: str, dimensions: int) -> bool:
    """Make the collection and its payload indexes where they are absent; True when it was made now.

    Dense vectors are kept as 16-bit floats: half the disk and memory, and on embeddings made by a 4-bit model the
    rounding (1e-3) changes no ranking that means anything.
    """
    from qdrant_client import models

    with asked("make the collection", name):
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
    with asked("list its collections"):
        names = (collection.name for collection in client.get_collections().collections)
        return sorted(name for name in names if name.startswith(prefix))


def drop_collection(client: QdrantClient, name: str) -> bool:
    """False when there was none."""
    with asked("drop the collection", name):
        return client.delete_collection(name)


def upsert(client: QdrantClient, name: str, points: Iterable[NewPoint]) -> None:
    """Put whole points in place: a point that is sent without its dense vector loses the one it had."""
    from qdrant_client import models

    for batch in _batches(points):
        structs = [
            models.PointStruct(id=point.id, vector=_vectors(point), payload=cast("dict[str, object]", point.payload))
            for point in batch
        ]
        with asked("write points", name):
            client.upsert(name, structs, wait=True)


def set_dense(client: QdrantClient, name: str, dense: Mapping[str, Sequence[float]]) -> None:
    """Add dense vectors, by point id, to points that are there. Points deleted meanwhile stay deleted."""
    from qdrant_client import models
    from qdrant_client.http.exceptions import UnexpectedResponse

    for batch in _batches(dense.items()):
        rows = [models.PointVectors(id=id, vector={DENSE: list(vector)}) for id, vector in batch]
        with asked("write vectors", name):
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
        with asked("delete points", name):
            client.delete(name, models.PointIdsList(points=list(batch)), wait=True)


def count(client: QdrantClient, name: str, scope: PointScope | None = None) -> int:
    with asked("count points", name):
        return client.count(name, count_filter=_filter(scope) if scope else None, exact=True).count


def retrieve_present(client: QdrantClient, name: str, ids: Sequence[str]) -> set[str]:
    """Those of the ids that the store holds: the probe after an erasure."""
    with asked("look points up", name):
        found = client.retrieve(name, ids=list(ids), with_payload=False, with_vectors=False)
        return {str(record.id) for record in found}


def scroll_points(client: QdrantClient, name: str, scope: PointScope | None = None) -> Iterator[StoredPoint]:
    """Every point in order of id, page by page, without its vectors: whether it has a dense one costs a second, short
    request a page, where the vectors themselves would cost 8 KB a point."""
    offset: models.ExtendedPointId | None = None
    while True:
        with asked("list its points", name):
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
    with asked("look points up", name):
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
    with asked("list its points", name):
        embedded, _ = client.scroll(
            name, scroll_filter=models.Filter(must=those), limit=len(records), with_payload=False
        )
    dense = {record.id for record in embedded}
    return [
        StoredPoint(str(record.id), cast("PointPayload", record.payload or {}), record.id in dense)
        for record in records
    ]


def _vectors(point: NewPoint) -> models.VectorStruct:
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


def _filter(scope: PointScope) -> models.Filter:
    from qdrant_client import models

    return models.Filter.model_validate({"must": scope.conditions})


def _batches(things: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(things)
    while batch := list(islice(rest, WRITE_BATCH)):
        yield batch


@contextlib.contextmanager
def asked(action: str, collection: str | None = None) -> Iterator[None]:
    """Whatever the client raises becomes one of our errors, saying what was asked."""
    from httpx import HTTPError
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as why:
        raise refused(action, collection, why.status_code or 0, why.content or b"") from why
    except (ApiException, QdrantException, HTTPError, OSError) as why:
        raise VectorStoreUnavailable(action=action, reason=str(why) or type(why).__name__) from why


def refused(action: str, collection: str | None, status: int, said: bytes) -> VectorStoreUnavailable:
    """The error that an answer other than 200 is."""
    if status == 404 and collection is not None and b"doesn't exist" in said:
        return CollectionMissing(action=action, reason="it is not there", collection=collection)
    return VectorStoreUnavailable(action=action, reason=f"{status} {said.decode('utf-8', 'replace')[:500]}")


# --- digests: what a rebuild of the vectors is compared by ---


def point_digests(client: QdrantClient, collection: str, without_dense: frozenset[str] = frozenset()) -> dict[str, str]:
    """By point id, a digest over its payload and vectors; dense vectors of the points named are left out.

    Raises: VectorStoreUnavailable.
    """
    found: dict[str, str] = {}
    offset: Any = None
    while True:
        with asked("list its points", collection):
            records, offset = client.scroll(
                collection, limit=DIGEST_PAGE, offset=offset, with_payload=True, with_vectors=[DENSE, SPARSE]
            )
        for record in records:
            identifier = str(record.id)
            vectors: Any = record.vector or {}
            sparse = vectors.get(SPARSE)
            dense = None if identifier in without_dense else vectors.get(DENSE)
            content = {
                "payload": record.payload,
                "sparse": sorted(zip(sparse.indices, sparse.values, strict=True)) if sparse is not None else None,
                "dense": dense,
            }
            found[identifier] = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
        if offset is None:
            return found


def digest_of_points(points: dict[str, str]) -> str:
    """One digest over all points, in order of id."""
    whole = hashlib.sha256()
    for identifier in sorted(points):
        whole.update(f"{identifier} {points[identifier]}\n".encode())
    return whole.hexdigest()
