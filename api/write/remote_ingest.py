"""Events as a relay sends them: what it read on a developer's machine, on its way into a team's log.

A relay parses and redacts where the words were said; the API redacts once more by its own rules, and appends. Both
agree by dedupe keys, so whatever is sent twice is kept once.
"""

import time
from collections.abc import Iterable, Sequence, Set
from functools import cached_property, partial
from itertools import chain
from typing import Annotated
from uuid import UUID

import msgspec

from memctl.api.reading import models
from memctl.api.reading.caller import Caller
from memctl.api.reading.pages import rows_unseen
from memctl.api.reading.places import limits_of, locations_of_row, projects_of
from memctl.api.reading.reader import Reader, Readers
from memctl.api.write.ingest_writer import IngestWriter, WriteResult, Writers
from memctl.domain.events import observations
from memctl.domain.events.event import (
    FutureSchemaVersion,
    Micros,
    NewEvent,
    Payload,
    Position,
    UnknownEventType,
    decode_payload,
    event_types,
    type_of,
)
from memctl.domain.events.observations import (
    HISTORY,
    MESSAGE,
    TRANSCRIPT,
    CommitRecorded,
    SessionStarted,
    TagRecorded,
    bounded_name,
    event_id_of,
    history_key,
    history_stream,
    session_in,
)
from memctl.domain.projects.identity import PATHS, ProjectIdentified, at_member, identified_key, project_stream
from memctl.domain.projects.key_limits import Limits
from memctl.domain.support import patterns
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.json_bodies import read_body
from memctl.domain.support.location import around, bounded, normalise, of_member, path_of
from memctl.domain.support.provenance import through
from memctl.domain.support.structs import carried_over
from memctl.infra.log.append import Appended
from memctl.infra.redaction import Prepared, Redactor, prepare_all
from memctl.infra.settings import Settings

_STREAM = patterns.compile(r"(?:session/[^/]+|project|history)/.", patterns.S)
"""Streams of what happened in a session, of what git's files said of a place, and of a repository's history."""

_YEAR_10000 = 253_402_300_800_000_000
"""In microseconds since 1970."""

NEW_PLACES_A_DAY = 1_000
"""Directories that are new to memory and that a key may name in 24 hours, in one process of the API: some work in a new
one for each task, and what projects are made of grows with each."""

_DAY_S = 24 * 3_600

NOT_YOURS = "of no project that this key is for"
NOT_BEGUN = "of a session that somebody else began"
NOT_FOR_KEY = (NOT_YOURS, NOT_BEGUN)
"""Why a key hears that something is none of its own: nothing is wrong with that, nor with who sent it."""
ANOTHERS = "another version of what came through another key"
MISNAMED = "under the name of what another session holds"
TOO_MANY_PLACES = f"of more than {NEW_PLACES_A_DAY:,} new places, which is what a key may name in a day"


class NotForRelays(MemctlError):
    """Relays deliver what clients record, not {type}."""

    exit_code = 2
    type: str


class OfAnotherVersion(MemctlError):
    """This memctl cannot take what was sent: {why}"""

    hint = "The relay is of a newer version than the API: upgrade the API. Until then the relay keeps what it has."
    why: str


class BadDelivery(MemctlError):
    """What was sent is no delivery: {why}"""

    exit_code = 2
    why: str


class NoSuchEvent(MemctlError):
    """There is no event like one of those that were sent: {why}"""

    exit_code = 2
    why: str


