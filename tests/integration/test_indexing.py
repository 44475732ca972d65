"""Indexes built beside a collection's use: nothing written meanwhile is lost, and a build cut short leaves no trace."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
import qdrant_edge as edge

from memctl.infra.vectors import indexing, shards, wire
from memctl.infra.vectors.indexing import IndexingOutcome
from memctl.infra.vectors.shards import SHARD, Collection, Collections

DESCRIPTION = wire.Description(
    {"dense": wire.VectorParams(8, "Cosine", "float16")}, {"sparse": wire.SparseParams("idf")}
)


@contextmanager
def opened(folder: Path) -> Iterator[Collections]:
    collections = Collections(folder)
    try:
        yield collections
    finally:
        collections.close()


def made(collections: Collections) -> Collection:
    collection = collections.create("one", DESCRIPTION, wire.shard_config(DESCRIPTION))
    write(collection, range(200))
    return collection


def write(collection: Collection, numbers: range) -> None:
    collection.apply(edge.UpdateOperation.upsert_points([a_point(number) for number in numbers]), len(numbers))


def a_point(number: int) -> edge.Point:
    chance = random.Random(number)
    words = edge.SparseVector(sorted(chance.sample(range(50), 5)), [1.0] * 5)
    vectors = {"dense": [chance.gauss(0, 1) for _ in range(8)], "sparse": words}
    return edge.Point(str(uuid.UUID(int=number + 1)), vectors, {"number": number})


def held(collection: Collection) -> dict[int, list[float]]:
    found, _ = collection.shard.scroll(edge.ScrollRequest(limit=1_000, with_payload=True, with_vector=["dense"]))
    return {record.payload["number"]: record.vector["dense"] for record in found}


async def built_while(collections: Collections, collection: Collection, change: bool) -> IndexingOutcome:
    build = asyncio.create_task(indexing.build(collections, collection))
    while collection.since is None and not build.done():
        await asyncio.sleep(0.01)
    if change:
        async with collection.writing:
            write(collection, range(200, 210))
            collection.apply(edge.UpdateOperation.delete_points([str(uuid.UUID(int=1))]))
    return await build


def test_what_was_written_and_deleted_during_a_build_is_so_after_it(tmp_path: Path) -> None:
    with opened(tmp_path) as collections:
        collection = made(collections)
        before = collection.shard
        assert asyncio.run(built_while(collections, collection, change=True)) is IndexingOutcome.INDEXED
        assert collection.shard is not before
        after = held(collection)
        assert after.keys() == {*range(1, 210)}
        write(collection, range(210, 220))
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert held(again).keys() == {*range(1, 220)}
        assert {number: vector for number, vector in held(again).items() if number < 210} == after
        assert collections.damaged() == []


def test_a_build_of_a_collection_that_was_dropped_meanwhile_changes_nothing(tmp_path: Path) -> None:
    async def dropped(collections: Collections, collection: Collection) -> IndexingOutcome:
        build = asyncio.create_task(indexing.build(collections, collection))
        while collection.since is None:
            await asyncio.sleep(0.01)
        async with collection.writing:
            collections.remove(collection.name)
        return await build

    with opened(tmp_path) as collections:
        assert asyncio.run(dropped(collections, made(collections))) is IndexingOutcome.DROPPED
        assert collections.names() == []


def test_a_build_that_writing_outruns_is_given_up_and_leaves_the_shard_in_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "MOST_SINCE", 0)
    with opened(tmp_path) as collections:
        collection = made(collections)
        before = collection.shard
        assert asyncio.run(built_while(collections, collection, change=True)) is IndexingOutcome.OUTRUN
        assert collection.shard is before
        assert held(collection).keys() == {*range(1, 210)}
        assert list((tmp_path / "tmp").iterdir()) == []


def test_a_collection_that_is_dropped_while_another_is_built_ends_nothing_but_its_own_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOOK_S", "PAUSE_S", "WITHIN_S"):
        monkeypatch.setattr(indexing, name, 0.0)
    monkeypatch.setattr(indexing, "LEAST", 1)

    async def dropped_beside(collections: Collections, one: Collection, other: Collection) -> None:
        building = asyncio.create_task(indexing.when_due(collections))
        for begun in (True, False, True):  # and one is built once more
            while (one.since is not None) is not begun:
                assert not building.done(), building.exception()
                await asyncio.sleep(0.001)
            if collections.get(other.name) is other:
                collections.remove(other.name)
        building.cancel()
        with suppress(asyncio.CancelledError):
            await building

    with opened(tmp_path) as collections:
        one, other = made(collections), collections.create("other", DESCRIPTION, wire.shard_config(DESCRIPTION))
        other.apply(edge.UpdateOperation.upsert_points([a_point(1)]))
        asyncio.run(dropped_beside(collections, one, other))


def test_a_collection_that_doubled_during_a_build_is_indexed_again_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as collections:
        collection = made(collections)
        assert indexing.pause_after(IndexingOutcome.INDEXED, 10.0, collection) == 0, "nothing of it has an index"
        collection.unindexed = 100
        assert indexing.pause_after(IndexingOutcome.INDEXED, 10.0, collection) == 40


@pytest.mark.parametrize("gone", [True, False], ids=["the old shard is gone", "both are there"])
def test_a_replacement_that_was_cut_short_is_finished_or_undone_at_the_next_start(tmp_path: Path, gone: bool) -> None:
    with opened(tmp_path) as collections:
        collection = made(collections)
        expected = held(collection)
    shard = tmp_path / "collections" / "one" / SHARD
    (shard.parent / "checkpoint.json").unlink()
    if gone:
        shard.rename(shard.with_name("shard.new"))
    else:
        shard.with_name("shard.new").mkdir()
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert held(again) == expected


def test_a_small_collection_needs_no_index(tmp_path: Path) -> None:
    with opened(tmp_path) as collections:
        assert not indexing.due(made(collections))


def test_points_without_a_dense_vector_are_not_indexed_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "LEAST", 100)
    words = {"sparse": edge.SparseVector([1], [1.0])}
    points = [edge.Point(str(uuid.UUID(int=n + 1)), words, {"number": n}) for n in range(150)]
    with opened(tmp_path) as collections:
        collection = collections.create("one", DESCRIPTION, wire.shard_config(DESCRIPTION))
        collection.apply(edge.UpdateOperation.upsert_points(points), len(points))
        assert indexing.due(collection)
        assert asyncio.run(built_while(collections, collection, change=True)) is IndexingOutcome.INDEXED
        assert not indexing.due(collection)
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert not indexing.due(again), "it was indexed before the restart"
        write(again, range(300, 400))
        assert indexing.due(again)


def test_an_index_of_before_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "LEAST", 100)
    with opened(tmp_path) as collections:
        collection = made(collections)
        assert asyncio.run(built_while(collections, collection, change=False)) is IndexingOutcome.INDEXED
        assert not indexing.due(collection)
    checkpoint = tmp_path / "collections" / "one" / "checkpoint.json"
    told = json.loads(checkpoint.read_text())
    del told["index"]  # which checkpoints did not tell then
    checkpoint.write_text(json.dumps(told))
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert indexing.due(again)
        assert asyncio.run(built_while(collections, again, change=False)) is IndexingOutcome.INDEXED
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert not indexing.due(again)
        assert len(held(again)) == 200


def test_a_new_shard_that_cannot_be_opened_leaves_the_old_one_in_service(tmp_path: Path) -> None:
    with opened(tmp_path) as collections:
        collection = made(collections)
        expected = held(collection)
        broken = tmp_path / "tmp" / "broken"
        (broken / SHARD / "segments" / "one").mkdir(parents=True)
        (broken / SHARD / "segments" / "one" / "segment.json").write_text("{")
        with pytest.raises(Exception, match="segment"):
            collections.replace(collection, broken, 0)
        assert held(collection) == expected
        write(collection, range(200, 210))
    with opened(tmp_path) as collections:
        again = collections.get("one")
        assert again is not None
        assert held(again).keys() == {*range(210)}
        assert collections.damaged() == []


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "WITHIN_S", 0.0)
    with opened(tmp_path) as collections:
        collection = made(collections)
        assert asyncio.run(built_while(collections, collection, change=False)) is IndexingOutcome.FAILED
        assert len(held(collection)) == 200
        assert list((tmp_path / "tmp").iterdir()) == []


def test_that_a_child_built_no_index_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with opened(tmp_path) as collections:
        assert asyncio.run(built_while(collections, made(collections), change=False)) is IndexingOutcome.FAILED
    assert "its process ended with 1" in caplog.text


def test_a_copy_holds_what_is_written_and_lays_out_no_more(tmp_path: Path) -> None:
    whole, copy = tmp_path / "whole", tmp_path / "copy"
    with open(whole, "wb") as file:
        file.truncate(8 << 20)
        file.write(b"begin")
        file.seek(4 << 20)
        file.write(b"middle")
    indexing._copied(str(whole), str(copy))
    assert copy.read_bytes() == whole.read_bytes()
    assert copy.stat().st_blocks <= whole.stat().st_blocks
    assert copy.stat().st_blocks * 512 < 1 << 20


def test_what_a_filter_leaves_is_found_in_an_index_and_scored_by_the_vectors_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the points, spread over all of them, which a graph that is walked as ever loses half of."""
    monkeypatch.setattr(wire, "_FULL_SCAN_KB", 1)
    monkeypatch.setattr(wire, "_INDEXED_FROM_KB", 1)
    chance = numpy.random.default_rng(3)
    centres = chance.normal(size=(40, 64))
    drawn = centres[chance.integers(0, 40, 6_000)] + 0.7 * chance.normal(size=(6_000, 64))
    described = wire.Description({"dense": wire.VectorParams(64, "Cosine", "float16")}, {})
    shard = edge.EdgeShard.create(str(tmp_path), wire.shard_config(described, indexed=True))
    shard.update(edge.UpdateOperation.create_field_index("place", edge.KeywordIndexParams()))
    shard.update(
        edge.UpdateOperation.upsert_points(
            [edge.Point(n, {"dense": vector.tolist()}, {"place": f"p{n % 10}"}) for n, vector in enumerate(drawn)]
        )
    )
    shard.optimize()
    assert shard.info().indexed_vectors_count == len(drawn)

    def ask(vector: list[float], **params: Any) -> dict[int, float]:
        body = {"query": vector, "using": "dense", "limit": 50, "params": params,
                "filter": {"must": [{"key": "place", "match": {"value": "p3"}}]}}  # fmt: skip
        asked = msgspec.convert(body, wire.Query)
        return {point.id: point.score for point in shard.query(wire.query_request(asked, {"dense": 64}))}

    shares = []
    for vector in drawn[:60].tolist():
        best, found = ask(vector, exact=True), ask(vector)
        shares.append(len(best.keys() & found.keys()) / len(best))
        assert all(found[id] == pytest.approx(best[id], abs=1e-6) for id in best.keys() & found.keys())
    shard.close()
    assert sum(shares) / len(shares) > 0.95, shares
