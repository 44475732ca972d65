"""A space moves between two databases while it is written and read, and whoever moves it is killed."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import dying
import psycopg
import pytest
import servers
from events import prompt
from histories import drained, example, workshop
from processes import memctl
from psycopg import sql
from soak import FACTOR
from waiting import until
from working import caught_up

from memctl.api.checks.verify import Verification
from memctl.api.erasure import scope
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import Reader, Readers, reader_of
from memctl.api.write.ingest_writer import IngestWriter, KeptWriter
from memctl.domain.events.event import NewEvent, Position
from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import last_position
from memctl.infra.log.read import read_range
from memctl.infra.log.spaces import connect_to, space_id
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.rows import digest_of, rows_query
from memctl.infra.settings import Settings, load_settings
from memctl.infra.settings_model import UnknownDatabase
from memctl.projections.kernel import projections
from memctl.workers.erasure import forgetting
from memctl.workers.moving import space_copy, space_move

KILLS = 20 * FACTOR or 2
NUMBER = 77


class Two(NamedTuple):
    """Two databases with a worker each."""

    here: Connection
    there: Connection
    settings: Settings
    urls: tuple[str, str]

    def lives_on(self) -> str:
        connection, database = connect_to(self.settings, "lab", "test")
        connection.close()
        return database

    def of(self, database: str) -> Connection:
        return {"here": self.here, "there": self.there}[database]

    def words(self, to: str) -> str:
        """What `dying.move_space` is given."""
        return " ".join((*self.urls, to))


@pytest.fixture
def two(
    postgres_server: str,
    templates: servers.Templates,
    environment_for: Callable[[str], dict[str, str]],
    tmp_path: Path,
) -> Iterator[Two]:
    with contextlib.ExitStack() as held:
        urls = [held.enter_context(servers.fresh_database(postgres_server, templates.live(2))) for _ in range(2)]
        connections = [held.enter_context(connect(url)) for url in urls]
        for number, connection in enumerate(connections):
            connection.execute("UPDATE memctl.installation SET id = gen_random_uuid()")  # both are copies of one
            append(connection, 1, workshop(number))
            data = {"MEMCTL_DATA_DIR": str(tmp_path / f"data{number}")}
            worker = {**environment_for(urls[number]), **data}
            held.enter_context(memctl("worker", environment=worker, log=tmp_path / f"worker{number}.log"))
        assert space_id(connections[0], "lab", NUMBER) == NUMBER
        settings = load_settings(
            database_url=urls[0], databases={"there": urls[1]}, redis_url=worker["MEMCTL_REDIS_URL"]
        )
        yield Two(connections[0], connections[1], settings, (urls[0], urls[1]))


@pytest.fixture(scope="module")
def mortals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dying.Mortals]:
    with dying.mortals(tmp_path_factory.mktemp("mortals")) as mortals:
        yield mortals


def rows_in(connection: Connection, number: int = NUMBER) -> dict[str, int]:
    """How many rows of a space each table has, where it has any."""
    tables = connection.execute(space_copy._TABLES, [["spaces"]]).fetchall()
    asked = sql.SQL("SELECT count(*) FROM memctl.{} WHERE space_id = %s")
    counted = {t: connection.execute(asked.format(sql.Identifier(t)), [number]).fetchone() for (t,) in tables}
    return {table: count[0] for table, count in counted.items() if count and count[0]}


def digests(connection: Connection, number: int = NUMBER) -> dict[str, str]:
    live = generations.live(connection)
    of_space = f" WHERE space_id = {number}"
    return {p.name: digest_of(connection, rows_query(p, live.of(p.stage)) + of_space).hex for p in projections()}


def on_one_machine(server: str, template: str, events: list[NewEvent]) -> dict[str, str]:
    with servers.fresh_database(server, template) as url, connect(url) as connection:
        append(connection, space_id(connection, "lab", NUMBER), events)
        drained(url)
        return digests(connection)


class Traffic:
    """One who writes to the space, and one who reads it, for as long as the block lasts."""

    def __init__(self, two: Two) -> None:
        self.kept: list[NewEvent] = []
        self.problems: list[str] = []
        self._two, self._ended = two, threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._write, self._read)]

    def _write(self) -> None:
        writer = KeptWriter(lambda: IngestWriter(self._two.settings.of_space("lab"), identify=False))
        number = 0
        while not self._ended.is_set():
            for event in example(100 + number, day=number + 2):

                def record(intake: IngestWriter, event: NewEvent = event) -> object:
                    return intake.record([event])

                try:
                    writer.do(record)
                except Exception as problem:
                    self.problems.append(f"writing: {problem!r}")
                self.kept.append(event)
                if self._ended.wait(0.03):
                    break
            number += 1
        writer.close()

    def _read(self) -> None:
        readers = Readers(self._two.urls[0], "lab", databases={"there": self._two.urls[1]})
        seen = (0, 0)

        def look(reader: Reader) -> tuple[int, int]:
            events = "SELECT count(*) FROM memctl.events WHERE space_id = %s"
            rows = sql.SQL("SELECT coalesce(sum((row->>'prompts')::int), 0)::int FROM {} WHERE space_id = %s").format(
                sql.SQL(f"memctl.sessions_g{reader.live.of(2 if _stage_of('sessions') == 2 else 1)}")
            )
            return tuple(  # type: ignore[return-value]
                reader.connection.execute(each, [reader.space_id]).fetchone()[0]  # type: ignore[index]
                for each in (events, rows)
            )

        while not self._ended.wait(0.005):
            try:
                now = readers.read(look, OWNER)
            except Exception as problem:
                self.problems.append(f"reading: {problem!r}")
                continue
            if now[0] < seen[0] or now[1] < seen[1]:
                self.problems.append(f"went back from {seen} to {now}")
            seen = now
        readers.close()

    def __enter__(self) -> Traffic:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()


def _stage_of(name: str) -> int:
    return next(p.stage for p in projections() if p.name == name)


def test_a_space_moves_to_and_fro_while_it_is_written_and_read_and_its_movers_are_killed(
    two: Two, mortals: dying.Mortals, postgres_server: str, templates: servers.Templates
) -> None:
    first = [event for number in range(3) for event in example(number, day=number + 2)]
    append(two.here, NUMBER, first)
    luck = random.Random(FACTOR)
    until(lambda: caught_up(two.here) and caught_up(two.there))
    neighbours = digests(two.here, 1), digests(two.there, 1)
    with Traffic(two) as traffic:
        for to in ("there", "here"):
            for after in (luck.randrange(400) for _ in range(KILLS)):
                mortals.dies(dying.move_space, two.words(to), after)
            assert not mortals.dies(dying.move_space, two.words(to), dying.NEVER)
            assert two.lives_on() == to
            left = two.here if to == "there" else two.there
            until(lambda left=left: not rows_in(left).keys() - {f"outbox_g{generations.live(left).stage2}"})  # type: ignore[misc]
    assert traffic.problems == []
    until(lambda: caught_up(two.here) and caught_up(two.there))
    log = log_of(two.here)
    ids = [event_id_of(NUMBER, event.dedupe_key) for event in log]
    assert len(set(ids)) == len(ids) == sum(rows_in(two.here)[t] for t in ("deliveries",))
    said = {event_id_of(NUMBER, event.dedupe_key) for event in (*first, *traffic.kept)}
    assert said - set(ids) == set()
    assert {event.actor for event in log if event_id_of(NUMBER, event.dedupe_key) not in said} <= {"memctl"}
    assert digests(two.here) == on_one_machine(postgres_server, templates.live(2), log)
    assert (digests(two.here, 1), digests(two.there, 1)) == neighbours
    for url in two.urls:
        checks = Verification(load_settings(database_url=url)).checks()
        assert [(each.name, each.found) for each in checks if each.result == "gap" and each.part != "vectors"] == []


def log_of(connection: Connection) -> list[NewEvent]:
    """What the space holds, as it could be appended elsewhere."""
    events = read_range(connection, Position(0), last_position(connection), limit=1 << 30).events
    return [
        NewEvent(
            stream=each.stream, payload=each.payload, occurred_at=each.occurred_at, dedupe_key=each.dedupe_key,
            actor=each.actor, location=each.location, session_id=each.session_id, sources=each.sources,
        )
        for each in events if each.space_id == NUMBER
    ]  # fmt: skip


def begun(two: Two, mortals: dying.Mortals) -> None:
    """A move to `there` that was killed when a part had been copied."""
    for after in range(30, 400, 5):
        assert mortals.dies(dying.move_space, two.words("there"), after)
        if rows_in(two.there).get("deliveries"):
            return
    raise AssertionError("nothing was copied")


def holding(connection: Connection, word: str) -> set[str]:
    """The tables that hold a word."""
    tables = connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 'memctl'::regnamespace"
                                " AND relkind = 'r'").fetchall()  # fmt: skip
    asked = sql.SQL("SELECT FROM memctl.{} t WHERE t::text LIKE %s LIMIT 1")
    return {
        t
        for (t,) in tables
        if connection.execute(asked.format(sql.Identifier(t)), [f"%{word}%"]).fetchone() is not None
    }


def test_what_is_forgotten_while_its_space_moves_is_on_neither_side(two: Two, mortals: dying.Mortals) -> None:
    word, kept = "heliotropium", "delphinium"
    events = [prompt(n, f"plant the {name}", session=name) for n, name in enumerate((word, kept))]
    append(two.here, NUMBER, [*example(1), *events])
    begun(two, mortals)
    until(lambda: caught_up(two.here) and caught_up(two.there))
    assert holding(two.there, word)
    reader = reader_of(two.here, "lab", OWNER)
    plan = scope.plan(two.settings, reader, session=word)
    forgetting.forget(two.settings, two.here, plan, None)
    space_move.move(two.settings, "lab", "there")
    assert two.lives_on() == "there"
    assert holding(two.there, kept)
    # Which sessions were forgotten is kept by name, so that they stay so.
    names = {"receipts", "tombstones"}
    assert holding(two.there, f"plant the {word}") == set()
    until(lambda: not holding(two.here, word) - names)
    assert append(two.there, NUMBER, [events[0]])[0].status == "forgotten"


def test_a_space_of_which_something_is_being_forgotten_is_not_compared(
    two: Two, mortals: dying.Mortals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is emptied there stands in the copy until all of it is forgotten."""
    event = prompt(0, "plant the heliotropium", session="heliotropium")
    append(two.here, NUMBER, [*example(1), event])
    begun(two, mortals)
    until(lambda: caught_up(two.here) and caught_up(two.there))
    plan = scope.plan(two.settings, reader_of(two.here, "lab", OWNER), session="heliotropium")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(forgetting, "recorded", die)
        with pytest.raises(KeyboardInterrupt):
            forgetting.forget(two.settings, two.here, plan, None)
        here.setattr(space_move, "PATIENCE_S", 1.0)
        with pytest.raises(space_move.NeverQuiet, match="being forgotten"):
            space_move.move(two.settings, "lab", "there")
    [_] = forgetting.resume(two.settings.of_space("lab"), two.here, NUMBER, None)
    space_move.move(two.settings, "lab", "there")
    assert holding(two.there, "plant the heliotropium") == set()


