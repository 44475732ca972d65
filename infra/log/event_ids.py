"""The ids that events have in a log. What transcripts say had others before schema 0025, and keeps them."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from memctl.domain.events.event import NewEvent
from memctl.domain.events.observations import TRANSCRIPT, event_id_of, former_id_of
from memctl.infra.database import Connection

_FORMER = "SELECT former_ids FROM memctl.spaces WHERE space_id = %s"
"""Whether a space may hold former ids, or tombstones of them."""

_KNOWN = """
SELECT event_id FROM memctl.deliveries WHERE space_id = %(space)s AND event_id = ANY(%(ids)s)
UNION ALL SELECT value::uuid FROM memctl.tombstones
WHERE space_id = %(space)s AND kind = 'event' AND value = ANY(%(texts)s)"""


def ids_of(connection: Connection, space_id: int, events: Sequence[NewEvent]) -> list[UUID]:
    """The id under which each event stands in a space, or would."""
    ids = [event_id_of(space_id, event.dedupe_key) for event in events]
    lines = [n for n, event in enumerate(events) if event.dedupe_key.startswith(TRANSCRIPT)]
    coming = {n for n in lines if events[n].formerly}
    if not lines or not (coming or _holds_former(connection, space_id)):
        return ids
    former = {n: former_id_of(space_id, events[n].dedupe_key) for n in lines}
    known = _known(connection, space_id, {*former.values(), *(ids[n] for n in coming)})
    for n, id in former.items():
        if id in known or (n in coming and ids[n] not in known):
            ids[n] = id
    return ids


def variant_id_of(space_id: int, first: UUID, key: str) -> UUID:
    """Id of another version of an event, under a key of its own: made the way that the first's was."""
    return (former_id_of if is_former(first) else event_id_of)(space_id, key)


def is_former(id: UUID) -> bool:
    """Whether an id is of the kind that events of transcripts no longer get."""
    return id.version == _FORMER_VERSION


_FORMER_VERSION = 5


def take_former(connection: Connection, space_id: int) -> None:
    """Let a space hold former ids: what comes from a log of before is cited by them."""
    connection.execute("SELECT set_config('memctl.former_ids', 'on', true)")
    connection.execute("UPDATE memctl.spaces SET former_ids = true WHERE space_id = %s AND NOT former_ids", [space_id])


def _holds_former(connection: Connection, space_id: int) -> bool:
    row = connection.execute(_FORMER, [space_id]).fetchone()
    return bool(row and row[0])


def _known(connection: Connection, space_id: int, ids: Iterable[UUID]) -> set[UUID]:
    asked = list(ids)
    found = connection.execute(_KNOWN, {"space": space_id, "ids": asked, "texts": list(map(str, asked))})
    return {id for (id,) in found}
