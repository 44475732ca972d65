"""Core memory: the sections that are always in context."""

import msgspec

from memctl.domain.events.core_memory import LONGEST_SECTION, CoreMemoryAppended, CoreMemoryReplaced
from memctl.domain.support.bounded import clipped
from memctl.domain.support.provenance import Provenance, by_actor
from memctl.domain.support.structs import carried_over
from memctl.projections.kernel import Recorded, projection


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """A section as one edit left it. `changed_at` in microseconds."""

    section: str
    text: str
    version: int
    changed_at: int
    event: str
    by: str
    said_by: Provenance = Provenance.USER_TYPED
    """An agent's, as long as words of one stand in it."""
    confirmed: bool = False
    """A person wrote it, or approved it."""
    location: str = ""
    """Where an agent wrote them: what is a person's is of no project."""


class CoreSection(Edition, frozen=True, kw_only=True):
    """A section as its last edit left it, and as people did, which holds until they approve what came since."""

    settled: Edition | None = None


@projection(row=CoreSection, key=lambda edit: clipped(edit.payload.section, 40))
def core_memory(
    row: CoreSection | None, edit: Recorded[CoreMemoryAppended] | Recorded[CoreMemoryReplaced]
) -> CoreSection | None:
    """Sections of core memory: each edit holds the whole text, and the one of the highest version counts. What stands
    in no stream of theirs is no edit, nor is what came from another memory."""
    payload, event = edit.payload, edit.event
    if not event.stream.startswith("core/") or by_actor(event.actor) is Provenance.IMPORT:
        return row
    waits = payload.agents or event.actor != "user"
    made = Edition(
        section=clipped(payload.section, 40),
        text=clipped(payload.text, LONGEST_SECTION),
        version=payload.version,
        changed_at=int(event.occurred_at),
        event=str(event.delivery_id),
        by=clipped(event.actor, 20),
        said_by=Provenance.AGENT if waits or payload.approved else Provenance.USER_TYPED,
        confirmed=not waits,
        location=event.location if waits else "",
    )
    settled = row.settled if row is not None else None
    if made.confirmed:
        settled = _later(settled, made)
    return carried_over(_later(row, made), CoreSection, settled=settled)


def _later(one: Edition | None, other: Edition) -> Edition:
    return other if one is None else max(one, other, key=lambda r: (r.version, r.changed_at, r.event))
