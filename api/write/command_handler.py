"""The door for commands: read, decide, append, wake. A command carried out twice under one key was carried out once."""

import hashlib
import time
from collections.abc import Sequence
from functools import partial
from uuid import UUID

import msgspec

from memctl.api.queries import memories as queries
from memctl.api.queries.context import session_here, session_of
from memctl.api.reading import models
from memctl.api.reading.caller import Caller, Forbidden, drawn
from memctl.api.reading.pages import one
from memctl.api.reading.places import kept_at, limits_of
from memctl.api.reading.reader import Reader, Readers, reader_of
from memctl.api.reading.views import Done
from memctl.api.write.ingest_writer import IngestWriter, Writers
from memctl.api.write.remote_ingest import begun_by_others, confined
from memctl.domain.events.command import BadCommand, Command, KeyReused, Kind, commands, read_command
from memctl.domain.events.event import Event, Micros, NewEvent, Payload, Position
from memctl.domain.events.feedback import PinMemory, RejectKnowledge, ResolveCondition, VerifyKnowledge
from memctl.domain.events.observations import event_id_of
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.location import normalise
from memctl.domain.support.provenance import Provenance
from memctl.infra.database import Connection, outages
from memctl.infra.log.read import read_events, read_stream
from memctl.infra.settings import Settings
from memctl.projections.insights import SAYINGS

_BY_PEOPLE = "say it in a terminal of your own, outside the shell of a coding agent, or in the viewer: `memctl view`"

_OWNERS = (
    "a member takes back by `memctl reject` what nobody else said, a moment after it was said; for all else ask whoever"
    " runs this memctl"
)
LONGEST_KEY = 200
"""Characters of an idempotency key."""


class UnknownCommand(MemctlError):
    """There is no command {name!r}."""

    exit_code = 3
    name: str


class BadKey(MemctlError):
    """A command needs an `Idempotency-Key` of 1 to 200 characters, drawn by whoever sends it."""

    exit_code = 2


