"""Searches, by the same REST API as `store`, with as little as can be between a question and its answer.

A search asks the store twice. The official client makes models of each request and answer and copies them, which took
twice as long as the plain request does; so what is on the path of every search goes without it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import msgspec
import orjson

from memctl.infra.embedders import Vectors
from memctl.infra.vectors import DENSE, SPARSE, VectorStoreUnavailable
from memctl.infra.vectors.request_deadline import keep_deadlines
from memctl.infra.vectors.store import KEPT_OPEN, KEPT_OPEN_S, PORT, PointScope, refused

T = TypeVar("T")

Sparse = tuple[Sequence[int], Sequence[float]]
"""Indices of words, and their weights."""


class Hit(msgspec.Struct, frozen=True):
    """A point that was found. `score` is a cosine (dense) or a BM25 weight (sparse); `before` is the memory of the turn
    before it, empty for none and on points of an older kind."""

    id: str
    score: float
    memory_id: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class PointsByName:
    """Points by name, and those whose `before` is one of the memories `after`."""

    ids: Sequence[str]
    after: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.ids or self.after)


class _Payload(msgspec.Struct):
    memory_id: str
    before: str = ""


class _Point(msgspec.Struct):
    id: str | int
    score: float
    payload: _Payload


class _Answer(msgspec.Struct):
    points: list[_Point]


class _Count(msgspec.Struct):
    count: int


class _Vectors(msgspec.Struct):
    vector: dict[str, list[float]]


class _Records(msgspec.Struct):
    points: list[_Vectors]


class _Result(msgspec.Struct, Generic[T]):
    result: T


_PAYLOAD_FIELDS = list(_Payload.__struct_fields__)
_answers = msgspec.json.Decoder(_Result[list[_Answer]])
_counted = msgspec.json.Decoder(_Result[_Count])
_drawn = msgspec.json.Decoder(_Result[_Records])


class Searches:
    """What asks one vector store; its connections stay open. Thread-safe.

    `timeout` is in seconds and holds for each request. Every method raises VectorStoreUnavailable (or its kind
    CollectionMissing) for whatever goes wrong in between.
    """

    def __init__(self, url: str, api_key: str | None = None, timeout: float = 10) -> None:
        import httpx

        self._client = httpx.Client(
            base_url=address_of(url),
            headers={"Content-Type": "application/json", **({"api-key": api_key} if api_key else {})},
            timeout=timeout,
            limits=httpx.Limits(max_keepalive_connections=KEPT_OPEN, keepalive_expiry=KEPT_OPEN_S),
        )
        self._timeout = timeout
        self._deadline = keep_deadlines(self._client)

    def close(self) -> None:
        self._client.close()

    def hybrid(
        self,
        name: str,
        scope: PointScope,
        *,
        dense: Vectors | Sequence[float] | None = None,
        sparse: Sparse | None = None,
        limit: int,
    ) -> tuple[list[Hit], list[Hit]]:
        """The best `limit` points of the scope by the dense and by the sparse vectors, each list best first, in one
        round trip.

        The sources come apart, each with its own scores, so that they are weighed, and explained, in our own rules.
        """
        within: dict[str, Any] = {"limit": limit}
        if must := scope.conditions:
            within["filter"] = {"must": must}
        return self._ask(
            name,
            {
                source: {"query": vector, "using": source, **within}
                for source, vector in _vectors(dense, sparse).items()
            },
        )

    def of(
        self,
        name: str,
        scope: PointScope,
        *,
        dense: tuple[Vectors | Sequence[float], PointsByName] | None,
        sparse: tuple[Sparse, PointsByName] | None,
    ) -> tuple[list[Hit], list[Hit]]:
        """What each source says of the points named, as far as they are in the scope: `(vector, points)` each.

        Hits of the dense and of the sparse vectors; a point without such a vector, or without a word of the query, is
        left out. One round trip, none where there is nothing to ask.
        """
        named = {source: each[1] for source, each in ((DENSE, dense), (SPARSE, sparse)) if each is not None}
        vectors = _vectors(dense and dense[0], sparse and sparse[0])
        requests = {}
        for source, vector in vectors.items():
            if not (those := named[source]):
                continue
            any_of: list[dict[str, Any]] = [{"has_id": list(those.ids)}] if those.ids else []
            if those.after:
                any_of.append({"key": "before", "match": {"any": list(those.after)}})
            requests[source] = {
                "query": vector,
                "using": source,
                "filter": {"must": scope.conditions, "should": any_of},
                "limit": len(those.ids) + 2 * len(those.after),
            }
        return self._ask(name, requests)

    def count(self, name: str, scope: PointScope | None = None) -> int:
        """How many memories there are that have words, of all spaces or in the scope: each has one such point."""
        must = [{"has_vector": SPARSE}, *(scope.conditions if scope is not None else ())]
        asked = {"exact": True, "filter": {"must": must}}
        return self._post("count its points", name, "count", asked, _counted).count

    def sample(self, name: str, space: str, limit: int) -> list[list[float]]:
        """Dense vectors of some points of a space, as good as drawn by lot: ids are hashes, and these are the first."""
        those = {"must": [*PointScope(space).conditions, {"has_vector": DENSE}, {"has_vector": SPARSE}]}
        asked = {"filter": those, "limit": limit, "with_payload": False, "with_vector": [DENSE]}
        found = self._post("list its vectors", name, "scroll", asked, _drawn)
        return [record.vector[DENSE] for record in found.points]

    def _ask(self, name: str, requests: Mapping[str, dict[str, Any]]) -> tuple[list[Hit], list[Hit]]:
        """What requests by source find: hits of the dense and of the sparse vectors, none where nothing was asked."""
        if not requests:
            return [], []
        searches = [{**request, "with_payload": _PAYLOAD_FIELDS} for request in requests.values()]
        answers = self._post("search", name, "query/batch", {"searches": searches}, _answers)
        hits = {
            source: [Hit(str(p.id), p.score, p.payload.memory_id, p.payload.before) for p in found.points]
            for source, found in zip(requests, answers, strict=True)
        }
        return hits.get(DENSE, []), hits.get(SPARSE, [])

    def _post(self, action: str, name: str, path: str, body: object, decoder: msgspec.json.Decoder[_Result[T]]) -> T:
        import httpx

        self._deadline.at = time.monotonic() + self._timeout
        try:
            answer = self._client.post(
                f"/collections/{name}/points/{path}", content=orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
            )
            if answer.status_code != 200:
                raise refused(action, name, answer.status_code, answer.content)
            return decoder.decode(answer.content).result
        except (httpx.HTTPError, msgspec.MsgspecError, OSError) as why:
            raise VectorStoreUnavailable(action=action, reason=str(why) or type(why).__name__) from why


def address_of(url: str) -> str:
    """The address with the port that the official client would take. (`httpx` shows 443 of https as no port.)"""
    parts = urlsplit(url)
    return url if parts.port is not None else parts._replace(netloc=f"{parts.netloc.rstrip(':')}:{PORT}").geturl()


def _vectors(dense: Vectors | Sequence[float] | None, sparse: Sparse | None) -> dict[str, Any]:
    vectors: dict[str, Any] = {}
    if dense is not None:
        vectors[DENSE] = dense
    if sparse is not None and sparse[0]:  # an empty one is refused by some servers
        vectors[SPARSE] = {"indices": sparse[0], "values": sparse[1]}
    return vectors
