"""When Postgres goes away, is locked or full, a user reads what is wrong and what to do, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from click.testing import CliRunner
from data_dirs import used
from histories import EXAMPLE
from waiting import until

from memctl.api.write.ingest import Account, follow, ingest
from memctl.api.write.ingest_writer import IngestWriter
from memctl.cli.main import memctl as command_line
from memctl.infra import database
from memctl.infra.database import (
    DatabaseUnavailable,
    DiskFull,
    Locked,
    ReadModelsReplaced,
    SchemaMissing,
    StatementEnded,
    TooManyConnections,
    connect,
    outage,
    outages,
)
from memctl.infra.log.migrate import migrate
from memctl.infra.settings import load_settings

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def shards() -> int:
    return 1


def end_backends(url: str) -> int:
    with connect(url, name="memctl test") as connection:
        row = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'memctl intake'"
        ).fetchone()
    assert row is not None
    return int(row[0])


def events(url: str) -> int:
    with connect(url, name="memctl test") as connection:
        row = connection.execute("SELECT count(*) FROM memctl.events").fetchone()
    assert row is not None
    return int(row[0])


@contextmanager
def memctl(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    used(Path(os.environ["MEMCTL_DATA_DIR"]))
    process = subprocess.Popen(
        [sys.executable, "-m", "memctl.cli", *arguments],
        env={**os.environ, "MEMCTL_DATABASE_URL": url, "MEMCTL_REDIS_URL": NOWHERE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def is_told(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Traceback" not in said
    assert "error: Postgres went away" in said
    assert "hint: run this again" in said


def test_a_lost_postgres_is_told_while_ingest_waits(database_url: str) -> None:
    with memctl(database_url, "ingest", "--wait", str(EXAMPLE)) as process:
        until(lambda: events(database_url) > 10, "the events' being kept")
        until(lambda: end_backends(database_url) == 1, "the ending of its backend")
        is_told(process)


def test_a_lost_postgres_is_told_while_files_are_followed(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(EXAMPLE.read_bytes())
    with memctl(database_url, "ingest", "--follow", str(tmp_path)) as process:
        until(lambda: events(database_url) > 10, "the events' being kept")
        until(lambda: end_backends(database_url) == 1, "the ending of its backend")
        (tmp_path / "two.jsonl").write_bytes(EXAMPLE.read_bytes().replace(b"Invoice", b"Receipt"))
        is_told(process)


def test_no_postgres_at_all_is_told(tmp_path: Path) -> None:
    with memctl("postgresql://127.0.0.1:1/none", "ingest", str(EXAMPLE)) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "error: Postgres does not answer" in said
    assert "Traceback" not in said


def test_an_ingest_that_lost_its_postgres_keeps_what_it_had_and_goes_on(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.write.ingest.BATCH", 5)
    settings = load_settings(database_url=database_url, data_dir=used(tmp_path / "data"))
    read = 0

    def end_it(path: Path, size: int) -> None:
        nonlocal read
        read += 1
        if read == 15:
            until(lambda: events(database_url) > 0)
            assert end_backends(database_url) == 1

    with IngestWriter(settings) as intake, pytest.raises(DatabaseUnavailable, match="went away"):
        ingest(intake, [EXAMPLE], progress=end_it)
    assert events(database_url) > 0
    with IngestWriter(settings) as intake:
        rest = ingest(intake, [EXAMPLE])
        whole = ingest(intake, [EXAMPLE], again=True)
    assert rest.new > 0
    assert (whole.new, whole.duplicate) == (0, events(database_url))


def test_a_table_that_stays_locked_is_not_called_away(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.2)
    with (
        IngestWriter(load_settings(database_url=database_url, data_dir=used(tmp_path))) as intake,
        psycopg.connect(database_url) as other,
    ):
        other.execute("LOCK TABLE memctl.events IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Locked, match="lock timeout") as told:
            ingest(intake, [EXAMPLE])
        assert "away" not in str(told.value)
        other.rollback()
        assert ingest(intake, [EXAMPLE]).new > 0


def test_a_statement_that_takes_too_long_is_told_as_such(database_url: str) -> None:
    with connect(database_url, statement_timeout_ms=50) as connection, pytest.raises(StatementEnded), outages():
        connection.execute("SELECT pg_sleep(30)")


def test_a_database_that_was_never_migrated_names_the_command(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaMissing) as told:
        IngestWriter(load_settings(database_url=postgres_url, data_dir=tmp_path))
    assert "memctl up" in (told.value.hint or "")


def test_more_connections_than_allowed_are_told_as_such(database_url: str, postgres_server: str) -> None:
    name = database_url.partition("?")[0].rpartition("/")[2]
    role = f"memctl_test_{name[-12:]}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
        try:
            limited = psycopg.conninfo.make_conninfo(database_url, user=role, password="x")
            with pytest.raises(TooManyConnections):
                connect(limited)
        finally:
            admin.execute(f"DROP ROLE {role}")


def test_a_full_disk_has_its_own_words() -> None:
    known = outage(psycopg.errors.DiskFull("could not extend file"))
    assert isinstance(known, DiskFull)
    assert "make room" in (known.hint or "")
    assert outage(psycopg.errors.SyntaxError("a fault of ours")) is None


def test_a_role_that_may_not_read_is_said_with_what_to_do(
    log_of_a_stranger: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(used(tmp_path)))
    monkeypatch.setenv("MEMCTL_DATABASE_URL", log_of_a_stranger)
    said = CliRunner().invoke(command_line, ["status"])
    assert "the database does not answer: Postgres does not let memctl's role do this" in said.output
    assert said.exit_code == 1


@pytest.fixture
def log_of_a_stranger(database_url: str, postgres_server: str) -> Iterator[str]:
    """That database, for a role that may connect and no more."""
    role = f"memctl_test_{database_url.partition('?')[0].rpartition('/')[2][-12:]}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        try:
            known = psycopg.conninfo.conninfo_to_dict(database_url)
            yield f"postgresql:///{known.pop('dbname')}?{urlencode({**known, 'user': role, 'password': 'x'})}"
        finally:
            admin.execute(f"DROP ROLE {role}")


def test_read_models_that_gave_way_to_others_are_no_schema_that_lacks_a_part(database_url: str) -> None:
    with connect(database_url) as connection:
        with pytest.raises(ReadModelsReplaced, match="memories_g4") as told, outages():
            connection.execute("SELECT FROM memctl.memories_g4")
        assert "again" in (told.value.hint or "")
        with pytest.raises(SchemaMissing), outages():
            connection.execute("SELECT FROM memctl.memories")


def test_a_wake_that_fails_does_not_make_a_kept_batch_look_failed(database_url: str, tmp_path: Path) -> None:
    settings = load_settings(database_url=database_url, data_dir=used(tmp_path), redis_url=NOWHERE)
    with IngestWriter(settings) as intake:
        intake.connection.execute("ALTER TABLE memctl.offsets RENAME TO hidden")
        account = ingest(intake, [EXAMPLE])
        assert account.new == events(database_url) > 0


def test_a_second_migration_waits_for_the_first_however_long_it_takes(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.infra.log.migrate import _LOCK

    monkeypatch.setattr(database, "LOCK_TIMEOUT_S", 0.1)
    with psycopg.connect(postgres_url, autocommit=True) as first, ThreadPoolExecutor(1) as pool:
        first.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        second = pool.submit(migrate, postgres_url)

        def waits_long() -> bool:
            row = first.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '0.5 s'"
            ).fetchone()
            return row == (1,) or second.done()

        until(waits_long, "the second migration's waiting")
        assert not second.done()
        first.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
        assert second.result(timeout=60)


def test_following_goes_on_when_files_and_folders_go_away(
    database_url: str, intake: IngestWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.write.ingest.FOLLOW_EVERY_S", 0.02)
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(EXAMPLE.read_bytes())
    gone, stop = threading.Event(), threading.Event()

    def tell(account: Account) -> None:
        if gone.is_set():
            stop.set()
        else:
            (folder / "one.jsonl").unlink()
            folder.rmdir()
            gone.set()

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, intake, [folder], Account(), tell, stop)
        until(lambda: gone.is_set() or following.done(), "the first telling")
        assert gone.is_set(), following.exception()
        folder.mkdir()
        (folder / "two.jsonl").write_bytes(EXAMPLE.read_bytes().replace(b'"sessionId": "', b'"sessionId": "2'))
        until(following.done, "the second telling")
        assert following.exception() is None
