"""Memories of other tools are found on a machine, read with a person's word alone, and come in as another's."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from events import observed
from histories import drained
from other_memories import CLAUDE_MEM, CLAUDE_NOTE, claude_notes, database, other_memories

from memctl.api.queries.waiting import waiting
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import EVERYWHERE, places_of
from memctl.api.reading.reader import reader_of
from memctl.api.write.importing import account_of, import_stores, stores
from memctl.api.write.ingest_writer import IngestWriter
from memctl.cli.main import memctl
from memctl.cli.operate.up import offer_memories
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.notes import LONGEST_NOTE
from memctl.domain.support.location import in_another_memory, is_in_another_memory
from memctl.infra.database import Connection, snapshot
from memctl.infra.legacy import finding, markdown
from memctl.infra.legacy.isolated import rows_in_isolation
from memctl.infra.legacy.meaning import events_of
from memctl.infra.legacy.rows import NotALegacyStore
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings

DEPLOYS = "Deploys go out on Tuesdays, after the nightly run of the suite."
KINDS = {"Claude Code's notes": 1, "claude-mem": 3, "basic-memory": 2, "mem0": 1}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_MEM_DATA_DIR", "BASIC_MEMORY_HOME", "MEM0_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return other_memories(tmp_path / "home", tmp_path / "ledger")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(memctl, ["import", *map(str, words)])


def test_without_a_path_the_memories_of_this_machine_are_listed(home: Path, settings: Settings) -> None:
    said = run().output.splitlines()
    assert [line.partition(":")[0] for line in said[::2]] == list(KINDS)
    assert "claude-mem: 3 notes, newest 1 Mar" in "\n".join(said)
    assert f"  memctl import {home}/.claude-mem" in said
    listed = json.loads(run("--json").output)
    assert {each["title"]: each["notes"] for each in listed} == KINDS


def test_a_machine_without_any_says_so(home: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(home / "empty"))
    assert (run().exit_code, run().stdout) == (3, "")


def test_each_is_offered_once_and_none_is_opened(
    home: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in home.rglob("*"):
        if path.is_file():
            os.utime(path, (1, path.stat().st_mtime))  # reading sets the time again
    offer_memories(settings.data_dir)
    assert capsys.readouterr().err.startswith(f"on this machine: {', '.join(KINDS)}; ")
    offer_memories(settings.data_dir)
    assert capsys.readouterr().err == ""
    read = {path.name for path in home.rglob("*") if path.is_file() and path.stat().st_atime != 1}
    assert read <= {"config.json"}, "where basic-memory keeps its notes is asked of its settings"


def test_what_came_in_is_not_offered(home: Path, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home / ".claude-mem").exit_code == 0
    offer_memories(settings.data_dir)
    assert "claude-mem" not in capsys.readouterr().err


def test_every_tools_notes_come_in_once_and_wait_as_anothers(
    home: Path, settings: Settings, log: Connection, database_url: str, tmp_path: Path
) -> None:
    seen = observed(
        PromptSubmitted(line="1", text="look at the totals"), session="s", location=str(tmp_path / "ledger")
    )
    append(log, 1, [seen])
    generations.ensure_live(log, 1)
    move_mark(log)
    drained(database_url)
    every = [home / ".claude" / "projects", home / ".claude-mem", home / "notes", home / ".mem0"]
    for expected in ((7, 0), (0, 7)):
        with IngestWriter(settings) as intake:
            account = import_stores(intake, stores(every), mine=False)
        assert (account.new, account.duplicate, account.bad) == (*expected, [])
    drained(database_url)
    with snapshot(log):
        reader = reader_of(log, "default", OWNER)
        claims = waiting(reader, places_of(reader, EVERYWHERE)).claims
    assert {each.said_by for each in claims} == {"import"}
    places = {each.text: each.location for each in claims}
    assert places.pop("Prefers gofmt to any other formatting") == ""
    assert next(at for text, at in places.items() if DEPLOYS in text) == str(tmp_path / "ledger")
    assert next(at for text, at in places.items() if "Decimal" in text) == str(tmp_path / "ledger"), "known by its name"
    assert not any("Prefers tabs" in text or "printer" in text for text in places), "mem0 holds them no longer"


def test_a_project_that_is_known_later_makes_no_note_another(
    home: Path, settings: Settings, log: Connection, database_url: str, tmp_path: Path
) -> None:
    every = [home / ".claude-mem", home / ".claude"]
    transcript = next((home / ".claude" / "projects").rglob("*.jsonl"))
    with IngestWriter(settings) as intake:
        assert import_stores(intake, stores(every), mine=False).new == 4
    transcript.unlink()  # Claude Code deletes old ones
    seen = observed(
        PromptSubmitted(line="1", text="look at the totals"), session="s", location=str(tmp_path / "ledger")
    )
    append(log, 1, [seen])
    move_mark(log)
    drained(database_url)
    with IngestWriter(settings) as intake:
        account = import_stores(intake, stores(every), mine=False)
    assert (account.new, account.duplicate, account.variant) == (0, 4, 0)


def test_what_was_forgotten_stays_out_under_another_id(home: Path, settings: Settings, log: Connection) -> None:
    with IngestWriter(settings) as intake:
        import_stores(intake, stores([home / ".claude-mem"]), mine=False)
        found = log.execute("SELECT event_id FROM memctl.events WHERE payload::text LIKE '%lost a cent%'").fetchone()
        log.commit()
    assert found
    assert CliRunner().invoke(memctl, ["forget", "--id", str(found[0]), "--yes"]).exit_code == 0
    again = database(home / "again" / "claude-mem.db", CLAUDE_MEM + "UPDATE observations SET id = id + 100;")
    with IngestWriter(settings) as intake:
        account = import_stores(intake, stores([again.parent]), mine=False)
    assert (account.new, account.forgotten, account.duplicate) == (0, 1, 2)


def test_secrets_in_notes_stay_out(settings: Settings, log: Connection, tmp_path: Path) -> None:
    folder = claude_notes(tmp_path, tmp_path / "shop")
    token = f"ghp_{'a1B2c3D4' * 4}e5F6"
    (folder / "MEMORY.md").write_text(f"# Keys\n\nThe key of the mirror is {token}, and it ends in May.\n")
    with IngestWriter(settings) as intake:
        assert import_stores(intake, stores([folder]), mine=False).redacted
    kept = log.execute("SELECT string_agg(dedupe_key || payload::text, '') FROM memctl.events").fetchone()
    assert kept
    assert "The key of the mirror" in kept[0]
    assert token not in kept[0]


def test_notes_of_a_project_whose_directory_nothing_names_are_at_a_place_of_that_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    folder = claude_notes(tmp_path, tmp_path / "shop", sessions=False)
    (row,) = markdown.notes_in(folder)
    ((event,), _, _) = events_of(row.table, row.fields, 1)
    assert event.location == in_another_memory(folder.parent.name)
    (folder.parent / "s.jsonl").write_text(json.dumps({"cwd": "/somewhere/else"}) + "\n[1]\nnot json\n")
    assert next(markdown.notes_in(folder)).fields["place"] == ""
    (folder.parent / "t.jsonl").write_text(json.dumps({"cwd": str(tmp_path / "shop" / "src")}))
    assert next(markdown.notes_in(folder)).fields["place"] == str(tmp_path / "shop")


def test_a_clone_does_not_say_of_which_project_its_notes_are(tmp_path: Path) -> None:
    """Where the user's own client keeps its notes, its transcripts say where they are of. Anybody wrote these."""
    folder = claude_notes(tmp_path / "clone", Path("/home/dana/ledger"))
    assert list(folder.parent.glob("*.jsonl")), "which name the place"
    (store,) = stores([tmp_path / "clone" / ".claude"])
    places = [
        event.location for row in rows_in_isolation(store) for event in events_of(row.table, row.fields, row.number)[0]
    ]
    assert places
    assert all(map(is_in_another_memory, places)), places


