"""What was forgotten is gone, and stays gone: from the log, the read models, and what is still to come."""

from __future__ import annotations

import contextlib
import json
import random
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import UUID, uuid4

import msgspec
import psycopg
import pytest
import servers
from events import NOON, id_of, observed, prompt, stated
from fastapi import FastAPI
from fastapi.testclient import TestClient
from forgetting import PHRASE, forgotten, holds, keys_of, killed_before_erasing, rated_session
from histories import digests, drained, everything, example, rebuilt, workshop
from hostile import Values
from waiting import until, waits_for_a_lock

from memctl.api.checks import backups
from memctl.api.erasure import scope as forget
from memctl.api.http import forget as http_forget
from memctl.api.http import problems as http_problems
from memctl.api.queries import memories as queries
from memctl.api.reading.caller import OWNER, drawn
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import Readers, reader_of
from memctl.api.server.auth import Guard
from memctl.api.write.command_handler import CommandHandler, _digest
from memctl.domain.events.command import KeyReused
from memctl.domain.events.core_memory import CoreMemoryAppended
from memctl.domain.events.erasure import NothingToForget, Scope, Tombstone, TooShort, event_tombstones
from memctl.domain.events.event import Micros, NewEvent, event_types
from memctl.domain.events.feedback import MemoryPinned, MemoryRated
from memctl.domain.events.observations import (
    NoticeReceived,
    Observation,
    PromptSubmitted,
    SessionStarted,
    ToolCalled,
    ToolReturned,
    event_id_of,
    hook_key,
)
from memctl.domain.events.statements import Statement
from memctl.domain.knowledge.consolidation import STREAM as CONSOLIDATION
from memctl.domain.knowledge.consolidation import Member, MemoriesMerged, MemoryPruned, MemorySuperseded
from memctl.domain.knowledge.reflections import ReflectionMade
from memctl.domain.language.notes import MemoryNoted
from memctl.infra.backup.copies import backup
from memctl.infra.backup.receipts import RECEIPTS
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.audit import hashed, open_guards
from memctl.infra.log.mark import move_mark
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.redaction import prepare
from memctl.infra.settings import Settings
from memctl.workers.erasure import erase as erasure
from memctl.workers.erasure import forgetting
from memctl.workers.erasure.look import Look
from memctl.workers.folding.drain import Drainer
from memctl.workers.processors.runner import model
from memctl.workers.rebuild.replay import replay

SECRET = "AKIA" + "DEADBEEFDEADBEEF"


@pytest.fixture
def shards() -> int:
    return 1


@pytest.mark.filled
def test_a_session_that_was_forgotten_is_as_if_it_had_never_been(
    settings: Settings, log: Connection, database_url: str, postgres_server: str, migrated_template: str
) -> None:
    stream = example(2)[0].stream
    done = forgotten(settings, log, session=stream.split("/", 2)[2])
    kept = [event for event in everything() if event.stream != stream]
    assert done.events == len({e.dedupe_key for e in everything() if e.stream == stream})
    assert digests(log) == rebuilt(postgres_server, migrated_template, kept)
    with pytest.raises(queries.NotFound):
        queries.session(reader_of(log, "default", OWNER), stream)
    # Told again, by the same transcript, it stays gone; what happens there later does not.
    again = append(log, 1, example(2, day=4))
    assert {each.status for each in again} == {"forgotten"}
    later = prompt(1, "and now for something new", session=stream.split("/", 2)[2])
    later = NewEvent(**{**{f: getattr(later, f) for f in later.__struct_fields__}, "occurred_at": Micros(2**51)})
    assert append(log, 1, [later])[0].status == "new"
    drained(database_url)
    found = hashed(log, move_mark(log))
    assert (found.altered.count, found.misplaced.count, open_guards(log)) == (0, 0, [])
    receipts = [json.loads(line) for line in (settings.data_dir / RECEIPTS).read_text().splitlines()]
    assert [(r["id"], len(r["erased"])) for r in receipts] == [(str(done.receipt), done.events)]


@pytest.mark.filled
def test_live_equals_rebuilt_after_forgetting_in_each_way(
    settings: Settings, log: Connection, database_url: str
) -> None:
    reader = reader_of(log, "default", OWNER)
    memories = queries.memories(reader, places_of(reader, "*"), limit=50).items
    forgotten(settings, log, id=next(m.id for m in memories if m.kind == "bug_pattern"))
    forgotten(settings, log, id=next(m.id for m in memories if m.kind == "episode"))
    forgotten(settings, log, match="short answers without emoji")
    forgotten(settings, log, project="/home/dana/shop/part1")
    forgotten(settings, log, before=datetime(2026, 3, 5, tzinfo=UTC))
    left = digests(log)
    found = replay(database_url, None, verify=True)
    assert [c.name for c in found.compared if not c.equal] == []
    assert digests(log) == left


