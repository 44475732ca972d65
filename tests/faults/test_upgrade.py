"""A database of each released schema, with data in it, is brought up to date: all is as it was, and goes on.

`tests/data/schema-NNNN.sql.gz` is such a database as the memctl of that schema left it and pg_dump wrote it: a session
whose first 20 events were folded, another telling of its first prompt, and the rest; also events that were
forgotten, and a row in each table that steers. The first is 0014. Before a migration is added,
`python tests/schema_dump.py` writes the dump of the schema as it is.
"""

from __future__ import annotations

import gzip
import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import dying
import pytest
import servers
from data_dirs import used
from draining import catch_up
from events import prompt
from histories import digests, drained, example
from processes import memctl
from qdrant_client import QdrantClient
from schema_dump import forgotten, told_otherwise
from waiting import until, waits_for_a_lock

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.domain.events.event import UnknownEventType, stream_hash
from memctl.domain.events.observations import event_id_of
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect
from memctl.infra.embedders import Embedders
from memctl.infra.log import migrate as migrations
from memctl.infra.log.append import append
from memctl.infra.log.audit import astray, hashed, open_guards
from memctl.infra.log.mark import last_position, mark, move_mark
from memctl.infra.log.migrate import NewerSchema, OlderSchema, migrate, refuse_newer
from memctl.infra.log.spaces import installation
from memctl.infra.readmodels import generations
from memctl.infra.settings import load_settings
from memctl.infra.vectors import drift, outbox, store
from memctl.infra.vectors import models as vector_models
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.refold import refold
from memctl.workers.rebuild.replay import replay, rollback
from memctl.workers.vectors.outbox_publisher import OutboxPublisher, drop_collections, drop_leftovers

RELEASED = sorted((Path(__file__).parents[1] / "data").glob("schema-*.sql.gz"))
VERSIONS = Path(migrations.__file__).parent / "migrations" / "versions"


class Anew(NamedTuple):
    schema: set[str]
    digests: object


@pytest.fixture(scope="module")
def made_anew(postgres_server: str, migrated_template: str) -> Anew:
    """A database of today's schema that was told the same events."""
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
        generations.ensure_live(fresh, 1)
        append(fresh, 1, [*example(0), told_otherwise(), *example(1)])
        drained(url)
        return Anew(schema_of(fresh), digests(fresh))


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.name.partition(".")[0])
def test_an_upgrade_leaves_every_table_as_it_was_and_the_log_goes_on(
    dump: Path, postgres_url: str, made_anew: Anew
) -> None:
    with connect(postgres_url) as old:
        old.execute(gzip.decompress(dump.read_bytes()))
    with connect(postgres_url) as old:  # another one: what pg_dump sets holds for a connection
        columns = columns_of(old)
        del columns["schema_version"]
        columns.pop("compacted_deliveries", None)  # its rows are deliveries', too
        before = rows_of(old, columns)
    assert len(before["events"]) > 20
    migrate(postgres_url)
    with connect(postgres_url) as new:
        after = rows_of(new, columns)
        assert [table for table in before if after[table] != before[table]] == []
        assert schema_of(new) == made_anew.schema
        assert {answer.status for answer in append(new, 1, forgotten())} == {"forgotten"}
        again = append(new, 1, [*example(0), told_otherwise()])
        assert {answer.status for answer in again} == {"duplicate"}
        append(new, 1, example(1))
        replay(postgres_url, None, processes=1)  # today's rules may be others than those the old rows were made by
        drained(postgres_url)
        assert digests(new) == made_anew.digests
        found = hashed(new, move_mark(new))
        assert (found.altered.count, found.misplaced.count, open_guards(new)) == (0, 0, [])


