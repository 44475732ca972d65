"""Connections are lost, locks and statements time out, writers idle: a clear error, and then things go on."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
import servers
from draining import catch_up
from events import prompt
from histories import digests, example
from psycopg import sql
from waiting import until

from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import Reader, Readers, TooBusy
from memctl.infra import database
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position, mark, move_mark
from memctl.infra.log.migrate import WrongEncoding, migrate
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer


@pytest.fixture
def readers(database_url: str, log: Connection) -> Iterator[Readers]:
    readers = Readers(database_url, "default", size=3)
    yield readers
    readers.close()


def ask(reader: Reader) -> int:
    row = reader.connection.execute("SELECT count(*) FROM memctl.spaces").fetchone()
    assert row is not None
    return int(row[0])


def end_backends(log: Connection, name: str) -> int:
    row = log.execute(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = %s",
        [name],
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_read_answers_though_every_idle_connection_was_lost(log: Connection, readers: Readers) -> None:
    readers.read(lambda one: readers.read(lambda two: readers.read(ask, OWNER), OWNER), OWNER)
    assert end_backends(log, "memctl api") == 3
    assert readers.read(ask, OWNER) == 1
    assert readers.read(ask, OWNER) == 1


def test_a_connection_that_is_lost_again_and_again_is_told_as_an_outage_and_the_next_read_answers(
    readers: Readers,
) -> None:
    def lose_it(reader: Reader) -> None:
        reader.connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(DatabaseUnavailable, match="went away"):
        readers.read(lose_it, OWNER)
    assert readers.read(ask, OWNER) == 1


def test_a_read_that_takes_too_long_is_ended_and_told_as_busy(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.reading.reader.STATEMENT_MS", 100)
    with pytest.raises(TooBusy):
        readers.read(lambda reader: reader.connection.execute("SELECT pg_sleep(30)"), OWNER)
    assert readers.read(ask, OWNER) == 1


def test_a_read_model_that_is_gone_for_good_is_told_as_such(log: Connection, readers: Readers) -> None:
    live = generations.live(log)
    log.execute(f"DROP TABLE memctl.sessions_g{live.stage1}")  # type: ignore[arg-type]
    with pytest.raises(DatabaseUnavailable):
        readers.read(lambda r: r.connection.execute(f"SELECT * FROM memctl.sessions_g{r.live.stage1}"), OWNER)  # type: ignore[arg-type]


def test_what_a_database_has_as_its_defaults_makes_no_difference(
    database_url: str, log: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An append that saw one moment only would let in what is forgotten meanwhile; letters would be kept as others."""
    database = sql.Identifier(log.info.dbname)
    for default in (
        "default_transaction_isolation = 'repeatable read'", "client_encoding = 'LATIN1'", "synchronous_commit = off",
        "idle_in_transaction_session_timeout = 0", "lock_timeout = 0",
    ):  # fmt: skip
        log.execute(sql.SQL("ALTER DATABASE {} SET {}").format(database, sql.SQL(default)))
    with connect(database_url) as reader, connect(database_url) as writer, reader.transaction():
        assert reader.execute("SELECT count(*) FROM memctl.events").fetchone() == (0,)
        append(writer, 1, [prompt(1, "글자")])
        assert reader.execute("SELECT payload ->> 'text' FROM memctl.events").fetchall() == [("글자",)]
        for ours, value in (
            ("synchronous_commit", "on"), ("idle_in_transaction_session_timeout", "1min"), ("lock_timeout", "30s"),
        ):  # fmt: skip
            assert reader.execute("SELECT current_setting(%s)", [ours]).fetchone() == (value,)
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with connect(database_url) as writer:
        append(writer, 1, [prompt(2, "말")])
    assert log.execute("SELECT payload ->> 'text' FROM memctl.events ORDER BY position").fetchall()[1:] == [("말",)]


def test_a_database_that_does_not_take_every_letter_is_refused(postgres_server: str) -> None:
    name = f"memctl_test_{uuid4().hex}"
    made = sql.SQL("CREATE DATABASE {} ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C' LOCALE_PROVIDER libc")
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(made.format(sql.Identifier(name)))
    try:
        with pytest.raises(WrongEncoding, match="keeps text in LATIN1"):
            migrate(servers.with_database(postgres_server, name))
    finally:
        servers.drop_database(postgres_server, name)


def test_an_idle_writer_is_ended_and_the_mark_moves_on(database_url: str, log: Connection) -> None:
    with connect(database_url, autocommit=False) as idle:
        idle.execute("SET idle_in_transaction_session_timeout = '300ms'")
        held = append(idle, 1, [prompt(1)])[0].position
        kept = append(log, 1, [prompt(2)])[0].position
        assert move_mark(log, patience_s=0) < held
        until(lambda: move_mark(log, patience_s=0) >= kept, "the mark's moving on")
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            idle.commit()
    assert mark(log) == last_position(log)
    assert append(log, 1, [prompt(1)])[0].status == "new"


@pytest.fixture
def drainer(database_url: str) -> Iterator[Drainer]:
    drainer = Drainer(database_url, 10)
    yield drainer
    drainer.close()


def test_a_worker_whose_connection_was_lost_goes_on_over_a_new_one(
    database_url: str, log: Connection, drainer: Drainer
) -> None:
    history = example()
    append(log, 1, history[:20])
    catch_up(drainer)
    assert end_backends(log, "memctl worker") == 1
    append(log, 1, history[20:])
    with pytest.raises(psycopg.OperationalError):
        catch_up(drainer)
    catch_up(drainer)
    assert all(o.position == last_position(log) for o in offsets(log))


def test_a_worker_that_waits_too_long_for_a_lock_moves_nothing_and_goes_on_afterwards(
    database_url: str, log: Connection, drainer: Drainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.2)
    append(log, 1, example())
    live = generations.live(log)
    before = offsets(log), digests(log)
    with psycopg.connect(database_url) as other:
        other.execute(f"LOCK TABLE memctl.working_memory_g{live.stage1} IN SHARE MODE")  # type: ignore[arg-type]
        with pytest.raises(psycopg.errors.LockNotAvailable):
            catch_up(drainer)
        assert before[1]["facts"][0] == digests(log)["facts"][0] == 0
    log.execute("UPDATE memctl.offsets SET lease_until = NULL")
    catch_up(drainer)
    assert all(o.position == last_position(log) for o in offsets(log))
    assert digests(log)["working_memory"][0] == 1


def offsets(log: Connection) -> list[generations.Offset]:
    live = generations.live(log)
    return generations.offsets(log, live.stage1, live.stage2)
