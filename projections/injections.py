"""The blocks that memory put before the agent of a session, newest first."""

import msgspec

from memctl.domain.events.event_order import place_of
from memctl.domain.events.recalls import MemoryRecalled
from memctl.domain.support.bounded import NARROW, clipped, newest
from memctl.projections.kernel import Recorded, projection

BLOCKS, SILENCES, MEMORIES, PASSED_OVER = 48, 12, 8, 4
"""Blocks of a session that are kept, and prompts at which memory kept silent; memories of each that were injected, and
that were passed over."""


class Block(msgspec.Struct, frozen=True, omit_defaults=True):
    """One block: when (microseconds), for which hook, and its memories with their scores (0 to 1), first one first; or
    a prompt at which memory kept silent, which has none."""

    at: int
    id: str
    hook: str
    memories: tuple[tuple[str, float], ...] = ()
    tokens: int = 0
    withheld: bool = False
    passed_over: tuple[tuple[str, float, str], ...] = ()
    """What was found and not injected, with its score and why."""
    silent: str = ""
    by_files: tuple[int, ...] = ()
    """The places, from 1, of the memories that were injected for the files that their work changed."""


class Injections(msgspec.Struct, frozen=True, kw_only=True):
    """The newest blocks of one session, the newest prompts at which memory kept silent, and how many there were."""

    location: str = ""
    last_at: int = 0
    located_at: tuple[int, str] = (0, "")
    """When the newest block was put there, and its event."""
    count: int = 0
    blocks: tuple[Block, ...] = ()
    silences: tuple[Block, ...] = ()
    kept_silent: int = 0


@projection(row=Injections, key=lambda recorded: recorded.event.stream, indexes=(("last_at",),))
def injections(row: Injections | None, recorded: Recorded[MemoryRecalled]) -> Injections:
    """What memory put before the agent of each session, or held back, with rank and score; and where it kept silent."""
    row = row or Injections()
    event, seen = recorded.event, recorded.payload
    at = int(event.occurred_at)
    block = Block(
        at=at,
        id=str(event.delivery_id),
        hook=clipped(seen.hook, 40, NARROW),
        memories=tuple((clipped(each.id, 80, NARROW), _score(each.score)) for each in seen.memories[:MEMORIES]),
        tokens=seen.tokens,
        withheld=seen.withheld,
        passed_over=tuple(
            (clipped(each.id, 80, NARROW), _score(each.score), clipped(each.why, 40, NARROW))
            for each in seen.passed_over[:PASSED_OVER]
        ),
        silent=clipped(seen.silent, 40, NARROW),
        by_files=tuple(place for place, each in enumerate(seen.memories[:MEMORIES], 1) if each.by == "files"),
    )
    spoken = bool(seen.memories)
    place = max((row.located_at, row.location), ((at, block.id), clipped(place_of(event), 400, NARROW)))
    return msgspec.structs.replace(
        row,
        count=row.count + spoken,
        kept_silent=row.kept_silent + (not spoken),
        last_at=max(row.last_at, at),
        blocks=newest(row.blocks, block, BLOCKS) if spoken else row.blocks,
        silences=row.silences if spoken else newest(row.silences, block, SILENCES),
        located_at=place[0],
        location=place[1],
    )


def _score(score: float) -> float:
    return round(min(max(score, 0.0), 1.0), 3) + 0.0