def test_a_move_is_undone_with_nothing_left_of_it(two: Two, mortals: dying.Mortals) -> None:
    append(two.here, NUMBER, example(1))
    until(lambda: caught_up(two.here))
    before = digests(two.here), rows_in(two.here)["deliveries"]
    begun(two, mortals)
    with pytest.raises(psycopg.Error, match="another database"):
        append(two.there, NUMBER, example(2))
    space_move.give_up(two.settings, "lab", "there")
    assert two.lives_on() == "here"
    assert (digests(two.here), rows_in(two.here)["deliveries"]) == before
    assert rows_in(two.there).keys() <= {f"outbox_g{generations.live(two.there).stage2}"}
    with pytest.raises(space_move.NothingToUndo):
        space_move.give_up(two.settings, "lab", "there")
    space_move.move(two.settings, "lab", "there")
    assert (digests(two.there), rows_in(two.there)["deliveries"]) == before
    with pytest.raises(space_move.NothingToUndo, match="unfinished"):
        space_move.give_up(two.settings, "lab", "there")


def test_who_arrives_between_the_switch_and_its_end_ends_it(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    append(two.here, NUMBER, example(1))

    class Killed(Exception): ...

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as here:
        here.setattr(space_move, "_tidy", die)
        with pytest.raises(Killed):
            space_move.move(two.settings, "lab", "there")
    assert two.there.execute("SELECT arriving FROM memctl.spaces WHERE name = 'lab'").fetchone() == (True,)
    readers = Readers(two.urls[0], "lab", databases={"there": two.urls[1]})
    assert readers.read(lambda reader: rows_in(reader.connection)["deliveries"], OWNER) == len(example(1))
    readers.close()
    with IngestWriter(two.settings.of_space("lab"), identify=False) as writer:
        assert writer.record(example(3)[:1]).appended[0].status == "new"
    assert two.there.execute("SELECT arriving, database FROM memctl.spaces WHERE name = 'lab'").fetchone() == (
        False,
        "",
    )


def test_what_stands_in_the_way_is_said_and_nothing_is_moved(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    append(two.here, NUMBER, example(1)[:3])
    with pytest.raises(space_move.NoSuchSpace):
        space_move.move(two.settings, "nowhere", "there")
    with pytest.raises(UnknownDatabase):
        space_move.move(two.settings, "lab", "west")
    with pytest.raises(space_move.SpaceInTheWay):  # each database has a default of its own
        space_move.move(two.settings, "default", "there")
    space_id(two.there, "other", NUMBER)
    with pytest.raises(space_move.SpaceInTheWay):
        space_move.move(two.settings, "lab", "there")
    two.there.execute("UPDATE memctl.spaces SET name = 'lab' WHERE name = 'other'")
    with connect(two.urls[0]) as other, other.transaction():
        append(other, NUMBER, example(2)[:1])
        monkeypatch.setattr(space_move, "PATIENCE_S", 1.0)
        with pytest.raises(space_move.NeverQuiet, match="writes to it"):
            space_move.move(two.settings, "lab", "there")
    two.here.execute("SELECT pg_advisory_lock(%s, %s)", [space_move._TURN, NUMBER])
    two.there.execute("SELECT pg_advisory_lock(%s, %s)", [space_move._TURN, NUMBER])
    with pytest.raises(space_move.MoveUnderWay):
        space_move.move(two.settings, "lab", "there")
    two.there.execute("SELECT pg_advisory_unlock_all()")
    two.there.execute("UPDATE memctl.generations SET fingerprint = 'other'")
    with pytest.raises(space_move.DifferentRules):
        space_move.move(two.settings, "lab", "there")
    assert two.lives_on() == "here"


def test_a_copy_that_differs_is_not_switched_to(two: Two, mortals: dying.Mortals) -> None:
    append(two.here, NUMBER, example(1))
    begun(two, mortals)
    until(lambda: caught_up(two.there) and caught_up(two.here))
    live = generations.live(two.there)
    table = sql.SQL(f"memctl.sessions_g{live.of(_stage_of('sessions'))}")
    two.there.execute(sql.SQL('UPDATE {} SET row = row || \'{{"title": "x"}}\' WHERE space_id = 77').format(table))
    with pytest.raises(space_move.CopyDiffers, match="sessions"):
        space_move.move(two.settings, "lab", "there")
    assert two.lives_on() == "here"