def test_points_that_the_memctl_of_before_had_queued_or_was_to_embed_are_written_by_this_one(
    postgres_url: str, client: QdrantClient
) -> None:
    dump = next(each for each in RELEASED if each.name.startswith("schema-0014"))
    with connect(postgres_url) as old:
        old.execute(gzip.decompress(dump.read_bytes()))
        old.execute("UPDATE memctl.outbox_g2 SET dense = true WHERE version % 2 = 0")
    migrate(postgres_url)
    with connect(postgres_url) as new:
        generation = generations.live(new).stage2
        before = f"memctl-{installation(new)}-g{generation}"
        store.ensure_collection(client, before, 384)
        vector_models.begin(new, Embedders())
        points = OutboxPublisher(new, client, generation)
        drop_leftovers(new, client)
        wanted = sum(1 for _ in outbox.wanted(new, generation, 1))
        assert points.backlog() == (wanted, 0)
        while points.sync():
            pass
        assert points.backlog() == (0, wanted) != (0, 0)
        assert [part.keys for part in drift.scan(new, client, generation)] == [[]]
        assert before not in store.list_collections(client)
        drop_collections(new, client, generation)


def test_appends_that_are_under_way_when_the_mark_is_split_by_space_are_waited_for_and_none_is_skipped(
    postgres_url: str,
) -> None:
    """One holds a position, another has begun by the functions of before and waits; the migration is killed once."""
    dump = next(each for each in RELEASED if each.name.startswith("schema-0015"))
    migrating = "SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND mode = 'ExclusiveLock'"
    with connect(postgres_url) as old:
        old.execute(gzip.decompress(dump.read_bytes()))
    with (
        connect(postgres_url) as log,
        connect(postgres_url, autocommit=False) as early,
        connect(postgres_url, autocommit=False, name="late") as late,
        ThreadPoolExecutor(2) as threads,
    ):
        (was,) = log.execute("SELECT position FROM memctl.mark").fetchone() or (None,)
        [held] = append(early, 1, [prompt(1)])
        killed = threads.submit(migrate, postgres_url, "0016")
        until(lambda: log.execute(migrating).fetchone())
        log.execute(f"SELECT pg_terminate_backend(pid) FROM ({migrating}) AS m".encode())
        assert killed.exception() is not None
        assert migrations.revisions(log)[0] == "0015"
        migrated = threads.submit(migrate, postgres_url, "0016")
        until(lambda: log.execute(migrating).fetchone())
        waiting = threads.submit(append, late, 1, [prompt(2)])
        until(lambda: waits_for_a_lock(log, "late"))
        early.commit()
        migrated.result()
        [begun] = waiting.result()
        assert held.position < begun.position
        assert mark(log, 1) == mark(log) == was
        append(log, 1, [prompt(3)])
        assert move_mark(log, patience_s=0) < begun.position
        late.commit()
        assert move_mark(log) == last_position(log) > begun.position


@pytest.fixture
def of_0017(postgres_url: str) -> str:
    """A database as the memctl of before partitions left it, with some more in its log."""
    dump = next(each for each in RELEASED if each.name.startswith("schema-0017"))
    with connect(postgres_url) as old:
        old.execute(gzip.decompress(dump.read_bytes()))
    with connect(postgres_url) as old:
        append(old, 1, [event for number in (1, 3, 4) for event in example(number)])
    return postgres_url


@pytest.fixture
def mortals(tmp_path: Path) -> Iterator[dying.Mortals]:
    with dying.mortals(tmp_path / "mortals") as mortals:
        yield mortals


def test_a_log_is_put_into_partitions_under_load_by_a_migration_that_is_killed_at_any_statement(
    of_0017: str, postgres_server: str, migrated_template: str, mortals: dying.Mortals
) -> None:
    arriving = [event for number in range(5, 40) for event in example(number)]
    acknowledged: dict[UUID, int] = {}
    batches, migrated = threading.Semaphore(0), threading.Event()

    def write() -> int:
        """Append one or some at a time, each twice, until all is migrated and written to."""
        sizes, at = itertools.cycle((1, 1, 3, 8)), 0
        with connect(of_0017, name="writer") as writer:
            while batches.acquire() and not (migrated.is_set() and at % 2):
                batch = arriving[at : at + next(sizes)]
                for events, status in ((batch, {"new"}), (batch[:1], {"duplicate"})):
                    answers = append(writer, 1, events)
                    assert {answer.status for answer in answers} == status
                    for event, answer in zip(events, answers, strict=True):
                        at_first = acknowledged.setdefault(event_id_of(1, event.dedupe_key), answer.position)
                        assert at_first == answer.position
                at += len(batch)
        return at

    with connect(of_0017) as log, ThreadPoolExecutor(1) as threads:
        was = dict(log.execute("SELECT event_id, position FROM memctl.events"))
        written = threads.submit(write)
        rounds = itertools.count()
        batches.release(8)
        while mortals.dies(dying.migrate, of_0017, 2 * (killed := next(rounds))):
            batches.release(8)
        migrated.set()
        batches.release(1 << 20)
        count = written.result()
        assert killed >= 10
        assert dict(log.execute("SELECT event_id, position FROM memctl.events")) == was | acknowledged
        assert (astray(log, last_position(log)), open_guards(log)) == ([], [])
        again = append(log, 1, [*example(1), *arriving[:count]])
        assert {answer.status for answer in again} == {"duplicate"}
        replay(of_0017, None, processes=1)
        drained(of_0017)
        with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
            generations.ensure_live(fresh, 1)
            append(fresh, 1, [*reversed(arriving[:count]), *example(0), told_otherwise()])
            append(fresh, 1, [event for number in (4, 3, 1) for event in example(number)])
            drained(url)
            assert digests(log) == digests(fresh)


