"""Dead letters as people see them: what is parked and why, tried again, or left out for good."""

import time
from collections.abc import Sequence
from uuid import UUID

import msgspec

from memctl.api.reading.questions import question
from memctl.api.reading.reader import Reader
from memctl.domain.events.event import Micros, NewEvent, derived_id
from memctl.domain.events.observations import event_id_of
from memctl.domain.events.skipping import EventSkipped
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, outages
from memctl.infra.log.mark import EVERY_SPACE, SlowWriter, slow_writers
from memctl.infra.log.read import read_headers
from memctl.infra.readmodels import dead_letters
from memctl.infra.readmodels.dead_letters import DeadLetter, Halt, Target, to_be_tried
from memctl.infra.readmodels.generations import Live, live
from memctl.infra.settings import Settings
from memctl.projections.kernel import projections


class NoSuchLetter(MemctlError):
    """There is no dead letter {id}; it may have been settled, or belong to read models that were replaced."""

    exit_code = 3
    hint = "see `memctl dlq list`"


class NothingToLeaveOut(MemctlError):
    """The log holds no event {id} that is part of a session."""

    exit_code = 3


class Letter(msgspec.Struct, frozen=True):
    """A dead letter. `source` is an event's id in stage 1; in stage 2 that of a fact, an event, or of a row, named so.

    `waiting` counts what came behind it: events of the stream, or sources of the row.
    """

    id: int
    stage: int
    target: str
    projection: str
    key: str | None
    source: UUID
    row: str | None
    position: int
    error: str
    place: str
    parked_at: str
    attempts: int
    waiting: int

    @property
    def to_be_tried(self) -> bool:
        """Whether it took too long once, and the workers have yet to try it apart."""
        return to_be_tried(self.error, self.attempts)


class LetterEvent(msgspec.Struct, frozen=True):
    """What the log says about an event, without what was said in it. `delivery` is equal for all versions of it."""

    id: UUID
    delivery: UUID
    type: str
    schema_version: int
    stream: str
    position: int
    occurred_at: str
    recorded_at: str
    actor: str
    session: str


class ShownLetter(msgspec.Struct, frozen=True):
    """A dead letter with the event it is about, where its source is one."""

    letter: Letter
    event: LetterEvent | None


class LettersStatus(msgspec.Struct, frozen=True):
    """What does not go on: dead letters, shards that stand still, and writers that hold back the mark."""

    letters: list[Letter]
    halted: list[Halt]
    writers: list[SlowWriter]


@question("/dead-letters", "log", scopes=("operate",), whole=True, live=True)
def standing(reader: Reader) -> LettersStatus:
    """What no fold could take and waits to be retried or dropped, and shards that stand still."""
    halted, writers = dead_letters.halts(reader.connection, reader.live), slow_writers(reader.connection)
    if reader.apart:  # what a shard stands still at, and who holds up whom, may be of another space
        halted = [msgspec.structs.replace(each, message="the owner is shown why") for each in halted]
        own = {reader.space, EVERY_SPACE}
        writers = [
            msgspec.structs.replace(each, spaces=(reader.space,)) for each in writers if own.intersection(each.spaces)
        ]
    return LettersStatus([_view(letter) for letter in _letters(reader)], halted, writers)


def show(reader: Reader, id: int) -> ShownLetter:
    """One letter. Raises: NoSuchLetter."""
    letter = _letter(reader, id)
    found = read_headers(reader.connection, reader.space_id, [letter.fault.source])
    event = LetterEvent(**found[letter.fault.source]) if letter.fault.source in found else None
    return ShownLetter(_view(letter), event)


def retry(reader: Reader, ids: Sequence[int] = ()) -> list[Letter]:
    """Fold what is parked again, either these letters or all. Returns those of them that are still parked.

    `reader` is over a connection in autocommit mode. Raises: NoSuchLetter, OtherRules, LeaseHeld, DatabaseUnavailable.
    """
    from memctl.workers.folding.refold import refold

    with outages():
        letters = [_letter(reader, id) for id in ids] or _letters(reader)
        if letters:
            refold(reader.connection, letters=letters)
        tried = {letter.target for letter in letters}
        return [_view(letter) for letter in _letters(reader) if letter.target in tried]


def drop(settings: Settings, reader: Reader, id: int, reason: str) -> None:
    """Leave out what a letter is about, for good: the log records it, and the workers fold on without it.

    Raises: NoSuchLetter, DatabaseUnavailable.
    """
    with outages():
        letter = _letter(reader, id)
        source, target = letter.fault.source, letter.target
        if not target.projection:
            source = read_headers(reader.connection, reader.space_id, [source])[source]["delivery"]
    _record(settings, source, target, reason)


def leave_out(
    settings: Settings, reader: Reader, source: UUID, reason: str, projection: str = "", key: str | None = None
) -> None:
    """Leave out what a rebuild stopped at: an event from its stream, or a source from a read model's row.

    Raises: NothingToLeaveOut, DatabaseUnavailable.
    """
    target = Target(projection, reader.space_id, key, source if key is None else None)
    if not projection:
        with outages():
            found = read_headers(reader.connection, reader.space_id, [source]).get(source)
        if found is None or not found["stream"].startswith("session/"):
            raise NothingToLeaveOut(id=source)
        source, target = found["delivery"], Target("", reader.space_id, found["stream"])
    elif projection not in {p.name for p in projections(2)}:
        raise NothingToLeaveOut(f"there is no read model {projection} of stage 2")
    _record(settings, source, target, reason)


def _record(settings: Settings, source: UUID, target: Target, reason: str) -> None:
    from memctl.api.write.ingest_writer import IngestWriter

    of_rows = bool(target.projection)
    event = NewEvent(
        # Stage 1 reads it where it is to be obeyed: in the stream itself.
        stream=f"skipped/{target.projection}" if of_rows else str(target.key),
        payload=EventSkipped(
            skipped=source, projection=target.projection, key=target.key if of_rows else None, reason=reason
        ),
        occurred_at=Micros(time.time_ns() // 1000),
        # One decision for each source and row, whoever says it how often.
        dedupe_key=f"skip:{derived_id(f'{source} {target.id}')}",
        actor="user",
    )
    with IngestWriter(settings) as writer:
        if not read_headers(writer.connection, writer.space_id, [event_id_of(writer.space_id, event.dedupe_key)]):
            writer.record([event])


def parked_in(connection: Connection, space_id: int) -> int:
    """How many dead letters a space has. Raises: DatabaseUnavailable."""
    with outages():
        return len(_of_space(connection, space_id, live(connection)))


def _letters(reader: Reader) -> list[DeadLetter]:
    return _of_space(reader.connection, reader.space_id, reader.live)


def _of_space(connection: Connection, space_id: int, now: Live) -> list[DeadLetter]:
    found = dead_letters.parked(connection, now.stage1, now.stage2)
    return [letter for letter in found if letter.target.space_id == space_id]


def _letter(reader: Reader, id: int) -> DeadLetter:
    for letter in _letters(reader):
        if letter.id == id:
            return letter
    raise NoSuchLetter(id=id)


def _view(letter: DeadLetter) -> Letter:
    fault, target = letter.fault, letter.target
    row = f"{fault.upstream}:{fault.upstream_key}" if fault.upstream is not None else None
    return Letter(
        letter.id, 2 if target.projection else 1, str(target), target.projection, target.key, fault.source, row,
        fault.position, fault.error, fault.place, letter.parked_at.isoformat(), letter.attempts, fault.waiting,
    )  # fmt: skip
