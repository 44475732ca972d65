"""Poison: separates faults of the content from transient ones, finds the input at fault, and parks it.

A transient fault (a connection that is lost, a lock, a full disk, memory) is raised: nothing is written, and the worker
comes back later. A fault of the content would come again for ever. A worker parks its stream or row as a dead letter. A
rebuild raises `CannotFold`, which names it.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg

from memctl.domain.events.event import Event, FutureSchemaVersion, Position, UnknownEventType
from memctl.domain.events.skipping import Undecodable, UndecodablePayload, remaining
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, DatabaseUnavailable
from memctl.infra.log.read import StreamKey
from memctl.infra.readmodels import dead_letters
from memctl.infra.readmodels.dead_letters import DeadLetter, Fault, LeftOut, Target, place_of
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import LeaseLost
from memctl.infra.readmodels.rows import RowKey
from memctl.projections.kernel import Projection, Recorded

T = TypeVar("T")

_REFUSED = ("22", "54")
"""SQLSTATE classes: data exception (text that jsonb cannot hold, a number out of range), program limit exceeded (a key
too long for its index). What is of our tables rather than of a row (a constraint, a missing table) parks nothing."""


class CannotFold(MemctlError):
    """{target} cannot be folded: {source} raises {error} at {place}."""

    fault: Fault

    def __init__(self, fault: Fault) -> None:
        target = fault.target
        what = (
            f"event {fault.source} at position {fault.position}" if not target.projection else f"source {fault.source}"
        )
        where = f" --from {target.projection}" if target.projection else ""
        where += f" --row {shlex.quote(target.key)}" if target.projection and target.key is not None else ""
        where += " --reason WHY"
        super().__init__(
            f"{target} cannot be folded: {what} raises {fault.error}" + (f" at {fault.place}" if fault.place else ""),
            hint=f"run a memctl that can fold it, or leave it out for good: memctl dlq drop {fault.source}{where}",
            fault=fault,
        )


_TRANSIENT = (
    MemoryError, OSError, DatabaseUnavailable, LeaseLost, UnknownEventType, FutureSchemaVersion, CannotFold
)  # fmt: skip


def is_content_fault(problem: BaseException) -> bool:
    """Whether the input is at fault, so that it would raise the same again."""
    if isinstance(problem, psycopg.Error):
        if problem.sqlstate is None:  # raised by the client, over a value that it cannot send
            return isinstance(problem, psycopg.DataError)
        return problem.sqlstate.startswith(_REFUSED)
    return isinstance(problem, Exception) and not isinstance(problem, _TRANSIENT)


def first_fault(count: int, trial: Callable[[int], object]) -> tuple[int, Exception]:
    """Which of `count` inputs is at fault, given that all of them together are: its index, and what was raised.

    `trial(n)` tries the first n. It is the last of the shortest such beginning that fails; a fault is taken to stay
    when more inputs follow, as it does where a fold passes over them one by one. Raises: whatever is no fault of them.
    """
    sound, faulty, raised = 0, count + 1, None
    while faulty - sound > 1:
        middle = (sound + faulty) // 2
        try:
            trial(middle)
            sound = middle
        except Exception as problem:
            if not is_content_fault(problem):
                raise
            faulty, raised = middle, problem
    if raised is None:
        raise AssertionError("nothing is at fault")
    return faulty - 1, raised


def stream_fault(key: StreamKey, events: Sequence[Event], trial: Callable[[Sequence[Event]], object]) -> Fault:
    """The fault of a stream that `trial` fails on. `events` are in order of position, and none is left out."""
    index, problem = first_fault(len(events), lambda n: trial(events[:n]))
    return Fault(
        Target("", *key), events[index].event_id, events[index].position, _name(problem, events[index].payload),
        place_of(problem), len(events) - index - 1,
    )  # fmt: skip


def fold_whole(key: StreamKey, events: Iterable[Event], fold: Callable[[Sequence[Event]], T]) -> T:
    """What `fold` makes of a stream, for a rebuild: the event that it fails over is named. Raises: CannotFold."""
    known = list(events)
    try:
        return fold(known)
    except Exception as problem:
        if not is_content_fault(problem):
            raise
        ordered = sorted(remaining(known), key=lambda e: e.position)
        raise CannotFold(stream_fault(key, ordered, fold)) from problem


def keys_of(p: Projection[Any], source: SourceKey, item: Any, left_out: LeftOut) -> tuple[str, ...]:
    """The rows of a read model of stage 2 that a source goes to, without those that it was dropped from.

    Raises: UndecodablePayload, or whatever the projection's key raises.
    """
    if left_out.rows and (source, p.name, None) in left_out.rows:
        return ()
    if isinstance(item, Recorded) and isinstance(item.payload, Undecodable):
        event = item.event
        raise UndecodablePayload(event_id=event.event_id, position=event.position, type=event.type)
    keys = p.keys(item)
    return tuple(key for key in keys if (source, p.name, key) not in left_out.rows) if left_out.rows else keys


def as_cannot_fold(
    problem: Exception,
    p: Projection[Any],
    source: SourceKey,
    key: str | None,
    at: Position,
    upstream: tuple[str, str] | None,
) -> Exception:
    """What a rebuild raises for a fault of stage 2: `CannotFold` with the row and the source, or what is no fault."""
    if not is_content_fault(problem):
        return problem
    target = Target(p.name, source[0], key, source[1] if key is None else None)
    return CannotFold(fault_of(target, source, at, problem, upstream))


class DeadLetterIndex:
    """Dead letters, indexed by source and by row, so that a look-up costs the same however many are parked.

    They change under the lease only, so who has held it since they were read may use them again.
    """

    def __init__(self, letters: Iterable[DeadLetter]) -> None:
        self.of = {letter.target: letter for letter in letters}
        self.unrouted = any(target.source is not None for target in self.of)
        self._over: dict[SourceKey, list[Target]] = {}
        self._rows: dict[str, dict[RowKey, Target]] = {}
        for target, letter in self.of.items():
            self._over.setdefault((target.space_id, letter.fault.source), []).append(target)
            if target.projection and target.key is not None:
                self._rows.setdefault(target.projection, {})[target.space_id, target.key] = target

    def over(self, sources: Collection[SourceKey]) -> list[Target]:
        """What was parked over one of these sources."""
        return [target for source in self._over.keys() & sources for target in self._over[source]]

    def position(self, target: Target) -> Position:
        """Up to where was folded when it was parked."""
        return self.of[target].fault.position

    def rows(self, projection: str, keys: Collection[RowKey]) -> list[Target]:
        """Those rows of a read model that are parked."""
        parked = self._rows.get(projection, {})
        return [parked[key] for key in parked.keys() & keys]


class Parking:
    """What is parked in a generation, and what one batch changes about it. Nothing is written before `save`.

    `letters` are those that the batch may meet. What was parked over something behind `before` was parked in an attempt
    at this very batch, which was ended: that it comes again is no reason to try it again.
    """

    def __init__(
        self, connection: Connection, generation: int, letters: DeadLetterIndex, *, parks: bool, before: Position
    ) -> None:
        self._connection = connection
        self._before = before
        self._generation = generation
        self._parks = parks
        self._letters = letters
        self._tried: dict[Target, DeadLetter] = {}
        self._faults: dict[Target, Fault] = {}
        self._postponed: dict[Target, Fault] = {}
        self._waits: dict[int, int] = {}
        self.endless: Mapping[Target, Fault] = {}
        """What is known not to come to an end, and over which source."""
        self.writes: Callable[[Fault], bool] = lambda fault: True
        """Of which faults the letters are this batch's to write. That a source cannot be routed is met by every shard
        that reads it, and written by one."""

    def over(self, sources: Collection[SourceKey]) -> list[Target]:
        """What was parked over one of these sources, and has not been tried again in this batch."""
        return [target for target in self._letters.over(sources) if self.passed(target) and target not in self._tried]

    def rows(self, projection: str, keys: Collection[RowKey]) -> list[Target]:
        """Those rows of a read model that are parked, and have not been tried again in this batch."""
        return [target for target in self._letters.rows(projection, keys) if target not in self._tried]

    def passed(self, target: Target) -> bool:
        """Whether what a target was parked over was read before this batch."""
        return self._letters.position(target) <= self._before

    def place(self, target: Target) -> str:
        """Where a target stands that is parked, as its letter says."""
        return self._letters.of[target].fault.place

    @property
    def unrouted(self) -> bool:
        """Whether where some source goes could not be worked out."""
        return self._letters.unrouted

    @property
    def untouched(self) -> bool:
        """Whether no letter came, went or was tried again in this batch."""
        return not self._tried and not self._faults and not self._postponed

    def __contains__(self, target: Target) -> bool:
        return target in self._letters.of and target not in self._tried

    def wait(self, target: Target, count: int) -> None:
        """So many inputs came for a parked target."""
        letter = self._letters.of[target]
        if self.writes(letter.fault):
            self._waits[letter.id] = self._waits.get(letter.id, 0) + count

    def try_again(self, target: Target) -> None:
        """The target is folded in this batch; unless that fails, its letter goes."""
        letter = self._letters.of.get(target)
        if letter is not None:
            self._tried[target] = letter

    def fail(self, fault: Fault, problem: BaseException) -> None:
        """Park a fault. Raises: CannotFold in a rebuild, which parks nothing."""
        if not self._parks:
            raise CannotFold(fault) from problem
        if self.writes(fault):
            self._faults[fault.target] = fault

    def postpone(self, fault: Fault) -> None:
        """Park what is only to be folded later. Nothing was wrong with it, so however often that is, its letter is as
        if it were the first."""
        self._postponed[fault.target] = fault

    def save(self) -> None:
        dead_letters.wait(self._connection, self._waits)
        done = [
            letter.id
            for target, letter in self._tried.items()
            if target not in self._faults and self.writes(letter.fault)
        ]
        dead_letters.settle(self._connection, done)
        dead_letters.park(self._connection, self._generation, [*self._faults.values(), *self._postponed.values()])


def fault_of(
    target: Target,
    source: SourceKey,
    at: Position,
    problem: BaseException,
    upstream: tuple[str, str] | None = None,
    waiting: int = 0,
) -> Fault:
    """A fault of stage 2, met while folding up to a position."""
    return Fault(target, source[1], at, _name(problem), place_of(problem), waiting, *(upstream or (None, None)))


def _name(problem: BaseException, payload: Any = None) -> str:
    if isinstance(payload, Undecodable):
        return payload.problem
    return type(problem).__name__
