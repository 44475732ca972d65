"""What was forgotten is gone in every form of writing it, and the receipt names where a form stays."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from events import observed, prompt
from forgetting import forgotten
from histories import drained
from hostile import Values
from psycopg import sql
from written import FORMS, NEAR, OF_ONE_LINE, stands_in

from memctl.api.erasure import scope as forget
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.domain.events.erasure import NothingToForget
from memctl.domain.events.event import NewEvent, event_types
from memctl.domain.events.observations import Observation, PromptSubmitted, ToolReturned, event_id_of
from memctl.domain.events.statements import Statement
from memctl.infra.database import Connection
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.partitions import tables
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.workers.erasure import erasure_register as register

PHRASE = "zq7vkx19mw harbour protocol"
WORD = "zq7vkx19mw"


@pytest.fixture
def shards() -> int:
    return 1


def tables_with(log: Connection, phrase: str) -> list[str]:
    """The tables in which a phrase stands in any form, found by the tests' own way of undoing them."""
    rows = {name: log.execute(f"SELECT t::text FROM memctl.{name} t").fetchall() for name in tables(log)}
    return [name for name, said in rows.items() if any(stands_in(phrase, row) for (row,) in said)]


def rows_of(log: Connection, name: str) -> list[str]:
    """The live rows of a read model of stage 2, as text."""
    table = sql.SQL(readmodels.table(name, generations.live(log).stage2))
    return [row for (row,) in log.execute(sql.SQL("SELECT row::text FROM {}").format(table))]


class Saying(Values):
    """Payloads of which every text says the phrase in one form, and every name too, where that form has one line."""

    def __init__(self, form: str) -> None:
        super().__init__(random.Random(form), "plain words ")
        self.form = form

    def text(self, length: int) -> str:
        return f"Remember that {FORMS[self.form](PHRASE)} serves."

    def name(self) -> str:
        form = self.form if self.form in OF_ONE_LINE else "percent signs"
        return f"{FORMS[form](PHRASE)} {super().name()}"


def said_by_every_kind() -> Iterator[NewEvent]:
    """Two events of each type, each in another form."""
    forms = list(FORMS)
    for number, (kind, registered) in enumerate(2 * sorted(event_types().items())):
        if kind in erase.RECORDS:
            continue
        of_session = issubclass(registered.payload, Observation | Statement)
        new = observed(PromptSubmitted(text="x"), session="zq", at=number, location="/w/shop")
        payload = Saying(forms[number % len(forms)]).made(registered.payload)
        ids = {name: f"{name}-{kind}{number}" for name in ("line", "call") if name in payload.__struct_fields__}
        yield msgspec.structs.replace(
            new, payload=msgspec.structs.replace(payload, **ids), dedupe_key=f"test:{kind}{number}",
            stream=new.stream if of_session else f"knowledge/{kind}",
        )  # fmt: skip


def test_a_phrase_is_gone_from_every_table_whatever_kind_of_event_said_it_in_whichever_form(
    settings: Settings, log: Connection, database_url: str
) -> None:
    events = list(said_by_every_kind())
    assert len(events) > len(FORMS)
    append(log, 1, events)
    drained(database_url)
    assert len(tables_with(log, WORD)) > 10
    forgotten(settings, log, match=PHRASE)
    drained(database_url)
    assert tables_with(log, PHRASE) == tables_with(log, WORD) == []


def session_in_every_form(name: str, location: str) -> list[NewEvent]:
    def said(payload: Observation, at: int) -> NewEvent:
        return observed(payload, session=name, at=at, location=location)

    events = []
    for number, (form, written) in enumerate(FORMS.items()):
        asked = f"Remember that {written(PHRASE)} is what we use. ({form})"
        events.append(said(PromptSubmitted(line=f"{name}{number}", text=asked), 2 * number))
        answer = ToolReturned(line=f"{name}r{number}", tool="Bash", call=f"{name}{number}", text=written(PHRASE))
        events.append(said(answer, 2 * number + 1))
    return events


