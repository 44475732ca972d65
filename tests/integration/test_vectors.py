"""The local vector server as a real process, driven through qdrant-client by the adapter memctl uses."""

from __future__ import annotations

import json
import math
import random
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from points import DIMENSIONS, a_point
from qdrant_client import QdrantClient, models
from vector_server import ServerProcess, raw, vector_server_process

from memctl.infra.vectors import CollectionMissing, VectorStoreUnavailable, store
from memctl.infra.vectors.searches import Hit, PointsByName, Searches
from memctl.infra.vectors.store import NewPoint, PointScope

HERE = PointScope("here")
QUERY = {"query": [1.0] * DIMENSIONS, "using": "dense"}
TWICE = {"indices": [1, 1], "values": [1, 1]}
ID = [str(uuid.UUID(int=number)) for number in range(3)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with vector_server_process(tmp_path_factory.mktemp("shared")) as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[QdrantClient]:
    client = store.connect(server.url, server.token)
    yield client
    client.close()


@pytest.fixture
def searches(server: ServerProcess) -> Iterator[Searches]:
    searches = Searches(server.url, server.token)
    yield searches
    searches.close()


@pytest.fixture
def name(client: QdrantClient) -> Iterator[str]:
    name = f"points_{uuid.uuid4().hex}"
    assert store.ensure_collection(client, name, DIMENSIONS)
    yield name
    store.drop_collection(client, name)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]


# --- what is found ---


def test_a_hybrid_query_ranks_each_source_as_brute_force_does(
    client: QdrantClient, name: str, searches: Searches
) -> None:
    points = [a_point(k) for k in range(200)]
    store.upsert(client, name, points)
    dense = [random.Random("query").gauss(0, 1) for _ in range(DIMENSIONS)]
    words = [1, 2, 3]
    by_meaning, found = searches.hybrid(name, HERE, dense=dense, sparse=(words, [1.0] * 3), limit=10)

    by_cosine = {point.id: cosine(dense, list(point.dense or ())) for point in points}
    best = sorted(by_cosine, key=lambda id: -by_cosine[id])[:10]
    assert [hit.score for hit in by_meaning] == pytest.approx([by_cosine[id] for id in best], abs=2e-3)
    assert [by_cosine[hit.id] for hit in by_meaning] == pytest.approx([hit.score for hit in by_meaning], abs=2e-3)

    holding = {word: sum(word in point.sparse[0] for point in points) for word in words}
    idf = {word: math.log((200 - n + 0.5) / (n + 0.5) + 1) for word, n in holding.items()}
    by_words = {
        point.id: sum(idf[word] * value for word, value in zip(*point.sparse, strict=True) if word in idf)
        for point in points
    }
    best = sorted(by_words, key=lambda id: -by_words[id])[:10]
    assert ids(found) == best
    assert [hit.score for hit in found] == pytest.approx([by_words[id] for id in best], rel=1e-4)
    payload = next(point.payload for point in points if point.id == best[0])
    assert (found[0].memory_id, found[0].before) == (payload["memory_id"], payload["before"])


def test_a_query_by_one_source_returns_that_source_only(client: QdrantClient, name: str, searches: Searches) -> None:
    point = a_point(1)
    del point.payload["before"]  # type: ignore[misc]  # as an older memctl wrote it
    store.upsert(client, name, [point])
    dense, sparse = searches.hybrid(name, HERE, sparse=(list(a_point(1).sparse[0]), [1.0] * 6), limit=5)
    assert ([(hit.id, hit.before) for hit in sparse], dense) == ([(a_point(1).id, "")], [])
    assert searches.hybrid(name, HERE, limit=5) == ([], [])
    assert searches.hybrid(name, HERE, sparse=([], []), limit=5) == ([], [])


def test_a_point_is_found_by_words_before_it_is_embedded_and_by_meaning_after(
    client: QdrantClient, name: str, searches: Searches
) -> None:
    point = a_point(7, dense=False)
    store.upsert(client, name, [point])
    query: dict[str, Any] = {"dense": [1.0] * DIMENSIONS, "sparse": (list(point.sparse[0]), [1.0] * 6), "limit": 5}
    dense, sparse = searches.hybrid(name, HERE, **query)
    assert (ids(dense), ids(sparse)) == ([], [point.id])
    store.set_dense(client, name, {point.id: [1.0] * DIMENSIONS})
    dense, sparse = searches.hybrid(name, HERE, **query)
    assert (ids(dense), ids(sparse)) == ([point.id], [point.id])
    assert dense[0].score == pytest.approx(1, abs=2e-3)
    assert dense[0].memory_id == point.payload["memory_id"]