class Sent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `NewEvent` on the wire. `payload` is JSON in the shape of its type and version."""

    type: str
    version: Annotated[int, msgspec.Meta(ge=1)]
    stream: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": f"^{_STREAM.pattern}"})]
    payload: msgspec.Raw
    occurred_at: Annotated[int, msgspec.Meta(ge=0, lt=_YEAR_10000)]
    dedupe_key: Annotated[str, msgspec.Meta(min_length=1)]
    actor: str
    location: str = ""
    session_id: str = ""
    causation_id: UUID | None = None
    correlation_id: UUID | None = None


class Delivery(msgspec.Struct, frozen=True):
    """A body of `POST /v1/events`."""

    events: list[Sent]


def sent(event: NewEvent) -> Sent:
    """An event as it goes over the wire."""
    kind = type_of(event.payload)
    return carried_over(
        event, Sent, type=kind.name, version=kind.version, payload=msgspec.Raw(msgspec.json.encode(event.payload))
    )


def received(body: bytes) -> list[NewEvent]:
    """Events of a body. Raises: BadDelivery, NoSuchEvent, NotForRelays, OfAnotherVersion."""
    try:
        delivery = read_body(body, Delivery)
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise BadDelivery(why=str(problem)) from problem
    for each in delivery.events:
        if not _STREAM.match(each.stream):
            raise BadDelivery(why=f"`{each.stream[:80]}` is no stream of a session, a project or a history")
        if "\0" in each.location + each.session_id + each.dedupe_key + each.actor:
            raise BadDelivery(why="a name holds NUL")
    try:
        return [_event(each) for each in delivery.events]
    except (UnknownEventType, FutureSchemaVersion) as problem:
        raise OfAnotherVersion(why=str(problem)) from problem
    except msgspec.ValidationError as problem:
        raise NoSuchEvent(why=str(problem)) from problem
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:  # bytes that are no text: msgspec 0.23 raises its own
        raise BadDelivery(why=str(problem)) from problem


def _event(each: Sent) -> NewEvent:
    kind = event_types().get(each.type)
    if kind is not None and kind.payload is not ProjectIdentified and kind.payload.__module__ != observations.__name__:
        raise NotForRelays(type=each.type)
    if not each.stream.startswith(_beginning(kind.payload if kind is not None else Payload)):
        raise NoSuchEvent(why=f"{each.type[:80]!r} in the stream {each.stream[:80]!r}")
    return carried_over(
        each,
        NewEvent,
        payload=decode_payload(each.type, each.version, bytes(each.payload)),
        occurred_at=Micros(each.occurred_at),
        session_id=session_in(each.stream, each.session_id),
    )


def _beginning(payload: type[Payload]) -> str:
    """How the stream of such an event begins."""
    if issubclass(payload, CommitRecorded | TagRecorded):
        return HISTORY
    return "project/" if payload is ProjectIdentified else "session/"


def confined(event: NewEvent) -> NewEvent:
    """An event of a caller that is limited to projects, as it is kept: folds assume that it shows no other places."""
    if not hasattr(event.payload, "confined"):
        return event
    return msgspec.structs.replace(event, payload=msgspec.structs.replace(event.payload, confined=True))


def _at_member(event: NewEvent, caller: Caller) -> NewEvent:
    """An event of a caller with an unlimited key, as it is kept: at a place of the caller's own machine."""
    payload = event.payload
    payload = at_member(payload, caller.member) if isinstance(payload, ProjectIdentified) else payload
    return msgspec.structs.replace(event, payload=payload, location=of_member(caller.member, event.location))


def _speaker(event: NewEvent, caller: Caller) -> str:
    """The actor of what a caller delivers. What a repository is and holds is the word of whoever says so here."""
    of_repositories = isinstance(event.payload, ProjectIdentified | SessionStarted | CommitRecorded | TagRecorded)
    return caller.speaks("user") if of_repositories and caller.member else caller.speaks(event.actor)