def test_a_hostile_folder_of_notes_leads_nowhere(tmp_path: Path) -> None:
    folder = claude_notes(tmp_path, tmp_path / "shop")
    secret = tmp_path / "secret.md"
    secret.write_text("what is nobody's business here at all")
    (folder / "link.md").symlink_to(secret)
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "binary.md").write_bytes(b"---\n\xff\0" * 100)
    (folder / "long.md").write_text("a word " * (markdown.LARGEST_FILE // 7 + 1))
    (folder / "endless.md").write_text("# A fence\n```\n# " + "no heading at all, and more than is kept " * 100)
    account, examples = account_of(stores([folder]))
    assert not any("nobody's" in each for each in examples)
    assert [bad.why for bad in account.bad][-1] == "long.md is longer than 256 KB"
    assert any(f"cut at {LONGEST_NOTE:,}" in bad.why for bad in account.bad)
    assert sum("Deploys" in each for each in examples) == 1


def test_a_hostile_database_of_that_name_computes_nothing(tmp_path: Path) -> None:
    bomb = (
        "CREATE TABLE observations (id INTEGER, project TEXT, narrative TEXT, big TEXT AS (hex(zeroblob(400000000))));"
        "INSERT INTO observations (id, project, narrative) VALUES (1, '../../etc', 'a note that is long enough');"
        "CREATE VIEW session_summaries AS SELECT hex(zeroblob(400000000)) AS learned, 'x' AS project;"
    )
    store = database(tmp_path / "claude-mem.db", bomb)
    account, _ = account_of(stores([tmp_path]))
    assert (account.lines, account.new) == (1, 1)
    store.write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    assert isinstance(run(tmp_path, "--dry-run").exception, NotALegacyStore)


def test_a_huge_store_is_counted_within_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "MOST_FILES", 3)
    folder = claude_notes(tmp_path, tmp_path / "shop")
    for n in range(5):
        (folder / f"z{n}.md").write_text(f"The note of number {n} is a note.")
    assert len(list(markdown.notes_in(folder))) == 2, "of three files one is an index"
    many = ("INSERT INTO observations (memory_session_id, project, type, narrative, created_at, created_at_epoch) WITH"
            " RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 50000) SELECT 'm', 'ledger', 'x',"
            " 'what was seen for the time of number ' || n, '2026-03-01T10:00:00Z', 0 FROM n;")  # fmt: skip
    database(tmp_path / "many" / "claude-mem.db", CLAUDE_MEM + many)
    account, _ = account_of(stores([tmp_path / "many"]))
    assert account.new == 50_003


def test_a_folder_of_other_markdown_is_no_memory(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "readme.md").write_text("# How to build it\n\nRun make, and wait for it to end.\n")
    (tmp_path / "docs" / "note.md").write_text(CLAUDE_NOTE)
    with pytest.raises(NotALegacyStore, match="no notes"):
        stores([tmp_path / "docs"])


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("memory/events.sqlite", True),
        ("memory/projects/0a1b/events.sqlite", True),
        ("memory/projects/0a1b/copies/events.sqlite", False),
    ],
)
def test_a_store_is_found_where_its_tool_puts_it_and_looked_for_no_deeper(
    tmp_path: Path, file: str, *, found: bool
) -> None:
    store = tmp_path / ".claude-code" / file
    store.parent.mkdir(parents=True)
    store.touch()
    assert [each.title for each in finding.other_memories(tmp_path)] == ["code-memory"] * found
