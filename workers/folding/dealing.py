"""Where facts go in stage 2, worked out once, by who makes them: a shard reads its own, and routes nothing again."""

from collections.abc import Sequence
from typing import Any

from memctl.domain.events.event import Position
from memctl.domain.events.facts import Identified
from memctl.infra.database import Connection
from memctl.infra.readmodels import dead_letters, generations
from memctl.infra.readmodels.facts import Dealt, SourceKey
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


def dealt_of(register: Register, fact: Identified, first: int | None = None) -> Dealt | None:
    """Where a fact goes; None where a key raises. With the `first` of its pieces, it shows whose key it asks for."""
    found: dict[int, list[str]] = {}
    slot = progress.slot()
    for p in register.takers(fact):
        if first is not None:
            slot.piece(first + register.places[p.name])
        if (keys := keys_or_none(p, fact)) is None:
            return None
        for key in keys:
            found.setdefault(layers.slot_of(key), []).append(f"{p.name}:{key}")
    return found


def dealt_facts(
    connection: Connection, lease: Lease, register: Register, facts: Sequence[tuple[int, Identified]], end: Position
) -> dict[SourceKey, Dealt | None]:
    """Where facts (space, fact) go that a shard of stage 1 writes; None for those that every shard of stage 2 is to
    read, and route. Where stage 2 has one shard, nothing is worked out."""
    over = generations.built_over(connection, lease.generation) if lease.shards > 1 and facts else None
    if over is None:
        return {}
    unrouted = {
        (at.space_id, at.source) for at in (each.target for each in dead_letters.parked(connection, over)) if at.source
    }
    slot = progress.slot()
    # As stage 2 shows what it routes: a key that does not come to an end is parked there, and not asked for here again.
    sources = [(space_id, fact.id) for space_id, fact in facts]
    slot.fold(ThreadWork("source", "", sources, over, end, len(register.places)))
    found: dict[SourceKey, Dealt | None] = {}
    for number, ((_, fact), source) in enumerate(zip(facts, sources, strict=True)):
        first = number * len(register.places)
        found[source] = None if source in unrouted else dealt_of(register, fact, first)
    slot.over(ThreadWork("stage 1", str(lease.shard), generation=lease.generation))
    return found
