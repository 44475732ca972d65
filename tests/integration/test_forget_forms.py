"""What was forgotten is gone in every form of writing it, and the receipt names where a form stays."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from events import observed, prompt
from forgetting import KEY, forgotten
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
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.database import Connection
from memctl.infra.hooks.capture_policy import FILE, PASSED_FILE
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.partitions import tables
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.settings import Settings
from memctl.workers.erasure import erasure_register as register
from memctl.workers.erasure.erasure_check import Probe, found_in
from memctl.workers.erasure.look import Look

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


@pytest.mark.parametrize("others_say_it", [False, True])
def test_a_word_of_one_event_is_named_where_it_stays_unless_others_say_it(
    settings: Settings, log: Connection, database_url: str, others_say_it: bool
) -> None:
    (appended,) = append(log, 1, [prompt(1, f"work on {WORD}", session="a")])
    append(log, 1, [prompt(2, f"so {WORD} it is" if others_say_it else "something else", session="b")])
    drained(database_url)
    (settings.data_dir / "off.json").write_text(f'{{"projects": ["/w/{WORD}"]}}')
    (id,) = log.execute("SELECT event_id FROM memctl.events WHERE position = %s", [appended.position]).fetchone() or ()
    done = forgotten(settings, log, id=str(id))
    assert any("off.json" in each for each in done.stays) is not others_say_it


@pytest.mark.filled
def test_every_table_is_in_the_register(log: Connection) -> None:
    names = tables(log)
    assert len(names) > 40
    assert [name for name in names if register.place_of(name, register.TABLES) is register.UNKNOWN] == []


@contextlib.contextmanager
def alone_in(log: Connection, table: str, space: int, name: str) -> Iterator[bool]:
    """The table as if it held one row, which is of that space and says the word; whether a column says of which."""
    columns = {
        column
        for (column,) in log.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0", [f"memctl.{table}"]
        )
    }
    given = {key: value for key, value in (("space_id", space), ("space", name)) if key in columns}
    with log.transaction(force_rollback=True):
        log.execute(f"ALTER TABLE memctl.{table} RENAME TO hidden")
        log.execute(f"CREATE TABLE memctl.{table} AS SELECT *, NULL::text AS said FROM memctl.hidden LIMIT 0")
        names, values = ", ".join([*given, "said"]), [*given.values(), f"so {WORD} it is"]
        log.execute(f"INSERT INTO memctl.{table} ({names}) VALUES ({', '.join(['%s'] * len(values))})", values)
        yield bool(given)


def found(log: Connection, look: Look, table: str) -> bool:
    """Whether anything is found in the table, named of it, or dropped from it."""
    sought, probe = WrittenForms([WORD]), Probe(words=(WORD,))
    named = [*register.what_stays(log, look, sought, folded=True), *found_in(log, look, probe, None)]
    assert not any(WORD in each for each in named)
    register.drop_from_books(log, look, sought)
    dropped = log.execute(f"SELECT FROM memctl.{table}").fetchone() is None
    return dropped or any(f"the table {table}" in each for each in named)


@pytest.mark.filled
def test_every_table_is_asked_for_the_rows_of_the_space_alone_that_something_is_forgotten_in(
    settings: Settings, log: Connection
) -> None:
    """Who erases chooses the words, and reads in the receipt what holds them."""
    owner = Look.of_owner(settings, 1)
    others = space_id(log, "others")
    shared = []
    for table in tables(log):
        if table in ("events", register.IDS):  # texts of the one are asked for by `erase.holding`, the other has none
            continue
        with alone_in(log, table, others, "others") as of_a_space:
            assert not found(log, owner.as_key(), table), table
            folded = register.place_of(table, register.TABLES).rule is register.Leftover.NOTHING
            assert found(log, owner, table) is (folded or not of_a_space), table
        if not of_a_space:
            shared.append(table)
            continue
        with alone_in(log, table, 1, "default"):
            assert found(log, owner.as_key(), table), table
    assert {"api_keys", "checkpoints", "receipts", "spaces", "memories_g1"}.isdisjoint(shared)


def test_the_table_of_ids_is_looked_through_for_what_may_be_one(settings: Settings, log: Connection) -> None:
    (appended,) = append(log, 1, [prompt(1, f"so {WORD} it is")])
    (id,) = log.execute("SELECT event_id FROM memctl.events WHERE position = %s", [appended.position]).fetchone() or ()
    for text, named in ((WORD, False), (str(id), True), (str(id)[:8], True)):
        stays = register.what_stays(log, Look.of_owner(settings, 1), WrittenForms([text]), folded=True)
        assert any(each.startswith("the table deliveries") for each in stays) is named, text


def test_every_file_is_looked_through_for_the_owner_alone_and_none_that_holds_secrets(
    settings: Settings, log: Connection
) -> None:
    names = {
        "spool/torn.damaged", "log/worker.log", "receipts.jsonl", FILE, PASSED_FILE, "run/relay.json", "imports/a",
        "run/api", "keys.json", "keys.damaged", "lock", "config.toml", "first-run", "models/a.onnx", "left by somebody",
    }  # fmt: skip
    known = {register.place_of(name, register.FILES) for name in names}
    assert known >= {each for each in register.FILES if each.rule is not register.Leftover.ELSEWHERE}
    for name in names:
        (settings.data_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (settings.data_dir / name).write_text(WORD)
    owner, said = Look.of_owner(settings, 1), {}
    for look in (owner, owner.as_key()):
        stays = register.what_stays(log, look, WrittenForms([WORD]), folded=True)
        lines = [*stays, *found_in(log, look, Probe(words=(WORD,)), None)]
        said[look.owner] = {name for name in names if any(str(settings.data_dir / name) in each for each in lines)}
    assert said == {True: names - {"run/api", "keys.json", "keys.damaged", "lock"}, False: set()}


def test_whether_another_space_says_a_word_changes_nothing_in_the_receipt_of_a_key(
    settings: Settings, log: Connection, database_url: str
) -> None:
    """Words that somebody else says are no sign of what was forgotten; for a key that is somebody in its space."""
    stays = []
    for who, others in (("a", False), ("b", True)):
        word = f"zq7vkx19m{who}"
        written = FORMS["percent signs"](f"{word} harbour protocol")
        append(log, 1, [prompt(1, f"{word} harbour protocol", session=who), prompt(2, written, session=f"{who}2")])
        if others:
            append(log, space_id(log, "others"), [prompt(1, f"so {word}it is", session="theirs")])
        drained(database_url)
        done = forgotten(settings, log, KEY, session=who)
        stays.append([each.split(":")[0] for each in done.stays if "events" in each])
    assert stays == [["1 events hold it in another form"]] * 2


def test_a_phrase_that_nothing_holds_in_any_form_is_nothing_to_forget(
    settings: Settings, log: Connection, database_url: str
) -> None:
    append(log, 1, [prompt(1, "something else", session="a")])
    drained(database_url)
    with pytest.raises(NothingToForget):
        forget.plan(settings, reader_of(log, "default", OWNER), match=PHRASE)