def test_an_event_that_is_given_another_id_while_deliveries_are_entered_is_entered_by_that_one(
    of_0017: str, mortals: dying.Mortals
) -> None:
    emptied = (
        "UPDATE memctl.events SET payload = NULL, salt = NULL, payload_hash = NULL, sources = NULL, location = '',"
        " causation_id = NULL, correlation_id = NULL, event_id = gen_random_uuid(), dedupe_key = 'gone'"
        " WHERE variant_of IS NOT NULL AND payload IS NOT NULL RETURNING event_id, position"
    )
    with (
        connect(of_0017) as log,
        connect(of_0017, autocommit=False) as forgets,
        ThreadPoolExecutor(1) as threads,
    ):
        answers = itertools.count()
        while log.execute("SELECT to_regclass('memctl.deliveries')").fetchone() == (None,):
            assert mortals.dies(dying.migrate, of_0017, next(answers))
        forgets.execute("INSERT INTO memctl.receipts (receipt, space_id, scope) VALUES (gen_random_uuid(), 1, '{}')")
        forgets.execute("SELECT set_config('memctl.receipt', receipt::text, true) FROM memctl.receipts"
                        " WHERE finished_at IS NULL")  # fmt: skip
        ((given, position),) = forgets.execute(emptied).fetchall()
        migrating = threads.submit(migrate, of_0017)
        until(lambda: waits_for_a_lock(log, "memctl migrate"))
        forgets.commit()
        migrating.result()
        entered = log.execute("SELECT event_id FROM memctl.deliveries WHERE position = %s", [position]).fetchall()
        assert entered == [(given,)]
        assert astray(log, last_position(log)) == []


def test_every_schema_before_the_newest_has_its_dump() -> None:
    known = {file.name.partition("_")[0] for file in VERSIONS.glob("*.py")}
    assert known - {max(known)} <= {dump.name[7:11] for dump in RELEASED}


SCHEMA = r"""
WITH mine AS (SELECT oid, relname FROM pg_class
              WHERE relnamespace = 'memctl'::regnamespace AND relkind = 'r' AND relname !~ '_g[0-9]+$')
SELECT concat_ws(' ', relname, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
                 collname, pg_get_expr(adbin, adrelid))
    FROM mine JOIN pg_attribute ON attrelid = mine.oid AND attnum > 0 AND NOT attisdropped
    LEFT JOIN pg_collation c ON c.oid = attcollation
    LEFT JOIN pg_attrdef ON adrelid = mine.oid AND adnum = attnum
UNION ALL SELECT concat_ws(' ', relname, conname, pg_get_constraintdef(c.oid))
    FROM mine JOIN pg_constraint c ON conrelid = mine.oid
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM mine JOIN pg_index ON indrelid = mine.oid
UNION ALL SELECT concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled) FROM mine JOIN pg_trigger t ON tgrelid = mine.oid
    WHERE NOT tgisinternal
UNION ALL SELECT regexp_replace(pg_get_functiondef(oid), '--[^\n]*|\s+', ' ', 'g') FROM pg_proc
    WHERE pronamespace = 'memctl'::regnamespace
"""


