"""Events as a relay sends them: what it read on a developer's machine, on its way into a team's log.

A relay parses and redacts where the words were said; the API redacts once more by its own rules, and appends. Both
agree by dedupe keys, so whatever is sent twice is kept once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from uuid import UUID

import msgspec
import psycopg

from memctl.api.access import CALLER
from memctl.api.commands import Intake, Recorded
from memctl.api.pages import projection_named, several
from memctl.api.places import holds
from memctl.api.reader import Reader, Readers
from memctl.domain import observations
from memctl.domain.errors import MemctlError
from memctl.domain.event import (
    FutureSchemaVersion,
    Micros,
    NewEvent,
    Payload,
    UnknownEventType,
    decode_payload,
    event_types,
    type_of,
)
from memctl.domain.projects import ProjectIdentified
from memctl.infra.database import DatabaseUnavailable
from memctl.infra.redaction import Prepared
from memctl.infra.settings import Settings

VOUCHED_S = 600.0
"""Seconds for which a location is known to be of a project whose checkout it was just said to be; by then it is
folded."""

NOT_YOURS = "of no project that this key is for"


class NotForRelays(MemctlError):
    """Relays deliver what clients tell, not {type}."""

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


class Sent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `NewEvent` on the wire. `payload` is JSON in the shape of its type and version."""

    type: str
    version: int
    stream: str
    payload: msgspec.Raw
    occurred_at: int
    dedupe_key: str
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
    return Sent(
        type=kind.name,
        version=kind.version,
        stream=event.stream,
        payload=msgspec.Raw(msgspec.json.encode(event.payload)),
        occurred_at=event.occurred_at,
        dedupe_key=event.dedupe_key,
        actor=event.actor,
        location=event.location,
        session_id=event.session_id,
        causation_id=event.causation_id,
        correlation_id=event.correlation_id,
    )


def received(body: bytes) -> list[NewEvent]:
    """Events of a body. Raises: BadDelivery, NotForRelays, OfAnotherVersion."""
    try:
        delivery = msgspec.json.decode(body, type=Delivery)
        return [_event(each) for each in delivery.events]
    except (UnknownEventType, FutureSchemaVersion) as problem:
        raise OfAnotherVersion(why=str(problem)) from problem
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise BadDelivery(why=str(problem)) from problem


def _event(each: Sent) -> NewEvent:
    kind = event_types().get(each.type)
    if kind is not None and not _is_told_by_clients(kind.payload):
        raise NotForRelays(type=each.type)
    if not each.stream.startswith(("session/", "project/")) or not each.dedupe_key:
        raise BadDelivery(why=f"an event of stream {each.stream[:80]!r}")
    return NewEvent(
        stream=each.stream,
        payload=decode_payload(each.type, each.version, bytes(each.payload)),
        occurred_at=Micros(each.occurred_at),
        dedupe_key=each.dedupe_key,
        actor=each.actor,
        location=each.location,
        session_id=each.session_id,
        causation_id=each.causation_id,
        correlation_id=each.correlation_id,
    )


def _is_told_by_clients(payload: type[Payload]) -> bool:
    return payload is ProjectIdentified or payload.__module__ == observations.__name__


class Deliveries:
    """Takes batches of events for one space, one after the other. For several threads."""

    def __init__(self, settings: Settings, readers: Readers) -> None:
        self._settings = settings
        self._readers = readers
        self._intake: Intake | None = None
        self._lock = threading.Lock()
        self._vouched: dict[tuple[str, str], float] = {}

    def take(self, body: bytes) -> Recorded:
        """Keep what a relay sent: what is returned is committed. An event that is refused for good is told by its
        index; the others are kept. Raises: BadDelivery, NotForRelays, OfAnotherVersion, DatabaseUnavailable."""
        events = received(body)
        refused = self._not_theirs(events) if CALLER.get().projects is not None else {}
        kept = [index for index in range(len(events)) if index not in refused]
        with self._lock:
            try:
                recorded = self._kept([events[index] for index in kept])
            except (DatabaseUnavailable, psycopg.Error):
                # The connection may have been lost long ago; what was committed all the same is a duplicate now.
                self._close()
                recorded = self._kept([events[index] for index in kept])
        refused |= {kept[index]: why for index, why in recorded.refused.items()}
        return msgspec.structs.replace(recorded, refused=refused)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _kept(self, events: list[NewEvent]) -> Recorded:
        if self._intake is None:
            self._intake = Intake(self._settings, identify=False)
        prepared: Prepared = self._intake.prepare(events)
        return self._intake.write_rest(prepared)

    def _close(self) -> None:
        if self._intake is not None:
            self._intake.close()
            self._intake = None

    def _not_theirs(self, events: Sequence[NewEvent]) -> dict[int, str]:
        """Events of other projects than those that the caller is limited to, by index."""
        caller, now = CALLER.get(), time.monotonic()
        self._vouched = {key: until for key, until in self._vouched.items() if until > now}
        for event in events:
            payload = event.payload
            if isinstance(payload, ProjectIdentified) and payload.remote in (caller.projects or ()):
                self._vouched[caller.name, payload.location] = now + VOUCHED_S

        def look(reader: Reader) -> dict[int, str]:
            known = several(reader, projection_named("sessions"), [event.stream for event in events])
            places = {event.location for event in events}
            theirs = {at for at in places if (caller.name, at) in self._vouched or holds(reader, at)}
            # A session's lines do not all say where they are of.
            streams = {event.stream for event in events if event.location in theirs} | set(known)
            return {
                index: NOT_YOURS
                for index, event in enumerate(events)
                if event.location not in theirs and (event.location or event.stream not in streams)
            }

        return self._readers.read(look)
