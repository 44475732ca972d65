"""`verify` over a real log, real rows and a real vector server: each check finds what it is there to find."""

from __future__ import annotations

import json
import random
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
import servers
from data_dirs import used
from draining import catch_up
from histories import EXAMPLE, example
from psycopg import Rollback
from qdrant_client import QdrantClient
from waiting import until

from memctl.api.checks.check import Check
from memctl.api.checks.verify import Verification
from memctl.api.write.ingest import ingest
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra import hook
from memctl.infra.database import Connection, connect
from memctl.infra.embedders import NONE, Embedders, Recipe
from memctl.infra.hooks import spool
from memctl.infra.hooks.capture_policy import CapturePolicy, switch
from memctl.infra.log import audit
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position, move_mark
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings, load_settings
from memctl.infra.vectors import drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.replay import replay
from memctl.workers.vectors.outbox_publisher import DriftScan, OutboxLoop, OutboxPublisher, drop_collections


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


@pytest.fixture(scope="module")
def learnt(postgres_server: str, migrated_template: str, folder: Path) -> Iterator[str]:
    """Name of a database whose memory has read both transcripts and is caught up: a template for each test's own."""
    write_sessions(folder)
    with servers.fresh_database(postgres_server, template=migrated_template) as url:
        with IngestWriter(
            load_settings(database_url=url, data_dir=used(folder.with_name("memctl")), stage1_shards=4)
        ) as intake:
            ingest(intake, [folder])
        drainer = Drainer(url)
        catch_up(drainer)
        drainer.close()
        yield urlsplit(url).path.lstrip("/")


