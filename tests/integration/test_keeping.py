"""What is kept elsewhere and brought back: backups, exports, and the past under new rules."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import msgspec
import pytest
import servers
from click.testing import CliRunner
from events import NOON, id_of, observed, prompt
from forgetting import killed_before_erasing
from histories import digests, drained, everything, example

from memctl.api.checks import backups
from memctl.api.erasure import redaction as redacting
from memctl.api.erasure import scope as forget
from memctl.api.erasure.redaction import redact_past
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write import exporting
from memctl.api.write.ingest import ingest
from memctl.api.write.ingest_writer import IngestWriter
from memctl.cli.capture.importing import import_legacy
from memctl.domain.events.erasure import Scope, Tombstone
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import ToolCalled, event_id_of
from memctl.infra.backup import archive
from memctl.infra.backup.copies import NoRoom, backup, before_upgrade, every, kept
from memctl.infra.backup.receipts import RECEIPTS, read_receipts
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.audit import decoded, hashed
from memctl.infra.log.mark import last_position, move_mark
from memctl.infra.log.migrate import migrate
from memctl.infra.readmodels import generations
from memctl.infra.redaction import Prepared
from memctl.infra.settings import Settings, load_settings
from memctl.workers.runtime.backups import LOCK, make_if_due

PHRASE = "the zq7vkx19mw harbour protocol"


@pytest.fixture
def shards() -> int:
    return 1


def url_of(connection: Connection, like: str) -> str:
    return servers.with_database(like, connection.info.dbname)


def events(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT position, event_id, stream, type, occurred_at, recorded_at, actor, location, dedupe_key, variant_of,"
        " sources, payload::text FROM memctl.events ORDER BY position"
    ).fetchall()


@pytest.mark.filled
def test_a_backup_made_while_others_write_is_restored_elsewhere_without_what_was_forgotten_since(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    append(log, 1, [prompt(1, PHRASE, session="a"), prompt(2, "to be kept", session="a")])
    drained(database_url)
    with connect(database_url, autocommit=False) as writer:
        append(writer, 1, [prompt(3, "not committed", session="a")])
        file = backup(settings, log, tmp_path / "kept")
        saved = events(log)
        writer.rollback()
    assert file.stat().st_mode & 0o077 == 0
    forget.forget(
        settings, log, forget.plan(settings, reader_of(log, "default", OWNER), id=id_of(prompt(1, session="a"))), None
    )
    session = example(2)[0].stream
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    drained(database_url)

    done = backups.restore(settings, elsewhere, file)
    assert (done.events, done.receipts, done.at_home) == (len(saved), 2, True)
    found = events(elsewhere)
    assert [row[:4] for row in found] == [row[:4] for row in saved]
    gone = {row[0] for row in found if row[-1] is None}
    assert gone == {row[0] for row in saved if row[2] == session or PHRASE in str(row[-1])}
    assert [row for row in found if row[0] not in gone] == [row for row in saved if row[0] not in gone]
    assert hashed(elsewhere, move_mark(elsewhere)).altered.count == 0
    again = append(elsewhere, 1, [*example(2, day=4), prompt(1, PHRASE, session="a"), prompt(4, "new", session="a")])
    assert [each.status for each in again] == ["forgotten"] * (len(again) - 1) + ["new"]
    assert again[-1].position > last_position(log) - 5
    other = url_of(elsewhere, database_url)
    generations.ensure_live(elsewhere, 4)
    drained(other)
    append(log, 1, [prompt(4, "new", session="a")])
    drained(database_url)
    assert digests(elsewhere) == digests(log)
    with pytest.raises(archive.NotEmpty):
        backups.restore(settings, elsewhere, file)


@pytest.mark.parametrize("damage", ["cut", "flipped", "swapped", "text"])
def test_a_damaged_backup_is_refused_and_nothing_is_restored(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path, damage: str
) -> None:
    append(log, 1, [prompt(n) for n in range(50)])
    file = backup(settings, log, tmp_path / "kept")
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-100])
    elif damage == "flipped":
        middle = content.index(b"events") + 300
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :])
    elif damage == "swapped":
        with zipfile.ZipFile(file) as whole:
            parts = {name: whole.read(name) for name in whole.namelist()}
        parts["events"] = parts["events"].replace(b"number 7", b"number 8")
        with zipfile.ZipFile(file, "w") as changed:
            for name, part in parts.items():
                changed.writestr(name, part)
    else:
        file.write_text("no backup at all")
    with pytest.raises(archive.BadBackup):
        backups.restore(settings, elsewhere, file)
    assert events(elsewhere) == []


def test_what_another_log_learnt_from_one_of_two_tellings_stays_away_once_they_are_forgotten(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    append(log, 1, [prompt(1, PHRASE)])
    append(log, 1, [prompt(1, PHRASE + ", told otherwise")])
    told = {row[0]: row[1] for row in log.execute("SELECT variant_of IS NULL, event_id FROM memctl.events")}
    drained(database_url)
    append(elsewhere, 1, [prompt(1, PHRASE)])
    append(elsewhere, 1, [prompt(1, PHRASE + ", told otherwise")])
    learnt = msgspec.structs.replace(prompt(2, PHRASE, session="b"), sources=(told[False],))
    then = msgspec.structs.replace(prompt(3, PHRASE, session="b"), sources=(event_id_of(1, learnt.dedupe_key),))
    append(elsewhere, 1, [learnt, then])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        assert exporting.export(elsewhere, "default", out.write) == 4
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE), None)
    with IngestWriter(settings) as intake:
        account = exporting.import_export(intake, file, mine=True)
    assert (account.new, account.variant, account.forgotten, account.bad) == (0, 0, 4, [])


@pytest.mark.parametrize("told", ["in order", "backwards", "backwards and in batches"])
def test_what_another_log_learnt_from_what_lies_under_a_tombstone_here_stays_away(
    settings: Settings,
    log: Connection,
    elsewhere: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: str,
) -> None:
    """None of it was ever told here, so nothing but what it rests on says that it is not to come."""
    erase.begin(log, 1, receipt := uuid4(), Scope(kind="session"), "")
    erase.lay_tombstones(
        log, 1, receipt, [Tombstone(kind="session", value=prompt(1).stream, until=Micros(NOON + 5_000_000))]
    )

    def learnt(number: int, *rests_on: NewEvent) -> NewEvent:
        sources = tuple(event_id_of(1, each.dedupe_key) for each in rests_on)
        return msgspec.structs.replace(prompt(number, PHRASE, session="b", at=20 + number), sources=sources)

    gone, kept, later = prompt(1, PHRASE), prompt(2, "told elsewhere", session="b"), prompt(3, "told later", at=9)
    first = learnt(4, kept, gone)
    events = [gone, kept, later, first, learnt(5, first), learnt(6, kept), learnt(7, later)]
    in_two_tellings = [prompt(8, "told then", at=4), prompt(8, "told later", at=9)]
    for event in (events if told == "in order" else events[::-1]) + in_two_tellings:
        append(elsewhere, 1, [event])
    append(elsewhere, 1, [learnt(9, in_two_tellings[0])])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        assert exporting.export(elsewhere, "default", out.write) == 10
    if told == "backwards and in batches":
        monkeypatch.setattr(exporting, "BATCH", 1)
    with IngestWriter(settings) as intake:
        account = exporting.import_export(intake, file, mine=True)
    assert (account.new, account.forgotten, account.bad) == (6, 4, [])
    stands = log.execute("SELECT payload->>'line' FROM memctl.events ORDER BY 1").fetchall()
    assert [line for (line,) in stands] == ["b-line-2", "b-line-6", "b-line-7", "b-line-9", "s1-line-3", "s1-line-8"]


def test_an_import_looks_twice_at_what_the_file_cites_alone(
    settings: Settings, log: Connection, elsewhere: Connection, tmp_path: Path
) -> None:
    """To redact all of a large file once more takes as long as to take it in."""

    class Counting(IngestWriter):
        prepared = 0

        def prepare(self, events: Sequence[NewEvent]) -> Prepared:
            self.prepared += len(events)
            return super().prepare(events)

    erase.begin(log, 1, receipt := uuid4(), Scope(kind="session"), "")
    erase.lay_tombstones(
        log, 1, receipt, [Tombstone(kind="session", value="session/claude-code/gone", until=Micros(NOON))]
    )
    events = [prompt(number) for number in range(20)]
    learnt = msgspec.structs.replace(prompt(20), sources=(event_id_of(1, events[7].dedupe_key),))
    append(elsewhere, 1, [*events, learnt])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        exporting.export(elsewhere, "default", out.write)
    with Counting(settings, identify=False) as intake:
        assert exporting.import_export(intake, file, mine=True).new == 21
        assert intake.prepared == 21 + 1


@pytest.mark.parametrize("shards", [4])
def test_an_export_is_taken_back_once_and_without_what_was_forgotten(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    told = [*everything(), prompt(1, PHRASE, session="a")]
    append(log, 1, told)
    append(log, 1, [prompt(1, PHRASE + ", told otherwise", session="a")])
    # In jsonb the shorter key stands first: an export tells its text otherwise than it came.
    for given in ({"the first": "and longest"}, {"longer": 1, "b": 2}):
        call = ToolCalled(line="call", tool="Bash", call="c", input=given)
        append(log, 1, [observed(call, session="b")])
    drained(database_url)
    file = tmp_path / "log.jsonl"
    with open(file, "wb") as out:
        written = exporting.export(log, "default", out.write)
    assert written == len(events(log))
    forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE), None)
    with IngestWriter(settings) as intake:
        account = exporting.import_export(intake, file, mine=True)
    assert (account.new, account.variant, account.forgotten, account.bad) == (0, 0, 2, [])
    monkeypatch.setenv("MEMCTL_DATABASE_URL", url_of(elsewhere, database_url))
    with IngestWriter(load_settings()) as intake:
        account = exporting.import_export(intake, file, mine=True)
        assert (account.new, account.variant) == (written - 2, 2)
        account = exporting.import_export(intake, file, mine=True)
        assert (account.new, account.variant, account.duplicate) == (0, 0, written)
    assert decoded(elsewhere, move_mark(elsewhere)).misnamed.count == 0
    lines = file.read_bytes().splitlines(keepends=True)
    for broken in (
        lines[:-1],
        lines[:5] + lines[6:],
        [b"{}\n", *lines[1:]],
        [*lines[:-1], lines[-1].replace(b"sha", b"hsa")],
    ):
        file.write_bytes(b"".join(broken))
        with IngestWriter(load_settings()) as intake, pytest.raises(exporting.NotAnExport):
            exporting.import_export(intake, file, mine=True)


def test_an_import_does_not_ask_this_machine_what_lies_at_a_place_of_another(
    log: Connection, settings: Settings, tmp_path: Path
) -> None:
    git, file = tmp_path / "shop" / ".git", tmp_path / "log.jsonl"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:lee/ledger.git\n')
    append(log, 1, [msgspec.structs.replace(prompt(1), location=str(git.parent))])
    with open(file, "wb") as out:
        move_mark(log)
        assert exporting.export(log, "default", out.write) == 1
    before = events(log)
    done = CliRunner().invoke(import_legacy, [str(file)])
    assert "0 new, 1 duplicate" in done.output
    assert (done.exit_code, events(log)) == (0, before)


def test_rules_that_came_later_cut_the_past_and_the_same_transcript_brings_nothing_twice(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    source = Path(__file__).parents[2] / "infra" / "example" / "session.jsonl"
    transcript = tmp_path / "session.jsonl"
    transcript.write_bytes(source.read_bytes())
    with IngestWriter(settings) as intake:
        first = ingest(intake, [transcript])
    drained(database_url)
    whole = len(events(log))
    monkeypatch.setenv("MEMCTL_PRIVACY__EXCLUDE_PATTERNS", json.dumps(["(?i)invoice"]))
    grown = load_settings()
    # Told again under rules that know more, it is a duplicate: nothing comes twice.
    with IngestWriter(grown) as intake:
        again = ingest(intake, [transcript], again=True)
    assert (again.new, again.variant, again.duplicate) == (0, 0, first.new)
    dry = redact_past(grown, dry=True)
    assert len(events(log)) == whole
    file = backup(settings, log, tmp_path / "kept")

    with killed_before_erasing(monkeypatch, redacting):
        redact_past(grown)
    (begun,) = redacting.open_redactions(log, "default")
    assert forget.resume(grown, log, 1, None) == []
    done = redact_past(grown)
    assert (done.receipt, erase.receipts(log, unfinished=True)) == (begun.id, [])
    assert done.events == dry.events > 0
    assert done.cut["excluded"] >= done.events
    drained(database_url)
    assert "invoice" not in str(events(log)).lower()
    assert redact_past(grown).events == 0
    with IngestWriter(grown) as intake:
        again = ingest(intake, [transcript], again=True)
    assert (again.new, again.variant) == (0, 0)
    found = hashed(log, move_mark(log))
    assert (found.altered.count, found.erased) == (0, done.events)
    from memctl.workers.rebuild.replay import replay

    compared = replay(database_url, None, verify=True).compared
    assert [each.name for each in compared if not each.equal] == []
    memories = f"memctl.memories_g{generations.live(log).stage2}"
    rows = log.execute(f"SELECT count(*), count(*) FILTER (WHERE m::text ~* 'invoice') FROM {memories} m").fetchone()
    assert rows is not None
    assert rows[0] > 0
    assert rows[1] == 0
    receipt = json.loads((settings.data_dir / RECEIPTS).read_text().splitlines()[-1])
    assert receipt["scope"]["kind"] == "rules"
    assert "invoice" not in msgspec.json.encode(receipt).decode().lower()
    assert backups.restore(grown, elsewhere, file).redacted, "the backup holds what was cut since"
    monkeypatch.setenv("MEMCTL_DATABASE_URL", url_of(elsewhere, database_url))
    again_cut = redact_past(load_settings())
    assert again_cut.events == done.events
    drained(url_of(elsewhere, database_url))
    assert "invoice" not in str(events(elsewhere)).lower()
    assert digests(elsewhere) == digests(log)


def test_a_backup_is_made_on_schedule_when_the_last_is_old_and_something_was_told_or_forgotten_since(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert every(settings) is None, "the database of somebody else is theirs to back up"
    monkeypatch.setenv("MEMCTL_BACKUP__EVERY_HOURS", "24")
    monkeypatch.setenv("MEMCTL_BACKUP__KEEP", "2")
    daily = load_settings()
    now = datetime.now(UTC)
    assert not make_if_due(daily, log, now), "there is nothing to back up"
    append(log, 1, [prompt(1)])
    assert make_if_due(daily, log, now)
    later = now + timedelta(days=3)
    assert not make_if_due(daily, log, later), "nothing was told since"
    append(log, 1, [prompt(2)])
    assert not make_if_due(daily, log, now + timedelta(hours=23))
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10 << 20))
        with pytest.raises(NoRoom):
            make_if_due(daily, log, later)
    with connect(database_url, name="other") as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        assert not make_if_due(daily, log, later), "another worker is at it"
    assert make_if_due(daily, log, later)
    drained(database_url)
    forget.forget(daily, log, forget.plan(daily, reader_of(log, "default", OWNER), id=id_of(prompt(1))), None)
    assert make_if_due(daily, log, later), "the last holds what was forgotten"
    found = kept(daily)
    assert (found.files, found.overdue(now + timedelta(hours=47)), found.overdue(later)) == (2, False, True)
    assert [each.id for each in read_receipts([found.folder / RECEIPTS])]


def test_before_an_upgrade_the_log_is_backed_up_as_the_older_memctl_left_it(
    settings: Settings, postgres_url: str, elsewhere: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = Path(__file__).parents[1] / "data" / "schema-0014.sql.gz"
    with connect(postgres_url) as old:
        old.execute(gzip.decompress(dump.read_bytes()))
    with connect(postgres_url) as old:  # another one: what pg_dump sets holds for a connection
        told = events(old)
        with monkeypatch.context() as full:
            full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10 << 20))
            with pytest.raises(NoRoom):
                before_upgrade(settings, old)
        folder = settings.data_dir / "backups"
        folder.mkdir(parents=True)
        for day in "12":
            (folder / f"memctl-before-upgrade-2020010{day}T000000000000Z.memctl.zip").write_bytes(b"of long ago")
        file = before_upgrade(settings, old)
        assert file is not None
        made = archive.check(file)
        assert made.schema == "0014"
        assert list(made.tables) == list(archive.TABLES[:-1]), (
            "a memctl of that schema refuses tables it does not expect"
        )
        assert sorted(each.name[:32] for each in folder.glob("memctl-*"))[0].startswith(
            "memctl-before-upgrade-20200102"
        )
        assert before_upgrade(settings, old) is None, "there is one already"
    migrate(postgres_url)
    with connect(postgres_url) as new:
        assert before_upgrade(settings, new) is None, "it is up to date"
    assert backups.restore(settings, elsewhere, file).events == len(told) > 20
    assert events(elsewhere) == told
    elsewhere.execute("UPDATE memctl.schema_version SET version_num = '9999'")
    assert before_upgrade(settings, elsewhere) is None, "what a newer memctl left is nobody's here to touch"