class CommandHandler:
    """Carries commands out, of each space one at a time. For several threads."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self.settings = settings
        self._readers = readers
        # What lies here says nothing of a caller's place, who may be on another machine.
        self._writers = Writers(settings, partial(IngestWriter, identify=False))

    def carry_out(self, name: str, body: bytes, key: str, caller: Caller) -> Done:
        """Carry the command of that name out; what is returned is committed.

        Raises: UnknownCommand, BadKey, BadCommand, Forbidden, KeyReused, DatabaseUnavailable, and whatever the command
        refuses.
        """
        cls = commands().get(name)
        if cls is None:
            raise UnknownCommand(name=name, hint="one of: " + ", ".join(commands()))
        if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
            raise BadKey
        asked = read_command(cls, body)
        actor = caller.speaks(asked.by)
        own = cls is RejectKnowledge and asked.by == "user" and bool(caller.member)
        if caller.member:  # what settles a thing for everybody is not a member's to say
            asked = msgspec.structs.replace(asked, by="agent")
        if cls.by_people and asked.by != "user" and not own:
            raise BadCommand(why=cls.by_people, hint=_OWNERS if caller.member else _BY_PEOPLE)
        if caller.projects is not None:
            self._check_place(asked, caller)
        writer = self._writers.of(caller.space)
        writer.opened()  # what ids mean is asked of read models, which are there from now on
        dedupe_key = f"command:{name}:{_digest(drawn(key, caller))}"
        try:
            whole = self._with_whole_ids(asked, caller)
            if own and isinstance(whole, RejectKnowledge):
                self._check_own(whole, caller)
            if caller.member and isinstance(whole, ResolveCondition):
                self._check_left(whole, caller)
        except MemctlError:
            # Since it was carried out, what it names may have gone, or something else come that is named so.
            if (done := self._before(dedupe_key, caller)) is None:
                raise
            return done
        meant = [
            getattr(whole, field) for field in cls.__struct_fields__ if getattr(whole, field) != getattr(asked, field)
        ]
        return writer.do(lambda writer: self._decided(writer, dedupe_key, whole, meant, caller, actor))

    def _check_own(self, asked: RejectKnowledge, caller: Caller) -> None:
        """Whether a member speaks of a claim that nobody else made. Raises: BadCommand."""

        def alone(reader: Reader) -> bool:
            row = one(reader, models.candidates, asked.claim)
            if row is None or row.insight is None or row.said_by is not Provenance.MEMBER or row.confirmed:
                return False
            said = row.insight.evidence  # a full list may have pushed out what another said
            return len(said) < SAYINGS and {each.member for each in said} == {reader.member}

        if not self._readers.read(alone, caller):
            raise BadCommand(why=asked.by_people, hint=_OWNERS)

    def _check_left(self, asked: ResolveCondition, caller: Caller) -> None:
        """Whether a member settles what a session of the member's own left open. Raises: BadCommand."""

        def left(reader: Reader) -> bool:
            row = one(reader, models.episodes, asked.condition)
            return row is not None and not begun_by_others(reader, {row.stream}, reader.member)

        if not self._readers.read(left, caller):
            raise BadCommand(why="a member settles what sessions of their own left open", hint=_OWNERS)

    def _before(self, key: str, caller: Caller) -> Done | None:
        """What the command of that key became, if it was carried out."""

        def look(reader: Reader) -> Done | None:
            found = read_events(reader.connection, reader.space_id, [event_id_of(reader.space_id, key)])
            return next((_done(id, event, event.position, "duplicate") for id, event in found.items()), None)

        return self._readers.read(look, caller)

    def _check_place(self, asked: Command, caller: Caller) -> None:
        """Whether a caller that is limited to projects speaks of one of them. Raises: Forbidden."""

        def held(reader: Reader) -> bool:
            limits = limits_of(reader)
            return limits is None or limits.holds(asked.location)

        if not asked.of_place or getattr(asked, "everywhere", False) or not self._readers.read(held, caller):
            raise Forbidden(
                why="this key is limited to projects: `location` has to lie in one, and the command to be of it"
            )

    def record(self, event: NewEvent, caller: Caller) -> None:
        """Append an event that nobody asked for to the space that the caller means, and as theirs. Raises:
        DatabaseUnavailable, EventsRefused."""
        if caller.projects is not None:
            event = confined(event)
        self._writers.of(caller.space).do(lambda writer: writer.record([event]))

    def close(self) -> None:
        self._writers.close()

    def _with_whole_ids(self, asked: Command, caller: Caller) -> Command:
        """The command with whole ids for the beginnings that people type. Raises: NotFound, Ambiguous."""
        location = normalise(asked.location)
        named = {field: (kind, getattr(asked, field)) for field, kind in asked.refers.items()}
        named = {field: (kind, given) for field, (kind, given) in named.items() if given or kind == "session"}
        if named:

            def look(reader: Reader) -> dict[str, str | tuple[str, ...]]:
                return {
                    field: tuple(_whole(reader, kind, id, location) for id in given)
                    if isinstance(given, tuple)
                    else _whole(reader, kind, given, location)
                    for field, (kind, given) in named.items()
                }

            whole = self._readers.read(look, caller)
            asked = msgspec.structs.replace(asked, **whole)
            if isinstance(asked, VerifyKnowledge) and not asked.words:
                claim = asked.claim
                words = self._readers.read(lambda reader: queries.words_of(reader, claim), caller)
                asked = msgspec.structs.replace(asked, words=words)
            elif isinstance(asked, PinMemory) and asked.pinned and not asked.words:
                memory = asked.memory
                words = self._readers.read(lambda reader: queries.words_of_memory(reader, memory), caller)
                asked = msgspec.structs.replace(asked, words=words)
        if location:
            location = self._readers.read(lambda reader: kept_at(reader, location), caller)
        return msgspec.structs.replace(asked, location=location)

    def _still_there(self, connection: Connection, asked: Command, caller: Caller) -> None:
        """Look once more at what the command names: it may have been forgotten since its ids were looked up. Whoever
        forgets it from now on meets the append. Raises: NotFound."""
        named = {field: kind for field, kind in asked.refers.items() if kind in ("memory", "claim", "thing")}
        if named:
            reader = reader_of(connection, caller.space or self.settings.space, caller)
            for field, kind in named.items():
                given = getattr(asked, field)
                for id in given if isinstance(given, tuple) else (given,):
                    if id:
                        queries.id_of(reader, kind, id)

    def _decided(
        self, writer: IngestWriter, key: str, asked: Command, meant: Sequence[object], caller: Caller, actor: str
    ) -> Done:
        """`meant` are the ids that names in the command stand for now."""
        connection, space_id = writer.connection, writer.space_id
        delivery = event_id_of(space_id, key)
        with outages(), connection.transaction():
            # Two commands of one key, and those that build on what their stream holds, come one after the other.
            for name in sorted({key, asked.stream} if asked.reads else {key}):
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [name, space_id])
            before = read_events(connection, space_id, [delivery]).get(delivery)
            history: list[Event] = []
            if asked.reads:
                history = read_stream(connection, space_id, asked.stream, before.position if before else None)
            elif asked.cites:
                history = _cited(connection, space_id, getattr(asked, asked.cites))
            try:
                event = _event(asked, key, history, actor)
            except MemctlError:
                if before is None or not meant:
                    raise
                return _done(delivery, before, before.position, "duplicate")
            if caller.projects is not None:
                event = confined(event)
            (prepared,) = writer.prepare([event]).events
            if before is not None:
                if not _repeated(before.payload, prepared.payload, meant):
                    raise KeyReused
                return _done(delivery, before, before.position, "duplicate")
            (appended,) = writer.append([prepared])
            if appended.status == "new":
                self._still_there(connection, asked, caller)
        writer.wake()
        if appended.status == "new":
            return _done(delivery, prepared, appended.position, "new")
        # Its key is that of a command whose event was erased: it stays so.
        return msgspec.structs.replace(_done(delivery, prepared, appended.position, "forgotten"), recorded={})