def test_what_cites_much_is_found_as_what_cites_little_is(log: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    said, other = prompt(1), prompt(2)
    variant = msgspec.structs.replace(said, payload=msgspec.structs.replace(said.payload, text="something else"))
    append(log, 1, [said])
    append(log, 1, [variant])
    ((its_id, delivery),) = log.execute("SELECT event_id, variant_of FROM memctl.events WHERE variant_of IS NOT NULL")
    citing = msgspec.structs.replace(prompt(3), sources=(its_id,))
    again = msgspec.structs.replace(prompt(4), sources=(event_id_of(1, citing.dedupe_key),))
    apart = msgspec.structs.replace(prompt(5), sources=(event_id_of(1, other.dedupe_key),))
    append(log, 1, [other, citing, again, apart])
    wanted = {event_id_of(1, citing.dedupe_key), event_id_of(1, again.dedupe_key)}
    for many in (2_000, 0):
        monkeypatch.setattr(erase, "MANY", many)
        assert erase.citing(log, 1, {delivery}) == wanted


def test_a_project_holds_what_was_told_in_folders_inside_its_places_and_not_beside_them(log: Connection) -> None:
    places = ("/w/shop", "/w/shop/cart", "/w/shop/cart/web", "/w/shopping", "/w/100%", "/w/100_/a", "/w", "")
    told = [
        msgspec.structs.replace(prompt(number), location=place, stream=f"session/claude-code/{number}")
        for number, place in enumerate(places)
    ]
    append(log, 1, told)
    for asked, held in (
        (["/w/shop"], {0, 1, 2}),
        (["/w/shop/cart"], {1, 2}),
        (["/w/100%", "/w/100_"], {4, 5}),
        ([], set()),
    ):
        scope = Scope(kind="project", locations=tuple(asked), until=Micros(NOON + 60_000_000))
        assert erase.found_by(log, 1, scope) == {event_id_of(1, told[number].dedupe_key) for number in held}


@pytest.mark.parametrize("asked", [{"session": "ahead"}, {"project": "/w/ahead"}, {"before": None}])
def test_what_a_clock_dated_ahead_goes_too_and_stays_gone_and_what_is_said_later_is_kept(
    settings: Settings, log: Connection, database_url: str, asked: dict[str, Any]
) -> None:
    def line(name: str, text: str, ahead_h: int, session: str = "ahead") -> NewEvent:
        event = observed(PromptSubmitted(line=name, text=text), session=session, location="/w/ahead")
        at = time.time_ns() // 1000 + ahead_h * 3_600_000_000
        return prepare(msgspec.structs.replace(event, occurred_at=Micros(at)))

    said = [line("1", f"It is called {PHRASE}.", 9), line("2", "Go on, please.", -1), line("3", "A hook.", 2)]
    append(log, 1, said)
    generations.ensure_live(log, 1)
    move_mark(log)
    drained(database_url)
    if "before" in asked:
        asked = {"before": datetime.now(UTC)}
    assert forgotten(settings, log, **asked).events == 3
    assert holds(database_url, PHRASE) == []
    twin = msgspec.structs.replace(said[0], dedupe_key=hook_key("again"))
    assert {each.status for each in append(log, 1, [*said, twin])} == {"forgotten"}
    assert [each.status for each in append(log, 1, [line("4", "A new start.", 0, "next")])] == ["new"]
    assert holds(database_url, PHRASE) == []


def test_lines_that_tell_no_place_go_with_the_place_they_were_said_at(
    settings: Settings, log: Connection, database_url: str
) -> None:
    shop, attic = "/home/dana/shop", "/home/dana/attic"

    def line(name: str, text: str, session: str, at: int, location: str = "") -> NewEvent:
        return observed(PromptSubmitted(line=name, text=text), session=session, at=at, location=location)

    append(
        log,
        1,
        [
            line("a1", "a plum before any place", "a", 1),
            line("a2", "work at the shop", "a", 2, shop),
            line("a3", "a plum at the shop", "a", 3),
            line("a4", "work in the attic", "a", 4, attic),
            line("a5", "a quince in the attic", "a", 5),
            line("b1", "a quince that nobody placed", "b", 6),
        ],
    )
    drained(database_url)
    assert forgotten(settings, log, project=shop).events == 3
    assert holds(database_url, "plum") == []
    assert holds(database_url, "quince") != []
    kept = log.execute("SELECT payload->>'text' FROM memctl.events WHERE payload ? 'text' ORDER BY position").fetchall()
    assert [text for (text,) in kept] == [
        "work in the attic", "a quince in the attic", "a quince that nobody placed",
    ]  # fmt: skip


def test_lines_that_bear_no_time_go_with_what_their_session_began_with(
    settings: Settings, log: Connection, database_url: str
) -> None:
    def session(name: str, *times: int) -> list[NewEvent]:
        title = observed(NoticeReceived(kind="title", text=f"a plum, {name}", line="#0"), session=name)
        dated = [observed(PromptSubmitted(line=f"l{at}", text="a quince"), session=name, at=at) for at in times]
        return [msgspec.structs.replace(title, occurred_at=Micros(0)), *dated]

    told = [*session("old", 1, 2), *session("both", 2, 9), *session("new", 8, 9), *session("no times")]
    append(log, 1, [*told, *(msgspec.structs.replace(e, stream="knowledge/graph") for e in session("imported", 1))])
    drained(database_url)
    noon = datetime.fromtimestamp(NOON / 1e6 + 5, UTC)
    assert forgotten(settings, log, before=noon).events == 6
    kept = log.execute(
        "SELECT payload->>'text' FROM memctl.events WHERE payload->>'text' LIKE 'a plum%' ORDER BY position"
    )
    assert kept.fetchall() == [("a plum, new",), ("a plum, no times",), ("a plum, imported",)]
    drained(database_url)
    assert holds(database_url, "plum, old") == holds(database_url, "plum, both") == []
    again = [each.status for each in append(log, 1, told)]
    assert again == ["forgotten"] * 5 + ["duplicate"] * 5
    assert append(log, 1, session("told later", 9))[0].status == "new", "not all that bears no time is old"


@pytest.mark.filled
def test_what_is_recorded_about_forgetting_is_no_thing_to_forget_and_its_reason_holds_no_secret(
    settings: Settings, log: Connection, database_url: str
) -> None:
    planned = forget.plan(settings, reader_of(log, "default", OWNER), session=example(2)[0].stream.split("/", 2)[2])
    done = forget.forget(settings, log, planned, None, f"it held {SECRET}")
    kept = (settings.data_dir / RECEIPTS).read_text()
    assert "it held [redacted:aws-access-key]" in kept
    assert SECRET not in kept
    assert holds(database_url, SECRET) == []
    (recorded,) = log.execute("SELECT event_id FROM memctl.events WHERE type = 'content.erased'").fetchone() or ()
    with pytest.raises(NothingToForget):
        forget.plan(settings, reader_of(log, "default", OWNER), id=str(recorded))
    assert [each.id for each in erase.receipts(log)] == [done.receipt]


@pytest.mark.parametrize("shards", [4])
def test_a_text_is_forgotten_wherever_it_was_said_and_with_what_was_recorded_of_it(
    settings: Settings, log: Connection, database_url: str
) -> None:
    said = [
        *example(1),
        prompt(1, f"Remember: {PHRASE} is what we use.", session="a"),
        observed(
            ToolCalled(line="a2", tool="Bash", call="c1", input={"command": f"echo '{PHRASE}'\n"}), session="a", at=2
        ),
        observed(
            ToolReturned(line="a3", tool="Bash", call="c1", text="The ZQ7VKX19MW\nharbour   protocol"),
            session="a",
            at=3,
        ),
        prompt(2, "and something else", session="a", at=4),
        stated("core/1", CoreMemoryAppended(section="human", text=PHRASE, version=1, content=PHRASE)),
    ]
    append(log, 1, said)
    append(log, 1, [prompt(1, f"Remember, told otherwise: {PHRASE}", session="a")])
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw")
    done = forgotten(settings, log, match=PHRASE.upper())
    assert done.events == 5, "a variant goes with what it is a variant of"
    assert holds(database_url, "zq7vkx19mw") == []
    assert [a.status for a in append(log, 1, said)].count("forgotten") == 4
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw") == []
    with pytest.raises(NothingToForget):
        forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
    with pytest.raises(TooShort):
        forget.plan(settings, reader_of(log, "default", OWNER), match=" a b ")


def test_a_text_that_edits_put_together_in_a_document_goes_too(
    settings: Settings, log: Connection, database_url: str
) -> None:
    before, after = PHRASE[:12], PHRASE[12:]
    written = (
        f"# Ledgers\n\n## Ledger\n\n{before}SLOT. Entries are sorted by quarter, and each has an owner and a date.\n"
    )
    at = "/home/dana/shop/docs/ledger.md"
    given = ({"content": written}, {"old_string": "SLOT", "new_string": after})
    append(log, 1, [
        observed(payload, at=n)
        for n, each in enumerate(given)
        for payload in (
            ToolCalled(line=f"c{n}", tool=("Write", "Edit")[n], call=f"c{n}", input={"file_path": at, **each}),
            ToolReturned(line=f"r{n}", tool=("Write", "Edit")[n], call=f"c{n}", text="done"),
        )
    ])  # fmt: skip
    drained(database_url)
    assert "memories" in str(holds(database_url, PHRASE))
    forgotten(settings, log, match=PHRASE)
    drained(database_url)
    assert holds(database_url, PHRASE) == []


class Saying(Values):
    """Payloads of which every text and every name holds a word."""

    def text(self, length: int) -> str:
        return f"Remember that zq7vkx19mw serves {super().text(40)}."

    def name(self) -> str:
        return f"zq7vkx19mw_{super().name()}"


def test_whatever_kind_of_event_says_it_and_in_whichever_field_nothing_of_it_is_left(
    settings: Settings, log: Connection, database_url: str
) -> None:
    saying = Saying(random.Random(1), "plain words ")
    told = []
    for kind, registered in event_types().items():
        if kind in erase.RECORDS:
            continue
        of_session = issubclass(registered.payload, Observation | Statement)
        new = observed(saying.made(PromptSubmitted), session="zq", at=len(told), location="/w/zq7vkx19mw")
        stream = new.stream if of_session else f"knowledge/{kind}"
        payload = saying.made(registered.payload)
        ids = {name: f"{name}-{kind}" for name in ("line", "call") if name in payload.__struct_fields__}
        payload = msgspec.structs.replace(payload, **ids)
        told.append(msgspec.structs.replace(new, payload=payload, stream=stream, dedupe_key=f"test:{kind}"))
    append(log, 1, [*example(1), *told])
    drained(database_url)
    assert len(holds(database_url, "zq7vkx19mw")) > 10
    forgotten(settings, log, match="zq7vkx19mw")
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw") == []


def test_a_text_is_found_in_other_letters_than_ascii_in_any_case_and_composed_or_not(
    settings: Settings, log: Connection
) -> None:
    generations.ensure_live(log, 1)
    reader = reader_of(log, "default", OWNER)
    for text in ("Gemüseänderung", "결제대행 조정", "สวัสดีครับ", "naïve café"):
        apart = unicodedata.normalize("NFD", text)
        said = sorted({text, text.upper(), text.lower(), apart})
        append(log, 1, [prompt(n, f"Remember: {form}.", session=text[:3]) for n, form in enumerate(said)])
        placed = observed(PromptSubmitted(line="p", text="x"), session=f"at {text[:3]}", location=f"/w/{apart}")
        append(log, 1, [placed])
        for asked in (text, text.upper(), apart):
            assert len(forget.plan(settings, reader, match=asked).ids) == len(said) + 1


def test_a_number_is_not_taken_for_the_time_at_which_something_else_happened(
    settings: Settings, log: Connection, database_url: str
) -> None:
    elsewhere = msgspec.structs.replace(prompt(2, "to be kept", session="b"), occurred_at=Micros(1_772_483_920_000_000))
    append(log, 1, [prompt(1, "The code of the door is 483920.", session="a"), elsewhere])
    drained(database_url)
    assert any(table.startswith("sessions_g") for table in holds(database_url, "2483920"))
    assert forgotten(settings, log, match="483920").events == 1


def told_twice() -> tuple[NewEvent, NewEvent]:
    """A prompt, by its line and by a hook."""
    by_line = prompt(1, f"note {PHRASE}", session="a")
    by_hook = NewEvent(
        stream=by_line.stream, payload=PromptSubmitted(via="hook", text=f"note {PHRASE}"),
        occurred_at=Micros(by_line.occurred_at + 900_000), dedupe_key=hook_key("0" * 32), actor="user",
        location=by_line.location, session_id="a",
    )  # fmt: skip
    return by_line, by_hook


@pytest.mark.parametrize("first", ["hook", "transcript"])
def test_what_hook_and_transcript_both_told_is_forgotten_together_whichever_comes_later(
    settings: Settings, log: Connection, database_url: str, first: str
) -> None:
    by_line, by_hook = told_twice()
    one, other = (by_hook, by_line) if first == "hook" else (by_line, by_hook)
    append(log, 1, [one, prompt(9, "something else", session="a")])
    drained(database_url)
    forgotten(settings, log, id=id_of(one))
    assert append(log, 1, [other])[0].status == "forgotten"
    assert append(log, 1, [prompt(10, "later in the session", session="a", at=300)])[0].status == "new"
    append(log, 1, [prompt(1, f"note {PHRASE} too", session="b")])
    drained(database_url)
    forgotten(settings, log, match=PHRASE)
    assert holds(database_url, "zq7vkx19mw") == []


@pytest.mark.parametrize("told", [PromptSubmitted, ToolCalled], ids=["a line", "a call"])
def test_what_was_told_under_a_name_too_long_for_an_index_is_forgotten_as_well(
    settings: Settings, log: Connection, database_url: str, told: type[Observation]
) -> None:
    """By a relay, before names were bounded; told again, it is known again."""
    name = "".join(random.Random(1).choices("abcdefghijklmnop", k=4_000))
    if told is PromptSubmitted:
        event = observed(PromptSubmitted(line=name, text=f"note {PHRASE} too"))
    else:
        event = observed(ToolCalled(line="1", call=name, tool="Bash", input={"command": f"echo {PHRASE}"}))
    append(log, 1, [event, prompt(2, at=1_000)])
    drained(database_url)
    forgotten(settings, log, match=PHRASE)
    assert holds(database_url, "zq7vkx19mw") == []
    again = msgspec.structs.replace(prepare(event), dedupe_key="told by another parser")
    assert append(log, 1, [again])[0].status == "forgotten"


@pytest.mark.parametrize("asked", ["id", "match"])
def test_what_was_still_being_told_when_it_was_looked_up_goes_along(
    settings: Settings, log: Connection, database_url: str, asked: str
) -> None:
    by_line, by_hook = told_twice()
    append(log, 1, [by_line])
    drained(database_url)
    planned = forget.plan(
        settings, reader_of(log, "default", OWNER), **{asked: id_of(by_line) if asked == "id" else PHRASE}
    )
    append(log, 1, [by_hook])
    drained(database_url)
    forget.forget(settings, log, planned, None)
    assert holds(database_url, "zq7vkx19mw") == []
    assert append(log, 1, [by_hook])[0].status == "forgotten"


def test_what_is_told_once_more_while_a_text_is_looked_up_goes_along(
    settings: Settings, log: Connection, database_url: str
) -> None:
    by_line, by_hook = told_twice()
    append(log, 1, [first := prompt(7, PHRASE, session="b")])
    drained(database_url)
    planned = forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
    append(log, 1, [by_hook])
    log.execute("UPDATE memctl.spaces SET has_tombstones = true")  # else who lays the first one waits for another
    stones = event_tombstones(by_hook.stream, by_hook.type, by_hook.occurred_at, by_hook.payload, has_counterpart=False)
    with (
        connect(database_url, name="forgetting") as mine,
        connect(database_url, autocommit=False) as laying,
        ThreadPoolExecutor(1) as pool,
    ):
        erase.begin(laying, 1, receipt := uuid4(), Scope(kind="id"), "")
        erase.lay_tombstones(laying, 1, receipt, stones)
        forgetting = pool.submit(forget.forget, settings, mine, planned, None)
        until(lambda: waits_for_a_lock(log, "forgetting"), "who lays a tombstone of what came since")
        assert append(log, 1, [by_line])[0].status == "new"
        laying.rollback()
        forgetting.result(60)
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw") == []
    assert {each.status for each in append(log, 1, [first, by_line, by_hook])} == {"forgotten"}


def test_what_a_row_was_fed_since_it_was_asked_for_is_not_told_once_more(
    settings: Settings, log: Connection, database_url: str
) -> None:
    def said(session: str, via: Literal["transcript", "hook"]) -> NewEvent:
        text = f"From now on, always use {PHRASE} for deploys"
        line = f"{session}-{via}"
        return observed(PromptSubmitted(line=line, text=text, via=via), session=session, at=1 + (via == "hook"))

    append(log, 1, [said("a", "transcript")])
    drained(database_url)
    [insight, *_] = keys_of(log, "insights")
    planned = forget.plan(settings, reader_of(log, "default", OWNER), id=insight)
    append(log, 1, [said("b", "transcript")])
    drained(database_url)
    assert forget.forget(settings, log, planned, None).types == {"prompt.submitted": 2}
    assert [each.status for each in append(log, 1, [said("a", "hook"), said("b", "hook")])] == ["forgotten"] * 2


def test_a_better_parser_that_reads_more_of_a_forgotten_line_brings_nothing_back(
    settings: Settings, log: Connection, database_url: str
) -> None:
    elsewhere = msgspec.structs.replace(prompt(1, "told elsewhere"), stream=prompt(1, session="s2").stream)
    append(log, 1, [prompt(1, PHRASE), elsewhere])
    drained(database_url)
    forgotten(settings, log, id=id_of(prompt(1)))
    more = observed(PromptSubmitted(line="s1-line-1", block=1, text=PHRASE))
    there = msgspec.structs.replace(more, stream=elsewhere.stream, dedupe_key="there")
    assert [each.status for each in append(log, 1, [more, there])] == ["forgotten", "forgotten"]
    assert append(log, 1, [more, prompt(2, "another line")])[1].status == "new"


def test_an_append_that_began_before_the_tombstone_was_laid_is_waited_for(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, "kept for now")])
    drained(database_url)
    with connect(database_url, autocommit=False) as slow:
        append(slow, 1, [prompt(2, PHRASE)])
        with connect(database_url) as other, other.transaction():
            erase.begin(other, 1, receipt := uuid4(), Scope(kind="session"), "")
            stone = Tombstone(kind="session", value=prompt(1).stream)
            erase.lay_tombstones(other, 1, receipt, [stone])
        assert not erase.settled(log, 1, patience_s=0.2)
        slow.commit()
        assert erase.settled(log, 1)
    assert append(log, 1, [prompt(3, PHRASE)])[0].status == "forgotten"


