"""Dead letters: what a fold could not take, and the events of its stream, or the sources of its row, that wait behind.

A letter belongs to a generation and is dropped with it. It names ids, rows and places in the code, never what was said:
the text of an exception may quote the event that it is about.
"""

import traceback
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import msgspec
import psycopg

from memctl.domain.events.event import Position, derived_id
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, outage
from memctl.infra.log.read import read_skips
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import Live

_COLUMNS = """letter, generation, projection, space_id, key, source, upstream, upstream_key, position, error, place,
    parked_at, attempts, waiting"""

_PARKED = f"SELECT {_COLUMNS} FROM memctl.dead_letters WHERE generation = ANY(%s) ORDER BY letter"  # noqa: S608

_PARKED_AT = f"SELECT {_COLUMNS} FROM memctl.dead_letters WHERE generation = ANY(%s) AND target = ANY(%s)"  # noqa: S608


class Target(msgspec.Struct, frozen=True):
    """What is parked: a stream (no `projection`), a row of a read model, or where one source goes (no `key`)."""

    projection: str
    space_id: int
    key: str | None
    source: UUID | None = None
    """The source that cannot be routed; None where there is a key."""

    @property
    def id(self) -> UUID:
        return derived_id(f"{self.projection}\n{self.space_id}\n{self.source or ''}\n{self.key or ''}")

    def __str__(self) -> str:
        if not self.projection:
            return f"stream {self.key}"
        return f"{self.projection}:{self.key}" if self.key is not None else self.projection


class Fault(msgspec.Struct, frozen=True):
    """What a fold raised: over which source (an event's id in stage 1), of what class, and where in our code.

    `position` is the event's in stage 1; in stage 2, the one up to which was being folded. A source that is a row of
    another read model says which.
    """

    target: Target
    source: UUID
    position: Position
    error: str
    place: str
    waiting: int = 0
    upstream: str | None = None
    upstream_key: str | None = None


def to_be_tried(error: str, attempts: int) -> bool:
    """Whether a fold took too long once, and the workers have yet to try it apart."""
    return error == NoProgress.__name__ and attempts == 1


class DeadLetter(msgspec.Struct, frozen=True):
    """A fault that was parked, and how many events or sources have waited since."""

    id: int
    generation: int
    fault: Fault
    parked_at: datetime
    attempts: int

    @property
    def target(self) -> Target:
        return self.fault.target

    @property
    def to_be_tried(self) -> bool:
        return to_be_tried(self.fault.error, self.attempts)


class Skip(NamedTuple):
    """Where in the log it says that a source does not go to a read model's row, or (no key) to none of its rows."""

    position: Position
    source: SourceKey
    projection: str
    key: str | None


class LeftOut:
    """What was dropped from read models of stage 2: `rows` holds (source, projection, key).

    Without a key, the source goes to none of the projection's rows.
    """

    def __init__(self, skips: Iterable[Skip] = ()) -> None:
        self.rows = frozenset((skip.source, skip.projection, skip.key) for skip in skips)

    def __contains__(self, route: tuple[SourceKey, str, str]) -> bool:
        source, projection, _ = route
        return route in self.rows or (source, projection, None) in self.rows


class NoProgress(MemctlError):
    """A fold took more than {seconds:g} s of processor time, and was ended at {place}."""

    hint = "run a memctl that can fold it, then `memctl dlq retry`"

    def __init__(self, seconds: float, place: str) -> None:
        super().__init__(seconds=seconds, place=place)


def fault_message(problem: BaseException) -> str:
    """What may be logged and kept of a fault: an error that is not ours may quote what was being folded."""
    known = outage(problem) if isinstance(problem, psycopg.Error) else problem
    if not isinstance(known, MemctlError):
        return f"{type(problem).__name__} at {place_of(problem)}"
    return f"{str(known).rstrip('.')}; {known.hint}" if known.hint else str(known)


