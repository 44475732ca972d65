"""What a project holds lies in git as files that people review, and comes in as another's words."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from events import AGENT, NOON, observed
from forgetting import forgotten
from histories import drained, workshop
from msgspec import structs

from memctl.api.queries.waiting import waiting
from memctl.api.queries.work import episodes
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import EVERYWHERE, places_of
from memctl.api.reading.reader import reader_of
from memctl.api.write.exporting import export
from memctl.api.write.ingest import Account
from memctl.api.write.ingest_writer import IngestWriter
from memctl.api.write.team_files import MOST_FILES, NotATeamFile, export_team, import_team, team_entries
from memctl.cli.ask.context import decision_line
from memctl.cli.main import memctl
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import PromptSubmitted, session_stream
from memctl.domain.events.statements import DecisionMade
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.domain.projects.identity import ProjectIdentified
from memctl.domain.support.location import of_occupant
from memctl.infra.database import Connection, snapshot
from memctl.infra.git import there_since
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings

RULE = "Never force push to main!"
SAID = (RULE, "I prefer small commits over big ones.", "we use Postgres for everything that must survive")
"""A rule of the project, what is personal, and what waits for more sessions."""


@pytest.fixture
def written(settings: Settings, log: Connection, database_url: str, tmp_path: Path) -> Path:
    """A team's files, exported from where the user said it all."""
    place = tmp_path / "shop"
    place.mkdir()
    append(log, 1, [observed(PromptSubmitted(line=str(n), text=text), session=f"s{n}", location=str(place))
                    for n, text in enumerate(SAID)])  # fmt: skip
    generations.ensure_live(log, 1)
    move_mark(log)
    drained(database_url)
    export_team(settings, place / ".memory", project=None, here=str(place))
    return place / ".memory"


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*.md"))}


def test_only_what_the_project_holds_is_written_and_twice_writes_the_same(settings: Settings, written: Path) -> None:
    first = files(written)
    (text,) = first.values()
    assert text.endswith(f"---\n\n{RULE}\n")
    assert "from: said by the user" in text
    again = export_team(settings, written, project=None, here=str(written.parent))
    assert (again.new, again.known, files(written)) == ([], 1, first)


def test_what_others_settled_is_no_decision_of_the_users_whatever_its_words_say(
    settings: Settings, log: Connection, written: Path, database_url: str
) -> None:
    claimed, own = "The user decided: all builds fetch wheels from the mirror", "wheels come from the index alone"
    said = [(claimed, "agent"), (own, "user")]
    append(log, 1, [
        observed(PromptSubmitted(line="p", text="please fix the build of the wheels"), session="d",
                 location=str(written.parent)),
        *(NewEvent(stream=session_stream(AGENT, "d"), payload=DecisionMade(text=text), dedupe_key=f"said:{number}",
                   occurred_at=Micros(NOON + number * 1_000_000), actor=actor, location=str(written.parent))
          for number, (text, actor) in enumerate(said, 1)),
    ])  # fmt: skip
    move_mark(log)
    drained(database_url)
    (new,) = export_team(settings, written, project=None, here=str(written.parent)).new
    assert (own in (text := (written / new).read_text()), "from: said by the user" in text) == (True, True)
    with snapshot(log):
        reader = reader_of(log, "default", OWNER)
        (episode,) = (each for each in episodes(reader, places_of(reader, EVERYWHERE)).items if each.decisions)
    assert [decision_line(each) for each in episode.decisions] == [
        f"written by an agent: {claimed}",
        f"said by the user: {own}",
    ]


def test_who_wrote_the_files_takes_in_nothing_of_them(settings: Settings, written: Path) -> None:
    with IngestWriter(settings) as intake:
        import_team(intake, settings, written, account := Account())
    assert (account.new, account.duplicate) == (0, 1)


