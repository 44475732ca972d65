"""Replay as an operation: by several processes, into other shards, back again, into the past, and only to compare."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
from events import prompt
from histories import digests, drained, example
from waiting import until

from memctl.domain.events.erasure import Scope
from memctl.domain.events.event import Position
from memctl.infra.database import Connection, connect
from memctl.infra.log import erase
from memctl.infra.log.append import append
from memctl.infra.log.mark import mark, position_at
from memctl.infra.readmodels import generations, rebuilds
from memctl.infra.readmodels import rows as readmodels
from memctl.projections.kernel import projections
from memctl.workers.erasure.erase import erase_round, nothing_rebuilt
from memctl.workers.rebuild import build as rebuild
from memctl.workers.rebuild import replay
from memctl.workers.rebuild.as_of import ForgottenMeanwhile, NotReached, as_of
from memctl.workers.rebuild.build import UnknownReadModel


def tables(connection: Connection) -> set[str]:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memctl' AND tablename ~ '_g[0-9]+$'")
    return {row[0] for row in rows}


@pytest.fixture
def filled(filled_url: str) -> Iterator[tuple[str, Connection]]:
    with connect(filled_url) as connection:
        yield filled_url, connection


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "EVENTS", 40)
    monkeypatch.setattr(rebuild, "SOURCES", 10)


def test_several_processes_build_what_one_does(filled: tuple[str, Connection], small_tasks: None) -> None:
    url, connection = filled
    before = digests(connection)
    assert replay.replay(url, None, verify=True, processes=3).equal
    assert replay.replay(url, None, verify=True, processes=1).equal
    assert digests(connection) == before


def test_a_task_folds_no_more_rows_than_it_can_hold_however_few_they_are(
    filled: tuple[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, connection = filled
    before, parts = digests(connection), dict[str, int]()
    query = "SELECT task->>'name', max((task->>'parts')::int) FROM memctl.rebuild_tasks GROUP BY 1"

    def look(what: str, done: int, of: int) -> None:
        parts.update(row for row in connection.execute(query) if row[1])

    monkeypatch.setattr(rebuild, "ROWS_BYTES", 8192)
    with as_of(url, mark(connection), processes=1, progress=look) as (past, then):
        assert digests(past, then) == before
    assert parts["candidates"] > 1
    assert parts["memories"] == 1, "rows that are written as they come are not held"


def test_who_has_built_may_idle_in_a_transaction_no_longer_than_others(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    with as_of(url, mark(connection), processes=1) as (past, _):
        assert past.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


def test_progress_tells_rate_and_time_left_of_the_time_in_which_somebody_was_at_it(
    filled: tuple[str, Connection],
) -> None:
    _, connection = filled
    live = generations.live(connection)
    begun = rebuilds.begin(connection, "compare", 1, Position(100), live.stage1, live.stage2)
    assert rebuilds.lock(connection, begun.id)

    def passes(seconds: float, *, updated: bool) -> None:
        also = ", updated_at = updated_at - %(s)s * interval '1 s'" if updated else ""
        statement = f"UPDATE memctl.rebuilds SET phase_at = phase_at - %(s)s * interval '1 s'{also}"
        connection.execute(statement.encode(), {"s": seconds})

    def told() -> rebuilds.RebuildProgress:
        [progress] = rebuilds.progress(connection)
        return progress

    rebuilds.report(connection, begun.id, "facts", 40, 100)  # of a phase that has only just begun nothing can be said
    assert (told().status, told().per_second, told().seconds_left) == ("running", None, None)
    passes(10, updated=False)
    rebuilds.report(connection, begun.id, "facts", 50, 100)
    assert told().per_second == pytest.approx(5, rel=0.1)
    assert told().seconds_left == pytest.approx(10, rel=0.1)
    rebuilds.unlock(connection, begun.id)
    assert (told().status, told().seconds_left) == ("stopped", None)
    passes(3600, updated=True)  # before somebody goes on with it
    rebuilds.lock(connection, begun.id)
    rebuilds.go_on(connection, begun.id)
    rebuilds.report(connection, begun.id, "facts", 60, 100)
    assert told().per_second == pytest.approx(6, rel=0.1)
    rebuilds.unlock(connection, begun.id)


def test_each_phase_of_a_replay_is_told_from_its_beginning_to_its_end(filled: tuple[str, Connection]) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    replay.replay(
        filled[0], None, processes=1, progress=lambda what, done, of: told.setdefault(what, []).append((done, of))
    )
    assert list(told)[:3] == ["events", "facts", "layer 2"]
    for phase in told.values():
        assert phase == sorted(phase)
        assert phase[-1][0] == phase[-1][1]


def test_a_helper_that_is_killed_leaves_its_task_to_the_others(
    filled: tuple[str, Connection], small_tasks: None
) -> None:
    url, connection = filled
    killed: list[int] = []

    def kill_a_helper(what: str, done: int, of: int) -> None:
        if not killed:
            until(lambda: helpers(connection), "a helper's connection")
            killed.extend(helpers(connection))
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [killed[0]])

    assert replay.replay(url, None, verify=True, processes=2, progress=kill_a_helper).equal
    assert killed


def helpers(connection: Connection) -> list[int]:
    rows = connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'memctl replay helper'"
        " AND datname = current_database()"
    )
    return [row[0] for row in rows]


def test_stage_two_is_rebuilt_alone_while_stage_one_goes_on(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    live = generations.live(connection)
    late = example(9, day=20)

    def meanwhile(what: str, done: int, of: int) -> None:
        if late:
            append(connection, 1, [late.pop() for _ in range(min(25, len(late)))])
            drained(url)

    result = replay.replay(url, None, first_stage=2, verify=True, progress=meanwhile)
    assert result.equal
    assert generations.live(connection).stage1 == live.stage1
    assert generations.live(connection).stage2 != live.stage2


def test_the_number_of_shards_can_be_changed(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    before = digests(connection)
    for shards in (16, 1, 4):
        assert replay.replay(url, None, shards=shards, verify=True).equal
        assert generations.shards(connection, generations.live(connection).stage1) == shards
        assert digests(connection) == before
    append(connection, 1, example(8, day=20))
    drained(url)
    assert replay.replay(url, None, shards=16, verify=True).equal


def test_a_replay_only_to_compare_leaves_no_trace(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    live, there = generations.live(connection), tables(connection)
    assert replay.replay(url, None, verify=True, switch=False).equal
    assert (generations.live(connection), tables(connection)) == (live, there)
    row = connection.execute(f"SELECT key FROM memctl.sessions_g{live.stage1} ORDER BY key").fetchone()  # type: ignore[arg-type]
    assert row is not None
    connection.execute(
        f"UPDATE memctl.sessions_g{live.stage1} SET row = row || '{{\"prompts\": 99}}' WHERE key = %s",  # type: ignore[arg-type]
        [row[0]],
    )
    result = replay.replay(url, None, verify=True, switch=False)
    [differs] = [c for c in result.compared if not c.equal]
    assert (differs.name, differs.differing) == ("sessions", (row[0],))
    assert generations.live(connection) == live


def test_rolling_back_makes_the_former_rows_live_with_what_was_learnt_since(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    former = generations.live(connection)
    replay.replay(url, None)
    latter = generations.live(connection)
    append(connection, 1, example(7, day=20))
    drained(url)
    now = digests(connection)
    replay.rollback(url, None)
    assert generations.live(connection) == former
    assert digests(connection) == now
    append(connection, 1, example(8, day=21))
    drained(url)
    now = digests(connection)
    replay.rollback(url, None)
    assert generations.live(connection) == latter
    assert digests(connection) == now


def test_a_rebuild_of_stage_two_alone_is_rolled_back_alone(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    former = generations.live(connection)
    replay.replay(url, None, first_stage=2)
    replay.rollback(url, None)
    assert generations.live(connection) == former


def test_without_a_former_generation_there_is_nothing_to_roll_back_to(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    with pytest.raises(replay.NothingToRollBackTo, match="none is kept"):
        replay.rollback(url, None)
    replay.replay(url, None)
    connection.execute("UPDATE memctl.generations SET fingerprint = 'of other rules' WHERE status = 'previous'")
    with pytest.raises(replay.NothingToRollBackTo, match="other rules"):
        replay.rollback(url, None)


# --- the past ---


def test_read_models_are_shown_as_they_were(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    then, was = mark(connection), digests(connection)
    append(connection, 1, [*example(7, day=20), prompt(1, "late", session="late")])
    drained(url)
    assert digests(connection) != was
    live, there = generations.live(connection), tables(connection)
    with as_of(url, then) as (past, scratch):
        assert digests(past, scratch) == was
    assert (generations.live(connection), tables(connection)) == (live, there)
    [ended] = rebuilds.progress(connection)
    assert (ended.purpose, ended.status) == ("as_of", "dropped")


def test_of_some_read_models_only_what_they_need_is_built(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    was = digests(connection)
    with as_of(url, mark(connection), ["verified_knowledge"]) as (past, scratch):
        found = digests(past, scratch)
    for name in ("insights", "candidates", "verified_knowledge"):
        assert found[name] == was[name]
    assert [found[name][0] for name in ("memories", "bug_patterns", "tasks")] == [0, 0, 0]
    with pytest.raises(UnknownReadModel), as_of(url, mark(connection), ["nonsense"]):
        pass


def test_the_past_before_the_first_event_is_empty_and_the_future_is_refused(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    with as_of(url, Position(0)) as (past, scratch):
        assert {rows for rows, _ in digests(past, scratch).values()} == {0}
    with pytest.raises(NotReached), as_of(url, Position(mark(connection) + 1)):
        pass


def test_a_time_means_the_mark_that_held_then(filled: tuple[str, Connection]) -> None:
    _, connection = filled
    connection.execute("DELETE FROM memctl.mark_history")
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for minutes, position in ((0, 10), (10, 20), (20, 30)):
        connection.execute(
            "INSERT INTO memctl.mark_history VALUES (%s, %s)", [noon + timedelta(minutes=minutes), position]
        )
    asked = [(-1, 0), (0, 10), (9, 10), (10, 20), (900, 30)]
    assert [position_at(connection, noon + timedelta(minutes=m)) for m, _ in asked] == [p for _, p in asked]


def test_no_look_at_the_past_shows_what_is_forgotten_while_it_is_built(filled: tuple[str, Connection]) -> None:
    """Whether it began before the generations that are not live were dropped, or after."""
    url, connection = filled
    position, receipt = mark(connection), UUID(int=7)
    there = connection.execute("SELECT event_id FROM memctl.events WHERE variant_of IS NULL ORDER BY 1").fetchone()
    assert there is not None

    def forget(what: str, done: int, of: int) -> None:
        with connect(url) as other:
            erase.begin(other, 1, receipt, Scope(kind="id"), "")
            erase_round(other, 1, receipt, [there[0]])
            erase.finish(other, receipt, {})

    with pytest.raises(ForgottenMeanwhile), as_of(url, position, processes=1, progress=forget):
        raise AssertionError("shown")
    with as_of(url, position, processes=1):
        pass
    erase.begin(connection, 1, UUID(int=8), Scope(kind="id"), "")  # and it is not finished
    built: list[str] = []
    with (
        pytest.raises(ForgottenMeanwhile),
        as_of(url, position, processes=1, progress=lambda what, done, of: built.append(what)),
    ):
        raise AssertionError("shown")
    assert built == [], "whoever forgets would find there what was erased"
    erase.finish(connection, UUID(int=8), {})

    def drop_it(what: str, done: int, of: int) -> None:
        with connect(url) as other, nothing_rebuilt(other):
            pass

    with pytest.raises(ForgottenMeanwhile), as_of(url, position, processes=1, progress=drop_it):
        raise AssertionError("shown")


def test_a_look_at_the_past_that_was_dropped_while_it_was_shown_is_told_as_such(
    filled: tuple[str, Connection],
) -> None:
    url, connection = filled
    (memories,) = [p for p in projections() if p.name == "memories"]
    with (
        pytest.raises(ForgottenMeanwhile),
        as_of(url, mark(connection), processes=1) as (past, then),
        nothing_rebuilt(connection),
    ):
        readmodels.digest(past, memories, then.stage2)


def test_what_a_killed_look_at_the_past_left_is_dropped_by_the_next(filled: tuple[str, Connection]) -> None:
    url, connection = filled
    there = tables(connection)

    def end_it(what: str, done: int, of: int) -> None:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'memctl as of' AND datname = current_database()"
        )

    with pytest.raises(psycopg.OperationalError), as_of(url, mark(connection), progress=end_it):
        pass
    assert tables(connection) > there
    assert [p.status for p in rebuilds.progress(connection)] == ["stopped"]
    with as_of(url, mark(connection)):
        pass
    assert tables(connection) == there
    assert [p.status for p in rebuilds.progress(connection, 5)] == ["dropped", "dropped"]


# --- digests ---


def test_a_difference_shows_in_the_range_of_its_key_only(filled: tuple[str, Connection]) -> None:
    _, connection = filled
    live = generations.live(connection)
    [memories] = [p for p in projections() if p.name == "memories"]
    before = readmodels.digest(connection, memories, live.stage2)
    connection.execute(
        f'UPDATE memctl.memories_g{live.stage2} SET row = row || \'{{"title": "x"}}\''  # type: ignore[arg-type]
        f" WHERE key = (SELECT min(key) FROM memctl.memories_g{live.stage2})"
    )
    after = readmodels.digest(connection, memories, live.stage2)
    assert sum(one != other for one, other in zip(before.ranges, after.ranges, strict=True)) == 1
    assert before.hex != after.hex
    assert before.rows == after.rows