def test_the_log_lets_nobody_change_anything_and_empty_nothing_without_an_open_receipt(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2, "to be kept")])
    drained(database_url)
    done = forgotten(settings, log, id=id_of(prompt(1)))
    for receipt in ("", str(done.receipt), str(uuid4())):
        for change in (
            "payload = NULL, salt = NULL, payload_hash = NULL, location = ''",
            "payload = '{}', location = ''",
            "actor = 'someone'",
        ):
            log.execute("SELECT set_config('memctl.receipt', %s, false)", [receipt])
            with pytest.raises(psycopg.errors.RestrictViolation):
                log.execute(f"UPDATE memctl.events SET {change} WHERE event_id = %s", [id_of(prompt(2))])


def test_what_follows_goes_along_where_stage_two_has_yet_to_read_what_stage_one_read(
    settings: Settings, log: Connection, database_url: str
) -> None:
    session = rated_session(log, database_url)
    append(log, 1, [prompt(1, session="later")])
    with contextlib.closing(Drainer(database_url)) as drainer:
        for _, shard in drainer.behind():
            drainer.drain(1, shard)
    done = forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    assert done.types["memory.rated"] == 1
    drained(database_url)
    assert replay(database_url, None, verify=True).equal


@pytest.mark.parametrize("ends", ["before it is empty", "after it is empty"])
@pytest.mark.parametrize("by", ["citing it", "naming a memory of it"])
def test_what_is_said_of_it_while_it_is_being_forgotten_goes_along(
    settings: Settings, log: Connection, database_url: str, by: str, ends: str
) -> None:
    session = workshop(0)
    append(log, 1, session)
    drained(database_url)
    event = id_of(session[0])
    [memory, *_] = keys_of(log, "memories")
    said = stated("knowledge/verdicts", MemoryRated(memory=memory, value=0.0, why=PHRASE))
    if by == "citing it":
        said = msgspec.structs.replace(prompt(1, PHRASE, session="another"), sources=(UUID(event),))
    planned = forget.plan(settings, reader_of(log, "default", OWNER), session=session[0].stream)
    with (
        connect(database_url, name="forgetting") as mine,
        connect(database_url, autocommit=False) as holding,
        connect(database_url, autocommit=False) as saying,
        ThreadPoolExecutor(1) as pool,
    ):
        holding.execute("SELECT FROM memctl.events WHERE event_id = %s FOR SHARE", [event])
        forgetting = pool.submit(forget.forget, settings, mine, planned, None)
        until(lambda: waits_for_a_lock(log, "forgetting"), "who waits for what is to be emptied")
        assert append(saying, 1, [said])[0].status == "new"
        if ends == "before it is empty":
            saying.commit()
        holding.rollback()
        emptied = "SELECT FROM memctl.events WHERE event_id = %s AND payload IS NULL"
        until(lambda: log.execute(emptied, [event]).fetchone() is not None, "an empty event")
        saying.commit()
        forgetting.result(60)
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw") == []
    assert replay(database_url, None, verify=True).equal