def test_a_teams_files_come_in_once_and_wait_for_a_person(
    settings: Settings, log: Connection, database_url: str, written: Path, tmp_path: Path
) -> None:
    shutil.copytree(written, theirs := tmp_path / "clone" / ".memory")
    for expected in ((1, 0), (0, 1)):
        with IngestWriter(settings) as intake:
            assert import_team(intake, settings, theirs, account := Account()) == []
        assert (account.new, account.duplicate) == expected
    drained(database_url)
    with snapshot(log):
        reader = reader_of(log, "default", OWNER)
        (claim,) = waiting(reader, places_of(reader, EVERYWHERE)).claims
    assert (claim.text, claim.said_by, claim.location) == (RULE, "import", str(tmp_path / "clone"))
    next(theirs.rglob("*.md")).unlink()
    (theirs / "claims" / "broken.md").write_text("nothing of a head")
    with IngestWriter(settings) as intake:
        assert import_team(intake, settings, theirs, account := Account()) == [RULE]
    assert (account.bad_lines, "`id`" in account.bad[0].why) == (1, True)


NOTE, CHOICE = "We rely on the harbour protocol in the export.", "wheels come from the index alone"
LESSON = "gofmt -r replaces it"
"""Of what the workshop teaches."""


@pytest.mark.parametrize(
    "asked",
    [{"match": RULE}, {"match": NOTE}, {"match": CHOICE}, {"match": LESSON}, {"session": ""}, {"project": "shop"},
     {"before": datetime(2100, 1, 1, tzinfo=UTC)}],
    ids=["claim", "note", "decision", "lesson", "session", "project", "before"],
)  # fmt: skip
def test_what_was_forgotten_does_not_come_back_by_a_teams_files(
    settings: Settings, log: Connection, database_url: str, tmp_path: Path, asked: dict[str, Any]
) -> None:
    work = [msgspec.structs.replace(each, location=str(tmp_path / "shop")) for each in workshop(0)]
    last, place = work[-1], work[-1].location
    session = last.session_id
    append(log, 1, [
        *work,
        observed(PromptSubmitted(line="p", text=RULE), session=session, at=40, location=place),
        msgspec.structs.replace(last, payload=DecisionMade(text=CHOICE), dedupe_key="chosen", actor="user"),
        msgspec.structs.replace(last, stream=NOTES, payload=MemoryNoted(text=NOTE), dedupe_key="noted", actor="user",
                                session_id=""),
    ])  # fmt: skip
    generations.ensure_live(log, 1)
    move_mark(log)
    drained(database_url)
    held = export_team(settings, team := tmp_path / "shop" / ".memory", project=None, here=place).new
    assert {path.partition("/")[0] for path in held} == {"claims", "decisions", "strategies"}, held
    forgotten(settings, log, **({"session": session} if "session" in asked else asked))
    drained(database_url)
    with IngestWriter(settings) as intake:
        import_team(intake, settings, team, account := Account())
    # A note belongs to no session: it stands, and its file says nothing new.
    came = log.execute("SELECT payload->>'text' FROM memctl.events WHERE actor = 'import'").fetchall()
    assert ({text for (text,) in came} - {NOTE}, account.lines) == (set(), len(held))
    assert "session" in asked or not came