def _cited(connection: Connection, space_id: int, id: str) -> list[Event]:
    try:
        return list(read_events(connection, space_id, [UUID(id)]).values())
    except ValueError:  # what was named is no event: the command says what it needs
        return []


def _whole(reader: Reader, kind: Kind, id: str, location: str) -> str:
    if kind == "session":
        return session_of(reader, id) if id else session_here(reader, location)
    return queries.id_of(reader, kind, id)


def _event(asked: Command, key: str, history: list[Event], actor: str) -> NewEvent:
    return NewEvent(
        stream=asked.stream,
        payload=asked.decide(history),
        occurred_at=Micros(time.time_ns() // 1000),
        dedupe_key=key,
        actor=actor,
        location=asked.location,
        session_id=asked.stream.split("/", 2)[2] if asked.stream.startswith("session/") else "",
        sources=tuple(event.delivery_id for event in asked.repeats(history)),  # a version's own id is this log's alone
    )


def _repeated(before: Payload, now: Payload, meant: Sequence[object]) -> bool:
    """Whether both payloads say the same. Ids in `meant` may differ: a name may resolve to another thing today."""
    if type(before) is not type(now):
        return False
    fields = [(getattr(before, name), getattr(now, name)) for name in now.__struct_fields__]
    return all(was == given or given in meant for was, given in fields)


def _done(delivery: UUID, event: Event | NewEvent, position: Position, status: str) -> Done:
    return Done(
        event_id=str(delivery),
        type=event.type,
        stream=event.stream,
        position=position,
        status=status,
        recorded=msgspec.to_builtins(event.payload),
    )


def _digest(key: str) -> str:
    """Keys are drawn by others, who may put anything into them: what names an event holds none of it."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