def test_what_was_said_of_a_thing_stays_where_other_words_about_it_go(
    settings: Settings, log: Connection, database_url: str
) -> None:
    session, other = workshop(0), workshop(1)
    append(log, 1, [*session, *other])
    drained(database_url)
    one, two, *_ = keys_of(log, "memories")
    spoken_of = ReflectionMade(topic="file:a.go", title="It fails", text="It fails.", memories=(one,))
    rating, merge = (
        MemoryRated(memory=one, value=1.0, why=PHRASE),
        MemoriesMerged(keeper=Member(two, "1a"), merged=(Member("another", "2b"),)),
    )
    section = CoreMemoryAppended(section="preference", text=PHRASE, version=1)
    append(
        log,
        1,
        [
            rated := stated("knowledge/verdicts", rating, "rated"),
            stated(CONSOLIDATION, spoken_of, "reflected"),
            stated(CONSOLIDATION, MemoryPruned(memory=one, last_at=NOON), "pruned"),
            merged := stated(CONSOLIDATION, merge, "merged"),
            stated("knowledge/verdicts", MemoryPinned(memory=two), "pinned"),
            core := stated("core/memory", section, "appended"),
            stated("knowledge/notes", MemoryNoted(text="Dana likes short answers.", kind="preference"), "noted"),
        ],
    )
    drained(database_url)
    for each in (rated, merged, core):
        assert forgotten(settings, log, id=id_of(each)).types == {each.type: 1}
    assert replay(database_url, None, verify=True).equal


