"""Ingest of transcripts into a real log: every line accounted for, twice is once, prefixes and order do not matter."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import tarfile
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from client_sessions import OPENCODE_MESSAGES, SAMPLES, opencode
from draining import catch_up
from histories import EXAMPLE, digests, real_sessions
from poisoning.foreign import git

from memctl.api.checks.accounting import account as account_of_log
from memctl.api.write.importing import import_stores
from memctl.api.write.ingest import OF_A_REPOSITORY, Account, ingest
from memctl.api.write.ingest_writer import IngestWriter
from memctl.cli.capture.ingest import ingest as ingest_verb
from memctl.domain.events.event import NewEvent, Position
from memctl.infra.database import Connection, connect
from memctl.infra.hooks.capture_policy import CapturePolicy, switch
from memctl.infra.log.mark import move_mark
from memctl.infra.log.read import read_range
from memctl.infra.redaction import Prepared
from memctl.infra.settings import Settings, load_settings
from memctl.infra.transcripts.files import AMONG_SOURCES
from memctl.infra.transcripts.sniff import NOTHING_BUT_ZEROS
from memctl.workers.folding.drain import Drainer
from memctl.workers.rebuild.replay import replay


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture(scope="module")
def real() -> Iterator[Path]:
    with real_sessions() as folder:
        yield folder


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(EXAMPLE.read_bytes())
    return folder


def session(name: str, *prompts: str) -> bytes:
    lines = (
        {"type": "user", "uuid": f"u-{n}", "sessionId": name, "message": {"content": text}}
        for n, text in enumerate(prompts)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def adds_up(account: Account) -> bool:
    """Every line counts once: it gave events, was ignored, is blank, or is bad altogether."""
    beside_events = len(account.bad) - (
        account.lines - account.with_events - sum(account.ignored.values()) - account.blank
    )
    return 0 <= beside_events <= len(account.bad)


def types(intake: IngestWriter) -> list[str]:
    return [
        e.type for e in read_range(intake.connection, Position(0), move_mark(intake.connection), limit=1_000_000).events
    ]


def folded(intake: IngestWriter, database_url: str) -> dict[str, tuple[int, str]]:
    catch_up(Drainer(database_url))
    return digests(intake.connection)


def test_every_line_is_accounted_for(intake: IngestWriter, sessions: Path) -> None:
    account = ingest(intake, [sessions])
    assert account.files == 1
    assert account.lines == len(EXAMPLE.read_text().splitlines())
    assert adds_up(account)
    assert account.bad == []
    assert account.new == sum(account.types.values()) == len(types(intake))


def test_what_is_read_again_to_be_proved_is_held_by_size(intake: IngestWriter, sessions: Path) -> None:
    (sessions / "one.jsonl").write_bytes(session("one", *(f"{number} {'long ' * 400_000}" for number in range(40))))
    ingest(intake, [sessions])
    tracemalloc.start()
    ledger = account_of_log(intake.connection, intake.space_id, [sessions])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (ledger.events, ledger.missing) == (40, 0)
    assert most < 80 << 20  # of 80 MB


def test_reading_again_adds_nothing(intake: IngestWriter, sessions: Path) -> None:
    first = ingest(intake, [sessions])
    second = ingest(intake, [sessions])
    assert (second.new, second.lines, second.unchanged) == (0, 0, 1)
    whole = ingest(intake, [sessions], again=True)
    assert (whole.new, whole.duplicate, whole.variant) == (0, first.new, 0)


def test_the_same_session_under_another_name_adds_nothing(intake: IngestWriter, sessions: Path) -> None:
    first = ingest(intake, [sessions])
    (sessions / "two.jsonl").write_bytes(EXAMPLE.read_bytes())
    assert ingest(intake, [sessions]).duplicate == first.new


def test_a_file_that_grows_is_read_on_from_where_it_was_left(intake: IngestWriter, sessions: Path) -> None:
    whole = EXAMPLE.read_bytes()
    file = sessions / "one.jsonl"
    lines = events = 0
    for size in (3000, 9000, 9001, 15_000, len(whole)):  # in the middle of lines
        file.write_bytes(whole[:size])
        account = ingest(intake, [file])
        lines += account.lines
        events += account.new
        assert account.duplicate <= 3  # of one line whose newline was not there yet
    assert lines in range(whole.count(b"\n"), whole.count(b"\n") + 2)
    assert ingest(intake, [file], again=True).duplicate == events


def test_a_last_line_without_its_newline_is_kept_and_not_doubled(intake: IngestWriter, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    whole = EXAMPLE.read_bytes()
    file.write_bytes(whole.rstrip(b"\n"))
    first = ingest(intake, [file])
    file.write_bytes(whole)
    second = ingest(intake, [file])
    assert second.new == 0
    assert first.new == ingest(intake, [file], again=True).duplicate


def test_a_file_rewritten_in_place_is_read_from_its_start(intake: IngestWriter, sessions: Path) -> None:
    ingest(intake, [sessions])
    changed = EXAMPLE.read_text().replace("Invoice totals", "Invoice sums")
    (sessions / "one.jsonl").write_text(changed)
    account = ingest(intake, [sessions])
    assert account.variant == 1
    assert account.lines == len(changed.splitlines())


def test_what_cannot_be_read_is_named_with_file_line_and_reason(intake: IngestWriter, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    good = EXAMPLE.read_text().splitlines()
    file.write_text("\n".join([good[0], "{not json", "", good[1], "[1, 2]", "\x00\x01", good[2]]) + "\n")
    account = ingest(intake, [file])
    assert [(bad.line, Path(bad.file).name) for bad in account.bad] == [(n, "one.jsonl") for n in (2, 5, 6)]
    assert all(bad.why for bad in account.bad)
    assert (account.lines, account.with_events, account.blank) == (7, 3, 1)


PACKED = {
    "w:gz": "sessions.tar.gz", "w:bz2": "sessions.tar.bz2", "w:xz": "sessions.tar.xz", "w": "sessions.tar",
}  # fmt: skip


@pytest.mark.parametrize("how", [*PACKED, "zip"])
def test_of_what_is_packed_it_is_said_what_to_do_and_nothing_is_kept(
    settings: Settings, log: Connection, sessions: Path, how: Any
) -> None:
    file = sessions.parent / PACKED.get(how, "sessions.zip")
    if how == "zip":
        shutil.make_archive(str(file.with_suffix("")), "zip", sessions)
    else:
        with tarfile.open(file, how) as packing:
            packing.add(sessions)
    ran = CliRunner().invoke(ingest_verb, [str(file)])
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert ran.stderr == f"{file} is packed: unpack it, and name what comes of it\n"
    assert move_mark(log) == 0


def test_of_a_folder_that_holds_packed_files_alone_it_is_said_what_is_there(
    settings: Settings, sessions: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    (folder / "old").mkdir(parents=True)
    with tarfile.open(folder / "b.tar.xz", "w:xz") as packing:
        packing.add(sessions)
    ran = CliRunner().invoke(ingest_verb, [str(folder)])
    found = f"no sessions found in {folder}, but"
    assert (ran.exit_code, ran.stderr) == (
        3, f"{found} 1 packed file (b.tar.xz): unpack it, and name what comes of it\n",
    )  # fmt: skip
    for name in ("a.zip", "c.gz", "old/d.7z", "notes.txt"):
        (folder / name).write_bytes(b"PK\x03\x04")
    ran = CliRunner().invoke(ingest_verb, [str(folder)])
    assert ran.stderr == (
        f"{found} 4 packed files (a.zip, b.tar.xz, c.gz and 1 more): unpack those that hold sessions,"
        " and name what comes of it\n"
    )
    shutil.copy(sessions / "one.jsonl", folder)
    assert CliRunner().invoke(ingest_verb, [str(folder)]).stderr == ""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Path.mkdir, "no sessions found in {}"),
        (Path.touch, "{} is empty: passed over"),
        (lambda path: path.write_bytes(bytes(range(256)) * 20), "{} is no transcript that memctl knows: passed over"),
        (lambda path: path.write_text("hello\n"), "{} is no transcript that memctl knows: passed over"),
        (os.mkfifo, "no sessions found in {}"),
    ],
    ids=["folder", "empty", "binary", "text", "pipe"],
)
def test_what_is_no_transcript_is_named_and_what_is_one_is_read_beside_it(
    settings: Settings, log: Connection, sessions: Path, made: Callable[[Path], Any], said: str
) -> None:
    other = sessions.parent / "other.jsonl"
    made(other)
    ran = CliRunner().invoke(ingest_verb, [str(other)])
    assert (ran.exit_code, ran.stderr) == (3, said.format(other) + "\n")
    assert move_mark(log) == 0
    again = sessions.parent / "again.jsonl"
    again.symlink_to(sessions / "one.jsonl")
    ran = CliRunner().invoke(ingest_verb, [str(other), str(sessions), str(again)])
    assert ran.exit_code == 0
    assert ran.stderr == ("" if said.startswith("no sessions") else said.format(other) + "\n")
    assert move_mark(log) > 0


def test_a_session_of_a_folder_that_cannot_be_read_is_named_in_the_account(
    settings: Settings, log: Connection, sessions: Path
) -> None:
    lost = sessions / "two.jsonl"
    lost.write_bytes(b"\0" * 8_000)
    (sessions / "notes.md").write_bytes(b"notes\n")
    ran = CliRunner().invoke(ingest_verb, [str(sessions)])
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert f"  bad  {lost}  {NOTHING_BUT_ZEROS}\n" in ran.stdout
    ran = CliRunner().invoke(ingest_verb, [str(sessions), "--json"])
    assert json.loads(ran.stdout)["bad"] == [{"file": str(lost), "line": 0, "why": NOTHING_BUT_ZEROS}]


def test_a_line_of_two_objects_run_together_gives_both(intake: IngestWriter, sessions: Path) -> None:
    file = sessions / "one.jsonl"
    good = EXAMPLE.read_text().splitlines()
    file.write_text("\n".join([good[0], good[1] + good[2], good[3]]) + "\n")
    account = ingest(intake, [file])
    assert account.new == 4
    assert account.lines == 3


def test_secrets_and_private_parts_never_reach_the_log(intake: IngestWriter, sessions: Path) -> None:
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    line = json.loads(EXAMPLE.read_text().splitlines()[0])
    line["message"]["content"] = f"use {key} for the bucket <private>my diary</private> please"
    (sessions / "one.jsonl").write_text(json.dumps(line) + "\n")
    account = ingest(intake, [sessions])
    stored = str(intake.connection.execute("SELECT payload, dedupe_key, location FROM memctl.events").fetchall())
    assert key not in stored
    assert "diary" not in stored
    assert "for the bucket" in stored
    assert sum(account.redacted.values()) == 2


def test_stopping_in_the_middle_loses_nothing(
    intake: IngestWriter, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.write.ingest.BATCH", 5)
    read = 0

    def stop_soon(path: Path, size: int) -> None:
        nonlocal read
        read += 1
        if read == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(intake, [sessions], progress=stop_soon)
    ingest(intake, [sessions])
    account = ingest(intake, [sessions], again=True)
    assert account.new == account.variant == 0
    assert account.duplicate == len(types(intake))


def test_stopping_keeps_what_was_read_whole_and_goes_on_there(intake: IngestWriter, sessions: Path) -> None:
    read = 0

    def stop_soon(path: Path, size: int) -> None:
        nonlocal read
        read += 1
        if read == 17:
            raise KeyboardInterrupt

    account = Account()
    with pytest.raises(KeyboardInterrupt):
        ingest(intake, [sessions], account=account, progress=stop_soon)
    assert account.new == len(types(intake)) > 0
    rest = ingest(intake, [sessions])
    assert rest.duplicate == 0
    assert account.lines + rest.lines == len(EXAMPLE.read_text().splitlines())


def test_a_file_that_takes_the_place_of_one_being_read_is_read_from_its_start(
    intake: IngestWriter, sessions: Path, tmp_path: Path
) -> None:
    file, other = sessions / "one.jsonl", tmp_path / "other"
    other.write_bytes(session("s-new", *(f"prompt {n}" for n in range(40))) + EXAMPLE.read_bytes())

    def replace(path: Path, size: int) -> None:
        if other.exists():
            other.rename(file)

    first = ingest(intake, [file], progress=replace)
    second = ingest(intake, [file])
    assert (second.new, second.duplicate) == (40, first.new)
    assert ingest(intake, [file], again=True).new == 0


def test_a_file_that_goes_away_is_told_and_the_others_are_kept(intake: IngestWriter, tmp_path: Path) -> None:
    files = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for file in files:
        file.write_bytes(session(file.stem, "hello", "bye"))

    def remove(path: Path, size: int) -> None:
        files[1].unlink(missing_ok=True)

    account = ingest(intake, files, progress=remove)
    assert [(bad.file, bad.line) for bad in account.bad] == [(str(files[1]), 0)]
    assert "No such file" in account.bad[0].why
    assert (account.files, account.new) == (2, 4)
    assert ingest(intake, [files[0], files[2]]).unchanged == 2


def test_a_file_that_fails_while_it_is_read_keeps_what_was_read_of_it(
    intake: IngestWriter, sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memctl.infra.transcripts import reading

    broken = sessions / "one.jsonl"
    after = tmp_path / "two.jsonl"
    after.write_bytes(session("s-after", "hello"))
    raw_lines = reading.raw_lines

    def fails(*args: Any, **more: Any) -> Iterator[reading.RawLine]:
        for line in raw_lines(*args, **more):
            if line.number == 6 and line.offset > 1000:  # as a disk does
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            yield line

    with monkeypatch.context() as at:
        at.setattr(reading, "raw_lines", fails)
        account = ingest(intake, [broken, after])
    assert [(bad.file, bad.line) for bad in account.bad] == [(str(broken), 0)]
    assert account.lines == 6
    assert ingest(intake, [broken, after]).duplicate == 0


@pytest.mark.parametrize("batch", [1000, 7])
def test_what_postgres_refuses_is_told_and_the_rest_of_its_batch_is_kept(
    intake: IngestWriter, tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.api.write.ingest.BATCH", batch)
    intake.connection.execute("ALTER TABLE memctl.events ADD CHECK (payload::text NOT LIKE '%not this%')")
    file, other = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    good = session("s-good", *(f"prompt {n}" for n in range(250)))
    file.write_bytes(good[: good.index(b"\n") + 1] + session("s-bad", "not this") + good[good.index(b"\n") + 1 :])
    other.write_bytes(session("s-other", "hello") + session("s-bad", "nor that, not this"))
    account = ingest(intake, [file, other])
    assert [(Path(bad.file).name, bad.line) for bad in account.bad] == [("one.jsonl", 2), ("two.jsonl", 2)]
    assert all("not kept" in bad.why for bad in account.bad)
    assert account.new == len(types(intake)) == 251
    assert adds_up(account)
    assert ingest(intake, [file, other]).unchanged == 2


def test_a_file_with_a_very_long_path_is_noted(intake: IngestWriter, tmp_path: Path) -> None:
    folder = tmp_path
    luck = random.Random(2)
    while len(str(folder)) < 3500:
        folder = folder / luck.randbytes(100).hex()
    folder.mkdir(parents=True)
    file = folder / "one.jsonl"
    file.write_bytes(session("s-deep", "hello"))
    assert ingest(intake, [file]).new == 1
    assert ingest(intake, [file]).unchanged == 1


def test_all_real_sessions_are_read_and_every_line_is_accounted_for(intake: IngestWriter, real: Path) -> None:
    account = ingest(intake, [real])
    counted = sum(path.read_bytes().count(b"\n") for path in real.rglob("*.jsonl"))
    assert account.files == 150
    assert abs(account.lines - counted) <= account.files  # a last line need not end in a newline
    assert adds_up(account)
    assert account.new > 18_000
    again = ingest(intake, sorted(real.rglob("*.jsonl"))[::5], again=True)
    assert again.files == 30
    assert (again.new, again.variant) == (0, 0)


def test_real_sessions_in_another_order_and_in_growing_prefixes_end_in_the_same_rows(
    intake: IngestWriter, database_url: str, postgres_server: str, migrated_template: str, real: Path, tmp_path: Path
) -> None:
    import servers

    luck = random.Random(5)
    files = luck.sample(sorted(path for path in real.rglob("*.jsonl") if path.stat().st_size < 400_000), 16)
    ingest(intake, files)
    expected = folded(intake, database_url)
    assert expected["memories"][0] > 10

    with servers.fresh_database(postgres_server, template=migrated_template) as other:
        settings = load_settings(database_url=other, data_dir=tmp_path / "other")
        with IngestWriter(settings) as growing:
            luck.shuffle(files)
            for share in (0.3, 0.6, 1.0):
                for number, file in enumerate(files):
                    data = file.read_bytes()
                    copy = tmp_path / f"{number}.jsonl"
                    copy.write_bytes(data[: int(len(data) * share)])
                    ingest(growing, [copy])
                folded(growing, other)
            assert digests(growing.connection) == expected
        assert replay(other, None, verify=True).equal


def test_dates_count_of_what_a_client_keeps_where_it_keeps_it(
    intake: IngestWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    kept, found = tmp_path / "home" / "projects" / "x", tmp_path / "checkout"
    for folder in (kept, found):
        folder.mkdir(parents=True)
    git(found, "init", "-q")
    (tmp_path / "aside").symlink_to(kept)
    for name, folder in (("kept", kept), ("linked", tmp_path / "aside"), ("found", found)):
        said = {"type": "user", "uuid": name, "sessionId": name, "cwd": str(found), "message": {"content": "go"}}
        (folder / f"{name}.jsonl").write_text(json.dumps(said) + "\n")
        ingest(intake, [folder / f"{name}.jsonl"])
    looked_at = intake.connection.execute(
        "SELECT session_id, payload->>'brought' FROM memctl.events WHERE type = 'project.identified' ORDER BY 1"
    ).fetchall()
    assert looked_at == [("found", "true"), ("kept", None), ("linked", None)]


def test_ingest_from_two_processes_at_once_keeps_each_event_once(
    intake: IngestWriter, database_url: str, sessions: Path, tmp_path: Path
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def go(number: int) -> Account:
        with IngestWriter(load_settings(database_url=database_url, data_dir=tmp_path / "data")) as mine:
            return ingest(mine, [sessions], again=True)

    with ThreadPoolExecutor(4) as pool:
        accounts = list(pool.map(go, range(4)))
    with connect(database_url) as connection:
        stored = connection.execute("SELECT count(*) FROM memctl.events").fetchone()
    assert stored == (sum(account.new for account in accounts),)
    assert all(account.new + account.duplicate == stored[0] for account in accounts)


def test_where_lines_are_known_by_their_number_a_missing_newline_shifts_nothing(
    intake: IngestWriter, tmp_path: Path
) -> None:
    def line(number: int) -> str:
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"please do {number}"}]}
        return json.dumps(
            {"timestamp": f"2026-06-17T10:07:{number:02d}.000Z", "type": "response_item", "payload": said}
        )

    head = {"timestamp": "2026-06-17T10:07:00.000Z", "type": "session_meta", "payload": {"id": "c-1", "cwd": "/w"}}
    file = tmp_path / "rollout.jsonl"
    lines = [json.dumps(head), *(line(number) for number in range(1, 6))]
    for count in range(1, len(lines) + 1):
        file.write_text("\n".join(lines[:count]))  # the last one still without its newline
        ingest(intake, [file])
    file.write_text("\n".join(lines) + "\n")
    ingest(intake, [file])
    whole = ingest(intake, [file], again=True)
    assert (whole.new, whole.variant) == (0, 0)
    assert whole.duplicate == len(types(intake))


def test_a_folder_of_every_clients_sessions_is_read_once_and_all_of_it_is_in_the_log(
    intake: IngestWriter, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    suffixes = {"SpecStory": ".md", "Aider": ".md", "SweAgent": ".traj"}
    for reader, sample in SAMPLES.items():
        (folder / f"{reader.__name__}{suffixes.get(reader.__name__, '.json')}").write_bytes(sample)
    first = ingest(intake, [folder])
    assert (first.files, first.bad, first.variant) == (len(SAMPLES), [], 0)
    assert adds_up(first)
    again = ingest(intake, [folder])
    assert (again.unchanged, again.lines) == (len(SAMPLES), 0)
    whole = ingest(intake, [folder], again=True)
    assert (whole.new, whole.duplicate) == (0, first.new + first.duplicate)
    ledger = account_of_log(intake.connection, intake.space_id)
    assert (ledger.files, ledger.missing, ledger.unread) == (len(SAMPLES), 0, 0)


def test_a_document_that_was_written_anew_adds_what_is_new(intake: IngestWriter, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(opencode(OPENCODE_MESSAGES[:1]))
    first = ingest(intake, [path])
    path.write_bytes(opencode(OPENCODE_MESSAGES))
    ledger = account_of_log(intake.connection, intake.space_id)
    assert (ledger.missing, ledger.unread_files) == (0, 1)
    grown = ingest(intake, [path])
    assert (grown.duplicate, grown.variant) == (first.new, 0)
    assert grown.new > first.new


@pytest.mark.parametrize("mine", [False, True])
def test_a_store_is_imported_once(intake: IngestWriter, database_url: str, tmp_path: Path, mine: bool) -> None:
    path = tmp_path / "export.json"
    note = {"id": 1, "content": "The staging server restarts on Sundays.", "category": "ops"}
    said = {
        "id": "e",
        "event_type": "user_prompt",
        "session_id": "s",
        "content": "Fix the cart",
        "metadata": {"cwd": "/w/shop"},
        "timestamp": "2026-01-01",
    }
    path.write_text(json.dumps({"events": [said], "collected_info": [note]}))
    first = import_stores(intake, [path], mine=mine)
    assert (first.new, first.lines, first.bad) == (2, 2, [])
    before = folded(intake, database_url)
    again = import_stores(intake, [path], mine=mine)
    assert (again.new, again.duplicate) == (0, 2)
    assert folded(intake, database_url) == before
    whose = intake.connection.execute("SELECT actor, location FROM memctl.events WHERE type = 'prompt.submitted'")
    assert whose.fetchall() == [("user", "/w/shop") if mine else ("import", "imported:/w/shop")]


def test_a_line_of_a_hole_of_a_terabyte_is_passed_over_and_what_follows_is_read(
    intake: IngestWriter, tmp_path: Path
) -> None:
    line = EXAMPLE.read_bytes().splitlines(keepends=True)[0]
    count = len(EXAMPLE.read_bytes().splitlines())
    file = tmp_path / "sparse.jsonl"
    with file.open("wb") as made:
        made.write(EXAMPLE.read_bytes() + b'{"a')
        made.seek(1 << 40)
        made.write(b'"}\n' + line.replace(b"3f6f1d52", b"77777777"))
    account = ingest(intake, [file])
    assert count + 1 in [bad.line for bad in account.bad]
    assert account.lines == count + 2
    with file.open("ab") as made:
        made.write(line.replace(b"3f6f1d52", b"88888888"))
    assert ingest(intake, [file]).lines == 1, "it is read on from where it was left"


def test_a_transcript_that_a_repository_brings_is_nobodys_word_here(intake: IngestWriter, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / "brought.jsonl").write_bytes(session("brought", "We always use quartz here."))
    (clone / "own.jsonl").write_bytes(session("own", "We always use honestly here."))
    (clone / "docs").mkdir()
    (clone / "docs" / "own.jsonl").write_bytes(session("other", "We always use feldspar here."))
    git(clone, "init", "-q")
    git(clone, "add", "brought.jsonl", "docs")
    account = ingest(intake, [clone, *clone.glob("*.jsonl")])
    refused = {(str(Path(each.file).relative_to(clone)), each.why) for each in account.bad}
    assert refused == {
        *((each, AMONG_SOURCES) for each in ("brought.jsonl", "docs/own.jsonl", "own.jsonl")),
        ("brought.jsonl", OF_A_REPOSITORY),
    }
    kept = read_range(intake.connection, Position(0), move_mark(intake.connection), limit=100).events
    assert {each.session_id for each in kept} == {"own"}, "a file that is named, and no repository has"
    (tmp_path / "elsewhere.jsonl").write_bytes((clone / "brought.jsonl").read_bytes())
    assert ingest(intake, [tmp_path / "elsewhere.jsonl"]).new == 1


def test_a_line_that_cannot_be_redacted_is_reported_and_what_stands_around_it_is_kept(
    intake: IngestWriter,
    log: Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "s").mkdir()
    for name in ("a", "b"):
        said = (f"{name} before", f"{name} quarrelsome" if name == "a" else "between", f"{name} behind")
        (tmp_path / "s" / f"{name}.jsonl").write_bytes(session(name, *said))
    prepare = IngestWriter.prepare

    def fails(self: IngestWriter, events: Sequence[NewEvent]) -> Prepared:
        if any("quarrelsome" in getattr(each.payload, "text", "") for each in events):
            raise RecursionError("over quarrelsome words")
        return prepare(self, events)

    monkeypatch.setattr(IngestWriter, "prepare", fails)
    account = ingest(intake, [tmp_path / "s"])
    assert [(Path(each.file).name, each.line, each.why) for each in account.bad] == [
        ("a.jsonl", 2, "not kept: redacting it failed (RecursionError)")
    ]
    kept = log.execute("SELECT payload->>'text' FROM memctl.events WHERE payload ? 'text' ORDER BY 1").fetchall()
    assert kept == [("a before",), ("a behind",), ("b before",), ("b behind",), ("between",)]
    assert "quarrelsome" not in caplog.text


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_what_aider_is_asked_while_saving_is_off_is_not_kept_then_nor_later(
    settings: Settings, log: Connection, tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines bear the time at which their chat began."""
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    history = tmp_path / "shop" / ".aider.chat.history.md"

    def ask(text: str) -> None:
        with history.open("a") as file:
            file.write(f"#### {text}  \n\nI will.\n\n")
        with IngestWriter(settings) as writer:
            ingest(writer, [history], policy=CapturePolicy(settings))

    def chat(began: float) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began))
        with history.open("a") as file:
            file.write(f"\n# aider chat started at {stamp}\n\n> Aider v0.86.1  \n\n")

    with monkeypatch.context() as there:
        there.setenv("TZ", zone)
        time.tzset()
        chat(time.time())
        ask("What is kept of this?")
        switch(settings.data_dir, False)
        ask("And of this, between us?")
        chat(time.time() + 3600)  # by a clock that is ahead: its time alone would not keep it from being read
        ask("And of this chat, between us?")
        switch(settings.data_dir, True)
        ask("And of this, for all?")
    time.tzset()
    kept = log.execute("SELECT payload->>'text' FROM memctl.events WHERE type = 'prompt.submitted' ORDER BY position")
    assert [text for (text,) in kept] == ["What is kept of this?", "And of this, for all?"]
