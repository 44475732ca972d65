"""Another model's vectors are made beside those that are searched, and take their place: whoever is killed, whatever is
told, forgotten or replayed meanwhile."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import dying
import pytest
import servers
from embedding import OTHERS, SIGNS, Loading, Signs, all_written, answer_of
from events import prompt
from histories import drained, example
from llm_server import Behave, Handler, Server, llm_server
from processes import memctl
from qdrant_client import QdrantClient
from waiting import until, waits_for_a_lock

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Readers, reader_of
from memctl.api.reading.views import SearchAnswer
from memctl.api.search.engine import Engine, Question
from memctl.infra.backup import archive
from memctl.infra.database import Connection, connect
from memctl.infra.embedders import Embedder, Embedders, Recipe, embedders_of
from memctl.infra.log.append import append
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import load_settings
from memctl.infra.vectors import drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.store import point_digests
from memctl.workers.rebuild.replay import replay, rollback
from memctl.workers.vectors.outbox_publisher import (
    DriftScan,
    OutboxLoop,
    OutboxPublisher,
    drop_collections,
    drop_leftovers,
    switched,
)

NOW = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
NEW = Signs(recipe=OTHERS, dimensions=32)


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def memory(database_url: str, client: QdrantClient) -> Iterator[Connection]:
    """A memory whose vectors are all of the first model."""
    with connect(database_url) as connection:
        vector_models.serve(connection, SIGNS, 384)
        append(connection, 1, example())
        drained(database_url)
        complete(connection, client)
        yield connection
        for number in range(1, 9):
            drop_collections(connection, client, number)


def live(connection: Connection) -> int:
    return generations.live(connection).stage2


def begun(connection: Connection, client: QdrantClient) -> OutboxPublisher:
    """Let the second model be filled: all its points are written, and none is embedded."""
    vector_models.want(connection, OTHERS, 32)
    return all_written(connection, client, live(connection))


def complete(connection: Connection, client: QdrantClient, *embedders: Embedder) -> None:
    """Write and embed what waits."""
    points = OutboxPublisher(connection, client, live(connection))
    while points.sync() or any(points.embed(each) for each in (embedders or (Signs(), NEW))):
        pass


def settle(connection: Connection, client: QdrantClient) -> None:
    """Go on until the model that is filled serves."""
    scrub = DriftScan(connection, client)
    while vector_models.models(connection).filling is not None:
        complete(connection, client)
        scrub.step(live(connection))
        switched(connection, live(connection), scrub)
    drop_leftovers(connection, client)
    vector_models.prune(connection)


def vectors_of(connection: Connection, client: QdrantClient, model: Recipe) -> dict[str, str]:
    """Digests of the points of a model's live collection."""
    return point_digests(client, outbox.collection_of(connection, live(connection), model.name))


def names(connection: Connection) -> dict[str, str]:
    rows = connection.execute("SELECT status, model FROM memctl.vector_models").fetchall()
    return {row[0]: row[1] for row in rows}


def collections(connection: Connection, client: QdrantClient) -> set[str]:
    ours = outbox.collection_of(connection, live(connection)).split("-g")[0]
    return set(store.list_collections(client, prefix=ours))


def drifted(connection: Connection, client: QdrantClient, model: vector_models.VectorModel | None = None) -> list[str]:
    parts = drift.scan(connection, client, live(connection), model)
    return [key[1] for part in parts for key in part.keys]


@pytest.fixture
def built_anew(
    memory: Connection, postgres_server: str, migrated_template: str, client: QdrantClient
) -> dict[str, str]:
    """Digests of what the second model makes of the same history from the beginning."""
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
        generations.ensure_live(fresh, 1)
        vector_models.serve(fresh, OTHERS, 32)
        append(fresh, 1, example())
        drained(url)
        fresh.execute("UPDATE memctl.installation SET id = gen_random_uuid()")
        complete(fresh, client, NEW)
        found = vectors_of(fresh, client, OTHERS)
        drop_collections(fresh, client, live(fresh))
        return found