def write_sessions(folder: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    (folder / "one.jsonl").write_text(text, encoding="utf-8")
    other = text.replace("3f6f1d52", "4f6f1d52").replace('"uuid": "', '"uuid": "x').replace("toolu_", "toolu_x")
    (folder / "two.jsonl").write_text(other.replace('"parentUuid": "', '"parentUuid": "x'), encoding="utf-8")


@pytest.fixture
def sessions(folder: Path) -> Path:
    """Two transcripts, as they were read."""
    write_sessions(folder)
    return folder


@pytest.fixture
def settings(
    postgres_server: str, learnt: str, vectors: tuple[str, str], sessions: Path, tmp_path: Path
) -> Iterator[Settings]:
    url, token = vectors
    with servers.fresh_database(postgres_server, template=learnt) as own:
        yield load_settings(
            database_url=own, qdrant_url=url, qdrant_api_key=token, data_dir=tmp_path / "data", embedder="none"
        )


@pytest.fixture
def memory(settings: Settings, client: QdrantClient) -> Iterator[Connection]:
    """A memory that has read both transcripts and is caught up, with its points written."""
    with connect(settings.require("database_url")) as connection:
        name = collection(connection)
        store.drop_collection(client, name)  # copies of one database share its name
        write_points(connection, client)
        yield connection
        store.drop_collection(client, name)


def write_points(connection: Connection, client: QdrantClient) -> None:
    points = OutboxPublisher(connection, client, generations.live(connection).stage2)
    while points.sync():
        pass


def collection(connection: Connection) -> str:
    return outbox.collection_of(connection, generations.live(connection).stage2)


def tamper(connection: Connection, statement: str, *parameters: object) -> None:
    """What only somebody with the owner's rights can do to the log, and nobody should."""
    with connection.transaction():
        connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER USER")
        connection.execute(statement.encode(), parameters)
        for trigger in ("no_change", "no_truncate", "hold_positions", "deliver", "deliver_again"):
            connection.execute(f"ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_{trigger}".encode())


def verified(settings: Settings, *paths: Path, repair: bool = False) -> dict[str, Check]:
    return {f"{one.part}: {one.name}": one for one in Verification(settings, paths, repair).checks()}


def gaps(settings: Settings, *paths: Path) -> dict[str, tuple[str, ...]]:
    return {name: one.found for name, one in verified(settings, *paths).items() if one.result == "gap"}


def some_position(connection: Connection) -> int:
    row = connection.execute("SELECT position FROM memctl.events ORDER BY position OFFSET 7 LIMIT 1").fetchone()
    assert row is not None
    position: int = row[0]
    return position


def test_a_sound_memory_has_no_gap_and_its_numbers_add_up(settings: Settings, memory: Connection) -> None:
    found = verified(settings)
    assert {name: one.found for name, one in found.items() if one.result != "ok"} == {}
    lines = found["transcripts: lines"].numbers
    assert lines["lines"] == lines["with_events"] + lines["ignored"] + lines["blank"] + lines["bad"] > 0
    assert found["log: payload hashes"].numbers["events"] == lines["events"] > 20
    assert found["readers: streams"].numbers == {"streams": 2, "folded_again": 2}
    points = found["vectors: points"].numbers
    assert points["wanted"] == points["stored"] > 5


def test_nothing_is_changed_by_looking(settings: Settings, memory: Connection) -> None:
    def state() -> object:
        counted = "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE schemaname='memctl'"
        memory.execute("SELECT pg_stat_force_next_flush()")
        return sorted(row for row in memory.execute(counted.encode()) if row[0] not in ("mark", "mark_history"))

    verified(settings)
    before = state()
    verified(settings)
    assert state() == before


def test_there_is_no_false_alarm_while_sessions_come_in(settings: Settings, memory: Connection) -> None:
    """Between any two checks more is appended, stage 1 reads some of it, and now and then stage 2 does."""
    coming = iter([event for number in (3, 4, 5) for event in reversed(example(number))])
    drainer = Drainer(settings.require("database_url"), 10)
    found = []
    for number, one in enumerate(Verification(settings).checks()):
        found.append(one)
        append(memory, 1, [event for _, event in zip(range(4), coming, strict=False)])
        drainer.drain(1, number % 4)
        if number % 5 == 0:
            for shard in range(number % generations.shards(memory, generations.live(memory).stage2)):
                drainer.drain(2, shard)
    drainer.close()
    assert {f"{one.part}: {one.name}": one.found for one in found if one.result != "ok"} == {}


# --- the log ---


def test_a_payload_that_was_changed_is_named_by_its_position(settings: Settings, memory: Connection) -> None:
    at = some_position(memory)
    changed = "UPDATE memctl.events SET payload = jsonb_set(payload, '{line}', '\"another\"') WHERE position = %s"
    tamper(memory, changed, at)
    assert gaps(settings)["log: payload hashes"] == (f"position {at}: the payload is not the one that was appended",)


def test_a_payload_that_was_emptied_without_an_erasure_is_named(settings: Settings, memory: Connection) -> None:
    at = some_position(memory)
    tamper(memory, "UPDATE memctl.events SET payload = NULL WHERE position = %s", at)
    assert gaps(settings)["log: payload hashes"] == (f"position {at}: the payload is not the one that was appended",)


def test_an_event_under_another_key_stream_or_type_is_named(settings: Settings, memory: Connection) -> None:
    at = some_position(memory)
    tamper(memory, "UPDATE memctl.events SET dedupe_key = dedupe_key || '!' WHERE position = %s", at)
    tamper(memory, "UPDATE memctl.events SET stream_hash = (stream_hash + 1) %% 256 WHERE position = %s", at)
    tamper(memory, "UPDATE memctl.events SET type = 'prompt.sung' WHERE position = %s", at + 1)
    tamper(memory, "UPDATE memctl.events SET schema_version = 99 WHERE position = %s", at + 2)
    found = gaps(settings)
    assert found["log: event ids"] == (f"position {at}: the id is not the one of its dedupe key",)
    assert found["log: shards"] == (f"position {at}: its shard is not that of its stream",)
    assert found["log: event types"][0] == f"position {at + 1}: prompt.sung, version 1"
    assert found["log: event types"][1].startswith(f"position {at + 2}: ")


def test_a_payload_that_no_longer_decodes_is_named(settings: Settings, memory: Connection) -> None:
    at = some_position(memory)
    tamper(memory, "UPDATE memctl.events SET payload = '[1]' WHERE position = %s", at)
    (told,) = gaps(settings)["log: payloads"]
    assert told.startswith(f"position {at}: ")


def test_a_variant_whose_first_delivery_is_gone_is_named(settings: Settings, memory: Connection) -> None:
    first = example(9)[0]
    second = msgspec.structs.replace(first, location="/somewhere/else")
    (_, variant) = append(memory, 1, [first, second])
    assert variant.status == "variant"
    assert "log: variants" not in gaps(settings)
    tamper(memory, "DELETE FROM memctl.events WHERE dedupe_key = %s", first.dedupe_key)
    told = f"position {variant.position}: the first delivery is not in the log"
    assert gaps(settings)["log: variants"] == (told,)


@pytest.mark.parametrize(
    ("open_it", "told"),
    [
        ("ALTER TABLE memctl.events DISABLE TRIGGER events_no_change", "trigger events_no_change is not ENABLE ALWAYS"),
        ("ALTER TABLE memctl.events ENABLE TRIGGER events_no_truncate", "events_no_truncate is not ENABLE ALWAYS"),
        ("DROP TRIGGER events_hold_positions ON memctl.events", "trigger events_hold_positions is not there"),
        (
            "CREATE OR REPLACE FUNCTION memctl.refuse_change() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN RETURN NEW; END'",
            "trigger events_no_change does not do what it is there for",
        ),
        ("ALTER TABLE memctl.deliveries DROP CONSTRAINT deliveries_pkey", "index deliveries_pkey"),
        ("ALTER TABLE memctl.events_from_1 DISABLE TRIGGER events_no_change", "of partition events_from_1 is not"),
        ("ALTER SEQUENCE memctl.events_position_seq CACHE 20", "readers may have passed some by"),
        ("ALTER SEQUENCE memctl.events_position_seq CYCLE", "the sequence of positions"),
    ],
)
def test_a_log_that_could_be_changed_is_a_gap(settings: Settings, memory: Connection, open_it: str, told: str) -> None:
    memory.execute(open_it.encode())
    assert told in " ".join(gaps(settings)["log: guards"])


def test_holes_are_counted_and_are_no_gap(settings: Settings, memory: Connection) -> None:
    append(memory, 1, example(1)[:3])
    with memory.transaction() as undone:
        append(memory, 1, example(2)[:5])
        raise Rollback(undone)
    append(memory, 1, example(1)[:3])  # duplicates
    before = verified(settings)["log: positions"]
    assert before.result == "ok"
    assert before.numbers["mark"] == last_position(memory)
    assert before.numbers["holes"] == 8


def test_a_mark_beyond_what_was_handed_out_is_a_gap(settings: Settings, memory: Connection) -> None:
    end = last_position(memory)
    memory.execute("UPDATE memctl.mark SET position = position + 5")
    assert gaps(settings)["log: positions"][0].startswith(f"the mark is {end + 5}, and only {end} positions")


def test_a_sequence_that_was_set_back_is_a_gap(settings: Settings, memory: Connection) -> None:
    memory.execute("SELECT setval(pg_get_serial_sequence('memctl.events', 'position'), 3)")
    assert any("only 3 positions were handed out" in told for told in gaps(settings)["log: positions"])


def test_windows_add_up_whatever_their_size(memory: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = move_mark(memory)
    whole = audit.hashed(memory, mark), audit.decoded(memory, mark)
    monkeypatch.setattr(audit, "HASHED", 3)
    monkeypatch.setattr(audit, "DECODED", 7)
    parts = audit.hashed(memory, mark), audit.decoded(memory, mark)
    assert parts[0].events == whole[0].events == parts[1].events == whole[1].events > 20
    assert parts[1].types == whole[1].types


def test_events_above_the_mark_are_told_and_not_judged(settings: Settings, memory: Connection) -> None:
    with connect(settings.require("database_url"), autocommit=False) as writer:
        append(writer, 1, example(3)[:2])  # not committed: the mark has to wait
        append(memory, 1, example(4)[:4])
        found = verified(settings)["log: positions"]
        assert found.result == "ok"
        assert found.numbers["above"] == 4
        writer.rollback()


# --- those who read it ---


def test_a_reader_beyond_the_mark_and_one_left_behind_are_gaps(settings: Settings, memory: Connection) -> None:
    live = generations.live(memory)
    memory.execute(
        "UPDATE memctl.offsets SET position = position + 7 WHERE generation = %s AND shard = 1", [live.stage1]
    )
    memory.execute("UPDATE memctl.offsets SET position = 0 WHERE generation = %s AND shard = 2", [live.stage1])
    assert "readers: offsets" in gaps(settings)
    memory.execute("UPDATE memctl.mark_history SET reached_at = reached_at - interval '10 minutes'")
    beyond, behind = gaps(settings)["readers: offsets"]
    assert beyond.startswith("stage 1, shard 1: at ")
    assert behind.startswith("stage 1, shard 2: ")
    assert re.search(r"for 1\d min$", behind)


def test_a_reader_that_has_only_just_fallen_behind_is_no_gap(settings: Settings, memory: Connection) -> None:
    append(memory, 1, example(5))
    assert "readers: offsets" not in gaps(settings)


def test_a_lease_that_nobody_can_hold_that_long_is_a_gap(settings: Settings, memory: Connection) -> None:
    live = generations.live(memory)
    assert generations.acquire(memory, live.stage1, 0, "somebody") is not None
    assert "readers: leases" not in gaps(settings)
    memory.execute("UPDATE memctl.offsets SET lease_until = clock_timestamp() + interval '1 day' WHERE shard = 0")
    assert "somebody holds it" in gaps(settings)["readers: leases"][0]


def test_a_generation_that_is_not_whole_is_a_gap(settings: Settings, memory: Connection) -> None:
    live = generations.live(memory)
    memory.execute(f"DROP TABLE memctl.insights_g{live.stage2}".encode())
    assert f"table memctl.insights_g{live.stage2} is not there" in gaps(settings)["readers: live generations"]


def test_rows_folded_by_other_rules_are_a_gap(settings: Settings, memory: Connection) -> None:
    memory.execute("UPDATE memctl.generations SET fingerprint = 'of yesterday'")
    assert "readers: rules" in gaps(settings)


def test_a_session_without_rows_and_rows_without_a_session_are_gaps(settings: Settings, memory: Connection) -> None:
    stage1 = generations.live(memory).stage1
    streams = [row[0] for row in memory.execute(f"SELECT stream FROM memctl.sessions_g{stage1} ORDER BY 1".encode())]
    memory.execute(f"DELETE FROM memctl.sessions_g{stage1} WHERE stream = %s".encode(), [streams[0]])
    tamper(memory, "DELETE FROM memctl.events WHERE stream = %s", streams[1])
    found = gaps(settings)
    assert found["readers: streams"] == (
        f"{streams[0]}: read, and has no rows",
        f"{streams[1]}: has rows, and no event",
    )


def test_a_row_that_is_not_what_the_events_give_is_found(settings: Settings, memory: Connection) -> None:
    stage1 = generations.live(memory).stage1
    changed = f"UPDATE memctl.sessions_g{stage1} SET row = jsonb_set(row, '{{prompts}}', '77') RETURNING stream"
    streams = sorted(row[0] for row in memory.execute(changed.encode()))
    assert gaps(settings)["readers: streams"] == tuple(
        f"{stream}: its rows are not what its events give" for stream in streams
    )


def test_rows_of_stage_2_that_are_gone_are_named(settings: Settings, memory: Connection) -> None:
    stage2 = generations.live(memory).stage2
    gone = [row[0] for row in memory.execute(f"DELETE FROM memctl.insights_g{stage2} RETURNING key".encode())]
    found = gaps(settings)
    assert {f"insights:{key}: is not what its sources give" for key in gone} <= set(found["readers: rows"])
    assert "readers: routes" in found  # what they went to is without a source


def test_a_session_of_which_nothing_is_told_needs_no_row(settings: Settings, memory: Connection) -> None:
    from events import observed

    from memctl.domain.events.observations import NoticeReceived

    append(memory, 1, [observed(NoticeReceived(line="n", kind="saving_was_off of"), session="quiet")])
    catch_up(Drainer(settings.require("database_url")))
    found = verified(settings)["readers: streams"]
    assert found.result == "ok"
    assert found.numbers["streams"] == 3


# --- transcripts ---


def test_an_event_that_was_deleted_is_named_by_file_and_line(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    lines = (sessions / "one.jsonl").read_text(encoding="utf-8").splitlines()
    number, uid = next(
        (n, json.loads(line)["uuid"]) for n, line in enumerate(lines, 1) if json.loads(line)["type"] == "assistant"
    )
    tamper(memory, "DELETE FROM memctl.events WHERE payload->>'line' = %s", uid)
    found = gaps(settings)
    (told,) = found["transcripts: lines"]
    assert told.startswith(f"{sessions / 'one.jsonl'}:{number}  ")
    assert told.endswith(": not in the log")
    assert gaps(settings, sessions / "one.jsonl")["transcripts: lines"] == (told,)
    assert "transcripts: lines" not in gaps(settings, sessions / "two.jsonl")


def test_the_facts_that_rest_on_a_deleted_event_are_named(settings: Settings, memory: Connection) -> None:
    stage1 = generations.live(memory).stage1
    row = memory.execute(
        f"SELECT (payload->'evidence'->0->>'event')::uuid FROM memctl.facts_g{stage1}"
        " WHERE jsonb_array_length(payload->'evidence') > 0 LIMIT 1".encode()
    ).fetchone()
    assert row is not None
    assert "readers: evidence" not in gaps(settings)
    tamper(memory, "DELETE FROM memctl.events WHERE event_id = %s", row[0])
    assert str(row[0]) in gaps(settings)["readers: evidence"][0]


def test_a_file_that_has_grown_is_behind_and_no_gap_unless_it_is_named(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    grown = sessions / "one.jsonl"
    end = len(grown.read_text(encoding="utf-8").splitlines())
    more = {"type": "user", "uuid": "new", "sessionId": "s", "message": {"content": "and one thing more, please"}}
    with grown.open("a", encoding="utf-8") as file:
        file.write(json.dumps(more) + "\n")
    found = verified(settings)
    assert found["transcripts: lines"].result == "ok"
    assert found["transcripts: lines"].numbers["unread"] == 1
    (told,) = gaps(settings, grown)["transcripts: lines"]
    assert told.startswith(f"{grown}:{end + 1}  ")


def test_what_was_told_while_saving_was_off_is_not_missed_and_whatever_else_is_gone_is(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace("3f6f1d52", "99999999")
    lines = re.sub(r'(?<="timestamp": ")2026', "2126", text).splitlines(keepends=True)
    hushed = sessions / "hushed.jsonl"

    def read(text: str, mode: str) -> None:
        with hushed.open(mode, encoding="utf-8") as file:
            file.write(text)
        with IngestWriter(settings) as intake:
            ingest(intake, [hushed], policy=CapturePolicy(settings))

    switch(settings.data_dir, False, ["save"])
    read("".join(lines[:10]), "w")
    switch(settings.data_dir, True)
    read("".join(lines[10:]), "a")
    for found in (verified(settings), verified(settings, hushed)):
        assert found["transcripts: lines"].result == "ok"
        assert "said while saving was off" in found["transcripts: lines"].counted
    tamper(memory, "DELETE FROM memctl.events WHERE starts_with(session_id, '99999999')")
    assert len(gaps(settings, hushed)["transcripts: lines"]) > 1


def said_in(file: Path, text: str) -> None:
    """Write what a user says now, in a session of the file's name."""
    now = datetime.now(UTC).isoformat()
    line = {"type": "user", "uuid": text, "sessionId": file.stem, "timestamp": now, "message": {"content": text}}
    with file.open("a", encoding="utf-8") as more:
        more.write(json.dumps(line) + "\n")


def test_what_was_said_while_saving_was_off_and_nobody_read_it_is_not_kept_nor_missed(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    file = sessions / "down.jsonl"
    said_in(file, "said before it was off")
    switch(settings.data_dir, False, session="down")
    said_in(file, "said while it was off")
    switch(settings.data_dir, True, session="down")
    said_in(file, "said once it was on")
    with IngestWriter(settings) as intake:
        ingest(intake, [file], policy=CapturePolicy(settings))
    rows = memory.execute("SELECT payload->>'text' FROM memctl.events WHERE session_id = 'down' ORDER BY position")
    assert [text for (text,) in rows] == ["said before it was off", "said once it was on"]
    assert verified(settings, file)["transcripts: lines"].result == "ok"


def test_what_was_said_before_saving_went_off_is_kept_though_it_is_read_while_it_is_off(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    file = sessions / "behind.jsonl"
    said_in(file, "said before it was off")
    switch(settings.data_dir, False)
    said_in(file, "said while it was off")
    with IngestWriter(settings) as intake:
        ingest(intake, [file], policy=CapturePolicy(settings))
    rows = memory.execute("SELECT payload->>'text' FROM memctl.events WHERE session_id = 'behind' ORDER BY position")
    assert [text for (text,) in rows] == ["said before it was off"]
    assert verified(settings, file)["transcripts: lines"].result == "ok"


def test_what_is_named_and_is_no_transcript_proves_nothing(
    settings: Settings, memory: Connection, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("not a transcript\n")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "notes.txt", tmp_path / "folder"):
        assert gaps(settings, path) == {"transcripts: files": (f"{path}  no transcript is there",)}


def test_a_file_that_is_gone_is_told_and_its_events_are_not_missed(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    (sessions / "two.jsonl").unlink()
    found = verified(settings)
    assert found["transcripts: files"].numbers == {"gone": 1}
    assert found["transcripts: files"].result == found["transcripts: lines"].result == "ok"


def test_a_file_that_was_written_anew_is_not_taken_for_the_one_that_was_read(
    settings: Settings, memory: Connection, sessions: Path
) -> None:
    line = {"type": "user", "uuid": "other", "sessionId": "z", "message": {"content": "something else entirely"}}
    (sessions / "one.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    found = verified(settings)
    assert found["transcripts: lines"].result == "ok"
    assert found["transcripts: lines"].numbers["unread"] == 1


# --- vectors ---


def drifted(connection: Connection, client: QdrantClient) -> list[str]:
    """Break one point in each way there is; returns their ids, the extra one last."""
    name, generation = collection(connection), generations.live(connection).stage2
    rows = dict(outbox.wanted(connection, generation, 1))
    keys = [key for _, key in rows]
    lost, changed = random.Random(1).sample(keys, 2)
    store.delete(client, name, [lost])
    client.set_payload(name, {"text_hash": "0" * 16}, points=[changed], wait=True)
    extra = str(uuid.UUID(int=5))
    payload = outbox.payload_of(rows[1, changed], "default")
    store.upsert(client, name, [store.NewPoint(extra, payload, ([1], [1.0]))])
    return [lost, changed, extra]


def test_points_that_are_lost_changed_or_too_many_are_named(
    settings: Settings, memory: Connection, client: QdrantClient
) -> None:
    lost, changed, extra = drifted(memory, client)
    assert gaps(settings)["vectors: points"] == (
        f"{lost}: missing", f"{changed}: not as it should be", f"{extra}: should not be there",
    )  # fmt: skip


def test_the_scan_finds_the_same_over_many_pages(
    memory: Connection, client: QdrantClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = drifted(memory, client)
    for module, name, size in ((store, "SCROLL_PAGE", 3), (outbox, "PAGE", 4), (drift, "STRIDE", 5)):
        monkeypatch.setattr(module, name, size)
    found = drift.Drift()
    for part in drift.scan(memory, client, generations.live(memory).stage2):
        found.add(part)
    assert [key[1] for key in (*found.missing, *found.differing, *found.extra)] == ids
    assert found.wanted == found.stored > 10  # one is missing, one too many


def test_a_point_without_its_dense_vector_is_drift_only_where_one_is_wanted(
    memory: Connection, client: QdrantClient
) -> None:
    generation = generations.live(memory).stage2
    wanted = [key for key, _ in outbox.wanted(memory, generation, 1)]
    model = vector_models.want(memory, Recipe("tests", "a-model"), 384).filling
    write_points(memory, client)
    (part,) = drift.scan(memory, client, generation, model)
    assert (part.keys, part.waiting) == ([], len(wanted))
    memory.execute("DELETE FROM memctl.waiting_for_vectors")
    (part,) = drift.scan(memory, client, generation, model)
    assert part.without_dense == wanted
    (part,) = drift.scan(memory, client, generation)
    assert part.keys == []
    drop_collections(memory, client, generation)


def test_what_is_queued_to_be_written_is_no_drift(settings: Settings, memory: Connection, client: QdrantClient) -> None:
    generation = generations.live(memory).stage2
    key = next(key for key, _ in outbox.wanted(memory, generation, 1))
    store.delete(client, collection(memory), [key[1]])
    readmodels.queue_points(memory, generation, [key])
    found = verified(settings)["vectors: points"]
    assert found.result == "ok"
    assert found.counted.endswith("1 under way")


def test_the_workers_scan_repairs_what_drifted(memory: Connection, client: QdrantClient) -> None:
    generation = generations.live(memory).stage2
    lost, changed, extra = drifted(memory, client)
    scrub = DriftScan(memory, client)
    while scrub.step(generation):
        pass
    assert outbox.backlog(memory, generation) == (3, 0)
    write_points(memory, client)
    assert set(store.look_up(client, collection(memory), [lost, changed, extra])) == {lost, changed}
    (part,) = drift.scan(memory, client, generation)
    assert part.keys == []
    assert not scrub.step(generation), "it rests until the next one is due"


def test_a_worker_mends_drift_when_it_starts_and_verify_has_it_mended_when_asked(
    settings: Settings, memory: Connection, client: QdrantClient
) -> None:
    name = collection(memory)
    lost, changed, extra = drifted(memory, client)
    url, key = settings.require("qdrant_url"), settings.qdrant_api_key
    loop = OutboxLoop(settings.require("database_url"), url, key, Embedders(NONE))
    loop.start()
    try:
        until(lambda: set(store.look_up(client, name, [lost, extra])) == {lost}, "the lost point's return")
        until(lambda: gaps(settings) == {}, "the end of the scan")
        drifted(memory, client)  # the worker's next scan is due in an hour
        assert "vectors: points" in gaps(settings)
        found = verified(settings, repair=True)["vectors: points"]
    finally:
        loop.stop()
    assert found.result == "ok"
    assert found.numbers["repaired"] == 3
    assert set(store.look_up(client, name, [lost, changed, extra])) == {lost, changed}


def test_a_collection_that_is_gone_is_told_with_what_happens_next(
    settings: Settings, memory: Connection, client: QdrantClient
) -> None:
    store.drop_collection(client, collection(memory))
    found = verified(settings)["vectors: points"]
    assert found.found == ("the collection is not there",)
    assert "worker" in found.advice


def test_a_vector_server_out_of_reach_is_a_gap_and_the_rest_is_looked_at(
    settings: Settings, memory: Connection
) -> None:
    found = verified(settings.model_copy(update={"qdrant_url": "http://127.0.0.1:9"}))
    assert {name for name, one in found.items() if one.result == "gap"} == {"vectors: vectors"}
    assert found["transcripts: lines"].result == "ok"


# --- the spool ---


def test_the_spool_is_accounted_for(settings: Settings, memory: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = settings.data_dir / "spool"
    old = spool.Delivery("ab" * 16, 1_700_000_000_000_000, "claude-code", "Stop", b"{}")
    spool.spool(folder, old)
    spool.set_aside(spool.spooled(folder)[0], "damaged")
    spool.spool(folder, old._replace(id="cd" * 16))
    monkeypatch.setattr(hook, "MOST_FILES", 1)
    assert spool.spool(folder, old._replace(id="ef" * 16)) is None
    found = gaps(settings)
    assert set(found) == {"spool: deliveries", "spool: set aside", "spool: refusals"}
    assert found["spool: refusals"][0].startswith("1 delivery not kept (no room, or over 64 MiB), the last at 20")
    assert found["spool: set aside"][0].endswith(".damaged")


# --- what there is to look at ---


def test_a_memory_that_holds_nothing_lacks_but_its_collection(settings: Settings, database_url: str) -> None:
    with connect(database_url) as connection:
        generations.ensure_live(connection, 2)
    found = verified(settings.model_copy(update={"database_url": database_url}))
    assert {name for name, one in found.items() if one.result == "gap"} == {"vectors: points"}
    assert found["transcripts: lines"].result == "skipped"


def test_without_a_database_there_is_nothing_to_verify(settings: Settings) -> None:
    from memctl.infra.database import DatabaseUnavailable

    with pytest.raises(DatabaseUnavailable):
        verified(settings.model_copy(update={"database_url": "postgresql:///nowhere?host=/nowhere"}))


def test_a_connection_that_is_lost_in_any_part_is_no_gap_and_nothing_is_told_twice(
    settings: Settings, memory: Connection
) -> None:
    undisturbed = list(verified(settings))
    found: list[Check] = []
    for one in Verification(settings).checks():
        if one.part not in {each.part for each in found}:  # the rest of the part is still to be looked at
            memory.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE application_name = 'memctl verify' AND datname = current_database()"
            )
        found.append(one)
    assert [f"{one.part}: {one.name}" for one in found] == undisturbed
    assert [one for one in found if one.result == "gap"] == []


@pytest.mark.parametrize("store_tells", [True, False], ids=["the store", "the database"])
def test_read_models_that_give_way_to_others_meanwhile_are_no_gap(
    settings: Settings, memory: Connection, client: QdrantClient, monkeypatch: pytest.MonkeyPatch, store_tells: bool
) -> None:
    """Whoever is the first to tell that those are gone that were looked at."""
    for module, name, size in ((store, "SCROLL_PAGE", 3), (outbox, "PAGE", 4), (drift, "STRIDE", 5)):
        monkeypatch.setattr(module, name, size)
    waiting, former = [True], collection(memory)

    def replace(what: str, done: int, of: int) -> None:
        if what == "comparing points" and waiting:
            waiting.clear()
            for _ in range(2):  # the second drops what was live before the first
                replay(settings.require("database_url"), client if store_tells else None, processes=1)
            write_points(memory, client)

    try:
        found = list(Verification(settings, progress=replace).checks())
        assert [one for one in found if one.result == "gap"] == []
        assert [one.name for one in found if one.part == "vectors"] == ["outbox", "points"]
        assert not waiting
    finally:
        for name in (former, collection(memory)):
            store.drop_collection(client, name)


def test_a_failing_statement_of_one_part_does_not_keep_the_others_from_being_looked_at(
    settings: Settings, memory: Connection
) -> None:
    memory.execute("DROP TABLE memctl.checkpoints")
    found = verified(settings)
    assert found["transcripts: transcripts"].result == "gap"
    assert found["spool: deliveries"].result == "ok"
    assert found["log: positions"].result == "ok"
