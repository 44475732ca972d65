"""What an agent asks to have forgotten: a request, which a person grants or refuses."""

from typing import ClassVar

from memctl.domain.events.command import Command, Kind, command
from memctl.domain.events.event import Payload, event
from memctl.domain.events.feedback import Id, Why


@event("forget.requested")
class ForgetRequested(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """An agent asked to have a thing forgotten, and why. Nothing is forgotten by that."""

    thing: str
    why: str = ""


@event("forget.refused")
class ForgetRefused(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A person kept a thing that was asked to be forgotten until then."""

    thing: str


class _OfThing(Command, frozen=True, kw_only=True):
    to: ClassVar[str] = "forget/{thing}"
    of_place: ClassVar[bool] = True

    thing: Id


@command("request-forget")
class RequestForget(_OfThing, frozen=True, kw_only=True):
    """Ask a person to have a thing forgotten."""

    records: ClassVar[type[Payload]] = ForgetRequested
    refers: ClassVar[dict[str, Kind]] = {"thing": "thing"}
    why: Why = ""


@command("refuse-forget")
class RefuseForget(_OfThing, frozen=True, kw_only=True):
    """Keep a thing that an agent asked to have forgotten. To grant it, forget the thing."""

    records: ClassVar[type[Payload]] = ForgetRefused
    refers: ClassVar[dict[str, Kind]] = {"thing": "thing"}
    by_people: ClassVar[str] = "a person decides what is forgotten"
