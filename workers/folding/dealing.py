"""To which slots of stage 2 facts and changed rows are dealt: those of the rows that they go to, as their keys say."""

from collections.abc import Collection, Sequence
from typing import Any

from memctl.domain.events.event import Position
from memctl.domain.events.facts import Identified
from memctl.infra.database import Connection
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.dead_letters import Target
from memctl.infra.readmodels.facts import SourceKey
from memctl.infra.readmodels.generations import Lease
from memctl.projections import layers
from memctl.projections.kernel import Projection
from memctl.workers.folding.sources import Item, Register
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork


def keys_or_none(p: Projection[Any], item: Item) -> Sequence[str] | None:
    """The rows that an input goes to; None where its key raises, which who folds it finds out."""
    try:
        return p.keys(item)
    except Exception:
        return None


def slots_of(register: Register, fact: Identified) -> int | None:
    """The slots of the rows that a fact goes to; None where a key raises."""
    found: list[str] = []
    for p in register.takers(fact):
        if (keys := keys_or_none(p, fact)) is None:
            return None
        found += keys
    return layers.mask_of(found)


def slots_of_facts(
    connection: Connection, lease: Lease, register: Register, facts: Sequence[tuple[int, Identified]], end: Position
) -> dict[SourceKey, int | None]:
    """The slots of facts (space, fact) that a shard of stage 1 writes; None for those that every shard of stage 2 is to
    read. Where stage 2 has one shard, nothing is worked out."""
    over = generations.built_over(connection, lease.generation) if lease.shards > 1 and facts else None
    if over is None:
        return {}
    unrouted = _unrouted(dead_letters.parked(connection, over))
    slot = progress.slot()
    # As stage 2 shows what it routes: a key that does not come to an end is parked there, and not asked for here again.
    sources = [(space_id, fact.id) for space_id, fact in facts]
    slot.fold(ThreadWork("source", "", sources, over, end, len(register.places)))
    found: dict[SourceKey, int | None] = {}
    for number, (space_id, fact) in enumerate(facts):
        source = (space_id, fact.id)
        keys: list[str] | None = []
        for p in register.takers(fact):
            slot.piece(number * len(register.places) + register.places[p.name])
            made = None if (p.name, source) in unrouted else keys_or_none(p, fact)
            keys = None if keys is None or made is None else [*keys, *made]
        found[source] = None if keys is None else layers.mask_of(keys)
    slot.over(ThreadWork("stage 1", str(lease.shard), generation=lease.generation))
    return found


def _unrouted(letters: Collection[dead_letters.DeadLetter]) -> set[tuple[str, SourceKey]]:
    """What could not be routed, by read model."""
    targets: list[Target] = [letter.target for letter in letters]
    return {(at.projection, (at.space_id, at.source)) for at in targets if at.source is not None}
