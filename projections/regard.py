"""What people and agents think of memories: ratings, and what is pinned. Reads join it by the memory's id."""

from __future__ import annotations

import msgspec

from memctl.domain.bounded import clipped
from memctl.domain.outcomes import Kept, moving_average, with_outcome
from memctl.domain.verdicts import MemoryPinned, MemoryRated
from memctl.projections.kernel import Recorded, projection


class Regard(msgspec.Struct, frozen=True, kw_only=True):
    """`usefulness` is the moving average of the newest 32 ratings (0 to 1, beginning at 0.5)."""

    memory: str
    ratings: tuple[Kept, ...] = ()
    usefulness: float = 0.5
    why: str = ""
    """What the newest rating that gave a reason said."""
    why_at: tuple[int, str] = (0, "")
    pinned: bool = False
    pinned_at: tuple[int, str] = (0, "")


@projection(row=Regard, key=lambda said: clipped(said.payload.memory, 512), indexes=(("pinned",),))
def regard(row: Regard | None, said: Recorded[MemoryRated] | Recorded[MemoryPinned]) -> Regard:
    """Ratings of memories, and which are pinned."""
    payload, event = said.payload, said.event
    at = (int(event.occurred_at), str(event.delivery_id))
    row = row or Regard(memory=clipped(payload.memory, 512))
    if isinstance(payload, MemoryPinned):
        if at < row.pinned_at:
            return row
        return msgspec.structs.replace(row, pinned=payload.pinned, pinned_at=at)
    value = round(min(max(payload.value, 0.0), 1.0), 4) + 0.0
    ratings = with_outcome(row.ratings, Kept(*at, value))
    row = msgspec.structs.replace(row, ratings=ratings, usefulness=moving_average(ratings))
    if payload.why and at >= row.why_at:
        row = msgspec.structs.replace(row, why=clipped(payload.why, 300), why_at=at)
    return row
