"""The outbox on a real Postgres and the real vector server: late writes neither resurrect nor go stale."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast
from urllib.parse import urlsplit

import msgspec
import numpy
import pytest
from click.testing import CliRunner
from draining import catch_up
from embedding import SIGNS, Signs, all_written
from histories import drained, example
from qdrant_client import QdrantClient

from memctl.cli.operate.reindex import reindex
from memctl.infra.database import Connection, advisory_lock, connect
from memctl.infra.embedders import EmbedderFailed, TextsRefused, UnusableVectors
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.vectors import VectorStoreUnavailable, drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.store import PointScope, point_digests
from memctl.projections.vector_points import VectorPoint
from memctl.workers.folding.drain import Drainer
from memctl.workers.vectors.outbox_publisher import WRITING, OutboxPublisher, drop_leftovers


@contextlib.contextmanager
def unanswering(server: str, key: str) -> Iterator[tuple[QdrantClient, list[str]]]:
    """A client whose every second write is carried out and never answered, and what was left without an answer."""
    unanswered: list[str] = []

    class Passing(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            where = http.client.HTTPConnection(urlsplit(server).netloc)
            passed = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            where.request(self.command, self.path, self.rfile.read(length), passed)
            answer = where.getresponse()
            body = answer.read()
            where.close()
            if self.command != "GET" and answer.status == 200 and unanswered.count(self.path) == written[self.path]:
                unanswered.append(self.path)
                self.close_connection = True
                return
            written[self.path] = unanswered.count(self.path)
            self.send_response(answer.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = do_PUT

        def log_message(self, *_: object) -> None:
            pass

    written: Counter[str] = Counter()
    with ThreadingHTTPServer(("127.0.0.1", 0), Passing) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        client = store.connect(f"http://127.0.0.1:{proxy.server_port}", key)
        try:
            yield client, unanswered
        finally:
            client.close()
            proxy.shutdown()


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def memory(database_url: str, client: QdrantClient) -> Iterator[tuple[Connection, int]]:
    with connect(database_url) as connection:
        live = generations.live(connection)
        vector_models.serve(connection, SIGNS, 384)
        append(connection, 1, example())
        catch_up(Drainer(database_url))
        yield connection, live.stage2
        store.drop_collection(client, outbox.collection_of(connection, live.stage2))


def rows(connection: Connection, generation: int) -> dict[str, VectorPoint]:
    p = outbox.points()
    keys = connection.execute(f"SELECT key FROM memctl.vector_points_g{generation} ORDER BY key").fetchall()  # type: ignore[arg-type]
    return {key[1]: row for key, row in readmodels.load(connection, p, generation, [(1, k[0]) for k in keys]).items()}


def change(connection: Connection, generation: int, key: str, row: VectorPoint | None) -> None:
    """What stage 2 does when a point's desired state changes."""
    data = None if row is None else msgspec.json.encode(row)
    readmodels.save(connection, outbox.points(), generation, {(1, key): data})
    readmodels.queue_points(connection, generation, [(1, key)])


def dense_of(client: QdrantClient, collection: str, key: str) -> int | None:
    """Which letter's vector a point carries."""
    (record,) = client.retrieve(collection, [key], with_vectors=["dense"])
    vector = record.vector.get("dense") if isinstance(record.vector, dict) else None
    return None if vector is None else int(numpy.argmax(vector))


def test_every_point_is_written_and_then_embedded(memory: tuple[Connection, int], client: QdrantClient) -> None:
    connection, generation = memory
    points = OutboxPublisher(connection, client, generation)
    wanted = rows(connection, generation)
    assert points.backlog() == (len(wanted), 0)
    while points.sync():
        pass
    assert points.backlog() == (0, len(wanted))
    while points.embed(Signs()):
        pass
    assert points.backlog() == (0, 0)
    assert store.count(client, points.collection) == len(wanted)
    for key, row in wanted.items():
        assert dense_of(client, points.collection, key) == ord(row.dense_text[0]) % 384


