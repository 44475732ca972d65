"""What people and agents say of what memory holds: it is true, it is not, it helped, it matters, it was cleared up."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event, Payload, event
from memctl.domain.support.structs import carried_over

Why = Annotated[str, msgspec.Meta(max_length=1_000)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]


@event("knowledge.verified")
class KnowledgeVerified(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody confirmed a claim. `claim` is an insight's id, or of a record that of its memory; `words` the digest of
    the confirmed ones."""

    claim: str
    why: str = ""
    words: str = ""


@event("knowledge.rejected")
class KnowledgeRejected(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said that a claim does not hold. `claim` is an insight's id, or of a record that of its memory."""

    claim: str
    why: str = ""


@event("memory.rated")
class MemoryRated(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody said how useful a memory was: 0 for not at all, to 1."""

    memory: str
    value: float
    why: str = ""


@event("memory.pinned")
class MemoryPinned(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A memory is to be kept and to come first, or no longer. `words`: the digest of those that it had then."""

    memory: str
    pinned: bool = True
    words: str = ""


Resolution = Literal["confirmed", "pending", "rejected"]


@event("condition.resolved")
class ConditionResolved(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """What a memory left open was cleared up, or was not: `confirmed` leads on to `resolved_to`."""

    condition: str
    resolution: Resolution
    resolved_to: str = ""
    confidence: float = 1.0


class _Verdict(Command, frozen=True, kw_only=True):
    to: ClassVar[str] = "knowledge/{claim}"
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"claim": "claim"}

    by_people: ClassVar[str] = "a person says what holds"

    claim: Id
    why: Why = ""


@command("verify-knowledge")
class VerifyKnowledge(_Verdict, frozen=True, kw_only=True):
    """This holds: `claim` is an insight, what is known about a subject (then the side that stands), or a record."""

    records: ClassVar[type[Payload]] = KnowledgeVerified

    words: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """By default the claim's."""


@command("reject")
class RejectKnowledge(_Verdict, frozen=True, kw_only=True):
    """This does not hold: it leaves what is known and found, and does not come back by being seen again."""

    records: ClassVar[type[Payload]] = KnowledgeRejected


@command("rate")
class RateMemory(Command, frozen=True, kw_only=True):
    """How useful a memory was: `value` from 0 (it misled) to 1 (it was what was needed)."""

    records: ClassVar[type[Payload]] = MemoryRated
    to: ClassVar[str] = "knowledge/{memory}"
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"memory": "memory"}

    memory: Id
    value: Annotated[float, msgspec.Meta(ge=0, le=1)]
    why: Why = ""


@command("pin")
class PinMemory(Command, frozen=True, kw_only=True):
    """Keep a memory and put it first, which a person asks; with `pinned` false, no longer."""

    records: ClassVar[type[Payload]] = MemoryPinned
    to: ClassVar[str] = "knowledge/{memory}"
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"memory": "memory"}

    by_people: ClassVar[str] = "a person says what every session is given"

    memory: Id
    pinned: bool = True

    words: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """By default the memory's."""


@command("resolve")
class ResolveCondition(Command, frozen=True, kw_only=True):
    """Say what became of something left open: `confirmed` needs `resolved_to`, the others keep their own id."""

    to: ClassVar[str] = "knowledge/{condition}"
    of_place: ClassVar[bool] = True
    refers: ClassVar[dict[str, Kind]] = {"condition": "thing", "resolved_to": "thing"}

    condition: Id
    resolution: Resolution
    resolved_to: Annotated[str, msgspec.Meta(max_length=512)] = ""
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0

    def decide(self, history: Sequence[Event]) -> ConditionResolved:
        if (self.resolution == "confirmed") != bool(self.resolved_to):
            raise BadCommand(why="only a confirmed condition leads to something, and it has to lead somewhere")
        if self.resolved_to == self.condition:
            raise BadCommand(why="a condition cannot resolve to itself")
        return carried_over(self, ConditionResolved)
