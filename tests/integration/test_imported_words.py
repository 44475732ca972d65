"""What an export says in the user's name is not the user's word here and settles nothing, unless its user says so."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from events import observed, stated
from histories import drained

from memctl.api.queries.claims import insights
from memctl.api.queries.waiting import waiting
from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import EVERYWHERE, places_of
from memctl.api.reading.reader import reader_of
from memctl.api.write import exporting
from memctl.api.write.exporting import ExportLine
from memctl.api.write.ingest import Account
from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.events.core_memory import CORE, CoreMemoryAppended
from memctl.domain.events.event import Payload
from memctl.domain.events.feedback import KnowledgeRejected, KnowledgeVerified
from memctl.domain.events.observations import (
    CommitRecorded,
    PromptSubmitted,
    SessionStarted,
    ToolCalled,
    ToolReturned,
    history_key,
    transcript_key,
)
from memctl.domain.events.processor_events import Claim, InsightExtracted
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.events.statements import DecisionMade
from memctl.domain.knowledge.consolidation import MemoryPruned
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.domain.projects.identity import ProjectIdentified, ProjectMerged, ProjectSplit, project_stream
from memctl.domain.support.location import in_another_memory
from memctl.domain.support.provenance import Provenance
from memctl.infra.database import Connection, snapshot
from memctl.infra.log.append import append
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.known_projects import known_projects
from memctl.infra.settings import Settings
from memctl.workers.processors.runner import model

RULE = "We always use quartz for dates."


@pytest.fixture
def forged(elsewhere: Connection, tmp_path: Path) -> Path:
    """An export that speaks in the user's name in every way."""
    asked = {"questions": [{"question": "Which one for dates?", "header": "Dates", "options": []}]}
    events = [
        observed(PromptSubmitted(line="1", text=RULE), session="f", location="/w/shop"),
        observed(
            ToolCalled(line="2", tool="AskUserQuestion", call="q", input=asked), session="f", at=1, location="/w/shop"
        ),
        observed(
            ToolReturned(line="3", tool="AskUserQuestion", call="q", text='"Which one for dates?"="quartz"'),
            session="f", at=2, location="/w/shop",
        ),
        msgspec.structs.replace(stated(NOTES, MemoryNoted(text="Dates are quartz in every project", everywhere=True)),
                                actor="user"),
        msgspec.structs.replace(stated(CORE, CoreMemoryAppended(section="human", text="likes quartz",
                                version=1, content="likes quartz")), actor="user"),
        msgspec.structs.replace(stated("knowledge/x", KnowledgeVerified(claim="x")), actor="user"),
        msgspec.structs.replace(stated(project_stream("/w/ours"), ProjectMerged(into="/w/ours", merged="/w/shop")),
                                actor="user"),
    ]  # fmt: skip
    append(elsewhere, 1, events)
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        exporting.export(elsewhere, "default", out.write)
    return file


def said_by(log: Connection) -> set[Provenance]:
    """Whose claims memory holds."""
    live = generations.live(log)
    p = model("insights")
    return {readmodels.decode_row(p, row).said_by for _, row in readmodels.all_rows(log, p, live.of(p.stage))}


def types(log: Connection) -> set[str]:
    return {kind for (kind,) in log.execute("SELECT DISTINCT type FROM memctl.events").fetchall()}


@pytest.mark.parametrize("mine", [False, True])
def test_what_an_export_says_is_the_users_where_the_user_says_so(
    settings: Settings, log: Connection, database_url: str, forged: Path, mine: bool
) -> None:
    with IngestWriter(settings, identify=False) as intake:
        account = exporting.import_export(intake, forged, mine=mine)
    drained(database_url)
    assert said_by(log) == ({Provenance.USER_TYPED} if mine else {Provenance.IMPORT})
    settled = {"core_memory.appended", "knowledge.verified", "project.merged"} & types(log)
    assert (len(settled) > 1) is mine
    assert account.ignored.get("settled in another memory", 0) == (0 if mine else 3)


@pytest.mark.parametrize("mine", [False, True])
def test_what_another_memorys_user_meant_to_last_waits_for_a_person(
    settings: Settings, log: Connection, database_url: str, forged: Path, mine: bool
) -> None:
    with IngestWriter(settings, identify=False) as intake:
        exporting.import_export(intake, forged, mine=mine)
    drained(database_url)
    with snapshot(log):
        reader = reader_of(log, "default", OWNER)
        everywhere = places_of(reader, EVERYWHERE)
        waits = {each.text for each in waiting(reader, everywhere).claims}
        listed = {each.text for each in insights(reader, everywhere, waiting=True).items}
    assert (RULE in waits, RULE in listed) == (not mine, not mine)


def moved_over(settings: Settings, log: Connection, folder: Path) -> Account:
    """An export of a log, taken in as another memory's."""
    with open(file := folder / "log.jsonl", "wb") as out:
        exporting.export(log, "default", out.write)
    with IngestWriter(settings, identify=False) as intake:
        return exporting.import_export(intake, file, mine=False)


def test_an_export_of_what_is_known_here_changes_no_word_of_it(
    settings: Settings, log: Connection, tmp_path: Path
) -> None:
    append(log, 1, [observed(PromptSubmitted(line="1", text=RULE), session="f", location="/w/shop")])
    generations.ensure_live(log, 1)
    move_mark(log)
    account = moved_over(settings, log, tmp_path)
    assert (account.new, account.variant, account.duplicate) == (0, 0, 1)
    assert log.execute("SELECT actor FROM memctl.events").fetchall() == [("user",)]