def test_what_one_source_found_is_scored_by_the_other_too(client: QdrantClient, name: str, searches: Searches) -> None:
    points = [a_point(seed) for seed in range(30)]
    store.upsert(client, name, points)
    asked = points[3]
    assert asked.dense is not None
    by_meaning, by_words = searches.hybrid(name, HERE, dense=asked.dense, sparse=asked.sparse, limit=30)
    all_of_them = PointsByName([point.id for point in points])
    dense, sparse = searches.of(name, HERE, dense=(asked.dense, all_of_them), sparse=(asked.sparse, all_of_them))
    assert {hit.id: hit.score for hit in dense} == pytest.approx({hit.id: hit.score for hit in by_meaning}, abs=1e-4)
    assert {hit.id: hit.score for hit in sparse} == pytest.approx({hit.id: hit.score for hit in by_words}, abs=1e-4)
    assert searches.of(name, HERE, dense=(asked.dense, PointsByName([])), sparse=None) == ([], [])
    assert len(searches.sample(name, "here", 5)) == 5
    assert searches.sample(name, "elsewhere", 5) == []


def test_a_point_without_words_is_found_by_meaning_and_counts_as_no_memory(
    client: QdrantClient, name: str, searches: Searches
) -> None:
    own, line = a_point(0), replace(a_point(1), sparse=([], []))
    store.upsert(client, name, [own, line])
    assert line.dense is not None
    dense, _ = searches.hybrid(name, HERE, dense=line.dense, sparse=own.sparse, limit=2)
    assert ids(dense) == [line.id, own.id]
    assert (searches.count(name), searches.count(name, HERE), store.count(client, name)) == (1, 1, 2)
    assert len(searches.sample(name, "here", 5)) == 1


def test_the_turn_after_a_memory_is_found_by_its_name(client: QdrantClient, name: str, searches: Searches) -> None:
    first, other = a_point(0), a_point(2)
    followed = a_point(1, before=first.payload["memory_id"])
    store.upsert(client, name, [first, followed, other])
    assert first.dense is not None
    named = PointsByName([first.id], after=[first.payload["memory_id"]])
    hits, _ = searches.of(name, HERE, dense=(first.dense, named), sparse=None)
    assert {hit.id for hit in hits} == {first.id, followed.id}
    elsewhere = PointScope("elsewhere")
    assert searches.of(name, elsewhere, dense=(first.dense, named), sparse=None) == ([], [])


def test_a_dense_vector_that_comes_late_does_not_bring_a_deleted_point_back(client: QdrantClient, name: str) -> None:
    store.upsert(client, name, [a_point(k, dense=False) for k in range(100)])
    store.delete(client, name, [a_point(0).id])
    store.set_dense(client, name, {a_point(k).id: [1.0] * DIMENSIONS for k in range(100)})
    assert [point.has_dense for point in store.scroll_points(client, name)] == [True] * 99
    assert store.retrieve_present(client, name, [a_point(0).id, a_point(1).id]) == {a_point(1).id}


# --- filters ---


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (PointScope("here"), {0, 1, 2, 3}),
        (PointScope("there"), {4}),
        (PointScope("nowhere"), set()),
        (PointScope(None), {0, 1, 2, 3, 4}),
        (PointScope(None, locations=["place 1"]), {1, 4}),
        (PointScope("here", locations=["place 0"]), {0, 3}),
        (PointScope("here", locations=["place 0", "place 2"]), {0, 2, 3}),
        (PointScope("here", locations=[]), set()),
        (PointScope("here", kinds=["error"]), {2}),
        (PointScope("here", buckets=["FACT"], kinds=["turn"]), {3}),
        (PointScope("here", since=1_700_000_000_001, before=1_700_000_000_003), {1, 2}),
    ],
)
def test_a_scope_lets_only_its_own_points_through(
    client: QdrantClient, name: str, searches: Searches, scope: PointScope, expected: set[int]
) -> None:
    given: dict[int, dict[str, Any]] = {2: {"kind": "error"}, 3: {"bucket": "FACT"}, 4: {"space": "there"}}
    points = [a_point(k, **given.get(k, {})) for k in range(5)]
    store.upsert(client, name, points)
    wanted = {points[k].id for k in expected}
    words = (list(range(40)), [1.0] * 40)
    found = searches.hybrid(name, scope, dense=[1.0] * DIMENSIONS, sparse=words, limit=10)
    assert [set(ids(hits)) for hits in found] == [wanted, wanted]
    assert {point.id for point in store.scroll_points(client, name, scope)} == wanted
    assert store.count(client, name, scope) == searches.count(name, scope) == len(wanted)


