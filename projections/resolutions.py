"""Resolutions: what became of references and questions that memories left open."""

import msgspec

from memctl.domain.events.feedback import ConditionResolved, Resolution
from memctl.domain.support.bounded import clipped
from memctl.projections.kernel import Recorded, projection


class ResolvedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """The last word on a condition. `confirmed` leads to `resolved_to`; `pending` and `rejected` keep their own id."""

    condition: str
    resolution: Resolution
    resolved_to: str
    confidence: float
    resolved_at: int
    event: str
    by: str


def effective(condition: str, row: ResolvedCondition | None) -> tuple[str, str]:
    """The id that a condition stands for, and direct, pending or resolved."""
    if row is None or row.resolution == "rejected":
        return condition, "direct"
    return (row.resolved_to, "resolved") if row.resolution == "confirmed" else (condition, "pending")


@projection(
    row=ResolvedCondition,
    key=lambda recorded: clipped(recorded.payload.condition, 512),
    indexes=(("resolution", "resolved_at"),),
)
def resolutions(row: ResolvedCondition | None, recorded: Recorded[ConditionResolved]) -> ResolvedCondition:
    """What became of what was left open: the latest word on each condition."""
    payload, event = recorded.payload, recorded.event
    made = ResolvedCondition(
        condition=clipped(payload.condition, 512),
        resolution=payload.resolution,
        resolved_to=clipped(payload.resolved_to, 512) if payload.resolution == "confirmed" else "",
        confidence=round(min(max(payload.confidence, 0.0), 1.0), 4) + 0.0,
        resolved_at=int(event.occurred_at),
        event=str(event.delivery_id),
        by=clipped(event.actor, 20),
    )
    return made if row is None else max(row, made, key=lambda r: (r.resolved_at, r.event))
