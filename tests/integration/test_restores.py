"""Restores of what was half done, and into a log that others write to meanwhile."""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from urllib.parse import urlsplit

import dying
import psycopg
import pytest
import servers
from events import prompt
from forgetting import PHRASE, forgotten, holds, killed_before_erasing, rated_session
from histories import digests, drained, workshop
from soak import FACTOR
from waiting import until

from memctl.api.checks import backups
from memctl.api.erasure import redaction as redacting
from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.backup import archive, receipts
from memctl.infra.backup.copies import backup
from memctl.infra.backup.receipts import RECEIPTS
from memctl.infra.database import Connection, DatabaseUnavailable, connect
from memctl.infra.log import erase
from memctl.infra.log.append import Appended, append
from memctl.infra.log.mark import move_mark
from memctl.infra.log.spaces import space_id, space_names
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings, load_settings
from memctl.workers.erasure import forgetting
from memctl.workers.rebuild.replay import replay


@pytest.fixture
def shards() -> int:
    return 1


def url_of(connection: Connection, like: str) -> str:
    return servers.with_database(like, connection.info.dbname)


def test_who_appends_while_a_backup_is_restored_is_kept_after_it(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    append(log, 1, [prompt(n) for n in range(3)])
    move_mark(log)
    file = backup(settings, log, tmp_path / "kept")
    url = url_of(elsewhere, database_url)
    told: list[Appended] = []

    def tell() -> None:
        with connect(url, name="late writer") as writer:
            told.extend(append(writer, 1, [prompt(9), prompt(2)]))

    def waits() -> bool:
        rows = log.execute("SELECT wait_event_type FROM pg_stat_activity WHERE application_name = 'late writer'")
        return rows.fetchall() == [("Lock",)]

    writer = threading.Thread(target=tell)

    def meanwhile(table: str, size: int) -> None:
        if table == "mark_history":  # comes after the events
            writer.start()
            until(waits, "the other writer")

    with elsewhere.transaction():
        archive.restore(elsewhere, file, meanwhile)
    writer.join(30)
    assert [each.status for each in told] == ["new", "duplicate"]
    found = elsewhere.execute("SELECT count(*), count(DISTINCT position) FROM memctl.events").fetchone()
    assert found == (4, 4)


@pytest.mark.parametrize("others", [["lab", "team"], []], ids=["has another number", "is not there"])
def test_whoever_is_connected_while_a_backup_is_restored_tells_the_space_of_its_name_afterwards(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path, others: list[str]
) -> None:
    for number, name in enumerate(["default", *others]):
        append(log, space_id(log, name, number + 1), [prompt(number)])
    move_mark(log)
    file = backup(settings, log, tmp_path / "kept")
    assert space_id(elsewhere, "team", 2) == 2
    team = load_settings(database_url=url_of(elsewhere, database_url), data_dir=settings.data_dir, space="team")
    doors = [IngestWriter(team)]
    looks = connect(team.require("database_url"), autocommit=False)
    assert space_names(looks)
    assert doors[0].space_id == 2, "that of another space in the backup"

    def meanwhile(table: str, size: int) -> None:
        if table == "events":
            doors.append(IngestWriter(team))

    with contextlib.closing(looks), elsewhere.transaction():
        elsewhere.execute("SET LOCAL lock_timeout = '10s'")
        archive.restore(elsewhere, file, meanwhile)
    assert len(doors) == 2
    for number, door in enumerate(doors):
        with contextlib.closing(door):
            told = [prompt(100 + number)]
            with contextlib.suppress(DatabaseUnavailable):
                door.record(told)
        with contextlib.closing(IngestWriter(team)) as opened_anew:
            opened_anew.record(told)
    found = elsewhere.execute(
        "SELECT name FROM memctl.events JOIN memctl.spaces USING (space_id)"
        " WHERE payload->>'text' ~ 'number 10[01] ' ORDER BY position"
    )
    assert found.fetchall() == [("team",), ("team",)]


def test_who_connects_while_others_are_ended_is_ended_with_the_next(log: Connection, database_url: str) -> None:
    with log.transaction():
        archive._terminate(log)
        with contextlib.closing(connect(database_url, name="memctl late")) as late:
            archive._terminate(log)
            with pytest.raises(psycopg.OperationalError):
                late.execute("SELECT")


def test_a_restore_that_is_killed_at_any_statement_and_done_again_is_whole_and_all_of_it_is_folded(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str
) -> None:
    append(log, 1, [*workshop(0), prompt(1, PHRASE), prompt(2)])
    drained(database_url)
    whole = log.execute("SELECT count(*) FROM memctl.events").fetchone()
    backup(settings, log)
    forgotten(settings, log, match=PHRASE)
    drained(database_url)
    url = url_of(elsewhere, database_url)
    generations.ensure_live(elsewhere, 1)
    after = restored = 0
    with dying.mortals(settings.data_dir) as mortals:
        while mortals.dies(dying.restore, url, after) and restored < 3:
            after += 1 if FACTOR else 5
            drained(url)  # who reads what was handed out and never committed passes it
            there = elsewhere.execute("SELECT count(*) FROM memctl.events").fetchone()
            assert there in ((0,), whole)
            if there == whole:
                restored += 1
                assert holds(url, PHRASE) == []
    assert restored
    assert after > 30
    drained(url)
    assert digests(elsewhere) == digests(log)
    assert erase.receipts(elsewhere, unfinished=True) == []


@pytest.mark.parametrize("backup_first", [True, False], ids=["begun since", "begun before"])
def test_a_forgetting_that_was_half_done_is_restored_open_and_ends_with_all_that_follows(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, *, backup_first: bool,
) -> None:  # fmt: skip
    session = rated_session(log, database_url)
    file = backup(settings, log, tmp_path / "kept")
    with killed_before_erasing(monkeypatch):
        forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    if not backup_first:
        file = backup(settings, log, tmp_path / "kept")
    else:
        (tmp_path / "kept" / RECEIPTS).unlink()
    [begun] = erase.receipts(log)

    generations.ensure_live(elsewhere, 1)
    done = backups.restore(settings, elsewhere, file)
    assert (done.begun, done.left_out) == (1, 0)
    again = append(elsewhere, 1, workshop(0))
    assert {each.status for each in again} == {"forgotten"}, "what is to go is not told again"
    with pytest.raises(forgetting.NotFolded):
        forget.resume(settings, elsewhere, 1, None)
    url = url_of(elsewhere, database_url)
    drained(url)
    (ended,) = forget.resume(settings, elsewhere, 1, None)
    assert ended.receipt == begun.id
    assert ended.types["memory.rated"] == 1
    assert holds(url, "Dana said so") == []
    drained(url)
    assert replay(url, None, verify=True).equal


def test_a_restore_where_no_receipts_go_on_from_the_backup_says_so(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    session = rated_session(log, database_url)
    file = backup(settings, log, tmp_path / "kept")
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    (settings.data_dir / RECEIPTS).unlink()
    generations.ensure_live(elsewhere, 1)
    done = backups.restore(settings, elsewhere, file)
    assert (done.at_home, done.receipts) == (False, 0)


def test_of_receipts_that_several_files_hold_the_one_that_was_ended_counts(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    session = rated_session(log, database_url)
    with killed_before_erasing(monkeypatch):
        forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    file = backup(settings, log, tmp_path / "kept")
    (settings.data_dir / RECEIPTS).unlink()
    forget.resume(settings, log, 1, None)
    ended = (settings.data_dir / RECEIPTS).rename(tmp_path / "ended.jsonl")

    generations.ensure_live(elsewhere, 1)
    done = backups.restore(settings, elsewhere, file, [ended])
    assert (done.begun, done.receipts) == (0, 1)
    url = url_of(elsewhere, database_url)
    assert holds(url, "Dana said so") == []
    drained(url)
    assert digests(elsewhere) == digests(log)


def test_what_rules_cut_is_open_until_they_were_applied_to_what_was_restored(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    append(log, 1, [prompt(1, "the invoice is due")])
    drained(database_url)
    file = backup(settings, log, tmp_path / "kept")
    monkeypatch.setenv("MEMCTL_PRIVACY__EXCLUDE_PATTERNS", json.dumps(["(?i)invoice"]))
    cut = redacting.redact_past(load_settings())

    assert backups.restore(settings, elsewhere, file).redacted
    # Whoever was to apply them is killed here.
    assert [each.id for each in redacting.open_redactions(elsewhere, "default")] == [cut.receipt]
    monkeypatch.setenv("MEMCTL_DATABASE_URL", url_of(elsewhere, database_url))
    assert redacting.redact_past(load_settings()).receipt == cut.receipt
    assert redacting.open_redactions(elsewhere, "default") == []
    assert holds(url_of(elsewhere, database_url), "invoice") == []


def test_a_database_set_back_in_time_forgets_again_what_the_data_directory_knows_of(
    settings: Settings, log: Connection, database_url: str, postgres_server: str
) -> None:
    session = rated_session(log, database_url)
    append(log, 1, [prompt(1)])
    drained(database_url)
    log.close()
    with servers.fresh_database(postgres_server, template=urlsplit(database_url).path.lstrip("/")) as back:
        with connect(database_url) as later:
            forget.forget(
                settings, later, forget.plan(settings, reader_of(later, "default", OWNER), session=session), None
            )
            wanted = digests(later)
        with connect(back) as earlier:
            assert holds(back, "Dana said so") != []
            receipts.write_receipts(earlier, settings.data_dir)  # as whoever forgets something else there
            (missing,) = receipts.unknown(earlier, settings.data_dir)
            forget.reopen(settings, earlier)
            assert [each.id for each in erase.receipts(earlier, unfinished=True)] == [missing.id]
            (ended,) = forget.resume(settings, earlier, 1, None)
            assert ended.receipt == missing.id
            assert receipts.unknown(earlier, settings.data_dir) == []
            assert holds(back, "Dana said so") == []
            assert {each.status for each in append(earlier, 1, workshop(0))} == {"forgotten"}
            drained(back)
            assert digests(earlier) == wanted
            assert replay(back, None, verify=True).equal


def test_receipts_of_another_log_are_kept_and_forget_nothing_here(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str
) -> None:
    session = rated_session(log, database_url)
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    elsewhere.execute("UPDATE memctl.installation SET id = gen_random_uuid()")
    receipts.write_receipts(elsewhere, settings.data_dir)
    assert receipts.unknown(elsewhere, settings.data_dir) == []
    assert len(list(receipts.read_receipts([settings.data_dir / RECEIPTS]))) == 1


def test_receipts_that_cannot_be_read_are_not_written_over(settings: Settings, log: Connection, tmp_path: Path) -> None:
    (tmp_path / RECEIPTS).write_text("{torn")
    receipts.write_receipts(log, tmp_path)
    assert (tmp_path / RECEIPTS).with_suffix(".damaged").read_text() == "{torn"
    assert list(receipts.read_receipts([tmp_path / RECEIPTS])) == []
