"""Rebuilds as the database knows them: what is being built, how far it is, and tasks that any process may take.

A task is claimed by locking its row for the transaction in which it is worked off, so a process that is killed in the
middle leaves nothing behind and the task to the others. Tasks are unlogged, as the tables they fill are until they
are finished: after a crash of the database both are empty, and the rebuild starts over.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from memctl.domain.events.event import Position
from memctl.infra.database import Connection, single_row

Purpose = Literal["replace", "compare", "as_of"]

LOCK = 0x7265706C
"""First half of the advisory locks of rebuilds ("repl"); the second is the rebuild, or 0 for the one that replaces."""


DIFFERING = "rows differed: "
"""How the message of a rebuild begins that compared, and names read models whose live rows were not the log's."""


class Rebuild(msgspec.Struct, frozen=True):
    """One build of generations from the log, up to a position. `read_models` None means all of them."""

    id: int
    purpose: Purpose
    first_stage: Literal[1, 2]
    read_models: tuple[str, ...] | None
    upto: Position
    stage1: int
    stage2: int


class RebuildProgress(msgspec.Struct, frozen=True):
    """How far a rebuild is. `done` of `total` are of the phase: events, facts, what a later layer of stage 2 is folded
    from, or vectors (points)."""

    rebuild: int
    purpose: Purpose
    status: Literal["running", "stopped", "done", "failed", "dropped"]
    """`stopped`: it was running, and no process is at it any more; the next replay goes on with it."""
    phase: str
    done: int
    total: int
    per_second: float | None
    """Of the phase so far, without the time in which no process was at it; None before anything is done."""
    seconds_left: float | None
    """Of the phase, at the rate so far; None where no process is at it."""
    upto: Position
    generations: tuple[int, int]
    started_at: datetime
    ended_at: datetime | None
    message: str


class RebuildTask(msgspec.Struct, frozen=True):
    """A piece of a rebuild, worked off in one transaction. `weight` is about how many events or facts it reads."""

    kind: Literal["streams", "rows", "table"]
    name: str = ""
    """Of `rows`: the projection; of `table`: the table to be finished."""
    after: tuple[int, str] = (0, "")
    to: tuple[int, str] = (0, "")
    """Of `streams`: the last stream (space, name) before the task's first, and its last."""
    part: int = 0
    parts: int = 1
    weight: int = 0


class Claimed(msgspec.Struct, frozen=True):
    """A task whose row this transaction has locked."""

    step: int
    number: int
    task: RebuildTask


class StepState(msgspec.Struct, frozen=True):
    """How far one step is, by weight. `planned` is False before its tasks are known."""

    planned: bool
    waiting: int
    done: int
    total: int
    fault: str | None


def begin(
    connection: Connection,
    purpose: Purpose,
    first_stage: Literal[1, 2],
    upto: Position,
    stage1: int,
    stage2: int,
    read_models: tuple[str, ...] | None = None,
) -> Rebuild:
    """Record a rebuild that begins."""
    row = single_row(
        connection,
        "INSERT INTO memctl.rebuilds (purpose, first_stage, read_models, upto, stage1, stage2)"
        " VALUES (%s, %s, %s, %s, %s, %s) RETURNING rebuild",
        [purpose, first_stage, None if read_models is None else list(read_models), upto, stage1, stage2],
    )
    return Rebuild(row[0], purpose, first_stage, read_models, upto, stage1, stage2)


def read(connection: Connection, rebuild: int, *, locked: bool = False) -> Rebuild | None:
    """A rebuild that is running, by its number; `locked` against changes until this transaction ends."""
    if locked:
        connection.execute("SELECT FROM memctl.rebuilds WHERE rebuild = %s FOR UPDATE", [rebuild])
    return next(iter(_running(connection, rebuild=rebuild)), None)


def running(connection: Connection, purpose: Purpose) -> list[Rebuild]:
    """Rebuilds that were begun and did not end, oldest first: at most one has a process at it."""
    return _running(connection, purpose=purpose)


def _running(connection: Connection, *, rebuild: int | None = None, purpose: Purpose | None = None) -> list[Rebuild]:
    rows = connection.execute(
        "SELECT rebuild, purpose, first_stage, read_models, upto, stage1, stage2 FROM memctl.rebuilds"
        " WHERE status = 'running' AND rebuild = coalesce(%s, rebuild) AND purpose = coalesce(%s, purpose)"
        " ORDER BY rebuild",
        [rebuild, purpose],
    ).fetchall()
    return [
        Rebuild(row[0], row[1], row[2], None if row[3] is None else tuple(row[3]), Position(row[4]), row[5], row[6])
        for row in rows
    ]


def end(connection: Connection, rebuild: int, status: Literal["done", "failed", "dropped"], message: str = "") -> None:
    """Record how a rebuild ended, and forget its tasks."""
    connection.execute(
        "UPDATE memctl.rebuilds SET status = %s, message = %s, ended_at = clock_timestamp(),"
        " updated_at = clock_timestamp() WHERE rebuild = %s",
        [status, message, rebuild],
    )
    connection.execute("DELETE FROM memctl.rebuild_tasks WHERE rebuild = %s", [rebuild])


def report(connection: Connection, rebuild: int, phase: str, done: int, total: int) -> None:
    """Record how far it is."""
    connection.execute(
        "UPDATE memctl.rebuilds SET phase = %s, done = %s, total = %s, updated_at = statement_timestamp(),"
        " phase_at = CASE WHEN phase = %s THEN phase_at ELSE statement_timestamp() END WHERE rebuild = %s",
        [phase, done, total, phase, rebuild],
    )


