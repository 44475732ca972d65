"""Looks at the past are few, end when nobody asks after them, and never outlive what was forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from memctl.api.http.problems import status_of
from memctl.domain.events.event import Position
from memctl.infra.database import Connection, connect
from memctl.infra.readmodels import as_of_snapshots as glances
from memctl.infra.readmodels import generations
from memctl.infra.readmodels.as_of_snapshots import MOST_OF_ONE, MOST_WAITING, TooManySnapshots
from memctl.infra.readmodels.generations import Live
from memctl.workers.erasure.erase import nothing_rebuilt
from memctl.workers.runtime.as_of_builder import AsOfBuilder


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def live(log: Connection) -> Live:
    return generations.live(log)


def scratch(log: Connection) -> int:
    return len(generations.generations(log, "scratch"))


def last_looked_at(log: Connection, id: int, minutes_ago: int) -> None:
    at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    log.execute("UPDATE memctl.glances SET used_at = %s WHERE glance = %s", [at, id])


def status(log: Connection, id: int) -> str | None:
    row = log.execute("SELECT status FROM memctl.glances WHERE glance = %s", [id]).fetchone()
    return row and row[0]


def test_one_that_was_built_before_something_was_forgotten_is_built_anew(
    log: Connection, database_url: str, live: Live
) -> None:
    first = glances.ask(log, Position(0), live)
    worker = AsOfBuilder(database_url)
    worker.look(log)
    assert glances.ask(log, Position(0), live).status == "ready"
    with nothing_rebuilt(log):
        pass
    again = glances.ask(log, Position(0), live)
    assert (again.status, again.id == first.id) == ("asked", False)
    worker.look(log)
    assert (glances.ask(log, Position(0), live).status, scratch(log)) == ("ready", 2)


def test_one_that_is_done_when_something_is_being_forgotten_is_never_shown(log: Connection, live: Live) -> None:
    asked = glances.ask(log, Position(0), live)
    assert glances.claim(log) is not None
    with nothing_rebuilt(log):
        assert not glances.built(log, asked.id, live)
    late = glances.ask(log, Position(0), live)
    with nothing_rebuilt(log):
        assert glances.claim(log) is not None
        assert glances.built(log, late.id, live), "it began before anybody could know"
    assert status(log, late.id) == "dropped"


def test_few_may_wait_of_one_who_asks_and_of_all(log: Connection, live: Live) -> None:
    for number in range(MOST_OF_ONE):
        glances.ask(log, Position(number), live, "dana")
    glances.ask(log, Position(0), live, "dana")  # which waits already
    with pytest.raises(TooManySnapshots) as full:
        glances.ask(log, Position(99), live, "dana")
    assert status_of(full.value) == 429
    for number in range(MOST_OF_ONE, MOST_WAITING):
        glances.ask(log, Position(number), live, f"key {number}")
    with pytest.raises(TooManySnapshots):
        glances.ask(log, Position(99), live, "kim")


def test_what_nobody_asks_after_or_was_asked_of_former_rows_is_not_built(log: Connection, live: Live) -> None:
    left = glances.ask(log, Position(1), live)
    former = glances.ask(log, Position(2), Live(live.stage1, live.stage2 + 7))
    polled = glances.ask(log, Position(3), live)
    for each in (left, polled):
        last_looked_at(log, each.id, minutes_ago=10)
    assert glances.read(log, polled.id) is not None
    claimed = glances.claim(log)
    assert claimed is not None
    assert claimed.id == polled.id
    assert glances.claim(log) is None
    glances.ask(log, Position(3), live)
    assert (status(log, left.id), status(log, former.id)) == ("dropped", "dropped")
    last_looked_at(log, left.id, minutes_ago=100)
    glances.ask(log, Position(3), live)
    assert status(log, left.id) is None


def test_its_tables_go_even_where_nobody_can_be_told_so(log: Connection, database_url: str, live: Live) -> None:
    glances.ask(log, Position(0), live)
    worker = AsOfBuilder(database_url, kept_s=0.0)
    with connect(database_url, name="lost") as lost:
        worker.look(lost)
        assert scratch(log) == 2
        (kept,) = worker._kept
        lost.close()
        with pytest.raises(psycopg.OperationalError):
            worker._drop(lost, kept)
    assert scratch(log) == 0


def test_why_one_could_not_be_built_repeats_nothing_that_a_server_said(
    log: Connection, database_url: str, live: Live
) -> None:
    log.execute("ALTER TABLE memctl.rebuilds ADD CONSTRAINT said_zq7vkx19mw CHECK (purpose <> 'as_of')")
    asked = glances.ask(log, Position(0), live)
    AsOfBuilder(database_url).look(log)
    found = glances.read(log, asked.id)
    assert found is not None
    assert (found.status, found.message.partition(" at ")[0]) == ("failed", "CheckViolation")
    assert "zq7vkx19mw" not in found.message
