"""Consolidation: what is recorded of memories that say the same, the contrary, or nothing that was ever needed.

No step rewrites or removes a memory: each says how memories stand to each other, in an event that another takes back.
Whether to record one is a processor's to decide (`memctl.workers.processors.consolidator`), by the rules below.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec

from memctl.domain.events.command import BadCommand, Command, Kind, command
from memctl.domain.events.event import Event, Payload, event
from memctl.domain.support.near_duplicates import (
    but_for_denials,
    but_for_numbers,
    denies,
    features,
    likeness,
    numbers,
    turns,
)

STREAM = "knowledge/consolidation"
"""Stream of what is recorded of memories among each other: it spans sessions."""

RULE = "consolidation@1"
"""The rules' name and version, recorded with whatever they decided."""

ALIKE = 0.85
"""Likeness above which two memories say the same."""

CONTRARY = 0.6
"""Likeness above which two claims may be about the same: one word of ten makes four of its features differ. They are if
they are alike but for their numbers, or their negations."""

UNIMPORTANT, UNSEEN_DAYS = 0.2, 60
"""Importance up to which, and days without a sign of life after which, a memory that was never used is pruned."""

MERGEABLE = frozenset(("turn", "knowledge", "reflection", "strategy"))
"""Kinds of memories that are texts of their own; rows of other kinds are kept by a key, so that none comes twice.
Episodes stay as they are."""

MOST_MERGED = 16
"""Memories that one event merges."""

LARGEST_SHARE, ALWAYS = 0.1, 10
"""A place in which a round would change more than this share of the memories, and more than so many, waits."""


class Member(msgspec.Struct, frozen=True, array_like=True):
    """A memory as it was compared: `text` is the beginning of its text's digest, so that what holds for these words
    does not go on to hold for others."""

    memory: str
    text: str


