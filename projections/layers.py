"""How stage 2 is dealt out: in layers, by which read models read others, and within a layer over shards, by key.

A read model of the first layer folds facts and recorded events. One that reads rows of others (`Changed`) stands in the
layer behind theirs, and reads those rows as stage 2 reads facts: from a log of what changed, as they stand now. One
whose rows have the keys of those it reads stands beside them: the same shard folds both.
"""

import functools
import operator
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from memctl.projections.kernel import Projection, projections

SLOTS = 64
"""Slots that keys are dealt to, whatever the number of shards, so that what is stored depends on no number of shards.
Also the most shards of a layer."""


class Slice(msgspec.Struct, frozen=True):
    """What one shard of stage 2 folds: those rows of some read models whose keys are dealt to it."""

    projections: tuple[Projection[Any], ...]
    names: frozenset[str]
    """Theirs."""
    mask: int
    """A bit for each slot, as a signed number of 64 bits."""
    whole: bool
    """All rows of all read models: the only shard there is."""

    def owns(self, projection: str, key: str) -> bool:
        """Whether the row of a read model under a key, or what is known of a source by its id, is this shard's."""
        return self.whole or (projection in self.names and bool(self.mask >> slot_of(key) & 1))


def slot_of(key: str, of: int = SLOTS) -> int:
    """The slot of a key, of so many. Read models that share a key share its slot."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % of


def slot_of_target(target: str) -> int:
    """The slot of the key of a `projection:key`."""
    return slot_of(target.partition(":")[2])


def layers() -> tuple[tuple[Projection[Any], ...], ...]:
    """The read models of stage 2, each in the layer behind the last of those that it reads under other keys."""
    return _layers(projections(2))


def steps() -> tuple[tuple[Projection[Any], ...], ...]:
    """The read models of stage 2, each behind all that it reads: whole ones are folded in that order."""
    return _layers(projections(2), whole=True)


@functools.lru_cache(maxsize=8)
def _layers(found: tuple[Projection[Any], ...], whole: bool = False) -> tuple[tuple[Projection[Any], ...], ...]:
    depth: dict[type[Any], int] = {}
    made: list[list[Projection[Any]]] = []
    for p in found:
        depth[p.row] = level = max((depth[row] + (whole or not p.same_key) for row in p.upstream), default=0)
        if level == len(made):
            made.append([])
        made[level].append(p)
    return tuple(map(tuple, made))


def shards_of(shards: int) -> int:
    """How many shards stage 2 has in all, of a generation whose stage 1 has so many. One stays one, for all layers."""
    return 1 if shards == 1 else min(shards, SLOTS) * len(layers())


def layer_of(shard: int, of: int) -> int:
    """The layer of a shard of stage 2; they are numbered layer by layer."""
    return 0 if of == 1 else shard // (of // len(layers()))


def slice_of(shard: int, of: int) -> Slice:
    """What a shard of stage 2 folds."""
    return _slice(shard, of, projections(2))


@functools.lru_cache(maxsize=1024)
def _slice(shard: int, of: int, found: tuple[Projection[Any], ...]) -> Slice:
    if of == 1:
        return Slice(found, frozenset(p.name for p in found), -1, True)
    layer, number = divmod(shard, of // len(_layers(found)))
    bits = sum(1 << slot for slot in range(SLOTS) if slot * (of // len(_layers(found))) // SLOTS == number)
    mine = _layers(found)[layer]
    return Slice(mine, frozenset(p.name for p in mine), _signed(bits), False)


def shard_of(projection: str, key: str, of: int) -> int:
    """The shard of stage 2 that folds a row, or that has what is known of a source by its id."""
    if of == 1:
        return 0
    layer = next((n for n, each in enumerate(layers()) if any(p.name == projection for p in each)), 0)
    shards = of // len(layers())
    return layer * shards + slot_of(key) * shards // SLOTS


def mask_of(keys: Iterable[str]) -> int:
    """The slots of these keys."""
    return mask_of_slots(map(slot_of, keys))


def mask_of_slots(slots: Iterable[int]) -> int:
    """These slots."""
    return _signed(functools.reduce(operator.or_, (1 << slot for slot in slots), 0))


def mask_of_part(part: int, parts: int) -> int:
    """The slots of those keys whose hash is `part` modulo `parts`, a power of two."""
    bits = sum(1 << slot for slot in range(SLOTS) if slot % min(parts, SLOTS) == part % SLOTS)
    return _signed(bits)


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits >> 63 else bits
