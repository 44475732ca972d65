"""What memctl would take at 10^6, 10^8 and 10^10 events: arithmetic over what was measured, and a simulation of lag.

Nothing here was run at such sizes. Each figure that goes in names where it was measured; what is only assumed says so.

python tests/bench/scaling.py          # prints the tables of docs/scaling.md
python tests/bench/scaling.py --write  # writes them into the page
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"

# Measured on two processors at 1,000,000 events, as docs/internals/benchmarks.md has them (a test compares).
FOLD_CPU = 92e-6
"""Seconds of memctl's processor time an event, in a replay."""
POSTGRES_CPU = 46e-6
REPLAY_WALL = 75.0
"""Seconds that the replay of 1,000,000 events took on two processors."""
APPEND_CPU = 86e-6
"""Seconds an event in batches of 500 at 1.5 KB, client and server."""
LOG_BYTES = 1_500
"""Of the log, an event."""
ROW_BYTES = 730
"""Of facts and read models, an event."""

REAL_MEMORIES, REAL_EVENTS = 1_135, 18_244
"""Of 150 public sessions, as README.md shows them of `replay` and `verify` (a test compares)."""
MEMORIES = REAL_MEMORIES / REAL_EVENTS

# Computed, not measured: 384 halves and 384 bytes; 32 links of a graph; 60 words of 8 bytes; 500 bytes of payload and
# keys.
POINT_BYTES = 384 * 3 + 32 * 4 + 60 * 8 + 500

# Assumed.
EMBED_CPU = 12e-3
"""Seconds to embed one short memory on one processor."""
ROUND_FIXED = 0.02
"""Seconds a round takes with nothing in it: a wake-up, a lease, two reads, a commit."""
LAG_MEDIAN, LAG_P99 = 0.092, 0.162
"""Seconds, as measured at 500 events/s from twenty sessions with one shard (docs/internals/benchmarks.md)."""
STREAM_CPU = 0.9e-3
"""Seconds a round takes for each session that is open in it: its rows are read, folded and written whole. Fitted, so
that the simulation gives about that median. Its p99 is too low: real rounds differ more than these do."""
SESSION_RATE = 25.0
"""Events a second of one session that is being worked in, as in that measurement."""

SPREAD = REPLAY_WALL * 2 / (1e6 * (FOLD_CPU + POSTGRES_CPU))
"""How much longer two processors took than their work alone: what is not parallel, and waiting."""


def sizes(events: Sequence[float] = (1e6, 1e8, 1e10)) -> Iterator[list[str]]:
    yield ["", *(f"10^{len(str(int(count))) - 1} events" for count in events)]
    rows: list[tuple[str, Callable[[float], str]]] = [
        ("log on disk", lambda n: _bytes(n * LOG_BYTES)),
        ("facts and read models", lambda n: _bytes(n * ROW_BYTES)),
        ("memories", lambda n: f"{n * MEMORIES:,.0f}"),
        ("vectors on disk", lambda n: _bytes(n * MEMORIES * POINT_BYTES)),
        ("vectors in memory, int8", lambda n: _bytes(n * MEMORIES * 384)),
        ("appending all of it, one processor", lambda n: _span(n * APPEND_CPU)),
        ("replay, 2 processors", lambda n: _span(_replay(n, 2))),
        ("replay, 16 processors", lambda n: _span(_replay(n, 16))),
        ("replay, 64 processors", lambda n: _span(_replay(n, 64))),
        ("embedding all of it, one processor", lambda n: _span(n * MEMORIES * EMBED_CPU)),
    ]
    for name, figure in rows:
        yield [name, *(figure(count) for count in events)]


def _replay(events: float, processors: int) -> float:
    """Seconds, if tasks are dealt out as well to many processors as to two. Postgres' own limits are not in it."""
    return events * (FOLD_CPU + POSTGRES_CPU) * SPREAD / processors


def lags() -> Iterator[list[str]]:
    """p50/p99 by rate and shards."""
    counts = (1, 4, 16)
    yield ["events/s", "open sessions", *(f"{shards} shard{'s' if shards > 1 else ''}" for shards in counts)]
    for rate in (50, 500, 1_000, 2_000):
        found = (simulated(rate, shards) for shards in counts)
        told = ("behind" if p50 is None or p99 is None else f"{p50 * 1e3:.0f}/{p99 * 1e3:.0f} ms" for p50, p99 in found)
        yield [f"{rate:,}", f"{max(rate / SESSION_RATE, 1):,.0f}", *told]


def simulated(rate: float, shards: int, *, seconds: float = 30.0) -> tuple[float | None, float | None]:
    """Median and 99th percentile of the lag up to stage 2, in seconds, with a processor for each shard and one for
    stage 2; None where the backlog grows. One shard shares its worker with stage 2, as shipped.

    Events come as a Poisson process. A shard's round takes everything that came since its last began; a round of stage
    2 everything that the shards are done with.
    """
    chance = random.Random(7)
    came: list[float] = []
    now = 0.0
    while (now := now + chance.expovariate(rate)) < seconds:
        came.append(now)
    sessions = max(rate / SESSION_RATE, 1)
    told: list[float] = []
    if shards == 1:
        for end, first, last in _rounds(came, lambda n: _stage1(n, sessions) + _stage2(n, sessions)):
            told += [end - at for at in came[first:last]]
    else:
        dealt: list[list[float]] = [[] for _ in range(shards)]
        for at in came:
            dealt[chance.randrange(shards)].append(at)
        folded: list[tuple[float, float]] = []
        for of_shard in dealt:
            for end, first, last in _rounds(of_shard, lambda n: _stage1(n, sessions / shards)):
                folded += [(end, at) for at in of_shard[first:last]]
        folded.sort()
        for end, first, last in _rounds([done for done, _ in folded], lambda n: _stage2(n, sessions)):
            told += [end - at for _, at in folded[first:last]]
    quarter = len(told) // 4
    if max(told) > seconds or sum(told[-quarter:]) > 2 * sum(told[quarter : 2 * quarter]):
        return None, None
    told.sort()
    return told[len(told) // 2], told[len(told) * 99 // 100]


def _rounds(came: Sequence[float], cost: Callable[[int], float]) -> Iterator[tuple[float, int, int]]:
    """Rounds of a worker that takes all there is: when each ended, and which part of what came it took."""
    at, first = 0.0, 0
    while first < len(came):
        at = max(at, came[first])
        last = first
        while last < len(came) and came[last] <= at:
            last += 1
        end = at + cost(last - first)
        yield end, first, last
        at, first = end, last


STAGE2_SHARE = 0.35
"""Of a replay's time, stage 2 and its tables."""


def _stage1(events: int, sessions: float) -> float:
    work = events * (FOLD_CPU + POSTGRES_CPU) * (1 - STAGE2_SHARE)
    return ROUND_FIXED + work + min(events, sessions) * STREAM_CPU * (1 - STAGE2_SHARE)


def _stage2(events: int, sessions: float) -> float:
    work = events * (FOLD_CPU + POSTGRES_CPU) * STAGE2_SHARE
    return ROUND_FIXED + work + min(events, sessions) * STREAM_CPU * STAGE2_SHARE


def table(rows: Iterator[list[str]]) -> str:
    head, *rest = rows
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rest)])


def written(page: str) -> str:
    """The page with the tables that this module computes."""
    for name, rows in (("sizes", sizes()), ("lags", lags())):
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        assert end, f"{PAGE.name} has no place for {name}"
        page = f"{before}{begin}{table(rows)}\n{end}{after}"
    return page


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.{1 if unit == 'GB' else 0}f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(table(sizes()), table(lags()), sep="\n\n")