def test_should_must_and_ids_combine(client: QdrantClient, name: str) -> None:
    store.upsert(client, name, [a_point(k) for k in range(6)])
    condition = models.Filter(
        should=[
            models.FieldCondition(key="location", match=models.MatchValue(value="place 0")),
            models.HasIdCondition(has_id=[a_point(1).id, a_point(2).id]),
        ],
        must=[models.FieldCondition(key="memory_id", match=models.MatchAny(any=["memory 0", "memory 1", "memory 4"]))],
    )
    records, following = client.scroll(name, scroll_filter=condition, limit=10)
    assert ({str(record.id) for record in records}, following) == ({a_point(0).id, a_point(1).id}, None)


# --- what is kept ---


def test_every_point_is_listed_once_over_many_pages(
    client: QdrantClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SCROLL_PAGE", 7)
    store.upsert(client, name, [a_point(k, dense=k % 2 == 0) for k in range(100)])
    listed = list(store.scroll_points(client, name))
    assert [point.id for point in listed] == [a_point(k).id for k in range(100)]
    assert {(point.payload["text_hash"], point.has_dense) for point in listed} == {
        (f"{k:064x}", k % 2 == 0) for k in range(100)
    }


def test_an_upsert_replaces_the_whole_point_and_may_be_repeated(client: QdrantClient, name: str) -> None:
    store.upsert(client, name, [a_point(1), a_point(2)])
    again = NewPoint(a_point(1).id, a_point(9).payload, ([5], [1.0]))
    for _ in range(2):
        store.upsert(client, name, [again])
    [record] = client.retrieve(name, [again.id], with_vectors=True)
    assert record.payload == again.payload
    assert record.vector == {"sparse": models.SparseVector(indices=[5], values=[1.0])}
    assert store.count(client, name) == 2


def test_a_field_of_a_payload_is_set(client: QdrantClient, name: str) -> None:
    store.upsert(client, name, [a_point(1)])
    client.set_payload(name, {"kind": "error"}, points=[a_point(1).id])
    assert client.retrieve(name, [a_point(1).id])[0].payload == {**a_point(1).payload, "kind": "error"}


def test_a_collection_is_made_once_listed_and_dropped(client: QdrantClient) -> None:
    name = f"made_{uuid.uuid4().hex}"
    assert store.ensure_collection(client, name, DIMENSIONS)
    assert not store.ensure_collection(client, name, DIMENSIONS)
    info = client.get_collection(name)
    assert sorted(info.payload_schema) == ["before", "bucket", "kind", "location", "occurred_at", "space"]
    assert store.list_collections(client, "made_") == [name]
    assert store.drop_collection(client, name)
    assert not store.drop_collection(client, name)
    assert store.list_collections(client, "made_") == []
    with pytest.raises(CollectionMissing):
        store.count(client, name)


# --- refusals ---


def test_a_wrong_key_is_refused(server: ServerProcess) -> None:
    for key in ("wrong", None):
        stranger = store.connect(server.url, key)
        with pytest.raises(VectorStoreUnavailable, match="401"):
            store.list_collections(stranger)
        stranger.close()
    assert raw(server, "GET", "/readyz", **{"api-key": ""})[0] == 200


def test_a_request_under_another_host_name_is_refused(server: ServerProcess) -> None:
    assert raw(server, "GET", "/collections", Host="evil.example")[0] == 403


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/points", {"points": [{"id": "x", "vector": {}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {"dense": [1.0]}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {"dense": [1e39] * DIMENSIONS}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {"dense": ["1"] * DIMENSIONS}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {"other": [1.0]}}]}, 400),
        (
            "PUT",
            "/points",
            {"points": [{"id": ID[1], "vector": {"sparse": TWICE}}]},
            400,
        ),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {"sparse": {"indices": [-1], "values": [1]}}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {}, "payload": {"a": "\ud800"}}]}, 400),
        ("PUT", "/points", {"points": [{"id": ID[1], "vector": {}}], "shard_key": "a"}, 400),
        ("PUT", "/points", [], 400),
        ("PUT", "/points", b"{", 400),
        ("PUT", "/points", b"[" * 100_000, 400),
        ("PUT", "/points", b" " * (33 << 20), 413),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "query": [1.0]}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "using": "other"}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "query": ID[0]}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "prefetch": [QUERY]}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "query": {"fusion": "rrf"}}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "limit": -1}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "filter": {"must": [{"key": "a"}]}}]}, 400),
        ("POST", "/points/query/batch", {"searches": [{**QUERY, "filter": {"mustt": []}}]}, 400),
        ("POST", "/points/count", {"filter": {"must": [{"key": "a", "match": {"text": "b"}}]}}, 400),
        ("POST", "/points/count", {"filter": {"must": [{"key": "a", "match": {"value": "b", "any": ["c"]}}]}}, 400),
        ("POST", "/points/count", {"filter": {"must": [{"match": {"value": "b"}}]}}, 400),
        ("POST", "/points/count", {"filter": {"must": [{"key": "a", "has_id": ID}]}}, 400),
        ("POST", "/points/scroll", {"offset": "x"}, 400),
        ("POST", "/points/delete", {}, 400),
        ("POST", "/facet", {"key": "a"}, 404),
        ("PATCH", "", {}, 405),
    ],
)
def test_what_is_not_understood_is_refused_in_qdrants_own_form_and_changes_nothing(
    server: ServerProcess, client: QdrantClient, name: str, method: str, path: str, body: object, status: int
) -> None:
    got, answer = raw(server, method, f"/collections/{name}{path}", body)
    assert got == status, answer
    assert json.loads(answer)["status"]["error"]
    assert store.count(client, name) == 0


