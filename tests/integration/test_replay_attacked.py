"""Ways in which a replay could be made to lie, each found by trying: none of them works any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from uuid import UUID

import msgspec
import psycopg
import pytest
from events import prompt, stated
from histories import digests, drained, example
from waiting import until, waits_for_a_lock

from memctl.domain.events.event import Position
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark
from memctl.infra.readmodels import dead_letters, generations, rebuilds
from memctl.workers.folding.refold import refold
from memctl.workers.rebuild import replay
from memctl.workers.rebuild.as_of import as_of
from memctl.workers.rebuild.build import RebuildStopped


@pytest.fixture
def filled(filled_url: str) -> Iterator[tuple[str, Connection]]:
    with connect(filled_url) as connection:
        yield filled_url, connection


def unguarded(connection: Connection, statement: str) -> None:
    """Change the log as only its owner could."""
    connection.execute("ALTER TABLE memctl.events DISABLE TRIGGER USER")
    connection.execute(statement.encode())
    connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_no_change")
    connection.execute("ALTER TABLE memctl.events ENABLE ALWAYS TRIGGER events_hold_positions")


def test_a_switch_and_the_end_of_its_rebuild_are_one(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    live = generations.live(connection)
    connection.execute(
        """CREATE FUNCTION memctl.die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60); RETURN NULL; END $$;
        CREATE TRIGGER die BEFORE UPDATE ON memctl.rebuilds FOR EACH ROW WHEN (new.status = 'done')
            EXECUTE FUNCTION memctl.die()"""
    )
    with pytest.raises(psycopg.OperationalError):
        replay.replay(url, None)
    connection.execute("DROP TRIGGER die ON memctl.rebuilds")
    assert generations.live(connection) == live
    connection.execute("UPDATE memctl.offsets SET lease_until = NULL, owner = NULL")  # instead of waiting for them
    assert replay.replay(url, None, verify=True).equal
    assert [p.status for p in rebuilds.progress(connection, 5)] == ["done"]


def test_a_lease_that_is_taken_before_the_switch_costs_another_look_and_no_replay(
    filled: tuple[str, Connection],
) -> None:
    """As by `dlq retry`, where the machine slept for longer than a lease lasts."""
    url, connection = filled
    live, before = generations.live(connection), digests(connection)
    ended: list[replay.Replayed] = []
    replaying = threading.Thread(target=lambda: ended.append(replay.replay(url, None, verify=True, processes=1)))
    table = f"memctl.tasks_g{live.stage2}"
    waits = "SELECT FROM pg_locks WHERE NOT granted AND relation = %s::regclass"
    with connect(url, autocommit=False) as locking:
        locking.execute(f"LOCK TABLE {table}")
        replaying.start()
        until(lambda: connection.execute(waits, [table]).fetchone() is not None, "who compares")
        thief = "UPDATE memctl.offsets SET epoch = epoch + 1, lease_until = '-infinity' WHERE generation = %s"
        connection.execute(thief, [live.stage2])
        locking.rollback()
    replaying.join(60)
    assert not replaying.is_alive()
    assert [each.former for each in ended] == [live]
    assert ended[0].equal
    assert digests(connection) == before


def test_a_rebuild_whose_generation_has_gone_live_is_not_gone_on_with(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    replay.replay(url, None)
    connection.execute("UPDATE memctl.rebuilds SET status = 'running'")  # as if it had died before it noted its end
    for step in range(9):
        rebuilds.plan(connection, rebuilds.progress(connection)[0].rebuild, step, [])
    was = generations.live(connection)
    assert replay.replay(url, None, verify=True).equal
    assert generations.live(connection).stage2 > was.stage2


def made_different(connection: Connection, stream: str) -> None:
    """Erase what some events of a stream said: a refold of it changes facts at a position that all have passed."""
    unguarded(
        connection,
        "UPDATE memctl.events SET payload = NULL, salt = NULL WHERE position IN (SELECT position FROM memctl.events"
        f" WHERE stream = '{stream}' ORDER BY position LIMIT 8)",
    )


def test_a_refold_reaches_a_stage_two_that_is_being_built(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    stream = example()[0].stream
    changed = []

    def change(what: str, done: int, of: int) -> None:
        if what == "facts" and done >= of and not changed:
            changed.append(stream)
            made_different(connection, stream)
            refold(connection, streams=[(1, stream)])

    replay.replay(url, None, first_stage=2, processes=1, progress=change)
    assert changed
    drained(url)
    assert replay.replay(url, None, verify=True).equal


def test_a_refold_reaches_the_stage_two_that_is_kept(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    stream = example()[0].stream
    replay.replay(url, None, first_stage=2)
    before = digests(connection)
    made_different(connection, stream)
    refold(connection, streams=[(1, stream)])
    assert digests(connection) != before
    replay.rollback(url, None)
    assert replay.replay(url, None, verify=True).equal


def test_a_refold_reaches_a_stage_two_that_has_read_and_not_yet_written(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    stream = example()[0].stream
    replay.replay(url, None, first_stage=2, processes=1)
    [(kept, _, _)] = generations.generations(connection, "previous")
    append(connection, 1, example(9, day=28))
    drained(url)
    made_different(connection, stream)

    def fold_again() -> None:
        with connect(url, name="refold") as other:
            refold(other, streams=[(1, stream)])

    going_back = threading.Thread(target=replay.rollback, args=[url, None])
    folding = threading.Thread(target=fold_again)
    with connect(url, autocommit=False) as holding:
        holding.execute(f"LOCK TABLE memctl.routes_g{kept}".encode())
        going_back.start()
        until(lambda: waits_for_a_lock(connection, "memctl rollback"), "a batch that is read")
        folding.start()
        until(lambda: not folding.is_alive() or waits_for_a_lock(connection, "refold"), "the refold")
        holding.rollback()
    for thread in (folding, going_back):
        thread.join(60)
        assert not thread.is_alive()
    assert generations.live(connection).stage2 == kept
    assert replay.replay(url, None, verify=True, processes=1).differing == ""


def test_a_rebuild_stops_at_an_unknown_event_wherever_it_stands(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    payload = EventSkipped(skipped=UUID(int=1), projection="of tomorrow")
    [there] = append(connection, 1, [stated("knowledge/7", payload, "k")])
    unguarded(connection, "UPDATE memctl.events SET type = 'knowledge.of_tomorrow' WHERE dedupe_key = 'k'")
    live = generations.live(connection)
    with pytest.raises(RebuildStopped, match=rf"position {there.position} is 'knowledge\.of_tomorrow'"):
        replay.replay(url, None)
    assert generations.live(connection) == live
    assert generations.generations(connection, "building") == []


def test_what_has_read_less_than_the_live_rows_never_takes_their_place(filled: tuple[str, Connection]) -> None:
    _, connection = filled
    live = generations.live(connection)
    stage1 = generations.create(connection, 1, shards=2)
    stage2 = generations.create(connection, 2, facts_of=stage1)
    last = mark(connection)
    for generation, position in ((stage1, Position(last - 1)), (stage2, last)):
        generations.begin_at(connection, generation, position)
    with pytest.raises(MemctlError, match=f"generation {stage1} has read less"):
        generations.switch(connection, stage1, stage2)
    assert generations.live(connection) == live


def test_the_past_is_shown_without_what_was_dropped_since(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    bad = example(8, day=20)[:3]
    append(connection, 1, bad)
    unguarded(
        connection,
        """UPDATE memctl.events SET payload = '{"text": 5, "line": 7}' WHERE position = (SELECT max(position)"""
        " FROM memctl.events)",
    )
    drained(url)
    live, between, was = generations.live(connection), mark(connection), digests(connection)
    [letter] = dead_letters.parked(connection, live.stage1, live.stage2)
    skipped = EventSkipped(skipped=letter.fault.source)
    append(connection, 1, [stated(bad[0].stream, skipped)])
    with as_of(url, between) as (past, scratch):
        assert digests(past, scratch) == was


@pytest.mark.parametrize(
    ("one", "other"), [(("a:b", "/srv"), ("a%b", "/srv")), (("a", "/srv\n/shop"), ("a\n/srv", "/shop"))]
)
@pytest.mark.parametrize("shards", [4])
def test_two_sessions_have_nothing_in_common_whatever_their_ids_are(
    database_url: str, log: Connection, one: tuple[str, str], other: tuple[str, str]
) -> None:
    """A relay tells ids as it likes. Of two such that told the same, live rows held one, and each rebuild ended."""
    for session, location in (one, other):
        told = [prompt(n, "please fix the total of an empty cart", session=session) for n in (1, 2)]
        append(log, 1, [msgspec.structs.replace(event, location=location) for event in told])
    drained(database_url)
    found = digests(log)
    assert (found["episodes"][0], found["stats"][0]) == (2, 4)
    assert replay.replay(database_url, None, verify=True, processes=1).equal
