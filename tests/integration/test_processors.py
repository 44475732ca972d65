"""Processors on a real database: work is done once, by one, outside of replays, and what came of it can be undone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from events import NOON, id_of, observed, prompt
from histories import digests, drained, example
from msgspec.structs import replace
from unit.test_learning import of

from memctl.api.checks.health import health
from memctl.api.erasure import scope as forget
from memctl.api.queries.memories import memories
from memctl.api.reading.caller import OWNER
from memctl.api.reading.consolidation_status import consolidation
from memctl.api.reading.pages import page, projection_named
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Readers, reader_of
from memctl.api.reading.staleness import stale
from memctl.api.write.command_handler import CommandHandler
from memctl.domain.events.command import read_command
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.events.observations import ResponseReceived
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.knowledge.consolidation import MemoriesMerged, MemoryPruned, UndoConsolidation
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.domain.projects.identity import ProjectIdentified
from memctl.domain.support.location import of_occupant
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import processor_work as processing
from memctl.infra.readmodels.processor_work import WorkLost
from memctl.infra.settings import Settings, load_settings
from memctl.infra.settings_model import Processors
from memctl.workers.processors.consolidator import Consolidator, Overtaken, consolidate, plan
from memctl.workers.processors.reflector import Reflector
from memctl.workers.processors.registry import by_rule as processors_by_rule
from memctl.workers.processors.runner import Outcome, ProcessorContext, ProcessorLoop, WorkFailed, WorkItem, process
from memctl.workers.processors.staleness import StalenessChecker
from memctl.workers.rebuild.replay import replay

EVERYWHERE = Places(None, "everywhere", None)
NOTE = (
    "The cart keeps its prices in cents: whoever shows one divides by a hundred and rounds half to even, as the ledger"
    " does, and never stores what was rounded, nor compares it with what the bank says"
)
AGAIN = f"{NOTE}, so far"
PEOPLE = ["dana", "kim", "alex", "sam", "robin", "jo", "max", "eli", "noa", "ada", "ben", "cleo"]
ASKED = (("Dana", "rounding in cents"), ("Kim", "deploys on Fridays"), ("Alex", "tests of the ledger"))
DAY = 86_400_000_000


def noted(text: str, number: int, **more: object) -> NewEvent:
    return NewEvent(
        stream=NOTES, payload=MemoryNoted(text=text, **more), occurred_at=Micros(NOON + number),  # type: ignore[arg-type]
        dedupe_key=f"command:note:{number}", actor="user", location="/home/dana/shop",
    )  # fmt: skip


@pytest.fixture
def shards() -> int:
    return 2


@pytest.fixture
def desk(settings: Settings) -> Iterator[ProcessorContext]:
    with connect(settings.require("database_url"), name="test") as connection:
        yield ProcessorContext(connection, settings, now=lambda: NOON + DAY)


def told(connection: Connection) -> set[str]:
    return {item.text for item in memories(reader_of(connection, "default", OWNER), EVERYWHERE, kind="knowledge").items}


def turns(connection: Connection) -> list[dict[str, Any]]:
    return memories(reader_of(connection, "default", OWNER), EVERYWHERE, kind="turn").items


def filled(desk: ProcessorContext, *events: NewEvent) -> None:
    append(desk.connection, 1, list(events))
    drained(desk.settings.require("database_url"))


def test_what_says_the_same_is_told_once_until_that_is_taken_back_and_not_done_again(desk: ProcessorContext) -> None:
    filled(desk, noted(NOTE, 1), noted(AGAIN, 2), noted("Deploy from main, by hand, on Fridays only", 3))
    found, _ = consolidate(desk, force=False)
    assert [type(each.payload) for each in found.changes] == [MemoriesMerged]
    filled(desk)
    assert len(told(desk.connection)) == 2
    assert plan(desk).changes == ()

    (change,) = consolidation(reader_of(desk.connection, "default", OWNER)).items
    readers = Readers(desk.settings.require("database_url"), "default")
    CommandHandler(desk.settings, readers).carry_out(
        "undo_consolidation", b'{"change": "%s", "by": "user"}' % change.id.encode(), "a-key", OWNER
    )
    filled(desk)
    assert len(told(desk.connection)) == 3
    assert plan(desk).changes == ()
    (change,) = consolidation(reader_of(desk.connection, "default", OWNER)).items
    assert change.undone_at is not None
    readers.close()


def test_what_was_never_needed_is_left_out_of_lists_and_what_an_agent_was_just_told_is_not(
    desk: ProcessorContext,
) -> None:
    def short(number: int, text: str) -> list[NewEvent]:
        session = f"short-{number}"
        answer = ResponseReceived(text="Yes.", line=f"{session}-answer", kind="text")
        asked = prompt(1, text, session=session)
        return [asked, observed(answer, session=session, at=9, actor="agent", location=asked.location)]

    filled(desk, *short(1, "is the cart sorted?"), *short(2, "are ledgers empty?"))
    shown = {item.text[:3]: item.id for item in turns(desk.connection)}
    assert plan(desk).changes == (), "they are too young"
    desk.now = lambda: NOON + 100 * DAY
    recalled = MemoryRecalled(hook="UserPromptSubmit", memories=(RecalledMemory(shown["is "]),))
    filled(desk, of(recalled, 2))
    (change,) = plan(desk).changes
    assert change.payload == MemoryPruned(memory=shown["are"], last_at=change.payload.last_at, importance=0.2)
    consolidate(desk, force=True)
    filled(desk)
    assert {item.id for item in turns(desk.connection)} == {shown["is "]}


def test_a_round_by_hand_is_overtaken_by_what_is_forgotten_meanwhile(desk: ProcessorContext, log: Connection) -> None:
    filled(desk, noted(NOTE, 1), noted(AGAIN, 2), again := noted("Deploy from main, by hand, on Fridays only", 3))

    def meanwhile() -> int:
        desk.now = lambda: NOON + DAY
        forget.forget(
            desk.settings, log, forget.plan(desk.settings, reader_of(log, "default", OWNER), id=id_of(again)), None
        )
        return NOON + DAY

    desk.now = meanwhile
    with pytest.raises(Overtaken):
        consolidate(desk, force=False)
    assert consolidation(reader_of(log, "default", OWNER)).items == []
    assert len(consolidate(desk, force=False)[1]) == 1


def test_a_merge_holds_no_longer_once_a_text_has_changed(desk: ProcessorContext) -> None:
    filled(desk, noted(NOTE, 1), noted(AGAIN, 2))
    consolidate(desk, force=False)
    filled(desk)
    (kept,) = told(desk.connection)
    merged = AGAIN if kept == NOTE else NOTE
    # The same claim in other words of the user's: its row tells the newest.
    filled(desk, noted(merged.upper(), 9))
    assert told(desk.connection) == {kept, merged.upper()}


def flood() -> list[NewEvent]:
    """A place where too much would change at once."""
    there = replace(prompt(1, session="flood"), location="/home/dana/flood")
    notes = [noted(f"{NOTE}, says {word}", n + 50) for n, word in enumerate(PEOPLE)]
    return [there, *(replace(each, location=there.location) for each in notes)]


def test_a_place_that_floods_waits_and_all_others_go_on(desk: ProcessorContext) -> None:
    filled(desk, *example(), noted(NOTE, 1), noted(AGAIN, 2), *flood())
    process(desk, Consolidator())
    filled(desk)
    (merge,) = consolidation(reader_of(desk.connection, "default", OWNER)).items
    assert len(merge.memories) == 2
    (held,) = health(reader_of(desk.connection, "default", OWNER)).held
    assert (held.place, held.changed) == ("flood", 11)
    stored = desk.connection.execute("SELECT state::text FROM memctl.processing").fetchall()
    assert "flood" not in str(stored), "forgetting does not look there"

    found, recorded = consolidate(desk, force=False)
    assert (len(found.held), recorded) == (1, [])
    assert consolidate(desk, force=True)[1]
    assert health(reader_of(desk.connection, "default", OWNER)).held == ()


def test_what_is_forgotten_takes_its_merge_along(desk: ProcessorContext) -> None:
    first, second = noted(NOTE, 1), noted(AGAIN, 2)
    filled(desk, first, second)
    consolidate(desk, force=False)
    filled(desk)
    planned = forget.plan(desk.settings, reader_of(desk.connection, "default", OWNER), id=id_of(second))
    forget.forget(desk.settings, desk.connection, planned, None)
    assert consolidation(reader_of(desk.connection, "default", OWNER)).items == []
    assert told(desk.connection) == {NOTE}


def test_forgetting_how_an_error_was_mended_takes_along_what_was_reflected_on_it(desk: ProcessorContext) -> None:
    for number in range(4):
        filled(desk, *example(number, day=2 + number))
    assert process(desk, Reflector(asked=True)) > 0

    def holding(kind: str, words: str) -> list[str]:
        rows = desk.connection.execute(
            "SELECT event_id::text FROM memctl.events WHERE type = %s AND strpos(payload->>'text', %s) > 0",
            [kind, words],
        )
        return [row[0] for row in rows]

    words = "a float cannot be multiplied with a Decimal"
    assert holding("reflection.made", words)
    for explained in holding("response.received", words):
        planned = forget.plan(desk.settings, reader_of(desk.connection, "default", OWNER), id=explained)
        forget.forget(desk.settings, desk.connection, planned, None)
    assert holding("reflection.made", words) == []


class Counting:
    """A processor that fails as often as it is told to."""

    name, version = "counting", 1

    def __init__(self, failures: int = 0, digest: str = "d") -> None:
        self.left, self.digest, self.runs = failures, digest, 0

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        yield WorkItem("a", self.digest)

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        self.runs += 1
        if self.left:
            self.left -= 1
            raise WorkFailed("timeout")
        return Outcome([noted(f"counted at attempt {attempt}", 100 + self.runs)], {"runs": self.runs})


def due_again(connection: Connection) -> None:
    connection.execute("UPDATE memctl.processing SET next_at = clock_timestamp()")


def test_work_is_done_once_for_what_it_is_made_of(desk: ProcessorContext) -> None:
    processor = Counting()
    assert [process(desk, processor), process(desk, processor)] == [1, 0]
    processor.digest = "e"
    assert process(desk, processor) == 1
    assert processor.runs == 2
    assert processing.state_of(desk.connection, 1, "counting", "a") == {"runs": 2}


def test_what_fails_is_tried_again_later_and_given_up_in_the_end(desk: ProcessorContext) -> None:
    processor = Counting(failures=99)
    process(desk, processor)
    process(desk, processor)
    assert processor.runs == 1
    for _ in range(9):
        due_again(desk.connection)
        process(desk, processor)
    assert processor.runs == processing.MOST_ATTEMPTS
    (standing,) = processing.standings(desk.connection, 1)
    assert (standing.given_up, standing.failed) == (1, 0)


def test_whoever_lost_its_work_to_another_records_nothing(desk: ProcessorContext) -> None:
    mine = processing.claim(desk.connection, 1, "counting", "a", "d")
    assert mine is not None
    assert processing.claim(desk.connection, 1, "counting", "a", "d") is None
    desk.connection.execute("UPDATE memctl.processing SET lease_until = clock_timestamp() - interval '1 s'")
    theirs = processing.claim(desk.connection, 1, "counting", "a", "d")
    assert theirs is not None
    with pytest.raises(WorkLost):
        processing.done(desk.connection, mine, {})
    processing.done(desk.connection, theirs, {})


def test_work_under_which_every_process_ends_is_given_up(desk: ProcessorContext) -> None:
    for _ in range(processing.MOST_ATTEMPTS):
        assert processing.claim(desk.connection, 1, "counting", "a", "d") is not None
        desk.connection.execute("UPDATE memctl.processing SET lease_until = clock_timestamp() - interval '1 s'")
    assert processing.claim(desk.connection, 1, "counting", "a", "d") is None
    (standing,) = processing.standings(desk.connection, 1)
    assert standing.given_up == 1


class Forgetting(Counting):
    """What it looks at is forgotten while it looks."""

    def __init__(self, event: NewEvent) -> None:
        super().__init__()
        self.event = event

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        if not self.runs:
            planned = forget.plan(desk.settings, reader_of(desk.connection, "default", OWNER), id=id_of(self.event))
            forget.forget(desk.settings, desk.connection, planned, None)
        return super().run(desk, work, attempt)


def test_what_was_forgotten_while_it_was_looked_at_is_not_recorded_in_other_words(desk: ProcessorContext) -> None:
    event = noted(NOTE, 1)
    filled(desk, event)
    processor = Forgetting(event)
    assert process(desk, processor) == 0
    filled(desk)
    assert told(desk.connection) == set()
    assert process(desk, processor) == 1
    assert processor.runs == 2


class Citing(Forgetting):
    """Two pieces of work, whose outcomes name all that they rest on."""

    def __init__(self, event: NewEvent, cited: NewEvent) -> None:
        super().__init__(event)
        self.cited = cited

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        yield from (WorkItem("a", "d"), WorkItem("b", "d"))

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        (made,) = super().run(desk, work, attempt).events
        return Outcome([replace(made, sources=(UUID(id_of(self.cited)),))], names_all=True)


def test_what_rests_on_nothing_that_was_forgotten_meanwhile_is_recorded_and_the_rest_is_found_anew(
    desk: ProcessorContext,
) -> None:
    gone, goes, stays = (noted(f"{person} asks for {thing}", n) for n, (person, thing) in enumerate(ASKED))
    filled(desk, gone, goes, stays)
    assert process(desk, Citing(gone, cited=gone)) == 0
    due_again(desk.connection)
    processor = Citing(goes, cited=stays)
    assert (process(desk, processor), processor.runs) == (1, 1)
    assert (process(desk, processor), processor.runs) == (1, 2)


class Two(Counting):
    """Two pieces of work, the first of which another process takes over meanwhile."""

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        yield from (WorkItem("a", "d"), WorkItem("b", "d"))

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        if work.subject == "a":
            desk.connection.execute("UPDATE memctl.processing SET lease_until = clock_timestamp() - interval '1 s'")
            assert processing.claim(desk.connection, 1, self.name, "a", "d") is not None
        return super().run(desk, work, attempt)


def test_whoever_lost_one_piece_of_work_goes_on_with_the_next(desk: ProcessorContext) -> None:
    assert process(desk, Two()) == 1
    (standing,) = processing.standings(desk.connection, 1)
    assert (standing.done, standing.working) == (1, 1)


class Waiting(Counting):
    """Waits for an answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.lease = timedelta(0)

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        row = desk.connection.execute("SELECT lease_until - clock_timestamp() FROM memctl.processing").fetchone()
        assert row is not None
        self.lease = row[0]
        self.begun.set()
        self.let_go.wait(60)
        return super().run(desk, work, attempt)