def test_killed_at_any_statement_what_is_searched_is_whole_and_the_next_one_goes_on(
    memory: Connection,
    client: QdrantClient,
    database_url: str,
    vectors: tuple[str, str],
    built_anew: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = vectors_of(memory, client, SIGNS)
    wanted = {SIGNS.name: before, OTHERS.name: built_anew}
    monkeypatch.setenv("TEST_VECTORS", " ".join(vectors))
    seen: list[tuple[str, str | None]] = []
    with dying.mortals(tmp_path_factory.mktemp("mortals")) as mortals:
        after = 0
        while mortals.dies(dying.change_model, database_url, after):
            found = names(memory)
            seen.append((found["serving"], found.get("filling")))
            serving = OTHERS if found["serving"] == OTHERS.name else SIGNS
            assert vectors_of(memory, client, serving) == wanted[serving.name]
            after += 4
    assert names(memory) == {"serving": OTHERS.name, "previous": SIGNS.name}
    assert vectors_of(memory, client, OTHERS) == built_anew != before
    assert collections(memory, client) == {outbox.collection_of(memory, live(memory))}
    assert set(seen) >= {(SIGNS.name, None), (SIGNS.name, OTHERS.name)}
    assert len(seen) > 10


def test_memories_are_embedded_first_the_newest_of_them_and_the_switch_waits_for_the_last_and_for_what_was_lost(
    memory: Connection, client: QdrantClient
) -> None:
    points, scrub = begun(memory, client), DriftScan(memory, client)
    of = outbox.collection_of(memory, live(memory), OTHERS.name)
    assert points.embed(NEW) == NEW.batch
    rows = [row for _, row in outbox.wanted(memory, live(memory), 1)]
    order = sorted(((not row.chunk, row.occurred_at) for row in rows), reverse=True)
    embedded = {point.id for point in store.scroll_points(client, of) if point.has_dense}
    assert (
        sorted(((not row.chunk, row.occurred_at) for row in rows if row.id in embedded), reverse=True)
        == (order[: NEW.batch])
    )
    assert not switched(memory, live(memory), scrub)
    while points.embed(NEW):
        pass
    lost = rows[0].id
    store.delete(client, of, [lost])
    while not switched(memory, live(memory), scrub):
        complete(memory, client)
        scrub.step(live(memory))
    assert store.retrieve_present(client, of, [lost]) == {lost}
    assert drifted(memory, client) == []


def test_what_is_told_meanwhile_is_found_by_the_old_model_at_once_and_by_the_new_one_after(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    points = begun(memory, client)
    append(memory, 1, example(1))
    drained(database_url)
    while points.sync() or points.embed(Signs()):
        pass
    assert drifted(memory, client) == []
    assert outbox.backlog(memory, live(memory)) == (0, 0)
    waiting = outbox.filling(memory, live(memory))
    assert waiting is not None
    assert waiting.waiting == waiting.points > 0
    settle(memory, client)
    assert outbox.filling(memory, live(memory)) is None
    assert drifted(memory, client) == []


def test_what_is_forgotten_meanwhile_is_in_neither_collection_nor_in_the_cache(
    memory: Connection,
    client: QdrantClient,
    database_url: str,
    vectors: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in zip(("QDRANT_URL", "QDRANT_API_KEY"), vectors, strict=True):
        monkeypatch.setenv(f"MEMCTL_{name}", value)
    settings = load_settings(database_url=database_url)
    append(memory, 1, [prompt(1, "please remember the quokka that lives in zq7vkx19mw", session="q")])
    drained(database_url)
    vector_models.want(memory, OTHERS, 32)
    complete(memory, client)
    rows = {row.id: row for _, row in outbox.wanted(memory, live(memory), 1)}
    planned = forget.plan(settings, reader_of(memory, "default", OWNER), match="zq7vkx19mw")
    forget.forget(settings, memory, planned, client)
    gone = set(rows) - {row.id for _, row in outbox.wanted(memory, live(memory), 1)}
    assert gone
    for model in vector_models.models(memory).written:
        of = outbox.collection_of(memory, live(memory), model.name)
        assert store.retrieve_present(client, of, sorted(gone)) == set()
    hashes = [bytes.fromhex(rows[key].dense_hash) for key in gone]
    asked = "SELECT count(*) FROM memctl.embeddings WHERE text_hash = ANY(%b::bytea[])"
    assert memory.execute(asked, [hashes]).fetchone() == (0,)
    settle(memory, client)
    assert drifted(memory, client) == []


def test_a_text_that_is_forgotten_while_the_new_model_embeds_it_stays_gone(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    points = begun(memory, client)
    key, row = max(outbox.wanted(memory, live(memory), 1), key=lambda each: each[1].occurred_at)

    def meanwhile() -> None:
        with connect(database_url) as other:
            readmodels.save(other, outbox.points(), live(other), {key: None})
            readmodels.queue_points(other, live(other), [key])
            writer = OutboxPublisher(other, client, live(other))
            while writer.sync():
                pass

    points.embed(Signs(meanwhile, OTHERS, 32))
    settle(memory, client)
    assert store.retrieve_present(client, outbox.collection_of(memory, live(memory)), [row.id]) == set()
    kept = "SELECT count(*) FROM memctl.embeddings WHERE model = %s AND text_hash = %s"
    assert memory.execute(kept, [OTHERS.name, bytes.fromhex(row.dense_hash)]).fetchone() == (0,)


def test_a_replay_and_a_way_back_in_the_middle_lose_nothing(
    memory: Connection, client: QdrantClient, database_url: str, built_anew: dict[str, str]
) -> None:
    before = vectors_of(memory, client, SIGNS)
    points = begun(memory, client)
    points.embed(NEW)
    told = replay(database_url, client, verify=True)
    assert told.equal
    assert told.without_dense == 0
    assert vectors_of(memory, client, SIGNS) == before
    half = outbox.filling(memory, live(memory))
    assert half is not None
    assert half.waiting == half.points - NEW.batch, "what was embedded before is taken from the cache"
    rollback(database_url, client)
    assert vectors_of(memory, client, SIGNS) == before
    settle(memory, client)
    assert vectors_of(memory, client, OTHERS) == built_anew
    rollback(database_url, client)
    assert vectors_of(memory, client, OTHERS) == built_anew, "the other generation has the new model's, too"
    assert drifted(memory, client) == []


def test_a_generation_that_goes_live_before_it_has_the_new_models_vectors_is_not_switched_to_them(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    vector_models.want(memory, OTHERS, 32)
    complete(memory, client)
    former = live(memory)
    replay(database_url, None)  # its points are the workers' to write
    assert not vector_models.switch(memory, former), "it is no longer the one that is searched"
    assert vector_models.lacking(memory, live(memory))
    settle(memory, client)
    assert drifted(memory, client) == []


def test_who_goes_back_before_the_end_has_what_was_before_and_who_returns_finds_what_was_done(
    memory: Connection, client: QdrantClient
) -> None:
    before = vectors_of(memory, client, SIGNS)
    points = begun(memory, client)
    points.embed(NEW)
    vector_models.want(memory, SIGNS, 384)
    settle(memory, client)
    assert names(memory) == {"serving": SIGNS.name}
    assert vectors_of(memory, client, SIGNS) == before
    assert collections(memory, client) == {outbox.collection_of(memory, live(memory))}
    assert memory.execute("SELECT count(*) FROM memctl.waiting_for_vectors").fetchone() == (0,)
    points = begun(memory, client)
    found = outbox.filling(memory, live(memory))
    assert found is not None
    assert found.waiting == found.points - NEW.batch


def test_the_way_back_after_the_end_embeds_only_what_came_since_and_a_third_model_lets_go_of_the_first(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    before = vectors_of(memory, client, SIGNS)
    vector_models.want(memory, OTHERS, 32)
    settle(memory, client)
    vector_models.want(memory, SIGNS, 384)
    assert names(memory) == {"serving": OTHERS.name, "filling": SIGNS.name}

    def never() -> None:
        raise AssertionError("the cache has it")

    complete(memory, client, Signs(never))
    settle(memory, client)
    assert vectors_of(memory, client, SIGNS) == before
    third = Recipe("tests", "third")
    vector_models.want(memory, third, 16)
    complete(memory, client, Signs(recipe=third, dimensions=16))
    settle(memory, client)
    assert names(memory) == {"serving": third.name, "previous": SIGNS.name}
    kept = memory.execute("SELECT DISTINCT model FROM memctl.embeddings").fetchall()
    assert {row[0] for row in kept} == {third.name, SIGNS.name}


def test_a_writer_whose_model_is_given_up_goes_on_with_those_that_are_left(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    vector_models.want(memory, OTHERS, 32)
    points = OutboxPublisher(memory, client, live(memory))
    asked = points._models  # what it knew before
    vector_models.want(memory, SIGNS, 384)
    drop_leftovers(memory, client)
    assert points._models == asked
    while points.sync():
        pass
    assert outbox.backlog(memory, live(memory)) == (0, 0)
    assert drifted(memory, client) == []


def test_a_model_that_is_given_up_while_its_collection_is_written_holds_up_nobody(
    memory: Connection, client: QdrantClient, database_url: str
) -> None:
    vector_models.want(memory, OTHERS, 32)
    ended: list[int | Exception] = []

    def write() -> None:
        with connect(database_url, name="writer in between") as connection:
            points = OutboxPublisher(connection, client, live(connection))
            try:
                ended.append(points.sync())
            except Exception as problem:
                ended.append(problem)

    writer = threading.Thread(target=write)
    with connect(database_url) as other, other.transaction():
        other.execute("LOCK TABLE memctl.embeddings IN ACCESS EXCLUSIVE MODE")  # asked between models and points
        writer.start()
        until(lambda: waits_for_a_lock(memory, "writer in between"), "the writer in between")
        vector_models.want(memory, SIGNS, 384)
        drop_leftovers(memory, client)
    writer.join(60)
    assert [type(each) for each in ended] == [int]
    assert outbox.backlog(memory, live(memory))[0], "what was not written is queued still"
    complete(memory, client)
    assert drifted(memory, client) == []


def test_a_backup_knows_the_model_and_a_restore_searches_by_it_without_embedding(
    memory: Connection,
    client: QdrantClient,
    postgres_server: str,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    vector_models.want(memory, OTHERS, 32)
    complete(memory, client)
    file = tmp_path_factory.mktemp("kept") / "backup.zip"
    archive.write(memory, file)
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
        generations.ensure_live(fresh, 1)
        vector_models.serve(fresh)
        with fresh.transaction():
            archive.restore(fresh, file)
        fresh.execute("UPDATE memctl.installation SET id = gen_random_uuid()")
        drained(url)
        all_written(fresh, client, live(fresh))
        assert names(fresh) == names(memory)
        assert fresh.execute("SELECT count(*) FROM memctl.waiting_for_vectors").fetchone() == (0,)
        assert vectors_of(fresh, client, SIGNS) == vectors_of(memory, client, SIGNS)
        drop_collections(fresh, client, live(fresh))


# --- by the threads of a worker ---


@contextlib.contextmanager
def working(
    url: str,
    vectors: tuple[str, str],
    embedders: Embedders,
    noted: Callable[[bool, float | None], None] = lambda *_: None,
) -> Iterator[None]:
    loop = OutboxLoop(url, *vectors, embedders, noted)
    loop.start()
    try:
        yield
    finally:
        loop.stop(60)


def test_it_is_noted_when_texts_wait_for_their_vectors_and_when_none_does_any_more(
    memory: Connection, client: QdrantClient, database_url: str, vectors: tuple[str, str]
) -> None:
    noted: list[tuple[bool, float | None]] = []
    with working(database_url, vectors, Loading(SIGNS, Signs()), lambda *each: noted.append(each)):
        until(lambda: noted == [(False, None)], "a look at nothing that waits")
        append(memory, 1, example(1))
        drained(database_url)
        until(lambda: noted[-1] == (False, None) and len(noted) > 1, "a look after all were embedded")
    assert (True, None) in noted


def test_texts_that_come_one_by_one_and_are_embedded_do_not_seem_to_wait_in_vain(
    memory: Connection, client: QdrantClient, database_url: str, vectors: tuple[str, str]
) -> None:
    noted: list[tuple[bool, float | None]] = []
    append(memory, 1, example(1))
    drained(database_url)
    points = all_written(memory, client, live(memory))
    loop = OutboxLoop(database_url, *vectors, Loading(SIGNS, Signs()), lambda *each: noted.append(each))
    loop._embed_all(memory, points, live(memory), {})
    loop._embed_all(memory, points, live(memory), {})  # when none waits
    assert noted == [(False, None)]


def test_a_model_that_cannot_be_loaded_holds_up_neither_what_is_searched_nor_a_change_of_mind(
    memory: Connection, client: QdrantClient, database_url: str, vectors: tuple[str, str]
) -> None:
    nowhere = Recipe("tests", "not-here", dimensions=32)
    vector_models.want(memory, nowhere, 32)
    with working(database_url, vectors, Loading(nowhere, Signs())):
        append(memory, 1, example(1))
        drained(database_url)
        wanted = sum(1 for _ in outbox.wanted(memory, live(memory), 1))
        until(
            lambda: (
                outbox.backlog(memory, live(memory)) == (0, 0)
                and (found := outbox.filling(memory, live(memory))) is not None
                and found.waiting == wanted
            ),
            "vectors of what is new, by the model that serves",
        )
        assert drifted(memory, client) == []
    with working(database_url, vectors, Loading(OTHERS, Signs(), NEW)):
        until(lambda: names(memory) == {"serving": OTHERS.name, "previous": SIGNS.name}, "the switch to another")
    assert drifted(memory, client) == []


def test_no_vectors_is_a_model_too(
    memory: Connection, client: QdrantClient, database_url: str, vectors: tuple[str, str]
) -> None:
    with working(database_url, vectors, Loading(Recipe("none"), Signs())):
        until(lambda: names(memory).get("serving") == "none", "the switch to words alone")
    assert drifted(memory, client) == []
    with working(database_url, vectors, Loading(SIGNS, Signs())):
        until(lambda: names(memory) == {"serving": SIGNS.name, "previous": "none"}, "the way back")
    assert drifted(memory, client) == []


# --- by processes, with a model behind a server ---


def answering(held: threading.Event, model: str) -> Behave:
    """Gives one model's vectors once it may, and those of any other at once; those of another are other words'."""

    def behave(handler: Handler, body: dict) -> None:  # type: ignore[type-arg]
        if body["model"] == model and len(body["input"]) > 1:
            held.wait(120)
        answer = answer_of(body)
        if body["model"] == model:
            for entry in answer["data"]:
                entry["embedding"] = entry["embedding"][::-1]
        handler.reply(200, answer)

    return behave


@pytest.fixture
def server() -> Iterator[Server]:
    with llm_server() as server:
        yield server


class Asking:
    """A process's searches."""

    def __init__(self, environment: dict[str, str]) -> None:
        told = {name.removeprefix("MEMCTL_").lower(): value for name, value in environment.items()}
        embedding = {name.removeprefix("embedding__"): told.pop(name) for name in list(told) if "embedding__" in name}
        settings = load_settings(**told, embedding=embedding)
        self.readers = Readers(settings.require("database_url"), "default", size=2)
        self.engine = Engine(settings.qdrant_url, settings.qdrant_api_key, embedders_of(settings))
        self.engine.warm_up(self.readers)

    def search(self, query: str) -> SearchAnswer:
        where = Places(None, "everywhere", None)
        return self.readers.read(
            lambda reader: self.engine.search(reader, Question(query=query, places=where, now=NOW, explain=True)), OWNER
        )

    def found(self, query: str) -> list[tuple[str, float]]:
        answer = self.search(query)
        assert answer.degraded == []
        return [(each.id, each.score) for each in answer.results]

    def close(self) -> None:
        self.engine.close()
        self.readers.close()


QUERY = "discount rate of Decimal money"


def test_a_worker_that_is_killed_while_it_fills_goes_on_and_searches_are_what_they_were_until_the_switch(
    environment: dict[str, str], server: Server, client: QdrantClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("workers")
    held = threading.Event()
    server.then(answering(held, "two"))
    first = {
        **environment,
        "MEMCTL_EMBEDDER": "openai",
        "MEMCTL_EMBEDDING__MODEL": "one",
        "MEMCTL_EMBEDDING__BASE_URL": f"{server.url}/v1",
        "MEMCTL_EMBEDDING__BATCH": "4",
    }
    second = {**first, "MEMCTL_EMBEDDING__MODEL": "two"}
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(connect(first["MEMCTL_DATABASE_URL"]))
        generations.ensure_live(log, 4)
        append(log, 1, example())
        with memctl("worker", environment=first, log=folder / "first.log"):
            until(lambda: len(names(log)) == 1 and written(log) and not waits(log), "the first model's vectors")
        before = vectors_of(log, client, of("one"))
        asking = Asking(second)  # an API that was started with the new settings
        stack.callback(asking.close)
        results = asking.found(QUERY)
        assert results
        assert any(found.explain["near"] is not None for found in asking.search(QUERY).results)  # type: ignore[index]
        with memctl("worker", environment=second, log=folder / "second.log") as worker:
            until(lambda: any(batch(each, "two") for each in server.asked), "a batch for the second model")
            assert asking.found(QUERY) == results
            worker.send_signal(signal.SIGKILL)
            worker.wait(20)
        assert vectors_of(log, client, of("one")) == before
        assert asking.found(QUERY) == results
        append(log, 1, [prompt(1, "please remember that the quokka sleeps at noon", session="q")])
        with memctl("worker", environment=second, log=folder / "third.log"):
            until(lambda: any("quokka" in each.text for each in server.asked if each.body["model"] == "one"))
            until(lambda: "quokka" in asking.search("quokka at noon").results[0].text)
            assert names(log).keys() == {"serving", "filling"}
            held.set()
            until(lambda: names(log) == {"serving": of("two").name, "previous": of("one").name}, "the switch")
            until(lambda: asking.search(QUERY).degraded == [], "the embedder of the vectors of now")
            after = asking.found(QUERY)
        assert drifted(log, client) == []
        found = vectors_of(log, client, of("two"))
        drop_collections(log, client, live(log))
        log.execute("DELETE FROM memctl.embeddings")
        with memctl("worker", environment=second, log=folder / "anew.log"):
            until(lambda: drifted_none(log, client) and written(log) and not waits(log), "all of it made anew")
        assert vectors_of(log, client, of("two")) == found
        # Counted again, as by a process that is started now.
        asking.engine._sources._looked.clear()
        assert asking.found(QUERY) == after


def of(model: str) -> Recipe:
    return Recipe("openai", model)


def written(log: Connection) -> int:
    return len(list(outbox.wanted(log, live(log), 1))) and outbox.backlog(log, live(log))[0] == 0


def waits(log: Connection) -> int:
    row = log.execute("SELECT count(*) FROM memctl.waiting_for_vectors").fetchone()
    assert row is not None
    return int(row[0])


def batch(asked: object, model: str) -> bool:
    body = asked.body  # type: ignore[attr-defined]
    return body["model"] == model and len(body["input"]) > 1


def drifted_none(log: Connection, client: QdrantClient) -> bool:
    try:
        return drifted(log, client) == []
    except store.VectorStoreUnavailable:
        return False
