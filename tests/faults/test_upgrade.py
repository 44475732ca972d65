"""A database of each released schema, with data in it, is brought up to date: the log is as it was, and goes on.

`tests/data/schema-NNNN.sql` is such a database as the memctl of that schema left it and pg_dump wrote it: a session
whose first 20 events were folded, another telling of its first prompt, and the rest. (0002 was released with 0003.)
Before a migration is added, `python tests/schema_dump.py` writes the dump of the schema as it is.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import servers
from histories import digests, drained, example
from processes import memctl
from schema_dump import told_otherwise

from memctl.domain.errors import MemctlError
from memctl.domain.event import UnknownEventType, stream_hash
from memctl.infra import generations
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.audit import hashed, open_guards
from memctl.infra.log.mark import move_mark
from memctl.infra.log.migrate import migrate
from memctl.workers.drain import Drainer, catch_up
from memctl.workers.replay import replay

RELEASED = sorted((Path(__file__).parents[1] / "data").glob("schema-*.sql"))


@pytest.fixture(scope="module")
def undisturbed(postgres_server: str, migrated_template: str) -> object:
    """The digests of the same events, told to a database of today's schema."""
    with servers.fresh_database(postgres_server, template=migrated_template) as url, connect(url) as fresh:
        generations.ensure_live(fresh, 1)
        append(fresh, 1, [*example(0), told_otherwise(), *example(1)])
        drained(url)
        return digests(fresh)


@pytest.mark.parametrize("dump", RELEASED, ids=lambda dump: dump.stem)
def test_an_upgrade_leaves_the_log_as_it_was_and_goes_on_from_it(
    dump: Path, postgres_url: str, undisturbed: object
) -> None:
    with connect(postgres_url) as old:
        old.execute(dump.read_bytes())
    with connect(postgres_url) as old:
        columns = [row[0] for row in old.execute(COLUMNS)]
        before = whole_log(old, columns)
        offsets = {(o.generation, o.shard): o.position for o in generations.offsets(old, 1, 2)}
    assert len(before) > 20
    migrate(postgres_url)
    with connect(postgres_url) as new:
        assert whole_log(new, columns) == before
        assert {(o.generation, o.shard): o.position for o in generations.offsets(new, 1, 2)} == offsets
        again = append(new, 1, [*example(0), told_otherwise()])
        assert {answer.status for answer in again} == {"duplicate"}
        append(new, 1, example(1))
        replay(postgres_url, None)  # today's rules may be others than those the old rows were made by
        drained(postgres_url)
        assert digests(new) == undisturbed
        found = hashed(new, move_mark(new))
        assert (found.altered.count, found.misplaced.count, open_guards(new)) == (0, 0, [])


COLUMNS = """SELECT attname FROM pg_attribute
    WHERE attrelid = 'memctl.events'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""


def whole_log(connection: Connection, columns: list[str]) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT {', '.join(columns)} FROM memctl.events ORDER BY position").fetchall()  # type: ignore[arg-type]


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
