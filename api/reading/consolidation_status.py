"""How memories stand to each other, joined when they are read: merged, pruned, superseded, at odds."""

from collections.abc import Iterable, Mapping

import msgspec

from memctl.api.reading import models
from memctl.api.reading.pages import page, several
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.records import ConsolidationChange, Party
from memctl.api.reading.views import Page, shown_as
from memctl.domain.knowledge.consolidation import text_digest
from memctl.projections.consolidated import Consolidated
from memctl.projections.memory_rows import Memory


class ConsolidationStatus(msgspec.Struct, frozen=True):
    """How the memory `id` stands: the memory that is shown for it (itself, unless it was merged), what took its place,
    what contradicts it, and whether it was pruned."""

    id: str
    shown_as: str
    successor: str = ""
    at_odds: tuple[str, ...] = ()
    pruned: bool = False

    @property
    def listed(self) -> bool:
        """Whether lists show it by itself."""
        return not self.pruned and self.shown_as == self.id

    @property
    def doubtful(self) -> bool:
        """Whether something else took its place, or speaks against it."""
        return bool(self.successor or self.at_odds)


def standings(reader: Reader, memories: Iterable[Memory]) -> dict[str, ConsolidationStatus]:
    """How these memories stand, by id; those of which nothing was recorded are left out."""
    by_id = {memory.id: memory for memory in memories}
    found: dict[str, Consolidated] = several(reader, models.consolidated, list(by_id))
    return {id: _standing(by_id[id], row) for id, row in found.items()}


def _standing(memory: Memory, row: Consolidated) -> ConsolidationStatus:
    digest = text_digest(memory.text)
    return ConsolidationStatus(
        memory.id,
        row.keeper_of(memory.id, digest) or memory.id,
        row.successor_of(memory.id, digest),
        row.at_odds_with(memory.id, digest),
        row.pruned(memory.last_at),
    )


def without_repeats(ids: Iterable[str], found: Mapping[str, ConsolidationStatus]) -> list[str]:
    """The ids in their order, without what was pruned. Of memories that are shown as one, only the first is kept."""
    seen: set[str] = set()
    kept = []
    for id in ids:
        apart = found.get(id)
        if apart is not None and apart.pruned:
            continue
        one = apart.shown_as if apart is not None else id
        if one not in seen:
            seen.add(one)
            kept.append(id)
    return kept


@question("/consolidation", "memory", whole=True, live=True)
def consolidation(reader: Reader, *, limit: Limit = 50, cursor: Cursor = None) -> Page[ConsolidationChange]:
    """What was merged, pruned, superseded or found at odds, newest first, and what of it was taken back."""
    rows, after = page(reader, models.consolidation_log, "occurred_at", [], limit=limit, cursor=cursor)
    changes = [(keyed, keyed.row.change) for keyed in rows if keyed.row.change is not None]
    ids = [party.memory for _, change in changes for party in change.parties]
    memories: dict[str, Memory] = several(reader, models.memories, ids)
    items = [
        shown_as(
            keyed.row,
            ConsolidationChange,
            id=keyed.key,
            kind=change.kind,
            why=change.why,
            memories=[
                Party(
                    id=party.memory,
                    role=change.role_of(party.memory),
                    title=memories[party.memory].title if party.memory in memories else "",
                )
                for party in change.parties
            ],
        )
        for keyed, change in changes
    ]
    return Page(items, after, None)