@event("memories.merged")
class MemoriesMerged(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Memories say the same as `keeper`: they are returned as one. `alike` is the least likeness (0 to 1) to it."""

    keeper: Member
    merged: tuple[Member, ...]
    alike: float = 1.0
    made_by: str = RULE


@event("memory.pruned")
class MemoryPruned(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A memory of little importance was never used: it is no longer shown, until it is met again."""

    memory: str
    last_at: int
    """Its last sign of life, in microseconds."""
    importance: float = 0.0
    made_by: str = RULE


@event("memory.superseded")
class MemorySuperseded(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """A memory no longer holds, because a later one (`by`) says it with other numbers, or somebody said so."""

    memory: Member
    by: Member
    why: str = ""
    made_by: str = RULE


@event("contradiction.found")
class ContradictionFound(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """Memories contradict each other. Which holds is for people to say; both are returned, with their dates."""

    memories: tuple[Member, ...]
    why: str = ""
    made_by: str = RULE


@event("consolidation.undone")
class ConsolidationUndone(Payload, frozen=True, kw_only=True, omit_defaults=True):
    """One of the above was taken back: `change` is its event, `memories` all that it spoke of."""

    change: UUID
    memories: tuple[str, ...]
    why: str = ""


Consolidating = MemoriesMerged | MemoryPruned | MemorySuperseded | ContradictionFound


def touched(payload: Consolidating) -> tuple[str, ...]:
    """The ids of the memories that a change speaks of."""
    match payload:
        case MemoriesMerged():
            return (payload.keeper.memory, *(each.memory for each in payload.merged[:MOST_MERGED]))
        case MemoryPruned():
            return (payload.memory,)
        case MemorySuperseded():
            return (payload.memory.memory, payload.by.memory)
        case ContradictionFound():
            return tuple(each.memory for each in payload.memories[:MOST_MERGED])


@command("undo_consolidation")
class UndoConsolidation(Command, frozen=True, kw_only=True):
    """Take a merge, a prune, a supersession or a contradiction back: its memories stand as they did before."""

    to: ClassVar[str] = STREAM
    refers: ClassVar[dict[str, Kind]] = {"change": "thing"}
    cites: ClassVar[str] = "change"
    by_people: ClassVar[str] = "a person says which of two memories holds"

    change: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    why: Annotated[str, msgspec.Meta(max_length=300)] = ""

    def decide(self, history: Sequence[Event]) -> ConsolidationUndone:
        for found in history:
            if isinstance(found.payload, Consolidating):
                return ConsolidationUndone(change=found.delivery_id, memories=touched(found.payload), why=self.why)
        raise BadCommand(why=f"{self.change} is no change of consolidation; `memctl consolidate --log` lists them")


class Side(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What the rules look at of a memory. Times in microseconds; `weight` says which of two is kept, the higher."""

    id: str
    kind: str
    location: str
    text: str
    last_at: int
    weight: tuple[float, ...] = ()

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Read once, however many are like it."""
        return numbers(self.text)

    @cached_property
    def turns(self) -> tuple[str, ...]:
        return turns(self.text)


Relation = Literal["same", "newer", "contrary"]


def relation_of(one: Side, other: Side, alike: float) -> Relation | None:
    """How two memories stand to each other that share so much of their words; None where nothing follows.

    Words that agree but for a number or a negation are never the same thing: of claims the first means that the later
    one took the earlier one's place, the second that they contradict each other.
    """
    if one.kind != other.kind or one.kind not in MERGEABLE or one.location != other.location:
        return None
    counted = one.numbers == other.numbers
    turned = one.turns == other.turns
    if counted and turned:
        return "same" if alike > ALIKE else None
    if one.kind != "knowledge":
        return None
    if counted and alike > CONTRARY and denies(one.text) != denies(other.text):
        return "contrary" if likeness(but_for_denials(one.text), but_for_denials(other.text)) > ALIKE else None
    if turned and alike > CONTRARY and one.last_at != other.last_at:
        return "newer" if likeness(but_for_numbers(one.text), but_for_numbers(other.text)) > ALIKE else None
    return None


def text_digest(text: str) -> str:
    """The beginning of the digest of a memory's text, as changes are true of it.

    It is no digest that anything else has of the text: what looks for a change that was forgotten finds nothing else.
    """
    return hashlib.sha256(b"memory\0" + text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Judged(msgspec.Struct, frozen=True):
    """What follows of memories that look alike: which say the same (the first is kept), which pairs contradict each
    other, and which (the first) took another's place. `alike` is the least likeness among them."""

    relation: Relation
    sides: tuple[Side, ...]
    alike: float


def judge(
    sides: Sequence[Side], pairs: Iterable[tuple[int, int]], kept_apart: Callable[[Side, Side], bool]
) -> list[Judged]:
    """What follows of memories of which these pairs (indices, in order) may be alike, but for those kept apart.

    Each is merged at most once, with one that it is itself alike to: what is alike to what is alike need not be.
    """
    words = [features(side.text) for side in sides]
    near: dict[int, dict[int, float]] = defaultdict(dict)
    found: list[Judged] = []
    for one, other in pairs:
        alike = likeness(words[one], words[other])
        relation = relation_of(sides[one], sides[other], alike)
        if relation is None or kept_apart(sides[one], sides[other]):
            continue
        if relation == "same":
            near[one][other] = near[other][one] = alike
        else:
            later = sorted((sides[one], sides[other]), key=lambda side: (-side.last_at, side.id))
            found.append(Judged(relation, tuple(later), alike))
    free = set(near)
    for keeper in sorted(near, key=lambda n: (*(-w for w in sides[n].weight), sides[n].last_at, sides[n].id)):
        if keeper not in free:
            continue
        merged = sorted((other for other in near[keeper] if other in free), key=lambda n: sides[n].id)[:MOST_MERGED]
        if merged:
            free.difference_update((keeper, *merged))
            least = min(near[keeper][other] for other in merged)
            found.append(Judged("same", (sides[keeper], *(sides[other] for other in merged)), least))
    return found


def too_many(changed: int, of: int) -> bool:
    """Whether a round changes more of one place at once than anybody would believe."""
    return changed > max(ALWAYS, of * LARGEST_SHARE)
