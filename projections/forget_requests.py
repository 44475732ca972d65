"""What agents asked to have forgotten, and what a person said to that."""

import msgspec

from memctl.domain.knowledge.forget_requests import ForgetRefused, ForgetRequested
from memctl.domain.support.bounded import clipped
from memctl.domain.support.provenance import LONGEST_ACTOR
from memctl.projections.kernel import Recorded, projection


class ForgetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The last request about one thing. It waits unless a person refused later. Times in microseconds."""

    thing: str
    why: str = ""
    by: str = ""
    location: str = ""
    event: str = ""
    asked_at: int = 0
    refused_at: int = 0
    waits: bool = False


@projection(row=ForgetRequest, key=lambda item: clipped(item.payload.thing, 512), indexes=(("waits", "asked_at"),))
def forget_requests(
    row: ForgetRequest | None, item: Recorded[ForgetRequested] | Recorded[ForgetRefused]
) -> ForgetRequest:
    """Requests to forget, by what they are about: the latest, and when a person refused."""
    row = row or ForgetRequest(thing=clipped(item.payload.thing, 512))
    at, id = int(item.event.occurred_at), str(item.event.delivery_id)
    if isinstance(item.payload, ForgetRefused):
        row = msgspec.structs.replace(row, refused_at=max(row.refused_at, at))
    elif (at, id) > (row.asked_at, row.event):
        row = msgspec.structs.replace(
            row,
            why=clipped(item.payload.why, 300),
            by=clipped(item.event.actor, LONGEST_ACTOR),
            location=item.event.location,
            event=id,
            asked_at=at,
        )
    return msgspec.structs.replace(row, waits=row.asked_at > row.refused_at)