def place_of(problem: BaseException) -> str:
    """Where in memctl's code an exception was raised: module, line and function."""
    if isinstance(problem, NoProgress):
        return str(vars(problem)["place"])
    ours = [
        (frame.f_globals.get("__name__", ""), line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(problem.__traceback__)
    ]
    module, line, function = next((at for at in reversed(ours) if at[0].startswith("memctl.")), ("", 0, ""))
    return f"{module}:{line} {function}" if module else ""


def parked(connection: Connection, *generations: int) -> list[DeadLetter]:
    """The letters of some generations, the oldest first."""
    found = connection.execute(_PARKED, [list(generations)]).fetchall()
    return [_letter(*row) for row in found]


def parked_at(connection: Connection, generation: int, targets: Iterable[Target]) -> list[DeadLetter]:
    """The letters of a generation for those targets."""
    wanted = [target.id for target in targets]
    return [_letter(*row) for row in connection.execute(_PARKED_AT, [[generation], wanted]).fetchall()]


def park(connection: Connection, generation: int, faults: Collection[Fault], attempts: int = 1) -> None:
    """Park faults after so many `attempts`; one at a target that was parked before takes its place, as one more."""
    for fault in faults:
        target = fault.target
        connection.execute(
            "INSERT INTO memctl.dead_letters AS d (generation, target, projection, space_id, key, source, upstream,"
            " upstream_key, position, error, place, waiting, attempts)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (generation, target) DO UPDATE SET source = excluded.source, upstream = excluded.upstream,"
            " upstream_key = excluded.upstream_key, position = excluded.position, error = excluded.error,"
            " place = excluded.place, waiting = excluded.waiting, attempts = d.attempts + 1",
            [generation, target.id, target.projection, target.space_id, target.key, fault.source, fault.upstream,
             fault.upstream_key, fault.position, fault.error, fault.place, fault.waiting, attempts],
        )  # fmt: skip


def wait(connection: Connection, more: Mapping[int, int]) -> None:
    """Count, by letter, what came for a target that is parked."""
    if more:
        connection.execute(
            "UPDATE memctl.dead_letters d SET waiting = waiting + m.more"
            " FROM unnest(%s::int8[], %s::int8[]) AS m(letter, more) WHERE d.letter = m.letter",
            [list(more), list(more.values())],
        )


def settle(connection: Connection, letters: Collection[int]) -> None:
    """Take away letters whose targets are folded again."""
    if letters:
        connection.execute("DELETE FROM memctl.dead_letters WHERE letter = ANY(%s)", [list(letters)])


def skips(connection: Connection, upto: Position) -> list[Skip]:
    """What was dropped from stage 2 up to a position.

    An event that says so and cannot be read has no effect, on live rows and on rebuilt ones: the letter stays.
    """
    return [
        Skip(event.position, (event.space_id, event.payload.skipped), event.payload.projection, event.payload.key)
        for event in read_skips(connection, upto)
        if isinstance(event.payload, EventSkipped) and event.payload.projection
    ]


def skipped_events(connection: Connection, upto: Position) -> dict[tuple[int, str], set[UUID]]:
    """Ids of the deliveries (or versions) that were dropped up to a position, by the stream (space and name) that each
    was dropped from: of a delivery in two versions the other may be of another stream, and stays."""
    found: dict[tuple[int, str], set[UUID]] = defaultdict(set)
    for event in read_skips(connection, upto):
        if isinstance(event.payload, EventSkipped) and not event.payload.projection:
            found[event.space_id, event.stream].add(event.payload.skipped)
    return found


def last_skip(connection: Connection) -> Position:
    """Where the last event stands by which something was left out; 0 where nothing ever was."""
    row = connection.execute("SELECT max(position) FROM memctl.events WHERE type = 'event.skipped'").fetchone()
    return Position((row and row[0]) or 0)


class Halt(msgspec.Struct, frozen=True):
    """A shard that stands still, and why."""

    stage: int
    shard: int
    position: Position
    error: str
    message: str
    since: datetime
    attempts: int


def halt(connection: Connection, generation: int, shard: int, error: str, message: str) -> None:
    """Note that a shard cannot go on."""
    connection.execute(
        "INSERT INTO memctl.halts AS h (generation, shard, error, message) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (generation, shard) DO UPDATE SET error = excluded.error, message = excluded.message,"
        " last = clock_timestamp(), attempts = h.attempts + 1",
        [generation, shard, error, message],
    )


def go_on(connection: Connection, generation: int, shard: int) -> None:
    """Note that a shard moves again."""
    connection.execute("DELETE FROM memctl.halts WHERE generation = %s AND shard = %s", [generation, shard])


def halts(connection: Connection, live: Live) -> list[Halt]:
    """The shards that stand still: they could not go on, and nobody has moved them since."""
    found = connection.execute(
        "SELECT CASE WHEN generation = %s THEN 1 ELSE 2 END, shard, o.position, h.error, h.message, h.since, h.attempts"
        " FROM memctl.halts h JOIN memctl.offsets o USING (generation, shard)"
        " WHERE generation = ANY(%s) AND o.updated_at < h.last ORDER BY 1, 2",
        [live.stage1, [live.stage1, live.stage2]],
    ).fetchall()
    return [Halt(*row) for row in found]


def _letter(
    id: int, generation: int, projection: str, space_id: int, key: str | None, source: UUID, upstream: str | None,
    upstream_key: str | None, position: int, error: str, place: str, parked_at: datetime, attempts: int, waiting: int,
) -> DeadLetter:  # fmt: skip
    target = Target(projection, space_id, key, None if key is not None else source)
    fault = Fault(target, source, Position(position), error, place, waiting, upstream, upstream_key)
    return DeadLetter(id, generation, fault, parked_at, attempts)