def test_what_waits_is_embedded_newest_first_and_lines_behind_all_memories(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    while points.embed(Signs()):
        pass
    some = [row for row in rows(connection, generation).values() if not row.chunk][:4]
    for number, row in enumerate(some):  # of each two the second is a line
        text = f"{number} changed"
        new = msgspec.structs.replace(row, dense_text=text, dense_hash=f"{number:016x}", chunk=number % 2)
        change(connection, generation, row.id, new)
        points.sync()
    waiting = outbox.take_waiting(connection, generation, SIGNS.name, 9)
    assert [each.key[1] for each in waiting] == [some[at].id for at in (2, 0, 3, 1)]
    while points.embed(Signs()):
        pass
    assert points.backlog() == (0, 0)


def test_a_point_that_changes_while_it_is_embedded_ends_with_its_own_vector(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    key, row = next(iter(rows(connection, generation).items()))
    new = msgspec.structs.replace(row, dense_text="~ changed", dense_hash="00" * 8)
    cached = Signs().embed_passages(["~ changed"])[0].tobytes()
    connection.execute(
        "INSERT INTO memctl.embeddings (model, text_hash, vector) VALUES (%b, %b, %b)",
        [SIGNS.name, bytes.fromhex(new.dense_hash), cached],
    )

    def meanwhile() -> None:
        change(connection, generation, key, new)
        while points.sync():
            pass

    points.embed(Signs(meanwhile))
    while points.sync() or points.embed(Signs()):
        pass
    assert dense_of(client, points.collection, key) == ord("~") % 384
    assert points.backlog() == (0, 0)


def test_a_point_that_is_just_being_written_as_it_gets_the_vector_of_before_is_written_once_more(
    memory: tuple[Connection, int], client: QdrantClient, database_url: str
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    key = (1, max(found := rows(connection, generation), key=lambda key: found[key].occurred_at))
    new = msgspec.structs.replace(found[key[1]], dense_text="~ changed", dense_hash="00" * 8)
    (vector,) = Signs().embed_passages([new.dense_text])
    cached = [SIGNS.name, bytes.fromhex(new.dense_hash), vector.tobytes()]
    connection.execute("INSERT INTO memctl.embeddings (model, text_hash, vector) VALUES (%b, %b, %b)", cached)
    written, go_on = threading.Event(), threading.Event()

    class Held:
        """A client whose writer waits once the store has what it wrote."""

        def __getattr__(self, name: str) -> object:
            return getattr(client, name)

        def upsert(self, *arguments: object, **options: object) -> None:
            client.upsert(*arguments, **options)  # type: ignore[arg-type]
            written.set()
            go_on.wait(60)

    def write() -> None:
        with connect(database_url) as other:
            OutboxPublisher(other, cast(QdrantClient, Held()), generation).sync()

    writer = threading.Thread(target=write)

    def meanwhile() -> None:
        if not writer.ident:
            change(connection, generation, key[1], new)
            writer.start()
            assert written.wait(60)

    points.embed(Signs(meanwhile))
    go_on.set()
    writer.join(60)
    while points.sync() or points.embed(Signs()):
        pass
    assert dense_of(client, points.collection, key[1]) == ord("~")
    assert points.backlog() == (0, 0)


def test_a_point_that_is_gone_while_it_is_embedded_stays_gone(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    key = next(iter(rows(connection, generation)))

    def meanwhile() -> None:
        change(connection, generation, key, None)
        while points.sync():
            pass

    points.embed(Signs(meanwhile))
    while points.sync() or points.embed(Signs()):
        pass
    assert store.retrieve_present(client, points.collection, [key]) == set()
    assert points.backlog() == (0, 0)


def test_writes_that_were_carried_out_and_never_answered_are_made_again_and_leave_the_same_points(
    memory: tuple[Connection, int], client: QdrantClient, vectors: tuple[str, str]
) -> None:
    connection, generation = memory
    direct = OutboxPublisher(connection, client, generation)
    with unanswering(*vectors) as (lossy, unanswered):
        points = OutboxPublisher(connection, lossy, generation)
        failures = 0
        for what in (points.sync, lambda: points.embed(Signs())):
            while True:
                before = points.backlog()
                try:
                    if not what():
                        break
                except VectorStoreUnavailable:
                    failures += 1
                    assert points.backlog() == before, "nothing counts as written that was not answered"
    assert (len(unanswered), points.backlog()) == (failures, (0, 0))
    assert failures >= 2
    found = point_digests(client, points.collection)
    outbox.queue_all(connection, generation)
    while direct.sync():
        pass
    assert point_digests(client, points.collection) == found
    assert len(found) == len(rows(connection, generation))


@pytest.mark.parametrize("fault", [TextsRefused, UnusableVectors])
def test_a_text_of_which_the_embedder_makes_nothing_is_found_by_its_words_and_holds_up_no_other(
    memory: tuple[Connection, int], client: QdrantClient, fault: type[EmbedderFailed]
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    wanted = rows(connection, generation)
    cursed = max(wanted, key=lambda key: wanted[key].occurred_at)

    class Choosy(Signs):
        def embed_passages(self, texts: Sequence[str]) -> numpy.ndarray:
            if wanted[cursed].dense_text in texts:
                raise fault(name=self.name, why="too cursed")
            return super().embed_passages(texts)

    while points.embed(Choosy()):
        pass
    assert points.backlog() == (0, 0)
    without = {key for key in wanted if dense_of(client, points.collection, key) is None}
    assert without == {key for key in wanted if wanted[key].dense_hash == wanted[cursed].dense_hash}
    assert [part.keys for part in drift.scan(connection, client, generation)] == [[]]
    outbox.queue_all(connection, generation)
    while points.sync():
        pass
    assert points.backlog() == (0, 0), "it is not asked again"


def test_an_embedder_that_makes_nothing_of_any_text_leaves_them_all_waiting(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    before = points.backlog()

    class Broken(Signs):
        def embed_passages(self, texts: Sequence[str]) -> numpy.ndarray:
            raise UnusableVectors(name=self.name, why="one is of no length")

    with pytest.raises(UnusableVectors, match="no length"):
        points.embed(Broken())
    assert points.backlog() == before
    assert before[1] > 1
    assert connection.execute("SELECT count(*) FROM memctl.embeddings").fetchone() == (0,)


def test_vectors_of_other_dimensions_than_the_collections_are_not_written(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    with pytest.raises(UnusableVectors, match="16 dimensions, and those before had 384"):
        points.embed(Signs(dimensions=16))
    assert connection.execute("SELECT count(*) FROM memctl.embeddings").fetchone() == (0,)


def test_a_collection_that_was_lost_is_filled_again(memory: tuple[Connection, int], client: QdrantClient) -> None:
    connection, generation = memory
    points = all_written(connection, client, generation)
    store.drop_collection(client, points.collection)
    points = all_written(connection, client, generation)
    assert store.count(client, points.collection) == len(rows(connection, generation))


def test_reindexing_has_every_point_written_again_also_one_that_is_being_embedded(
    memory: tuple[Connection, int], client: QdrantClient, database_url: str
) -> None:
    connection, generation = memory
    points = OutboxPublisher(connection, client, generation)
    while points.sync() or points.embed(Signs()):
        pass
    whole = point_digests(client, points.collection)
    change(connection, generation, *next(iter(rows(connection, generation).items())))
    connection.execute("TRUNCATE memctl.embeddings")
    points.sync()
    told: list[str] = []

    def meanwhile() -> None:
        store.delete(client, points.collection, list(whole))
        done = CliRunner(env={"MEMCTL_DATABASE_URL": database_url}).invoke(reindex, ["--json"])
        told.append(done.stdout)

    points.embed(Signs(meanwhile))
    assert json.loads(told[0])["points"] == len(whole)
    while points.sync() or points.embed(Signs()):
        pass
    assert point_digests(client, points.collection) == whole


def test_only_one_writes_at_a_time(memory: tuple[Connection, int], database_url: str) -> None:
    connection, generation = memory
    with advisory_lock(connection, WRITING, generation) as mine, connect(database_url) as other:
        assert mine
        with advisory_lock(other, WRITING, generation) as theirs:
            assert not theirs
    with connect(database_url) as other, advisory_lock(other, WRITING, generation) as theirs:
        assert theirs


def test_collections_of_dropped_generations_are_dropped_and_no_others(
    memory: tuple[Connection, int], client: QdrantClient
) -> None:
    connection, generation = memory
    OutboxPublisher(connection, client, generation)
    leftover = generations.create(connection, 2, facts_of=1)
    store.ensure_collection(client, outbox.collection_of(connection, leftover), 384)
    generations.drop(connection, leftover)
    drop_leftovers(connection, client)
    there = store.list_collections(client)
    assert outbox.collection_of(connection, leftover) not in there
    assert outbox.collection_of(connection, generation) in there


def test_two_spaces_that_hold_the_same_session_have_a_point_each(
    memory: tuple[Connection, int], client: QdrantClient, database_url: str
) -> None:
    connection, generation = memory
    other = space_id(connection, "other")
    append(connection, other, example())
    drained(database_url)
    points = OutboxPublisher(connection, client, generation)
    own = list(rows(connection, generation))

    def all_agree() -> bool:
        """Both spaces have all their points, as they should be."""
        while points.sync() or points.embed(Signs()):
            pass
        counts = [store.count(client, points.collection, PointScope(name)) for name in ("default", "other")]
        drifted = [part.keys for part in drift.scan(connection, client, generation) if part.keys]
        return counts == [len(own)] * 2 and drifted == []

    assert all_agree()
    # As spaces were stored before: under the row's own id, for whichever wrote last.
    theirs = [(other, key) for key in own]
    store.delete(client, points.collection, [outbox.stored_id(key) for key in theirs])
    kept = readmodels.load(connection, outbox.points(), generation, theirs)
    store.upsert(
        client,
        points.collection,
        [store.NewPoint(row.id, outbox.payload_of(row, "other"), ([1], [1.0])) for row in kept.values()],
    )
    for part in drift.scan(connection, client, generation):
        drift.queue(connection, generation, part)
    assert all_agree()
    # What one of them forgets, the other one keeps.
    for key in own:
        readmodels.save(connection, outbox.points(), generation, {(other, key): None})
        readmodels.queue_points(connection, generation, [(other, key)])
    while points.sync():
        pass
    assert store.retrieve_present(client, points.collection, own) == set(own)
    assert store.count(client, points.collection) == len(own)


def test_digests_of_a_store_that_is_away_tell_so() -> None:
    with contextlib.closing(store.connect("http://127.0.0.1:1")) as away, pytest.raises(VectorStoreUnavailable):
        point_digests(away, "any")
