"""What people and agents think of memories: ratings, what is pinned, and what a person confirmed or rejected.

Reads join it by the memory's id (`memctl.api.reading.feedback`): a memory's own row is rebuilt whenever its source
changes.
"""

import msgspec

from memctl.domain.events.facts import MemoriesFollowed
from memctl.domain.events.feedback import KnowledgeRejected, KnowledgeVerified, MemoryPinned, MemoryRated
from memctl.domain.support.bounded import clipped
from memctl.domain.support.outcomes import KeptOutcome, moving_average, with_outcome
from memctl.projections.kernel import Recorded, projection


class MemoryFeedback(msgspec.Struct, frozen=True, kw_only=True):
    """`usefulness` is the moving average of the newest 32 ratings (0 to 1, beginning at 0.5).

    `verdict` is what a person last said of it: that it holds (True) or does not; None where nobody did.
    """

    ratings: tuple[KeptOutcome, ...] = ()
    usefulness: float = 0.5
    why: str = ""
    """What the newest rating that gave a reason said."""
    why_at: tuple[int, str] = (0, "")
    recalls: int = 0
    """Pieces of work in which it was injected for an agent, and which are over."""
    followed: tuple[KeptOutcome, ...] = ()
    """How the newest 32 of them went whose outcome is known: 1 for success, 0.5 for partial, 0 for failure."""
    reliability: float = 0.5
    """The moving average of those, beginning at 0.5."""
    pinned: bool = False
    pinned_at: tuple[int, str] = (0, "")
    pinned_since: int = 0
    """When it was pinned, in microseconds."""
    verdict: bool | None = None
    verdict_at: tuple[int, str] = (0, "")

    @property
    def rejected(self) -> bool:
        return self.verdict is False

    @property
    def confirmed(self) -> bool:
        return self.verdict is True


_WORTH = {"success": 1.0, "partial": 0.5, "failure": 0.0}

Said = (
    MemoriesFollowed
    | Recorded[MemoryRated]
    | Recorded[MemoryPinned]
    | Recorded[KnowledgeVerified]
    | Recorded[KnowledgeRejected]
)


def _about(said: Said) -> str | tuple[str, ...]:
    if isinstance(said, MemoriesFollowed):
        return tuple(clipped(memory, 512) for memory in said.memories)
    payload = said.payload
    about = payload.memory if isinstance(payload, (MemoryRated, MemoryPinned)) else payload.claim
    return clipped(about, 512)


@projection(row=MemoryFeedback, key=_about, indexes=(("pinned", "pinned_since"),))
def memory_feedback(row: MemoryFeedback | None, said: Said) -> MemoryFeedback:
    """What is thought of memories: ratings, which are pinned, which a person confirmed or rejected, and the outcome
    of the work in which they were injected."""
    row = row or MemoryFeedback()
    if isinstance(said, MemoriesFollowed):
        return _followed(row, said)
    payload, event = said.payload, said.event
    at = (int(event.occurred_at), str(event.delivery_id))
    match payload:
        case MemoryPinned():
            if event.actor != "user" or at < row.pinned_at:
                return row
            since = at[0] if payload.pinned else 0
            return msgspec.structs.replace(row, pinned=payload.pinned, pinned_at=at, pinned_since=since)
        case MemoryRated():
            value = round(min(max(payload.value, 0.0), 1.0), 4) + 0.0
            ratings = with_outcome(row.ratings, KeptOutcome(*at, value))
            row = msgspec.structs.replace(row, ratings=ratings, usefulness=moving_average(ratings))
            if payload.why and at >= row.why_at:
                row = msgspec.structs.replace(row, why=clipped(payload.why, 300), why_at=at)
            return row
        case KnowledgeVerified() | KnowledgeRejected():
            # Only people settle what holds.
            if event.actor != "user" or at < row.verdict_at:
                return row
            return msgspec.structs.replace(row, verdict=isinstance(payload, KnowledgeVerified), verdict_at=at)


def _followed(row: MemoryFeedback, said: MemoriesFollowed) -> MemoryFeedback:
    row = msgspec.structs.replace(row, recalls=row.recalls + 1)
    worth = _WORTH.get(said.outcome)
    if worth is None:
        return row
    followed = with_outcome(row.followed, KeptOutcome(int(said.occurred_at), str(said.id), worth))
    return msgspec.structs.replace(row, followed=followed, reliability=moving_average(followed))
