"""Insights: how many there are, drawn to a sheet for readers; whether they are any good only a reader can tell.

The rubric stands on the sheet, and what readers said in docs/internals/evaluation/insights.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, Missing
from insights import OUT, draw, write
from sessions import Data

SEED = 1


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    drawn, levels = draw(data, seed=SEED, count=100)
    write(drawn, OUT, seed=SEED, of=levels[3])
    total = sum(levels.values())
    yield Figure("claims that are held true", levels[3] / max(total, 1), total)
    yield Figure("  of those, drawn to .scratch/insights", len(drawn) / max(levels[3], 1), levels[3])
