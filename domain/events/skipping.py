"""Leaving out what cannot be folded: the event that says so, and which of a stream's events are left to fold."""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from memctl.domain.events.event import Event, Payload, event
from memctl.domain.support.errors import MemctlError


@event("event.skipped")
class EventSkipped(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Something that no fold could take was left out, because somebody decided so.

    Without a `projection`, `skipped` is a delivery (`Event.delivery_id`) of the very stream that this one stands in,
    which is no longer part of it, whatever other versions of it came or come: which of them is first depends on order.
    (Earlier memctls named one version, and that alone is then left out.)
    With one, it is a source of that read model (a fact, a recorded event, a row of another read model), and the row
    `key` is folded without it; where there is no `key`, no row is.
    """

    skipped: UUID
    projection: str = ""
    key: str | None = None
    reason: str = ""


class Undecodable(Payload, frozen=True, kw_only=True):
    """Stands for the stored payload of a known type that could not be read as one. Folding it is a fault."""

    problem: str
    """The class of the error that reading it raised."""


class UndecodablePayload(MemctlError):
    """The stored payload of event {event_id} at position {position} is no {type}."""


def left_out(events: Iterable[Event]) -> frozenset[UUID]:
    """The ids of deliveries, or of versions, that one of these, all of one stream, says to leave out."""
    found = (event.payload for event in events if isinstance(event.payload, EventSkipped))
    return frozenset(payload.skipped for payload in found if not payload.projection)


def remaining(events: Sequence[Event]) -> list[Event]:
    """The events of one stream without those that were left out, and without the events that say so."""
    return [e for e in without(events, left_out(events)) if not isinstance(e.payload, EventSkipped)]


def without(events: Iterable[Event], gone: Collection[UUID]) -> list[Event]:
    """The events but those of which the delivery, or this version of it, was left out."""
    return [e for e in events if e.delivery_id not in gone and e.event_id not in gone]


def foldable(events: Iterable[Event]) -> list[Event]:
    """The events of one stream that are to be folded. A function of their set: it does not matter which came first.

    Raises: UndecodablePayload.
    """
    known = list(events)
    if any(isinstance(e.payload, EventSkipped) for e in known):
        known = remaining(known)
    for e in known:
        if isinstance(e.payload, Undecodable):
            raise UndecodablePayload(event_id=e.event_id, position=e.position, type=e.type)
    return known