def test_a_worker_that_stops_gives_back_what_it_will_not_finish(
    desk: ProcessorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.workers.processors.runner.EVERY_S", 0.01)
    monkeypatch.setenv("MEMCTL_LLM__TIMEOUT_S", "600")
    processor = Waiting()
    loop = ProcessorLoop(load_settings(), [processor], threading.Event())
    loop.start()
    assert processor.begun.wait(60)
    assert processor.lease > timedelta(seconds=4 * 600), "as long as the model may take, and some more"
    loop.stop(0.01)
    again = processing.claim(desk.connection, 1, "counting", "a", "d")
    assert again is not None
    assert again.attempt == 1
    processor.let_go.set()


class Away(Counting):
    """Asks somebody who is away."""

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        self.runs += 1
        raise WorkFailed("unavailable", counts=False, pause_s=900)

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        yield WorkItem(str(self.runs), "d")


class Looking(Counting):
    """Says when it has looked three times."""

    name = "looking"

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.enough = 0, threading.Event()

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        self.looks += 1
        if self.looks == 3:
            self.enough.set()
        return iter(())


def test_whoever_lacks_what_all_its_work_needs_rests_and_the_others_go_on(
    desk: ProcessorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.workers.processors.runner.EVERY_S", 0.01)
    away, looking = Away(), Looking()
    loop = ProcessorLoop(desk.settings, [away, looking], threading.Event())
    loop.start()
    assert looking.enough.wait(60)
    loop.stop(60)
    assert away.runs == 1


class Endless(Counting):
    """Always finds more, and says when it worked for two spaces."""

    def __init__(self) -> None:
        super().__init__()
        self.spaces, self.both = set[int](), threading.Event()

    def find(self, desk: ProcessorContext) -> Iterator[WorkItem]:
        while True:
            yield WorkItem(f"{desk.space_id} {self.runs}", "d")

    def run(self, desk: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        self.runs += 1
        self.spaces.add(desk.space_id)
        if len(self.spaces) == 2:
            self.both.set()
        return Outcome()


def test_a_worker_works_for_every_space_and_none_waits_for_the_end_of_anothers(
    desk: ProcessorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memctl.workers.processors.runner.EVERY_S", 0.01)
    monkeypatch.setattr("memctl.workers.processors.runner.TURN_S", 0.1)
    space_id(desk.connection, "lab")
    endless = Endless()
    loop = ProcessorLoop(desk.settings, [endless], threading.Event())
    loop.start()
    assert endless.both.wait(60)
    loop.stop(60)


def test_nothing_is_worked_on_while_read_models_are_rebuilt(desk: ProcessorContext) -> None:
    live = generations.live(desk.connection)
    desk.connection.execute(
        "INSERT INTO memctl.rebuilds (purpose, first_stage, upto, stage1, stage2) VALUES ('replace', 1, 0, %s, %s)",
        [live.stage1, live.stage2],
    )
    processor = Counting()
    assert (process(desk, processor), processor.runs) == (0, 0)


def test_a_claim_about_a_file_is_stale_while_the_file_is_not_what_it_was(
    desk: ProcessorContext, tmp_path: Path
) -> None:
    file = tmp_path / "cart.py"
    file.write_text("cents = True\n")
    about = NewEvent(
        stream=NOTES, payload=MemoryNoted(text=NOTE, files=(str(file),)), occurred_at=Micros(NOON), actor="user",
        dedupe_key="command:note:1", location=str(tmp_path),
    )  # fmt: skip
    filled(desk, about)
    checker = StalenessChecker(asked=True)

    def looked(at: int) -> set[str]:
        desk.now = lambda: NOON + at
        process(desk, checker)
        filled(desk)
        reader = reader_of(desk.connection, "default", OWNER)

        return stale(
            reader, [keyed.row for keyed in page(reader, projection_named("memories"), "occurred_at", [], limit=9)[0]]
        )

    assert looked(10) == set()
    file.write_text("cents = False\n")
    assert len(looked(20)) == 1
    file.write_text("cents = True\n")
    assert looked(30) == set()
    file.unlink()
    assert len(looked(40)) == 1


def test_files_are_looked_at_for_the_checkout_that_lies_there_alone(desk: ProcessorContext, tmp_path: Path) -> None:
    file, now = tmp_path / "cart.py", of_occupant(NOON, str(tmp_path))
    for n, at in enumerate((str(tmp_path), now)):
        found = ProjectIdentified(location=at, root=at, remote=f"x.org/{n}", checked=True)
        note = MemoryNoted(text=f"{NOTE} {n}", files=(str(file), "cart.py"))
        events = [
            NewEvent(
                stream=stream, payload=payload, occurred_at=Micros(NOON), actor="user", dedupe_key=key, location=at
            )
            for stream, payload, key in ((NOTES, note, f"command:note:{n}"), ("project/x", found, f"found {n}"))
        ]
        filled(desk, *events)
    for at, text in ((10, "cents = True\n"), (20, "cents = False\n")):
        file.write_text(text)
        desk.now = lambda at=at: NOON + at  # type: ignore[misc]
        process(desk, StalenessChecker(asked=True))
        filled(desk)
        reader = reader_of(desk.connection, "default", OWNER)
        rows = [keyed.row for keyed in page(reader, projection_named("memories"), "occurred_at", [], limit=9)[0]]
        assert {row.location for row in rows} == {str(tmp_path), now}
        found = stale(reader, rows)
        assert {row.location for row in rows if row.id in found} == ({now} if at == 20 else set())


def test_the_schedule_finds_a_round_due_after_tasks_or_hours(desk: ProcessorContext) -> None:
    assert list(Consolidator().find(desk)) == []
    filled(desk, *example())
    assert len(list(Consolidator().find(desk))) == 1
    process(desk, Consolidator())
    assert list(Consolidator().find(desk)) == []


def test_the_user_says_how_often_a_round_is_due_and_whether_any_is(desk: ProcessorContext) -> None:
    filled(desk, *example())
    process(desk, Consolidator())
    later = desk.now() + 7 * 3_600_000_000
    desk.now = lambda: later
    assert len(list(Consolidator().find(desk))) == 1, "six hours are over"
    rarely = {"consolidate_hours": 24, "reflect": False}
    desk.settings = desk.settings.model_copy(update={"processors": Processors(**rarely)})
    assert list(Consolidator().find(desk)) == []
    assert [each.name for each in processors_by_rule(desk.settings)] == ["staleness", "consolidator"]
    off = desk.settings.model_copy(update={"processors": Processors(reflect=False, consolidate=False)})
    assert [each.name for each in processors_by_rule(off)] == ["staleness"]


class Failing(Consolidator):
    def run(self, context: ProcessorContext, work: WorkItem, attempt: int) -> Outcome:
        raise WorkFailed("a reason")


def test_a_round_that_failed_changes_nothing_and_is_due_again(desk: ProcessorContext) -> None:
    filled(desk, *example(), noted(NOTE, 1), noted(AGAIN, 2))
    before = told(desk.connection)
    assert process(desk, Failing()) == 0
    filled(desk)
    assert told(desk.connection) == before
    assert process(desk, Consolidator()) == 0, "it waits before it tries again"
    due_again(desk.connection)
    assert process(desk, Consolidator()) > 0
    assert list(Consolidator().find(desk)) == []


def test_a_replay_makes_the_same_of_what_was_recorded(desk: ProcessorContext) -> None:
    filled(desk, noted(NOTE, 1), noted(AGAIN, 2))
    consolidate(desk, force=False)
    filled(desk)
    before = digests(desk.connection)
    replay(desk.settings.require("database_url"), None)
    assert digests(desk.connection) == before


def test_undoing_is_a_command_with_a_field_that_it_cites() -> None:
    asked = read_command(UndoConsolidation, b'{"change": "abc", "why": "both hold"}')
    assert (asked.change, asked.cites) == ("abc", "change")


def test_what_a_member_says_takes_no_place_of_what_the_owner_said(desk: ProcessorContext) -> None:
    mine = [
        noted("The staging ledger listens on port 8080 behind the proxy", 1),
        noted("Totals of the ledger are always rounded half to even", 2),
        noted("The ledger in staging keeps its rows for thirty days", 3),
    ]
    theirs = [
        noted("The staging ledger listens on port 9090 behind the proxy", 4),
        noted("Totals of the ledger are never rounded half to even", 5),
        noted("The ledger in staging keeps its rows for the thirty days", 6),
    ]
    said = [msgspec.structs.replace(each, actor="member:liv") for each in theirs]
    filled(desk, *mine, *said)
    found, _ = consolidate(desk, force=True)
    assert found.changes == ()
