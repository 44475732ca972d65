"""What people think of what memory holds, joined when it is read: ratings, what is pinned, what was rejected."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.pages import Condition, Keyed, Where, either, page, rows_of, several
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.domain.events.facts import quote_hash
from memctl.domain.knowledge.memory import MemoryKind, memory_id
from memctl.domain.knowledge.orders import might_be_obeyed
from memctl.infra.log.read import read_events
from memctl.projections.memory_feedback import MemoryFeedback
from memctl.projections.memory_rows import Memory

MOST_PINNED = 50
"""Pinned memories that are looked through, those pinned last first."""

R = TypeVar("R")


def regards(reader: Reader, memories: Sequence[str]) -> dict[str, MemoryFeedback]:
    """What was said of memories, by their id; those that nobody spoke of are left out."""
    return several(reader, models.memory_feedback, memories)


def standing(reader: Reader, kind: MemoryKind, rows: Sequence[Keyed[R]]) -> list[Keyed[R]]:
    """The rows of a read model without those whose memories a person rejected."""
    if not rows:
        return []
    said = regards(reader, [memory_id(kind, keyed.key) for keyed in rows])
    gone = {id for id, feedback in said.items() if feedback.rejected}
    return [keyed for keyed in rows if memory_id(kind, keyed.key) not in gone]


def pinned(reader: Reader, places: Places) -> list[Memory]:
    """The pinned memories of a project and of everywhere, those pinned last first: of those that read otherwise by now
    what nobody might obey, for no person was shown it."""
    p, memories = models.memory_feedback, models.memories
    here = either(Where(memories).within(places, or_everywhere=True).met_in(places))
    wanted = Where(p).equal("pinned", True)
    if here or reader.limited_to is not None:
        there, values = rows_of(reader, memories, conditions=here)
        wanted = wanted.also(Condition(sql.SQL("key IN (SELECT key FROM {})").format(there), values))
    rows, _ = page(reader, p, "pinned_since", wanted, limit=MOST_PINNED)
    found: dict[str, Memory] = several(reader, memories, [keyed.key for keyed in rows])
    said = read_events(reader.connection, reader.space_id, [UUID(keyed.row.pinned_at[1]) for keyed in rows])
    words = {str(id): getattr(event.payload, "words", "") for id, event in said.items()}
    kept = [keyed for keyed in rows if keyed.key in found and not keyed.row.rejected]
    return [
        memory
        for keyed in kept
        if words.get(keyed.row.pinned_at[1]) == quote_hash((memory := found[keyed.key]).text)
        or not might_be_obeyed(memory.text)
    ]