class RemoteIngest:
    """Takes batches of events. They are redacted side by side, and those of one space appended one after the other. For
    several threads."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self._settings = settings
        self._readers = readers
        self._writers = Writers(settings, partial(IngestWriter, identify=False))
        self._new: dict[str, tuple[float, frozenset[str]]] = {}
        """By key, the places that it named first, and when that day began."""

    def take(self, body: bytes, caller: Caller) -> WriteResult:
        """Append what a relay sent; what is returned is committed. An event that is refused for good is reported by its
        index; the others are appended. Raises: what `received` raises, and DatabaseUnavailable."""
        events, refused = self._by(caller, received(body))
        kept = [index for index in range(len(events)) if index not in refused]
        prepared = prepare_all([events[index] for index in kept], self._redactor)
        others = self._of_others(prepared.events, caller)
        own = [index for index in range(len(kept)) if index not in others]
        prepared = Prepared([prepared.events[index] for index in own], prepared.redactions)
        recorded = self._writers.of(caller.space).do(
            lambda writer: msgspec.structs.replace(writer.write_rest(prepared), log=writer.log_id)
        )
        refused |= {kept[own[index]]: why for index, why in recorded.refused.items()}
        refused |= {kept[index]: found for index, found in others.items() if isinstance(found, str)}
        new = iter(recorded.appended)
        there = {index: found for index, found in others.items() if isinstance(found, Appended)}
        appended = [there.get(index) or next(new) for index, at in enumerate(kept) if at not in refused]
        return msgspec.structs.replace(recorded, appended=tuple(appended), refused=refused)

    def _by(self, caller: Caller, events: Iterable[NewEvent]) -> tuple[list[NewEvent], dict[int, str]]:
        """The events as that caller may say them, and why some are refused, by index."""
        events = [msgspec.structs.replace(each, actor=_speaker(each, caller)) for each in events]
        if caller.member and caller.projects is None:
            events = [_at_member(event, caller) for event in events]
        refused = self._too_many(events, caller) if caller.key else {}
        if caller.projects is not None:
            refused |= self._not_theirs(events, caller)
            events = [confined(event) for event in events]
            refused = {index: MISNAMED for index, event in enumerate(events) if not _is_own(event)} | refused
        if caller.member:
            refused = {index: MISNAMED for index, event in enumerate(events) if misnamed(event)} | refused
        return events, refused

    def _too_many(self, events: Sequence[NewEvent], caller: Caller) -> dict[int, str]:
        """Count the places that these events name and memory does not know. Of events that name one more than a key
        may, by index, that they do: whatever else its relay sends is taken."""
        now = time.monotonic()
        began, new = self._new.get(caller.key, (now, frozenset[str]()))
        if now - began > _DAY_S:
            began, new = now, frozenset()
        named = [{bounded(event.location)} for event in events]
        for places, event in zip(named, events, strict=True):
            if isinstance(event.payload, ProjectIdentified):
                places.add(bounded(event.payload.location))
        fresh = [at for at in dict.fromkeys(chain.from_iterable(named)) if at and at not in new]
        if fresh:
            known = self._readers.read(projects_of, caller)
            fresh = [at for at in fresh if known.of(at) is None]
        room = NEW_PLACES_A_DAY - len(new)
        self._new[caller.key] = began, new.union(fresh[:room])
        over = set(fresh[room:])
        return {index: TOO_MANY_PLACES for index, places in enumerate(named) if not over.isdisjoint(places)}

    def close(self) -> None:
        self._writers.close()

    @cached_property
    def _redactor(self) -> Redactor:
        return self._settings.redactor()

    def _of_others(self, events: Sequence[NewEvent], caller: Caller) -> dict[int, Appended | str]:
        """Events whose delivery is here through another's key, or this machine's, by index: a duplicate of what says
        the same, else why it is refused, as is what is new of a session that somebody else began. A version of one's
        own would be forgotten with all others, and they with it."""
        own = through(caller.speaks("user"))
        if not own:
            return {}

        def look(reader: Reader) -> dict[int, Appended | str]:
            ids = [event_id_of(reader.space_id, event.dedupe_key) for event in events]
            rows = reader.connection.execute(
                "SELECT coalesce(variant_of, event_id), actor, position, type, payload FROM memctl.events"
                " WHERE position = ANY(ARRAY(SELECT * FROM memctl.positions_of_versions(%s, %s)))"
                " AND payload IS NOT NULL ORDER BY position",
                [reader.space_id, ids],
            )
            versions: dict[UUID, list[tuple[str, Position, str, bytes]]] = {}
            for id, *version in rows:
                versions.setdefault(id, []).append(tuple(version))
            begun = begun_by_others(reader, {_session_of(event) for event in events}, own)
            found: dict[int, Appended | str] = {}
            for index, id in enumerate(ids):
                there = versions.get(id, [])
                if there and through(there[0][0]) != own:
                    said = events[index].type, _said(msgspec.json.encode(events[index].payload))
                    same = (at for _, at, kind, payload in there if (kind, _said(payload)) == said)
                    found[index] = next((Appended(at, "duplicate") for at in same), ANOTHERS)
                elif not there and _session_of(events[index]) in begun:
                    found[index] = NOT_BEGUN
            return found

        return self._readers.read(look, caller)

    def _not_theirs(self, events: Sequence[NewEvent], caller: Caller) -> dict[int, str]:
        """Events that a caller limited to projects may not record, by index: events of other places, or of a session
        that the caller may not read, or that somebody else began."""

        def look(reader: Reader) -> dict[int, str]:
            limits = limits_of(reader)
            assert limits is not None
            claims = {
                index: event.location
                for index, event in enumerate(events)
                if isinstance(event.payload, ProjectIdentified)
                and event.payload.location == event.location
                and limits.may_claim(event.location, event.payload.remote)
            }
            sessions = rows_unseen(reader, models.sessions, [event.stream for event in events])
            worked = {stream: locations_of_row(row) or set() for stream, row in sessions.items()}
            named = {event.location for event in events}.union(*worked.values())
            claimed = {*claims.values(), *_claimed(reader, limits, named)}
            theirs = {at for at in named if limits.holds(at, claimed)}
            # A session whose list of places is full is shown to no limited caller. It may go on where it began.
            foreign = {stream for stream, at in worked.items() if not at or not at <= theirs}
            streams_of = [{event.stream, _session_of(event)} for event in events]
            begun = begun_by_others(reader, set().union(*streams_of), through(caller.speaks("user")))
            # A session's lines do not all say where they are of, and what did say so may not be folded yet.
            streams = {event.stream for event in events if event.location in theirs} | set(worked)
            streams |= _streams_at(reader, {event.stream for event in events} - streams, limits, claimed)
            not_yours = {
                index: NOT_YOURS
                for index, event in enumerate(events)
                if (isinstance(event.payload, ProjectIdentified) and index not in claims)
                or event.stream in foreign
                or (event.location not in theirs and (event.location or event.stream not in streams))
            }
            not_begun = {index: NOT_BEGUN for index, of in enumerate(streams_of) if not begun.isdisjoint(of)}
            return dict(sorted((not_begun | not_yours).items()))

        return self._readers.read(look, caller)


COMMANDS = "command:"
_OF_MEMCTL = ("processor:", COMMANDS, "recalled:", "skip:")
"""How the names begin of what memctl itself records."""

_MOST_PARTS = 10
"""Parts of a delivery's name behind the session's: a line's name may hold colons."""