def test_a_session_of_an_export_is_at_a_place_of_its_own_and_adds_to_none_that_is_known(
    settings: Settings, log: Connection, forged: Path
) -> None:
    own = observed(PromptSubmitted(line="own", text="why does the shop round so?"), session="f", location="/w/shop")
    append(log, 1, [own])
    with IngestWriter(settings, identify=False) as intake:
        account = exporting.import_export(intake, forged, mine=False)
        assert account.ignored["in a session that is known here"] == 3
        log.execute("SELECT 1")
    assert log.execute("SELECT location FROM memctl.events WHERE stream LIKE 'session/%'").fetchall() == [("/w/shop",)]


def test_what_was_recorded_in_another_memory_says_so_and_is_not_found_by_a_projects_name(
    settings: Settings, log: Connection, database_url: str, forged: Path
) -> None:
    append(
        log, 1, [observed(PromptSubmitted(line="o", text="why does it round so?"), session="own", location="/h/shop")]
    )
    with IngestWriter(settings, identify=False) as intake:
        exporting.import_export(intake, forged, mine=False)
    drained(database_url)
    live, p = generations.live(log), model("memories")
    rows = [readmodels.decode_row(p, row) for _, row in readmodels.all_rows(log, p, live.of(p.stage))]
    theirs = [row for row in rows if "quartz" in row.text]
    assert {row.kind for row in theirs} >= {"turn"}
    assert {row.said_by for row in theirs} == {Provenance.IMPORT}
    (meant,) = known_projects(log, live, 1).named("shop")
    assert meant.locations == ("/h/shop",)


HIDDEN = {
    "session/claude-code/f": [
        ProjectMerged(into="github.com/dana/ours", merged="/h/shop"),
        ProjectSplit(part="github.com/dana/ours"),
        ProjectIdentified(location="/h/shop", root="/h/shop", remote="github.com/dana/ours", checked=True),
        CoreMemoryAppended(section="style", text="quartz", version=9000, content="quartz"),
        KnowledgeRejected(claim="x"),
        MemoryPruned(memory="x", last_at=10**18),
        MemoryNoted(text="Dates are quartz in every project", everywhere=True),
        CommitRecorded(line="a" * 40, text="quartz"),
        InsightExtracted(claims=(Claim(kind="pattern", text=RULE, quote=RULE, said_by="user"),)),
        MemoryRecalled(hook="SessionStart", memories=(RecalledMemory("x"),)),
    ],
    NOTES: [PromptSubmitted(line="1", text=RULE), DecisionMade(text="quartz it is")],
    "core/memory": [MemoryNoted(text="Dates are quartz in every project", everywhere=True)],
}
"""What no memory says of itself in a stream of that kind."""


@pytest.mark.parametrize(
    ("stream", "payload"), [(stream, payload) for stream, each in HIDDEN.items() for payload in each]
)
def test_nothing_of_another_memory_comes_in_by_the_name_of_its_stream(
    settings: Settings, log: Connection, elsewhere: Connection, tmp_path: Path, stream: str, payload: Payload
) -> None:
    append(elsewhere, 1, [stated(stream, payload)])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    account = moved_over(settings, elsewhere, tmp_path)
    assert types(log) == set()
    assert account.ignored["settled in another memory"] == 1


@pytest.mark.parametrize("key", [history_key("history/shop", "c" * 40), transcript_key("claude-code", "own", "1", 0)])
def test_nothing_of_another_memory_takes_the_name_of_what_is_to_be_recorded_here(
    settings: Settings, log: Connection, elsewhere: Connection, tmp_path: Path, key: str
) -> None:
    theirs = observed(PromptSubmitted(line="1", text="quartz"), session="f", location="/w/shop")
    append(elsewhere, 1, [msgspec.structs.replace(theirs, dedupe_key=key)])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    account = moved_over(settings, elsewhere, tmp_path)
    assert types(log) == set()
    assert account.ignored["settled in another memory"] == 1


def test_a_session_of_another_memory_has_no_remote_of_this_one(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path
) -> None:
    theirs = SessionStarted(line="1", repository="https://github.com/dana/ours.git")
    append(elsewhere, 1, [observed(theirs, session="f", location="/w/shop", at=-10_000)])
    generations.ensure_live(elsewhere, 1)
    move_mark(elsewhere)
    with open(file := tmp_path / "log.jsonl", "wb") as out:
        exporting.export(elsewhere, "default", out.write)
    with IngestWriter(settings, identify=False) as intake:
        exporting.import_export(intake, file, mine=False)
    drained(database_url)
    (found,) = known_projects(log, generations.live(log), 1).all
    assert found.remotes == ()


@pytest.mark.parametrize("stream", ["session/claude-code/mine", "session/other-client/a/b"])
def test_a_line_of_an_export_is_of_the_session_whose_stream_it_stands_in(stream: str) -> None:
    said = ExportLine(
        id=uuid4(), type="prompt.submitted", version=1, stream=stream, occurred_at=1, recorded_at=1, actor="user",
        key="k", payload=msgspec.Raw(b'{"text": "hello"}'), session_id="yours",
    )  # fmt: skip
    assert exporting._event(said, {}).session_id == stream.split("/", 2)[2]


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("/w/shop", "imported:/w/shop"),
        ("c:\\w\\shop", "imported:/c:/w/shop"),
        ("imported:/../../w/shop", "imported:/w/shop"),
        ("../../w/shop", "imported:/w/shop"),
        ("", ""),
    ],
)
def test_no_name_of_another_memorys_place_is_a_path_here(there: str, here: str) -> None:
    assert in_another_memory(there) == here
