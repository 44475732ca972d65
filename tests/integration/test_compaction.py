"""Compaction of deliveries: ids move beside appends, and an event is in the log once, wherever its id stands."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest
from events import prompt
from redis import Redis

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import event_id_of
from memctl.infra.database import Connection, connect
from memctl.infra.log import compaction as module
from memctl.infra.log.append import append
from memctl.infra.log.audit import astray
from memctl.infra.log.compaction import Compaction
from memctl.infra.log.mark import last_position
from memctl.infra.readmodels import generations
from memctl.workers.folding.drain import Drainer
from memctl.workers.runtime import sweeper
from memctl.workers.runtime.sweeper import Sweeper


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELIVERIES", 10)
    monkeypatch.setattr(module, "AT_ONCE", 7)
    monkeypatch.setattr(module, "PATIENCE_MS", 50)


def compact(log: Connection) -> int:
    compaction, moved = Compaction(), 0
    compaction.begin_if_due(log)
    while compaction.under_way:
        moved += compaction.work(log, 60)
    return moved


def counted(log: Connection) -> tuple[int, int]:
    """How many deliveries stand where appends enter theirs, and beside."""
    asked = "SELECT (SELECT count(*) FROM ONLY memctl.deliveries), (SELECT count(*) FROM memctl.compacted_deliveries)"
    here, beside = log.execute(asked).fetchone() or (0, 0)
    return here, beside


def statuses(log: Connection, events: list[NewEvent]) -> list[str]:
    return [each.status for each in append(log, 1, events)]


def test_few_deliveries_stay_and_many_are_moved(log: Connection) -> None:
    append(log, 1, [prompt(n) for n in range(10)])
    assert (compact(log), counted(log)) == (0, (10, 0))
    append(log, 1, [prompt(10)])
    assert (compact(log), counted(log)) == (11, (0, 11))


@pytest.mark.parametrize("at_once", [1, 30])
def test_what_was_moved_is_appended_no_second_time(log: Connection, at_once: int) -> None:
    events = [prompt(n) for n in range(30)]
    first = append(log, 1, events)
    compact(log)
    again = [each for n in range(0, 30, at_once) for each in append(log, 1, events[n : n + at_once])]
    assert [each.status for each in again] == ["duplicate"] * 30
    assert [each.position for each in again] == [each.position for each in first]
    assert counted(log) == (0, 30)


def test_another_version_of_what_was_moved_is_kept_beside_it(log: Connection) -> None:
    append(log, 1, [prompt(n) for n in range(11)])
    compact(log)
    other = prompt(3, text="said otherwise")
    assert statuses(log, [other, prompt(3), prompt(40)]) == ["variant", "duplicate", "new"]
    assert statuses(log, [other]) == ["duplicate"]
    assert astray(log, last_position(log)) == []


def test_events_come_once_whatever_is_moved_between(log: Connection) -> None:
    luck = random.Random(5)
    for _ in range(40):
        append(log, 1, [prompt(luck.randrange(200)) for _ in range(luck.choice((1, 1, 5, 30)))])
        if luck.random() < 0.4:
            compact(log)
    rows = log.execute("SELECT event_id FROM memctl.events").fetchall()
    assert len(rows) == len({*rows}) == sum(counted(log))
    assert min(counted(log)) > 0
    assert astray(log, last_position(log)) == []


def test_who_appends_is_waited_for_a_moment_and_the_rest_is_moved_later(log: Connection, database_url: str) -> None:
    append(log, 1, [prompt(n) for n in range(20)])
    with connect(database_url, autocommit=False) as writer:
        append(writer, 1, [prompt(20)])
        assert compact(log) == 0
        assert statuses(log, [prompt(21)]) == ["new"]
    assert (compact(log), counted(log)) == (22, (0, 22))


def test_an_append_that_waits_meanwhile_finds_what_was_moved(log: Connection, database_url: str) -> None:
    """Moved but not committed: the append may not look until it is."""
    append(log, 1, [prompt(n) for n in range(20)])
    said: list[str] = []
    with connect(database_url, autocommit=False) as mover, connect(database_url) as writer:
        mover.execute("SELECT memctl.compact_deliveries(1, '00000000-0000-0000-0000-000000000000', 100)")
        thread = threading.Thread(target=lambda: said.extend(statuses(writer, [prompt(n) for n in range(20)])))
        thread.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = %s"
        while log.execute(waits, [writer.info.backend_pid]).fetchone() == (0,):
            assert thread.is_alive()
        mover.commit()
        thread.join()
    assert said == ["duplicate"] * 20
    assert counted(log) == (0, 20)


def test_one_who_was_killed_is_followed_by_another(log: Connection) -> None:
    append(log, 1, [prompt(n) for n in range(30)])
    first = Compaction()
    first.begin_if_due(log)
    assert first.work(log, 0) == 7
    assert (compact(log), counted(log)) == (23, (0, 30))


def test_what_comes_by_no_append_stands_once_too(log: Connection) -> None:
    append(log, 1, [prompt(n) for n in range(11)])
    compact(log)
    copied = (
        "INSERT INTO memctl.events (event_id, space_id, stream, stream_hash, type, schema_version, occurred_at, actor,"
        " location, session_id, dedupe_key, salt, payload_hash, payload) SELECT event_id, space_id, stream,"
        " stream_hash, type, schema_version, occurred_at, actor, location, session_id, dedupe_key, salt, payload_hash,"
        " payload FROM memctl.events WHERE event_id = %s"
    )
    with pytest.raises(psycopg.errors.UniqueViolation, match="already"):
        log.execute(copied, [event_id_of(1, prompt(4).dedupe_key)])
    assert counted(log) == (0, 11)


def test_an_id_that_stands_in_both_tables_is_found(log: Connection) -> None:
    append(log, 1, [prompt(n) for n in range(11)])
    compact(log)
    log.execute("INSERT INTO memctl.deliveries SELECT * FROM memctl.compacted_deliveries WHERE position = 5")
    assert astray(log, last_position(log)) == [5]


def test_workers_move_deliveries_as_they_sweep(
    log: Connection, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no queue answers."""
    monkeypatch.setattr(sweeper, "COMPACTING_S", 60)
    append(log, 1, [prompt(n) for n in range(30)])
    generations.ensure_live(log, 1)
    drainer = Drainer(database_url)
    Sweeper(drainer, Redis(port=1), "here", lambda: None).sweep()
    drainer.close()
    assert counted(log) == (0, 30)