def schema_of(connection: Connection) -> set[str]:
    """Columns, constraints, indexes, triggers and functions, but for the tables of generations and for layout."""
    return {" ".join(row[0].split()) for row in connection.execute(SCHEMA)}


def columns_of(connection: Connection) -> dict[str, str]:
    """By table of memctl's: its columns."""
    return dict(
        connection.execute(
            "SELECT relname, string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute JOIN pg_class c"
            " ON c.oid = attrelid WHERE relnamespace = 'memctl'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0"
            " AND NOT attisdropped GROUP BY relname"
        ).fetchall()
    )


def rows_of(connection: Connection, columns: dict[str, str]) -> dict[str, list[str]]:
    return {
        table: sorted(map(str, connection.execute(f"SELECT ROW({names})::text FROM memctl.{table}")))  # type: ignore[arg-type]
        for table, names in columns.items()
    }


def test_an_event_type_of_a_newer_memctl_stops_the_worker_and_is_not_skipped(
    database_url: str, log: Connection
) -> None:
    append(log, 1, example())
    row = log.execute(
        "INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,"
        " location, session_id, dedupe_key, payload) SELECT gen_random_uuid(), 1, stream, stream_hash, 'told.tomorrow',"
        " 1, occurred_at, actor, location, session_id, 'tomorrow', '{}' FROM memctl.events LIMIT 1 RETURNING position"
    ).fetchone()
    assert row is not None
    append(log, 1, example(1))
    drainer = Drainer(database_url)
    for _ in range(2):  # and once more: it has not passed over it
        with pytest.raises(UnknownEventType, match=r"told\.tomorrow"):
            catch_up(drainer)
    drainer.close()
    live = generations.live(log)
    shard = stream_hash(example()[0].stream) * 4 // 256
    assert generations.offsets(log, live.stage1)[shard].position < row[0]
    with pytest.raises(MemctlError, match=r"told\.tomorrow"):
        replay(database_url, None)
    assert generations.live(log) == live


def test_a_worker_refuses_a_database_of_a_newer_memctl(
    environment: dict[str, str], log: Connection, tmp_path: Path
) -> None:
    log.execute("UPDATE memctl.schema_version SET version_num = '9999'")
    append(log, 1, example())
    with memctl("worker", environment=environment, log=tmp_path / "worker.log") as worker:
        assert worker.wait(30) == 1
    assert "newer version of memctl" in (tmp_path / "worker.log").read_text()
    assert digests(log)["facts"][0] == 0


def test_a_database_from_before_the_first_release_is_left_as_it_is(database_url: str, log: Connection) -> None:
    log.execute("UPDATE memctl.schema_version SET version_num = '0013'")
    with pytest.raises(OlderSchema, match="0013"):
        migrate(database_url)
    with pytest.raises(OlderSchema, match="0013"):
        refuse_newer(log)
    assert log.execute("SELECT version_num FROM memctl.schema_version").fetchone() == ("0013",)


def to_forget(url: str, log: Connection, folder: Path) -> None:
    settings = load_settings(database_url=url, data_dir=used(folder / "data"))
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), match="discount"), None)


ACTS: dict[str, Callable[[str, Connection, Path], object]] = {
    "replay": lambda url, log, folder: replay(url, None),
    "roll back": lambda url, log, folder: rollback(url, None),
    "fold anew": lambda url, log, folder: refold(log, streams=[(1, example()[0].stream)]),
    "forget": to_forget,
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_who_rebuilds_folds_anew_or_forgets_refuses_a_database_of_a_newer_memctl(
    act: Callable[[str, Connection, Path], object], filled_url: str, tmp_path: Path
) -> None:
    """What that one forgets would go on standing where only a newer one looks, with a receipt that says it is gone."""
    replay(filled_url, None, processes=1)
    with connect(filled_url) as log:
        log.execute("UPDATE memctl.schema_version SET version_num = '9999'")
        live, before = generations.live(log), digests(log)
        with pytest.raises(NewerSchema, match="9999"):
            act(filled_url, log, tmp_path)
        assert (generations.live(log), digests(log)) == (live, before)
        assert [stage for _, stage, _ in generations.generations(log, "previous")] == [1, 2]
        assert log.execute("SELECT count(*) FROM memctl.receipts").fetchone() == (0,)
