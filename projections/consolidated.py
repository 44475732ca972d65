"""What was recorded of memories among each other: merged, pruned, superseded, at odds, and taken back.

Reads join it by the memory's id (`memctl.api.reading.consolidation_status`): a memory's own row is rebuilt whenever
its source changes. A word that takes a change back names that change and may come before it, so each change has a row
of its own, where the two meet, and memories are folded from those.
"""

from typing import Literal

import msgspec

from memctl.domain.events.event import Event
from memctl.domain.knowledge.consolidation import (
    MOST_MERGED,
    Consolidating,
    ConsolidationUndone,
    ContradictionFound,
    MemoriesMerged,
    MemoryPruned,
    MemorySuperseded,
)
from memctl.domain.support.bounded import clipped, newest
from memctl.projections.kernel import Changed, Recorded, projection

Role = Literal["merged", "keeper", "pruned", "superseded", "successor", "conflict"]
Kind = Literal["merged", "pruned", "superseded", "contradiction"]

KEPT = 12
"""Changes of one memory that are kept, the newest."""


class Party(msgspec.Struct, frozen=True, array_like=True):
    """A memory in a change, and the beginning of the digest of the text that the change is true of; empty: of any."""

    memory: str
    text: str = ""


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A recorded change. Of a merge the first party is the keeper, of a supersession the successor; of a prune
    `last_at` is the last sign of life, in microseconds. `undone`: it was taken back; only a memory's row shows that."""

    at: int
    id: str
    kind: Kind
    parties: tuple[Party, ...]
    why: str = ""
    last_at: int = 0
    undone: bool = False

    def holds_of(self, memory: str, text: str) -> bool:
        """Whether it is still true of a memory whose text has that digest."""
        return any(party.memory == memory and party.text in ("", text) for party in self.parties)

    def role_of(self, memory: str) -> Role:
        """What the change makes of one of its memories."""
        first = bool(self.parties) and self.parties[0].memory == memory
        match self.kind:
            case "merged":
                return "keeper" if first else "merged"
            case "superseded":
                return "successor" if first else "superseded"
            case "pruned":
                return "pruned"
            case "contradiction":
                return "conflict"


class Consolidated(msgspec.Struct, frozen=True, kw_only=True):
    """What was recorded of one memory, newest first, what was taken back of it among the rest."""

    changes: tuple[Change, ...] = ()

    @property
    def standing(self) -> tuple[Change, ...]:
        """The changes that were not taken back, newest first."""
        return tuple(change for change in self.changes if not change.undone)

    def keeper_of(self, memory: str, text: str) -> str:
        """The memory that stands for this one, with a text of this digest; empty where this one stands by itself."""
        merges = (c for c in self.standing if c.role_of(memory) == "merged" and c.holds_of(memory, text))
        return next((change.parties[0].memory for change in merges), "")

    def successor_of(self, memory: str, text: str) -> str:
        """The memory that took this one's place; empty where none did, or where that one was later said to have lost it
        to this one."""
        held = [c for c in self.standing if c.kind == "superseded" and c.holds_of(memory, text)]
        for place, change in enumerate(held):
            by = change.parties[0].memory
            taken_back = any(by in {party.memory for party in c.parties[1:]} for c in held[:place])
            if change.role_of(memory) == "superseded" and not taken_back:
                return by
        return ""

    def pruned(self, last_at: int) -> bool:
        """Whether it was pruned, and has shown no sign of life since."""
        return any(change.kind == "pruned" and last_at <= change.last_at for change in self.standing)

    def at_odds_with(self, memory: str, text: str) -> tuple[str, ...]:
        """Memories that contradict this one."""
        found = (c for c in self.standing if c.kind == "contradiction" and c.holds_of(memory, text))
        return tuple(dict.fromkeys(party.memory for c in found for party in c.parties if party.memory != memory))

    def hides(self, memory: str, text: str, last_at: int) -> bool:
        """Whether it is no longer returned by itself: it is merged, pruned or superseded."""
        return bool(self.keeper_of(memory, text) or self.successor_of(memory, text)) or self.pruned(last_at)


class Logged(msgspec.Struct, frozen=True, kw_only=True):
    """A change, what it rests on, and when it was taken back. Times in microseconds."""

    change: Change | None = None
    made_by: str = ""
    occurred_at: int = 0
    undone_at: int | None = None
    undone_why: str = ""


Input = (
    Recorded[MemoriesMerged]
    | Recorded[MemoryPruned]
    | Recorded[MemorySuperseded]
    | Recorded[ContradictionFound]
    | Recorded[ConsolidationUndone]
)


def _of_change(item: Input) -> str:
    return str(item.payload.change if isinstance(item.payload, ConsolidationUndone) else item.event.delivery_id)


@projection(row=Logged, key=_of_change, indexes=(("occurred_at",),))
def consolidation_log(row: Logged | None, item: Input) -> Logged:
    """What was merged, pruned, superseded or found at odds, why, and what of it was taken back."""
    row = row or Logged()
    at = int(item.event.occurred_at)
    if isinstance(item.payload, ConsolidationUndone):
        why = clipped(item.payload.why, 300)
        if row.undone_at is not None and (at, why) <= (row.undone_at, row.undone_why):
            return row
        return msgspec.structs.replace(row, undone_at=at, undone_why=why)
    made_by = clipped(item.payload.made_by, 60)
    return msgspec.structs.replace(row, change=_change(item.event, item.payload), made_by=made_by, occurred_at=at)


def _memories(item: Changed[Logged]) -> tuple[str, ...]:
    row = item.row
    return () if row is None or row.change is None else tuple(each.memory for each in row.change.parties if each.memory)


@projection(row=Consolidated, key=_memories)
def consolidated(row: Consolidated | None, item: Changed[Logged]) -> Consolidated:
    """How each memory stands to others by recorded changes: merged, pruned, superseded, at odds."""
    logged = item.row
    assert logged is not None
    assert logged.change is not None
    change = msgspec.structs.replace(logged.change, undone=logged.undone_at is not None)
    return msgspec.structs.replace(row or Consolidated(), changes=newest(row.changes if row else (), change, KEPT))


def _change(event: Event, payload: Consolidating) -> Change:
    at, id = int(event.occurred_at), str(event.delivery_id)
    match payload:
        case MemoriesMerged():
            parties = [payload.keeper, *payload.merged[:MOST_MERGED]]
            found = tuple(Party(_id(each.memory), _id(each.text)) for each in parties)
            return Change(at, id, "merged", found, f"alike: {payload.alike:.2f}")
        case MemoryPruned():
            return Change(
                at, id, "pruned", (Party(_id(payload.memory)),), f"importance {payload.importance:.2f}, never used",
                int(payload.last_at),
            )  # fmt: skip
        case MemorySuperseded():
            sides = (payload.by, payload.memory)
            found = tuple(Party(_id(each.memory), _id(each.text)) for each in sides)
            return Change(at, id, "superseded", found, clipped(payload.why, 300))
        case ContradictionFound():
            found = tuple(Party(_id(each.memory), _id(each.text)) for each in payload.memories[:MOST_MERGED])
            return Change(at, id, "contradiction", found, clipped(payload.why, 300))


def _id(text: str) -> str:
    return clipped(text, 64)