def misnamed(event: NewEvent) -> bool:
    """Whether a delivery has the name of one that another session, a repository or memctl will have: whoever brings
    that would find it taken, and it would be forgotten with what took it."""
    key = event.dedupe_key
    if key.startswith(HISTORY):
        return not key.startswith(f"{event.stream}:")
    kind = next((kind for kind in (TRANSCRIPT, MESSAGE) if key.startswith(kind)), None)
    if kind is None:
        return key.startswith(_OF_MEMCTL)
    _, agent, session = (*event.stream.split("/", 2), "", "")[:3]
    named = key.removeprefix(f"{kind}{agent}:")
    if named.startswith(f"{session}:"):
        return ":" not in named[len(session) + 1 :]  # else the session has the name of another's line
    names = (named.rsplit(":", parts)[0] for parts in range(2, _MOST_PARTS))
    return named == key or session not in map(bounded_name, names)


_HOOK = patterns.compile(r"hook:[0-9a-f]{32}(?::[0-9])?")


def _is_own(event: NewEvent) -> bool:
    """Whether an event of a key limited to projects has a name that a relay gives: of a line, a message or a hook of
    its own session, of what lies at its own place, or of the history of that place."""
    key = event.dedupe_key
    if isinstance(event.payload, ProjectIdentified):
        stream = _session_of(event)
        of_its_own = stream.startswith("session/") or stream == history_stream(event.location)
        return of_its_own and key == identified_key(stream, event.location)
    if event.stream.startswith(HISTORY):
        line = getattr(event.payload, "line", "")
        return event.stream == history_stream(event.location) and key == history_key(event.stream, line)
    return key.startswith((TRANSCRIPT, MESSAGE)) or _HOOK.fullmatch(key) is not None


def _session_of(event: NewEvent) -> str:
    """The stream of the session or history at whose place something was identified; else the event's own."""
    if not isinstance(event.payload, ProjectIdentified):
        return event.stream
    return event.dedupe_key.removeprefix("project.identified:").rpartition(":")[0]


def _said(payload: bytes) -> object:
    """What a stored payload says, whoever delivered it from whichever machine."""
    fields = msgspec.json.decode(payload, type=dict[str, object])
    paths = {name: path_of(path) for name in PATHS if isinstance(path := fields.get(name), str)}
    return {name: value for name, value in (fields | paths).items() if name != "confined"}


def begun_by_others(reader: Reader, streams: Set[str], member: str) -> set[str]:
    """Those of the streams whose sessions somebody else began: what a member's key says there would count as theirs."""
    rows = reader.connection.execute(
        "SELECT s.stream, first.actor FROM unnest(%s::text[]) AS s(stream) CROSS JOIN LATERAL ("
        "SELECT actor FROM memctl.events e WHERE e.space_id = %s AND e.stream = s.stream AND e.actor <> 'memctl'"
        " ORDER BY e.position LIMIT 1) AS first",
        [[stream for stream in streams if stream.startswith("session/")], reader.space_id],
    )
    return {stream for stream, actor in rows if through(actor) != member}


def _streams_at(reader: Reader, streams: Set[str], limits: Limits, claimed: Set[str]) -> set[str]:
    """Those of the streams that have places in the log, folded or not, and only places that the limits hold."""
    if not streams:
        return set()
    rows = reader.connection.execute(
        "SELECT stream, array_agg(DISTINCT location) FROM memctl.events"
        " WHERE space_id = %s AND stream = ANY(%s) AND location <> '' GROUP BY stream",
        [reader.space_id, list(streams)],
    )
    return {stream for stream, places in rows if all(limits.holds(at, claimed) for at in places)}


def _claimed(reader: Reader, limits: Limits, paths: Iterable[str]) -> set[str]:
    """Of the paths and what holds them, those that were said to have one of the limits' remotes: it may not be folded
    yet."""
    wanted = {at for path in paths if not limits.holds(path) for at in around(normalise(path))}
    if not wanted:
        return set()
    found = reader.connection.execute(
        "SELECT DISTINCT location FROM memctl.events WHERE space_id = %s AND stream = ANY(%s)"
        " AND type = 'project.identified' AND location = ANY(%s)",
        [reader.space_id, [project_stream(remote) for remote in limits.given], list(wanted)],
    )
    return {row[0] for row in found}
