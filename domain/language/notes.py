"""Notes: what a person or an agent asks to be remembered, in words of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import msgspec

from memctl.domain.events.command import BadCommand, Command, command
from memctl.domain.events.event import Event, Payload, event
from memctl.domain.events.facts import InsightFound, InsightKind, quote
from memctl.domain.knowledge.graduation import SHORTEST, length_of
from memctl.domain.language.claims import stated
from memctl.domain.support.location import NOWHERE
from memctl.domain.support.provenance import RIGHTS, Provenance, by_actor, member_of
from memctl.domain.support.structs import carried_over

NOTES = "knowledge/notes"
"""Stream of what is noted: it spans sessions."""

LONGEST_NOTE = 2_000
"""Characters."""


@event("memory.noted")
class MemoryNoted(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody asked for something to be remembered. Who, is the event's actor; where it holds, its location.

    `kind` is empty where the rules are to say; `confidence` 0 to 1. `origin` names the store that a note was imported
    from: its word is not the user's.
    """

    text: str
    kind: InsightKind | Literal[""] = ""
    everywhere: bool = False
    """Holds in every project."""
    confidence: float = 0.9
    importance: float | None = None
    files: tuple[str, ...] = ()
    """Files that it is about: when they change, it is to be looked at again."""
    tags: tuple[str, ...] = ()
    origin: str = ""
    confined: bool = False
    """Stated under a key that is limited to projects: it holds where it was said, whatever its words are."""


@command("note")
class NoteMemory(Command, frozen=True, kw_only=True):
    """Remember this: `text` has 10 to 2,000 characters (a Hangul syllable counts twice)."""

    to: ClassVar[str] = NOTES
    of_place: ClassVar[bool] = True

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_NOTE)]
    kind: InsightKind | Literal[""] = ""
    everywhere: bool = False
    importance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    files: Annotated[tuple[str, ...], msgspec.Meta(max_length=16)] = ()
    tags: Annotated[tuple[str, ...], msgspec.Meta(max_length=16)] = ()

    def decide(self, history: Sequence[Event]) -> MemoryNoted:
        text = self.text.strip()
        if length_of(text) < SHORTEST:
            raise BadCommand(why=f"{text!r} is too short to mean anything by itself")
        return carried_over(self, MemoryNoted, text=text)


def claim_of(noted: Event, payload: MemoryNoted) -> InsightFound:
    """A note as the claim that it makes, on the evidence of its own words. What may not hold in every project holds in
    none where nobody says in which."""
    claim = stated(payload.text, payload.kind)
    said_by = Provenance.IMPORT if payload.origin else by_actor(noted.actor)
    crosses = RIGHTS[said_by].crosses and not payload.confined
    everywhere = crosses and (payload.everywhere or claim.everywhere or not noted.location)
    return InsightFound(
        id=noted.delivery_id,
        stream=noted.stream,
        occurred_at=noted.occurred_at,
        location=noted.location or ("" if everywhere else NOWHERE),
        evidence=(quote(noted.delivery_id, payload.text),),
        kind=claim.kind,
        text=claim.text,
        canonical=claim.canonical,
        subject=claim.subject,
        confidence=payload.confidence,
        said_by=said_by,
        polarity=claim.polarity,
        rule="note",
        files=payload.files,
        member=member_of(noted.actor),
        everywhere=everywhere,
    )