WAYS: dict[str, dict[str, Any]] = {
    "session": {"session": "a"}, "project": {"project": "/w/shop"}, "match": {"match": PHRASE},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_phrase_is_gone_in_every_form_with_the_session_or_project_that_said_it(
    settings: Settings, log: Connection, database_url: str, way: str
) -> None:
    append(log, 1, session_in_every_form("a", "/w/shop"))
    drained(database_url)
    assert len(tables_with(log, PHRASE)) > 3
    forgotten(settings, log, **WAYS[way])
    drained(database_url)
    assert tables_with(log, PHRASE) == []


def test_no_row_keeps_the_canonical_form_of_what_was_forgotten(
    settings: Settings, log: Connection, database_url: str
) -> None:
    asked = ("Fix **{}** harbour, protocol", "Fix | {} | harbour | protocol |", "Fix {}\n// harbour 'protocol'")
    append(log, 1, [prompt(n, each.format(WORD), session=f"s{n}") for n, each in enumerate(asked)])
    drained(database_url)
    assert any(PHRASE in row for row in rows_of(log, "tasks"))
    forgotten(settings, log, match=PHRASE)
    drained(database_url)
    assert tables_with(log, PHRASE) == tables_with(log, WORD) == []


def test_the_receipt_names_the_events_that_hold_nearly_the_same(
    settings: Settings, log: Connection, database_url: str
) -> None:
    near = [prompt(n, f"so {form(PHRASE)} it is", session=f"n{n}") for n, form in enumerate(NEAR.values(), 10)]
    append(log, 1, [prompt(1, PHRASE, session="a"), *near])
    drained(database_url)
    done = forgotten(settings, log, match=PHRASE)
    assert done.events == 1
    [line] = [each for each in done.stays if "events" in each]
    assert line.startswith(f"{len(NEAR)} events hold it with other signs between its letters")
    assert all(str(event_id_of(1, each.dedupe_key)) in line for each in near)
    assert WORD not in line


def test_the_receipt_of_a_session_names_other_events_that_hold_its_words_in_another_form(
    settings: Settings, log: Connection, database_url: str
) -> None:
    said, other = prompt(1, PHRASE, session="a"), prompt(2, FORMS["percent signs"](PHRASE), session="b")
    append(log, 1, [said, other, prompt(3, "of something else", session="c")])
    drained(database_url)
    done = forgotten(settings, log, session="a")
    [line] = [each for each in done.stays if "events" in each]
    assert line == f"1 events hold it in another form: {event_id_of(1, other.dedupe_key)}"
    assert any("sessions_g" in each or "facts_g" in each for each in done.stays)


def test_books_of_work_lose_the_rows_that_name_what_was_forgotten(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, f"see git@example.org:{WORD}/shop.git", session="a"), prompt(2, session="b")])
    drained(database_url)
    for subject in (f"example.org/{WORD}/shop", "memories"):
        log.execute(
            "INSERT INTO memctl.processing (space_id, processor, subject, digest, status)"
            " VALUES (1, 'reflector', %s, 'd', 'done')",
            [subject],
        )
    forgotten(settings, log, session="a")
    assert log.execute("SELECT subject FROM memctl.processing").fetchall() == [("memories",)]


def test_the_receipt_names_what_keeps_a_path_on_purpose(settings: Settings, log: Connection, database_url: str) -> None:
    append(log, 1, [prompt(1, f"work on {WORD}", session="a")])
    drained(database_url)
    log.execute(
        'INSERT INTO memctl.checkpoints (space_id, path, "offset", lines, digest) VALUES (1, %s, 1, 1, %s)',
        [f"/home/dana/{WORD}.jsonl", "d"],
    )
    (settings.data_dir / "off.json").write_text(f'{{"projects": ["/w/{WORD}"]}}')
    done = forgotten(settings, log, match=WORD)
    assert any(each.startswith("the table checkpoints, which keeps paths") for each in done.stays)
    assert any("off.json, which says where memory is switched off" in each for each in done.stays)
    assert not any(WORD in each for each in done.stays)


@pytest.mark.filled
def test_every_table_is_in_the_register(log: Connection) -> None:
    names = tables(log)
    assert len(names) > 40
    assert [name for name in names if register.place_of(name, register.TABLES) is register.UNKNOWN] == []


def test_a_phrase_that_nothing_holds_in_any_form_is_nothing_to_forget(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, "something else", session="a")])
    drained(database_url)
    with pytest.raises(NothingToForget):
        forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