@pytest.mark.parametrize("gone", [0, 1])
def test_what_was_said_of_one_memory_and_another_goes_with_either(
    settings: Settings, log: Connection, database_url: str, gone: int
) -> None:
    sessions = [workshop(0), workshop(1)]
    append(log, 1, [*sessions[0], *sessions[1]])
    drained(database_url)
    rows = list(readmodels.all_rows(log, model("memories"), generations.live(log).stage2))
    one, other = (
        next(key for key, row in rows if f'"sessions": ["{session[0].stream}"]'.encode() in row) for session in sessions
    )
    said = MemorySuperseded(memory=Member(one, ""), by=Member(other, ""), why=PHRASE, made_by="user")
    append(log, 1, [stated(CONSOLIDATION, said)])
    drained(database_url)
    done = forgotten(settings, log, session=sessions[gone][0].stream)
    assert done.types["memory.superseded"] == 1
    assert holds(database_url, "zq7vkx19mw") == []
    assert replay(database_url, None, verify=True).equal


@pytest.mark.parametrize("by", ["episodes", "memories"])
def test_an_episode_goes_whole_by_its_own_id_and_by_that_of_its_memory(
    settings: Settings, log: Connection, database_url: str, by: str
) -> None:
    asked = prompt(1, "please look into the tests of the cart", session="l")
    runs = [
        run
        for n in range(9)
        for run in (
            ToolCalled(line=f"c{n}", tool="Bash", call=f"c{n}", input={"command": f"make part{n}"}),
            ToolReturned(line=f"r{n}", tool="Bash", call=f"c{n}", text="done"),
        )
    ]
    last = ToolCalled(line="last", tool="Bash", call="last", input={"command": "make nothing of it"})
    told = [*(observed(run, session="l", at=9) for run in runs), observed(last, session="l", at=20)]
    append(log, 1, [asked, *told, prompt(1, session="other")])
    drained(database_url)
    live = generations.live(log)
    [(id, _)] = [
        (key, row)
        for key, row in readmodels.all_rows(log, model(by), live.stage1 if by == "episodes" else live.stage2)
        if b'"session/claude-code/l"' in row and (by == "episodes" or b'"kind": "episode"' in row)
    ]
    assert forgotten(settings, log, id=id).types == {
        "prompt.submitted": 1, "tool.called": 10, "tool.returned": 9,
    }  # fmt: skip