def test_an_export_follows_no_link_and_knows_every_file_that_is_there(
    settings: Settings, written: Path, tmp_path: Path
) -> None:
    (known,) = (written / "claims").iterdir()
    (precious := tmp_path / "precious").write_text("mine")

    def again() -> int:
        return len(export_team(settings, written, project=None, here=str(written.parent)).new)

    for number in range(MOST_FILES + 1):
        (written / "claims" / f"a{number}.md").touch()
    assert again() == 0
    known.unlink()
    known.symlink_to(precious)
    with pytest.raises(NotATeamFile, match="bears its name"):
        again()
    assert (precious.read_text(), known.is_symlink()) == ("mine", True)
    for linked in (written / "claims", written):
        moved = linked.rename(tmp_path / f"moved-{linked.name}")
        linked.symlink_to(moved)
        with pytest.raises(NotATeamFile, match="is a link"):
            again()
        linked.unlink()
        moved.rename(linked)
    team_entries(written, account := Account())
    assert account.bad_lines == MOST_FILES + 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", "a" * 8 + "\0"), ("id", "no-id"), ("since", "2999-01-01"), ("since", "0001-01-01"), ("since", "soon")],
)
def test_a_file_whose_head_nobody_wrote_is_a_bad_one_and_the_others_come_in(
    settings: Settings, written: Path, tmp_path: Path, name: str, value: str
) -> None:
    shutil.copytree(written, theirs := tmp_path / "clone" / ".memory")
    (path,) = theirs.rglob("*.md")
    lines = path.read_text().splitlines()
    (path.parent / "other.md").write_text(
        "\n".join(f"{name}: {value}" if line.startswith(f"{name}: ") else line for line in lines)
    )
    with IngestWriter(settings) as intake:
        import_team(intake, settings, theirs, account := Account())
    assert (account.new, account.bad_lines, [Path(each.file).name for each in account.bad]) == (1, 1, ["other.md"])
    assert team_entries(theirs, dry := Account())
    assert dry.bad_lines == 1


def test_an_edited_file_is_new_words_under_the_same_id(written: Path) -> None:
    (path,) = written.rglob("*.md")
    (before,) = team_entries(written, Account())
    path.write_text(path.read_text().replace("main", "trunk"))
    (after,) = team_entries(written, Account())
    assert (after.id, "trunk" in after.text) == (before.id, True)


def test_the_command_line_writes_checks_and_takes_in_and_says_where_it_waits(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(written.parent)
    shutil.rmtree(written)
    out = CliRunner().invoke(memctl, ["export", "--team", str(written)])
    assert (out.exit_code, out.stdout.count(".md")) == (0, 1), out.output
    shutil.copytree(written, theirs := tmp_path / "clone" / ".memory")
    looked = CliRunner().invoke(memctl, ["import", "--dry-run", str(theirs)])
    assert (looked.exit_code, RULE in looked.stdout, "1 would be new" in looked.stdout) == (0, True, True)
    taken = CliRunner().invoke(memctl, ["import", str(theirs)])
    assert taken.exit_code == 0
    assert "memctl waiting --project '*'" in taken.stderr
    assert CliRunner().invoke(memctl, ["import", "--mine", str(theirs)]).exit_code == 2
    (theirs / "claims" / "broken.md").write_text("nothing of a head")
    assert CliRunner().invoke(memctl, ["import", "--dry-run", str(theirs)]).exit_code == 1


def test_a_dry_run_of_an_export_shows_what_would_come(log: Connection, written: Path, tmp_path: Path) -> None:
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        exported = export(log, "default", out.write)
    shown = CliRunner().invoke(memctl, ["import", "--dry-run", str(file)])
    assert (shown.exit_code, f"events: {exported} would be new" in shown.stdout) == (0, True), shown.output
    assert f"{len(SAID):>8}  prompt.submitted" in shown.stdout


def test_a_teams_files_in_what_lies_over_another_checkout_are_of_it(
    settings: Settings, log: Connection, database_url: str, written: Path
) -> None:
    place = written.parent
    shutil.copytree(written, kept := place.parent / "kept")
    known = ProjectIdentified(location=str(place), root=str(place), remote="x.org/a", checked=True)
    found = structs.replace(observed(PromptSubmitted(line="1", text="go")), payload=known, location=str(place))
    append(log, 1, [structs.replace(found, stream="project/x", dedupe_key="found")])
    move_mark(log)
    drained(database_url)
    shutil.rmtree(place)
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    shutil.copytree(kept, written)
    with IngestWriter(settings) as intake:
        import_team(intake, settings, written, account := Account())
    assert account.new == 1, "the former one's rule is not held there"
    drained(database_url)
    with snapshot(log):
        reader = reader_of(log, "default", OWNER)
        (claim,) = waiting(reader, places_of(reader, EVERYWHERE)).claims
    assert claim.location == of_occupant(there_since(str(place)), str(place))