def test_a_batch_with_one_bad_point_is_refused_whole(server: ServerProcess, client: QdrantClient, name: str) -> None:
    good = {"id": ID[1], "vector": {"dense": [1.0] * DIMENSIONS}}
    status, _ = raw(server, "PUT", f"/collections/{name}/points", {"points": [good, {"id": ID[2], "vector": [1.0]}]})
    assert (status, store.count(client, name)) == (400, 0)


@pytest.mark.parametrize("bad", ["..%2Fescape", ".hidden", "a%00b", "a%2Fb", "x" * 200])
def test_a_collection_cannot_be_named_out_of_its_folder(server: ServerProcess, bad: str) -> None:
    body = {"vectors": {"size": 4, "distance": "Cosine"}}
    assert raw(server, "PUT", f"/collections/{bad}", body)[0] in (400, 404, 405)
    assert not (server.folder / "escape").exists()


def test_a_server_that_is_not_there_is_reported_as_unavailable() -> None:
    client = store.connect("http://127.0.0.1:9", "key", timeout=1)
    with pytest.raises(VectorStoreUnavailable, match="did not list its collections"):
        store.list_collections(client)
    client.close()


# --- many at once ---


def test_concurrent_writes_and_queries_lose_nothing(server: ServerProcess, client: QdrantClient, name: str) -> None:
    failures: list[BaseException] = []
    done = threading.Event()

    def write(first: int) -> None:
        mine = store.connect(server.url, server.token)
        try:
            for start in range(first, first + 300, 50):
                store.upsert(mine, name, [a_point(k) for k in range(start, start + 50)])
                store.delete(mine, name, [a_point(k).id for k in range(start, start + 50, 10)])
        except BaseException as why:
            failures.append(why)
        finally:
            mine.close()

    def search() -> None:
        mine = Searches(server.url, server.token)
        try:
            while not done.is_set():
                words = (list(range(40)), [1.0] * 40)
                found = mine.hybrid(name, HERE, dense=[1.0] * DIMENSIONS, sparse=words, limit=5)
                assert all(hit.memory_id.startswith("memory ") for hits in found for hit in hits)
        except BaseException as why:
            failures.append(why)
        finally:
            mine.close()

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, 300, 600)]
    readers = [threading.Thread(target=search) for _ in range(2)]
    for thread in [*writers, *readers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert failures == []
    assert {point.id for point in store.scroll_points(client, name)} == {a_point(k).id for k in range(900) if k % 10}
