"""A mark for each space: who writes slowly in one holds up the readers of that one only, and nobody skips an event."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from draining import catch_up
from events import id_of, prompt
from histories import digests, example, statements
from waiting import until

from memctl.api.checks.progress import waiting
from memctl.api.queries import stats
from memctl.api.reading.caller import OWNER
from memctl.api.reading.reader import reader_of
from memctl.api.write.exporting import export
from memctl.domain.events.erasure import Scope, Tombstone
from memctl.domain.events.event import Position
from memctl.infra.backpressure import Backpressure
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import (
    hold_off_appends,
    last_position,
    mark,
    mark_age,
    marks,
    move_mark,
    move_marks,
    position_at,
    slow_writers,
)
from memctl.infra.log.reach import Reach, next_section
from memctl.infra.log.read import read_range
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import coverage, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.projections.kernel import projections
from memctl.workers.folding import drain
from memctl.workers.folding.drain import Drainer
from memctl.workers.folding.refold import refold
from memctl.workers.rebuild.audit import audit
from memctl.workers.rebuild.replay import replay

ONE = 1
NOBODY = Reach(Position(0))


@pytest.fixture
def shards() -> int:
    return 2


@pytest.fixture
def two(log: Connection) -> int:
    return space_id(log, "another")


@pytest.fixture
def drainer(database_url: str) -> Iterator[Drainer]:
    drainer = Drainer(database_url, 3)
    yield drainer
    drainer.close()


@pytest.fixture
def sleeper(database_url: str) -> Iterator[Connection]:
    """A connection whose transaction stays open."""
    with connect(database_url, autocommit=False, name="a sleeper") as connection:
        yield connection
        connection.rollback()


def test_who_brings_little_waits_for_a_turn_of_who_brings_much_and_not_for_its_end(
    log: Connection, two: int, drainer: Drainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "TURN", 20)
    many = [event for number in range(6) for event in example(number)]
    append(log, ONE, many)
    (last,) = append(log, two, [prompt(1, "what others bring")])
    append(log, ONE, statements())
    for shard in range(2):
        drainer.drain(1, shard)
    while behind := drainer.following():
        for stage, shard in behind:
            drainer.drain(stage, shard)
    live = generations.live(log)
    assert generations.lowest_offset(log, live.stage2, two) >= last.position
    assert 0 < generations.lowest_offset(log, live.stage2, ONE) < last.position
    assert drainer.cut_off
    catch_up(drainer)
    assert not drainer.cut_off
    in_turns = digests(log)
    replay(str(drainer._url), None)
    assert digests(log) == in_turns


def test_one_space_alone_is_folded_in_one_turn(
    log: Connection, drainer: Drainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drain, "TURN", 20)
    append(log, ONE, [event for number in range(3) for event in example(number)])
    drainer.drain(1, 0)
    assert not drainer.cut_off


def test_a_writer_that_sleeps_holds_up_the_readers_of_its_space_only(
    log: Connection, two: int, sleeper: Connection
) -> None:
    held = append(sleeper, ONE, [prompt(1, "slow")])[0].position
    append(log, ONE, [prompt(2, "waits")])
    done = append(log, two, [prompt(1, "free")])[0].position
    assert move_mark(log, two, patience_s=0) == mark(log, two) == done
    assert (mark_age(log, two), mark_age(log, ONE) > 0) == (0, True)
    assert move_mark(log, ONE, patience_s=0) == mark(log, ONE) == mark(log) < held
    sleeper.commit()
    assert move_mark(log, ONE) == move_mark(log, two) == move_mark(log) == last_position(log)
    assert marks(log).held == {}


def test_who_appends_to_two_spaces_holds_up_both(log: Connection, two: int, sleeper: Connection) -> None:
    three = space_id(log, "a third")
    [first], [second] = append(sleeper, ONE, [prompt(1)]), append(sleeper, two, [prompt(1)])
    append(log, three, [prompt(1)])
    assert move_mark(log, three, patience_s=0) == last_position(log)
    assert move_mark(log, ONE, patience_s=0) < first.position
    assert move_mark(log, two, patience_s=0) < second.position
    sleeper.commit()
    assert move_mark(log) == last_position(log)


def test_a_savepoint_that_is_undone_takes_the_hold_on_its_space_along(
    log: Connection, two: int, sleeper: Connection
) -> None:
    append(sleeper, ONE, [prompt(1)])
    with sleeper.transaction(force_rollback=True):
        append(sleeper, two, [prompt(1)])
        append(log, two, [prompt(2)])
        assert move_mark(log, two, patience_s=0) < last_position(log)
    assert move_mark(log, two, patience_s=0) == last_position(log)
    append(sleeper, ONE, [prompt(2)])
    assert move_mark(log, ONE, patience_s=0) == 0


COPIED = (
    "INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,"
    " location, session_id, dedupe_key) VALUES (gen_random_uuid(), %s, 's', 0, 't', 1, now(), 'a', '', '', 'k')"
)


def test_who_inserts_by_hand_holds_up_every_space_since_nobody_knows_of_which_its_events_are(
    log: Connection, two: int, sleeper: Connection
) -> None:
    sleeper.execute(COPIED, [ONE])
    append(log, two, [prompt(1)])
    assert move_mark(log, two, patience_s=0) == 0
    [found] = slow_writers(log, longer_than_s=0)
    assert found.spaces == ("every space",)
    sleeper.rollback()
    assert move_mark(log, two, patience_s=0) == last_position(log)


def test_an_append_covers_no_insert_by_hand_that_follows_it_also_where_all_was_forgotten(
    log: Connection, two: int, sleeper: Connection
) -> None:
    [kept] = append(log, ONE, [prompt(1)])
    receipt = UUID(int=7)
    erase.begin(log, ONE, receipt, Scope(kind="id"), "")
    erase.lay_tombstones(log, ONE, receipt, [Tombstone(kind="event", value=id_of(prompt(2)))])
    for told in ([prompt(2)], [prompt(2), prompt(2, "otherwise")], [prompt(3)]):
        append(sleeper, ONE, told)
        sleeper.execute(COPIED, [two])
        append(log, two, [prompt(1)])
        assert move_mark(log, two, patience_s=0) <= kept.position
        sleeper.rollback()


def test_where_the_mark_of_a_space_stood_is_known_for_every_moment(
    log: Connection, two: int, sleeper: Connection
) -> None:
    append(sleeper, ONE, [prompt(1)])
    free = append(log, two, [prompt(1)])[0].position
    move_mark(log, patience_s=0)
    then = datetime.now(UTC)
    log.execute("UPDATE memctl.mark_history SET reached_at = reached_at - interval '1 minute'")
    sleeper.commit()
    move_mark(log)
    now = then + timedelta(hours=1)
    minute = timedelta(minutes=1) - timedelta(seconds=10)
    assert [position_at(log, then - minute, each) for each in (ONE, two, None)] == [0, free, 0]
    assert [position_at(log, now, each) for each in (ONE, two, None)] == [free, free, free]


def test_a_slow_writer_is_named_with_the_space_that_it_holds_up(log: Connection, two: int, sleeper: Connection) -> None:
    append(sleeper, two, [prompt(1)])
    [found] = slow_writers(log, longer_than_s=0)
    assert (found.application, found.spaces, found.held) == ("a sleeper", ("another",), "another")


def test_marks_wait_hardly_for_writers_where_there_is_something_to_read_and_not_twice_for_one_in_vain(
    log: Connection, two: int, sleeper: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("memctl.infra.log.mark.time.sleep", slept.append)
    append(sleeper, ONE, [prompt(1)])
    done = append(log, two, [prompt(1)])[0].position
    monkeypatch.setattr("memctl.infra.log.mark.LITTLE_S", 0)
    assert move_marks(log, NOBODY) == Reach(done, {ONE: Position(0)})
    assert not slept, "there is something to read in the other space"
    monkeypatch.setattr("memctl.infra.log.mark.PATIENCE_S", 0.01)
    assert move_marks(log, marks(log)) == marks(log)
    assert slept
    slept.clear()
    assert move_marks(log, marks(log)) == marks(log)
    assert not slept, "it has not ended since, and was waited for"


def test_nobody_appends_to_any_space_while_appends_are_held_off(database_url: str, log: Connection, two: int) -> None:
    with connect(database_url, autocommit=False) as holder, ThreadPoolExecutor(2) as threads:
        hold_off_appends(holder)
        connections = [connect(database_url, name="waits") for _ in (ONE, two)]
        kept = [threads.submit(append, each, space, [prompt(1)]) for each, space in zip(connections, (ONE, two))]  # noqa: B905
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'waits' AND wait_event = 'advisory'"
        until(lambda: log.execute(waiting).fetchone() == (2,))
        holder.rollback()
        assert [each.result()[0].status for each in kept] == ["new", "new"]
        for each in connections:
            each.close()


def test_forgetting_waits_for_who_writes_in_its_space_only(log: Connection, two: int, sleeper: Connection) -> None:
    append(sleeper, two, [prompt(1)])
    assert erase.settled(log, ONE, patience_s=0)
    assert not erase.settled(log, two, patience_s=0)
    sleeper.rollback()
    assert erase.settled(log, two, patience_s=0)


def rows_of(log: Connection, space: int, generation: int) -> list[tuple[str, str, object]]:
    """What stage 2 has of a space."""
    found: list[tuple[str, str, object]] = []
    for p in projections(2):
        table = readmodels.table(p.name, generation)
        of_space = log.execute(f"SELECT key, row FROM {table} WHERE space_id = %s ORDER BY 1".encode(), [space])
        found += [(p.name, key, row) for key, row in of_space]
    return found


def read_by(log: Connection, space: int, generation: int) -> Position:
    return generations.lowest_offset(log, generation, space)


def test_the_other_space_is_folded_while_one_sleeps_and_its_events_are_folded_once_it_wakes(
    database_url: str, log: Connection, two: int, sleeper: Connection, drainer: Drainer
) -> None:
    live = generations.live(log)
    append(log, ONE, example(0)[:10])
    catch_up(drainer)
    before = rows_of(log, ONE, live.stage2)
    append(sleeper, ONE, example(1))
    append(log, ONE, [*example(0)[10:], *statements()])
    append(log, two, [*example(2), *statements()])
    catch_up(drainer)
    assert rows_of(log, ONE, live.stage2) == before
    last = last_position(log)
    for generation in (live.stage1, live.stage2):
        assert read_by(log, two, generation) == last
        assert 0 < read_by(log, ONE, generation) < last
    append(log, two, example(3))
    assert waiting(log, last_position(log), two).events > 0
    catch_up(drainer)  # also from here on
    assert [waiting(log, last_position(log), each).events > 0 for each in (ONE, two, None)] == [True, False, True]
    assert read_by(log, two, live.stage2) == last_position(log)
    assert not [reader for reader in coverage.readers(log, live, mark(log)) if reader.behind_s is not None]
    found = audit(log)
    assert (found.routes.count, found.unfounded.count, found.differing.count) == (0, 0, 0)
    covered = coverage.coverage(log)
    assert (covered.missing, covered.unfounded, covered.differing) == ([], [], [])
    assert replay(database_url, None, verify=True, processes=1).equal
    sleeper.commit()
    catch_up(drainer)
    live = generations.live(log)
    read = generations.offsets(log, live.stage1, live.stage2)
    assert all(each.reach == Reach(last_position(log)) for each in read)
    folded = digests(log)
    assert replay(database_url, None, verify=True, processes=1).equal
    assert digests(log) == folded


def test_what_is_said_in_a_space_of_the_log_does_not_depend_on_who_writes_in_another(
    log: Connection, two: int, sleeper: Connection, drainer: Drainer
) -> None:
    append(sleeper, ONE, [prompt(1)])
    append(log, ONE, [prompt(2)])
    append(log, two, example(0))
    catch_up(drainer)
    last = last_position(log)
    said = [stats.progress(reader_of(log, name, OWNER)) for name in ("default", "another")]
    assert [each.mark for each in said] == [0, last]
    assert [{shard.position for shard in each.shards} for each in said] == [{0}, {last}]
    assert [Backpressure(log, each).looked()[0] for each in (ONE, two)] == [0, last]
    exported: list[bytes] = []
    assert export(log, "another", exported.append) == len(example(0))
    assert export(log, "default", exported.append) == 0


def test_what_is_folded_again_in_a_space_that_lags_goes_no_further_than_that_space_was_read(
    database_url: str, log: Connection, two: int, sleeper: Connection, drainer: Drainer
) -> None:
    """Streams of both spaces, and rows of both, at once."""
    told = example(0)
    append(log, ONE, told[:12])
    append(log, two, told)
    move_mark(log)
    append(sleeper, ONE, [prompt(1, session="sleeps")])
    append(log, ONE, told[12:])
    append(log, two, example(1))
    catch_up(drainer)
    before = digests(log)
    live = generations.live(log)
    rows = [
        (p.name, (space, key))
        for p in projections(2)
        for space, key in log.execute(f"SELECT space_id, key FROM {readmodels.table(p.name, live.stage2)}".encode())
    ]
    assert {space for _, (space, _) in rows} == {ONE, two}
    refold(log, streams=[(ONE, told[0].stream), (two, told[0].stream)], rows=rows)
    assert digests(log) == before
    assert replay(database_url, None, verify=True, processes=1).equal
    sleeper.commit()
    catch_up(drainer)
    assert replay(database_url, None, verify=True, processes=1).equal


def test_a_space_that_lags_is_read_in_order_by_whoever_has_the_shard_next(
    database_url: str, log: Connection, two: int, sleeper: Connection, drainer: Drainer
) -> None:
    """What one drainer keeps in memory of a session in a space that lagged, another has folded on meanwhile."""
    other = Drainer(database_url, 2)
    events = example(0)
    append(log, ONE, events[:5])
    catch_up(drainer)
    for start in range(5, len(events), 3):
        append(sleeper, ONE, [prompt(start, session="sleeps")])
        append(log, ONE, events[start : start + 3])
        append(log, two, [prompt(start, session="free")])
        for each in (drainer, other)[:: 1 if start % 2 else -1]:
            catch_up(each)
        sleeper.commit()
        catch_up(drainer if start % 4 else other)
    other.close()
    assert replay(database_url, None, verify=True, processes=1).equal


def test_twelve_writers_in_two_spaces_leave_no_event_of_either_unread(
    database_url: str, log: Connection, two: int
) -> None:
    """Some append to both in one transaction, and some roll back; one reader of each space, one of both in sections."""
    writers, batches = 12, 40
    ended = threading.Event()
    read: dict[str, list[tuple[int, str]]] = {"one": [], "two": [], "both": []}

    def write(writer: int) -> list[tuple[int, str]]:
        luck = random.Random(writer)
        kept = []
        with connect(database_url, autocommit=False) as mine:
            for batch in range(batches):
                told = []
                for space in luck.choice(((ONE,), (two,), (ONE, two), (two, ONE))):
                    texts = [f"{writer}:{batch}:{n}" for n in range(luck.randint(1, 5))]
                    append(mine, space, [prompt(batch * 10 + n, text, session=f"w{writer}") for n, text in enumerate(texts)])  # fmt: skip # noqa: E501
                    told += [(space, text) for text in texts]
                if luck.random() < 0.1:
                    mine.rollback()
                else:
                    mine.commit()
                    kept += told
        return kept

    def read_on(name: str, space: int) -> None:
        at = Position(0)
        with connect(database_url) as reader:
            while True:
                last_round = ended.is_set()
                upto = move_mark(reader, space)
                while at < upto:
                    events, at = read_range(reader, at, upto, limit=100)
                    read[name] += [(e.space_id, e.payload.text) for e in events if e.space_id == space]  # type: ignore[attr-defined]
                if last_round:
                    return

    def read_both() -> None:
        at = NOBODY
        with connect(database_url) as reader:
            while True:
                last_round = ended.is_set()
                upto = move_marks(reader, at)
                if last_round:
                    move_mark(reader)
                    upto = marks(reader)
                while (section := next_section(at, upto)) is not None:
                    events, end = read_range(reader, section.after, section.upto, limit=100, of=section)
                    read["both"] += [(e.space_id, e.payload.text) for e in events]  # type: ignore[attr-defined]
                    at = section.reached(at, end)
                if last_round:
                    return

    reading = [
        threading.Thread(target=read_on, args=["one", ONE]),
        threading.Thread(target=read_on, args=["two", two]),
        threading.Thread(target=read_both),
    ]
    for each in reading:
        each.start()
    with ThreadPoolExecutor(writers) as pool:
        kept = [each for of in pool.map(write, range(writers)) for each in of]
    ended.set()
    for each in reading:
        each.join(60)
    assert sorted(read["both"]) == sorted(kept)
    assert sorted(read["one"] + read["two"]) == sorted(kept)