def test_a_strategy_is_forgotten_by_its_id(settings: Settings, log: Connection, database_url: str) -> None:
    append(log, 1, everything())
    drained(database_url)
    [first, *_] = keys_of(log, "strategies")
    assert forgotten(settings, log, id=first).events
    assert first not in keys_of(log, "strategies")


def test_what_was_said_about_what_is_gone_goes_also_where_a_forgetting_was_killed_between(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = rated_session(log, database_url)

    def killed_after(*given: Any, **named: Any) -> None:
        erasure.erase_round(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "erase_round", killed_after)
    with pytest.raises(KeyboardInterrupt):
        forget.forget(settings, log, forget.plan(settings, reader_of(log, "default", OWNER), session=session), None)
    monkeypatch.setattr(forgetting, "erase_round", erasure.erase_round)
    assert holds(database_url, "Dana said so")
    (done,) = forget.resume(settings, log, 1, None)
    assert done.types == {"memory.rated": 1}
    assert not holds(database_url, "Dana said so")


def test_what_was_said_of_what_is_gone_while_a_forgetting_was_left_off_goes_once_it_is_taken_up(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = workshop(0)
    append(log, 1, session)
    drained(database_url)
    [memory, *_] = keys_of(log, "memories")
    planned = forget.plan(settings, reader_of(log, "default", OWNER), session=session[0].stream)
    with connect(database_url, autocommit=False) as slow:

        def begins_to_speak(*given: Any, **named: Any) -> Any:
            append(slow, 1, [stated("knowledge/verdicts", MemoryRated(memory=memory, value=0.0, why=PHRASE))])
            return erasure.erase_round(*given, **named)

        monkeypatch.setattr(forgetting, "erase_round", begins_to_speak)
        monkeypatch.setattr(erase, "settled", partial(erase.settled, patience_s=0.2))
        with pytest.raises(forgetting.StillWriting):
            forget.forget(settings, log, planned, None)
        slow.commit()
    monkeypatch.undo()
    [begun] = erase.receipts(log, unfinished=True)
    assert begun.outcome == {}
    (done,) = forget.resume(settings, log, 1, None)
    assert (done.types, holds(database_url, "zq7vkx19mw")) == ({"memory.rated": 1}, [])
    assert [each.so_far for each in erase.receipts(log)] == [erase.SoFar()]


def test_what_a_restored_log_was_to_forget_waits_for_rows_that_tell_what_follows_from_it(
    settings: Settings, log: Connection, elsewhere: Connection, database_url: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    session = rated_session(log, database_url)

    planned = forget.plan(settings, reader_of(log, "default", OWNER), session=session)
    with killed_before_erasing(monkeypatch):
        forget.forget(settings, log, planned, None)
    assert backups.restore(settings, elsewhere, backup(settings, log, tmp_path / "kept")).begun == 1
    generations.ensure_live(elsewhere, 1)
    url = servers.with_database(database_url, elsewhere.info.dbname)
    with contextlib.closing(Drainer(url)) as drainer:
        for _, shard in drainer.behind():
            drainer.drain(1, shard)
        with pytest.raises(forgetting.NotFolded):
            forget.resume(settings, elsewhere, 1, None)
    drained(url)
    (done,) = forget.resume(settings, elsewhere, 1, None)
    assert done.types["memory.rated"] == 1
    assert holds(url, "Dana said so") == []


def test_a_forgetting_that_was_killed_half_way_is_taken_up_again(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2, "to be kept")])
    drained(database_url)

    planned = forget.plan(settings, reader_of(log, "default", OWNER), id=id_of(prompt(1)))
    with killed_before_erasing(monkeypatch):
        forget.forget(settings, log, planned, None)
    assert holds(database_url, "zq7vkx19mw")
    (done,) = forget.resume(settings, log, 1, None)
    assert (done.events, holds(database_url, "zq7vkx19mw")) == (1, [])
    assert forget.resume(settings, log, 1, None) == []


def test_a_command_about_what_is_forgotten_between_its_look_and_its_append_is_refused(
    settings: Settings, log: Connection, database_url: str
) -> None:
    session = workshop(0)
    append(log, 1, session)
    drained(database_url)
    [memory, *_] = keys_of(log, "memories")
    body = json.dumps({"memory": memory, "value": 0.0, "why": PHRASE}).encode()
    key = f"command:rate:{_digest(drawn('key-1', OWNER))}"
    readers = Readers(database_url, settings.space)
    commands = CommandHandler(settings, readers)
    with contextlib.closing(readers), contextlib.closing(commands), ThreadPoolExecutor(1) as pool:
        with log.transaction():
            log.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", [key])
            rating = pool.submit(commands.carry_out, "rate", body, "key-1", OWNER)
            waits = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
            with connect(database_url) as other:
                until(lambda: other.execute(waits).fetchone() is not None, "a command that knows what it means")
                planned = forget.plan(settings, reader_of(other, "default", OWNER), session=session[0].stream)
                forget.forget(settings, other, planned, None)
        with pytest.raises(queries.NotFound):
            rating.result(60)
    assert holds(database_url, "zq7vkx19mw") == []


def test_a_command_sent_again_after_what_it_became_was_forgotten_brings_nothing_back(
    settings: Settings, log: Connection, database_url: str
) -> None:
    readers = Readers(database_url, settings.space)
    commands = CommandHandler(settings, readers)
    body = json.dumps({"text": f"we rely on {PHRASE} everywhere", "location": "/home/dev/shop"}).encode()
    try:
        first = commands.carry_out("note", body, "key-1", OWNER)
        drained(database_url)
        forgotten(settings, log, id=first.event_id)
        again = commands.carry_out("note", body, "key-1", OWNER)
    finally:
        commands.close()
        readers.close()
    assert (again.status, again.recorded) == ("forgotten", {})
    drained(database_url)
    assert holds(database_url, "zq7vkx19mw") == []


@pytest.mark.filled
def test_a_preview_changes_nothing_and_what_is_counted_bounds_what_would_be(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digests(log)
    reader = reader_of(log, "default", OWNER)
    foreseen = forget.preview(log, forget.plan(settings, reader, match="invoice"))
    assert foreseen.events > 0
    assert any(each.dropped for each in foreseen.consequences)
    assert digests(log) == before
    stream = example(2)[0].stream
    some_of_each = [p for n, (p,) in enumerate(log.execute("SELECT event_id FROM memctl.events ORDER BY 1")) if n % 3]
    for plan, is_whole in (
        (forget.plan(settings, reader, session=stream.split("/", 2)[2]), True),
        (
            forget.Plan(
                look=Look.of_owner(settings, 1),
                scope=Scope(kind="id"),
                what="some of each",
                ids=frozenset(some_of_each),
            ),
            False,
        ),
    ):
        tried = forget.preview(log, plan)
        with monkeypatch.context() as patched:
            patched.setattr(forgetting, "MOST_TRIED", 0)
            patched.setattr(erase, "MANY", 0)
            counted = forget.preview(log, plan)
        as_it_is = msgspec.structs.replace(
            counted, exact=True, consequences=tried.consequences, statements_about=tried.statements_about
        )
        assert as_it_is == tried
        assert counted.statements_about <= tried.statements_about
        bounds = {each.read_model: each for each in counted.consequences}
        for each in tried.consequences:
            bound = bounds[each.read_model]
            assert bound.dropped == each.dropped if is_whole else bound.dropped <= each.dropped
            assert each.dropped + each.changed <= bound.dropped + bound.changed
        assert any(each.dropped for each in counted.consequences)
    assert digests(log) == before
    assert holds(database_url, "invoice")
    assert log.execute("SELECT count(*) FROM memctl.receipts").fetchone() == (0,)


def test_over_http_it_is_shown_first_and_done_once_for_each_key(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2, "to be kept")])
    drained(database_url)
    app = FastAPI()
    http_problems.install(app)
    app.include_router(http_forget.routes(settings), prefix="/v1")
    guarded = Guard(app, "a-token", frozenset(("testserver",)))
    client = TestClient(guarded, raise_server_exceptions=False, headers={"Authorization": "Bearer a-token"})
    seen = client.post("/v1/forget/preview", json={"match": PHRASE})
    assert (seen.status_code, seen.json()["events"]) == (200, 1)
    assert client.post("/v1/forget", json={"match": PHRASE}).status_code == 422, "it needs a key"
    both = client.post("/v1/forget/preview", json={"match": PHRASE, "id": "x"})
    assert both.status_code == 422
    for name in ("id", "session", "project", "match"):
        nothing = client.post("/v1/forget/preview", json={name: "such a thing\0"})
        assert (name, nothing.status_code) == (name, 404)
    first = client.post("/v1/forget", json={"match": PHRASE}, headers={"Idempotency-Key": "k"})
    again = client.post("/v1/forget", json={"match": PHRASE}, headers={"Idempotency-Key": "k"})
    assert (first.status_code, first.json()["events"]) == (200, 1)
    assert again.json() == first.json()
    other = client.post("/v1/forget", json={"match": PHRASE}, headers={"Idempotency-Key": "l"})
    assert (other.status_code, "zq7vkx19mw" in other.text) == (404, False)
    assert holds(database_url, "zq7vkx19mw") == []
    for_another = client.post("/v1/forget", json={"id": id_of(prompt(2))}, headers={"Idempotency-Key": "k"})
    assert (for_another.status_code, "idempotency key" in for_another.json()["detail"]) == (422, True)
    assert holds(database_url, "to be kept")


