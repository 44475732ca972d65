"""Backups beside what goes on meanwhile: forgetting, outages, kills, and people who rename files."""

from __future__ import annotations

import json
import logging
import os
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
import servers
from events import prompt
from histories import digests, drained, example
from waiting import until

from memctl.api.checks import backups
from memctl.api.queries import stats
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import Places
from memctl.api.reading.reader import reader_of
from memctl.domain.events.erasure import Scope, Tombstone
from memctl.infra import api_keys as keys
from memctl.infra.backup import archive
from memctl.infra.backup.copies import backup, kept
from memctl.infra.backup.receipts import LOCK, RECEIPTS, read_receipts, write_receipts
from memctl.infra.database import Connection, connect
from memctl.infra.llm import budget
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.generations import LeaseLost
from memctl.infra.settings import Settings, load_settings
from memctl.infra.settings_model import Llm
from memctl.workers.runtime import backups as making
from memctl.workers.runtime.backups import make_if_due


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def settings(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MEMCTL_BACKUP__EVERY_HOURS", "24")
    monkeypatch.setenv("MEMCTL_BACKUP__KEEP", "2")
    return load_settings()


def forgotten(connection: Connection) -> None:
    with connection.transaction():
        erase.begin(connection, 1, id := uuid4(), Scope(kind="id", id="x"), "")
        erase.lay_tombstones(connection, 1, id, [Tombstone(kind="event", value=str(uuid4()))])


def test_whoever_writes_receipts_last_has_read_what_was_forgotten_before(
    log: Connection, database_url: str, tmp_path: Path
) -> None:
    def write() -> None:
        with connect(database_url, name="slow writer") as connection:
            write_receipts(connection, tmp_path)

    def waits() -> bool:
        rows = log.execute("SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'slow writer'")
        return rows.fetchall() == [("Lock",)]

    writer = threading.Thread(target=write)
    log.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    writer.start()
    until(waits, "the other writer")
    forgotten(log)
    log.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    writer.join(30)
    (receipt,) = read_receipts([tmp_path / RECEIPTS])
    assert receipt.stones
    assert os.listdir(tmp_path) == [RECEIPTS]


def test_a_fault_of_the_database_ends_no_backups_to_come(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MEMCTL_DATABASE_URL", postgres_url)  # which lacks the tables
    monkeypatch.setenv("MEMCTL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("MEMCTL_BACKUP__EVERY_HOURS", "24")
    monkeypatch.setattr(making, "LOOK_AGAIN_S", 0.01)
    stop = threading.Event()
    thread = threading.Thread(target=making.keep_making, args=[load_settings(), stop])
    with caplog.at_level(logging.WARNING, "memctl.backups"):
        thread.start()
        until(lambda: "no backup was made" in caplog.text or not thread.is_alive(), "the first failure")
    assert thread.is_alive()
    stop.set()
    thread.join(30)


def test_what_was_spent_and_done_and_the_keys_come_back(
    settings: Settings, log: Connection, elsewhere: Connection
) -> None:
    append(log, 1, [prompt(1)])
    limits = Llm(daily_usd=9, monthly_usd=9, daily_tokens=999, monthly_tokens=999)
    purpose = budget.Purpose(space_id=1, processor="judge", subject="e", model="m", prompt="judge@1")
    budget.settle(log, budget.reserve(log, limits, purpose, 100, Decimal(1)), 70, 7, Decimal("0.5"))
    claimed = processing.claim(log, 1, "judge", "e", "d")
    assert claimed is not None
    processing.done(log, claimed, {"seen": 1})
    _, token = keys.make(log, settings.space, "dana", ["read"])
    file = backup(settings, log)

    assert backups.restore(settings, elsewhere, file).keys == 1
    assert budget.spent(elsewhere).monthly_tokens == 77
    assert budget.reserve(elsewhere, limits, purpose, 1, Decimal(0)) > 1
    assert processing.claim(elsewhere, 1, "judge", "e", "d") is None
    assert keys.lock_of(elsewhere).opened_by(token) is not None


def test_what_is_restored_is_read_from_its_beginning_though_an_earlier_try_was_undone_and_its_positions_passed(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    append(log, 1, example())
    drained(database_url)
    file = backup(settings, log, tmp_path / "kept")
    url = servers.with_database(database_url, elsewhere.info.dbname)
    generations.ensure_live(elsewhere, 2)
    with elsewhere.transaction(force_rollback=True):
        archive.restore(elsewhere, file)
    drained(url)
    live = generations.live(elsewhere)
    passed = generations.lowest_offset(elsewhere, live.stage2)
    assert passed == last_position(log)  # nothing gives back what a sequence handed out
    everywhere = Places(None, "everywhere", None)
    assert stats.counts(reader_of(elsewhere, "default", OWNER), everywhere).events.total == 0
    held = generations.take(elsewhere, live.stage2, 0, "a worker that has read nothing and not yet said so", 1)

    backups.restore(settings, elsewhere, file)
    with pytest.raises(LeaseLost):
        generations.advance(elsewhere, held, passed)
    drained(url)
    assert digests(elsewhere) == digests(log)
    told, kept_there = (stats.counts(reader_of(each, "default", OWNER), everywhere).events for each in (elsewhere, log))
    assert told == kept_there
    [new] = append(elsewhere, 1, [prompt(1)])
    assert new.position > passed


def test_a_backup_of_before_they_were_in_it_is_restored_all_the_same(
    settings: Settings, log: Connection, elsewhere: Connection
) -> None:
    append(log, 1, [prompt(1)])
    file = backup(settings, log)
    with zipfile.ZipFile(file) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    for table in ("api_keys", "processing", "llm_calls"):
        del parts[table], manifest["tables"][table]
    with zipfile.ZipFile(file, "w") as old:
        for name, part in {**parts, "manifest.json": json.dumps(manifest).encode()}.items():
            old.writestr(name, part)
    keys.make(elsewhere, settings.space, "dana", ["read"])
    done = backups.restore(settings, elsewhere, file)
    assert (done.events, done.keys) == (1, 1)


def test_a_backup_that_somebody_renamed_neither_counts_as_the_last_nor_pushes_others_out(
    settings: Settings, log: Connection
) -> None:
    now = datetime.now(UTC)
    append(log, 1, [prompt(1)])
    old = backup(settings, log)
    renamed = old.rename(old.with_name("memctl-before-the-move.memctl.zip"))
    long_ago = (now - timedelta(days=9)).timestamp()
    os.utime(renamed, (long_ago, long_ago))
    for number in (2, 3, 4):
        append(log, 1, [prompt(number)])
        assert make_if_due(settings, log, now + timedelta(days=number))
        append(log, 1, [prompt(10 + number)])
        assert not make_if_due(settings, log, now + timedelta(minutes=5)), "one was just made"
    assert renamed.exists()
    assert kept(settings).files == 3


def test_what_a_killed_process_had_written_of_a_backup_is_removed_by_the_next(
    settings: Settings, log: Connection, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    killed, under_way = (folder / f".memctl-2026{n}T0Z.memctl.zip.part" for n in (1, 2))
    for part in (killed, under_way):
        part.write_bytes(b"PK")
    os.utime(killed, (1, 1))
    backup(settings, log, folder)
    assert (killed.exists(), under_way.exists()) == (False, True)