def go_on(connection: Connection, rebuild: int) -> None:
    """Record that a process is at it again: the time in which none was is no part of its phase."""
    connection.execute(
        "UPDATE memctl.rebuilds SET phase_at = statement_timestamp() - (updated_at - phase_at),"
        " updated_at = statement_timestamp() WHERE rebuild = %s",
        [rebuild],
    )


def progress(connection: Connection, latest: int = 1, *, past: bool = True) -> list[RebuildProgress]:
    """How far the latest rebuilds are, or how they ended; newest first. `past`: looks at the past among them."""
    rows = connection.execute(
        """
        SELECT rebuild, purpose, status, phase, done, total, upto, stage1, stage2, started_at, ended_at, message,
            extract(epoch FROM updated_at - phase_at)::float8,
            EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND classid = %s
                      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                      AND objid = r.rebuild)
        FROM memctl.rebuilds r WHERE %s OR purpose <> 'as_of' ORDER BY rebuild DESC LIMIT %s""",
        [LOCK, past, latest],
    ).fetchall()
    found = []
    for rebuild, purpose, status, phase, done, total, upto, one, two, started, ended, message, took, at_it in rows:
        rate = done / took if took and done else None
        running = status == "running" and at_it
        found.append(
            RebuildProgress(
                rebuild,
                purpose,
                "stopped" if status == "running" and not running else status,
                phase,
                done,
                total,
                rate,
                (total - done) / rate if rate and running else None,
                Position(upto),
                (one, two),
                started,
                ended,
                message,
            )
        )
    return found


def lock(connection: Connection, number: int) -> bool:
    """Be the one process that leads a rebuild, or (number 0) that replaces the live read models; False if another is.

    Held until `unlock`, or until the connection ends.
    """
    return bool(single_row(connection, "SELECT pg_try_advisory_lock(%s, %s)", [LOCK, number])[0])


def unlock(connection: Connection, number: int) -> None:
    if not connection.closed:
        connection.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCK, number])


# --- tasks ---

_PLAN = -1
"""Number of the entry that says that a step was planned, be it to nothing."""


def plan(connection: Connection, rebuild: int, step: int, tasks: Iterable[RebuildTask]) -> None:
    """Record the tasks of a step, all in one transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memctl.rebuild_tasks (rebuild, step, number, task, weight, done)"
            " VALUES (%s, %s, %s, '{}', 0, true)",
            [rebuild, step, _PLAN],
        )
        cursor.executemany(
            "INSERT INTO memctl.rebuild_tasks (rebuild, step, number, task, weight) VALUES (%s, %s, %s, %s::jsonb, %s)",
            [(rebuild, step, n, msgspec.json.encode(task).decode(), task.weight) for n, task in enumerate(tasks)],
        )


def step_state(connection: Connection, rebuild: int, step: int) -> StepState:
    """How far a step is."""
    row = single_row(
        connection,
        "SELECT count(*) > 0, count(*) FILTER (WHERE NOT done), coalesce(sum(weight) FILTER (WHERE done), 0)::bigint,"
        " coalesce(sum(weight), 0)::bigint, min(fault) FROM memctl.rebuild_tasks WHERE rebuild = %s AND step = %s",
        [rebuild, step],
    )
    return StepState(*row)


def claim(connection: Connection, rebuild: int) -> Claimed | None:
    """Lock the heaviest task of the earliest step that is not done, until this transaction ends.

    None when there is none to be had now: all are done, or others have them.
    """
    row = connection.execute(
        "SELECT step, number, task FROM memctl.rebuild_tasks WHERE rebuild = %s AND NOT done AND fault IS NULL"
        " AND step = (SELECT min(step) FROM memctl.rebuild_tasks WHERE rebuild = %s AND NOT done)"
        " ORDER BY weight DESC, number LIMIT 1 FOR UPDATE SKIP LOCKED",
        [rebuild, rebuild],
    ).fetchone()
    return None if row is None else Claimed(row[0], row[1], msgspec.json.decode(row[2], type=RebuildTask))


def did(connection: Connection, rebuild: int, claimed: Claimed, cpu_s: float) -> None:
    """Note, in the transaction that did it, that a task is done, and the processor time that it took."""
    connection.execute(
        "UPDATE memctl.rebuild_tasks SET done = true, task = task || jsonb_build_object('cpu_s', %s::float8)"
        " WHERE rebuild = %s AND step = %s AND number = %s",
        [cpu_s, rebuild, claimed.step, claimed.number],
    )


def spent(connection: Connection, rebuild: int) -> list[tuple[int, float]]:
    """By task that is done, in order of the steps: its step, and the processor time that it took in seconds."""
    return connection.execute(
        "SELECT step, (task->>'cpu_s')::float8 FROM memctl.rebuild_tasks"
        " WHERE rebuild = %s AND task->'cpu_s' IS NOT NULL ORDER BY step, number",
        [rebuild],
    ).fetchall()


def task(connection: Connection, rebuild: int, step: int, number: int) -> RebuildTask | None:
    """A task by its number; None where its rebuild has ended."""
    row = connection.execute(
        "SELECT task FROM memctl.rebuild_tasks WHERE rebuild = %s AND step = %s AND number = %s",
        [rebuild, step, number],
    ).fetchone()
    return None if row is None else msgspec.json.decode(row[0], type=RebuildTask)


def could_not(connection: Connection, rebuild: int, step: int, number: int, fault: str) -> None:
    """Note that a task cannot be done, and why: nobody tries it again."""
    connection.execute(
        "UPDATE memctl.rebuild_tasks SET fault = %s WHERE rebuild = %s AND step = %s AND number = %s",
        [fault, rebuild, step, number],
    )