def test_what_is_asked_twice_at_once_under_one_key_is_told_twice_as_done(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, PHRASE)])
    drained(database_url)
    asked = http_forget.Forget(match=PHRASE)
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE '%forget%' AND query LIKE '%advisory%'"
    )
    with ThreadPoolExecutor(3) as clicks:
        assert rebuilds.lock(log, 0)  # so that all have looked, and planned, before any begins
        clicked = [clicks.submit(http_forget.forget_once, settings, OWNER, asked, "k") for _ in range(3)]
        until(lambda: log.execute(waiting).fetchone() == (3,))
        rebuilds.unlock(log, 0)
        told = [each.result() for each in clicked]
    assert [each["events"] for each in told] == [1, 1, 1]
    assert len({each["receipt"] for each in told}) == 1


def test_the_same_key_goes_on_with_what_was_begun_under_it_and_with_nothing_else(
    settings: Settings, log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(log, 1, [prompt(1, PHRASE), prompt(2, "to be kept")])
    drained(database_url)

    def behind(*_: object) -> None:
        raise forgetting.VectorsBehind(points=1)

    asked = http_forget.Forget(match=PHRASE)
    with monkeypatch.context() as patched:
        patched.setattr(forgetting, "_await_vectors", behind)
        with pytest.raises(forgetting.VectorsBehind):
            http_forget.forget_once(settings, OWNER, asked, "k")
    assert holds(database_url, "zq7vkx19mw") == []
    with pytest.raises(KeyReused):
        http_forget.forget_once(settings, OWNER, http_forget.Forget(id=id_of(prompt(2))), "k")
    done = http_forget.forget_once(settings, OWNER, asked, "k")
    assert done == http_forget.forget_once(settings, OWNER, asked, "k")
    assert erase.receipts(log, unfinished=True) == []
    assert holds(database_url, "to be kept")


def test_what_names_many_things_is_looked_up_by_a_plan_for_them(log: Connection) -> None:
    """By one for any lists, of which a server makes use after ten of them, each id is held against each word told."""
    append(log, 1, [stated("core/x", MemoryRated(memory=str(n), value=1.0), f"rating {n}") for n in range(10)])
    for _ in range(12):
        assert len(erase.naming(log, 1, [str(n) for n in range(5, 1000)])) == 5
    assert log.execute("SELECT FROM pg_prepared_statements WHERE statement LIKE '%jsonb_each_text%'").fetchall() == []


def test_a_session_takes_no_subagents_of_another_client_s_session_of_that_name(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """Whoever has a key may begin a session of any client that is called like somebody's."""
    child = observed(SessionStarted(line="1", parent_session="s1"), session="child")
    append(log, 1, [prompt(1), child, msgspec.structs.replace(prompt(2, PHRASE), stream="session/gemini-cli/s1")])
    drained(database_url)
    assert forgotten(settings, log, session="session/gemini-cli/s1").events == 1
    assert forgotten(settings, log, session=prompt(1).stream).events == 2
