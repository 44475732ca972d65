"""What memctl would take at 10^6, 10^8 and 10^10 events and on more processors: arithmetic over what was measured.

Nothing here was run at such sizes. Each figure that goes in names where it was measured; what is only assumed says so.

python tests/bench/scaling.py          # prints the tables of docs/scaling.md
python tests/bench/scaling.py --write  # writes them into the page
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"

# Measured on two processors at 1,000,000 events, as docs/internals/benchmarks.md has them (a test compares).
FOLD_CPU = 139e-6
"""Seconds of memctl's processor time an event, in a replay."""
POSTGRES_CPU = 37e-6
REPLAY_WALL = 97.0
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


class Phase(NamedTuple):
    """Of a replay of `PROFILED` events: processor time in seconds, and of the longest task; 0 where one process works
    and the others wait."""

    cpu_s: float
    longest_s: float


# Measured (`python tests/bench/sharding.py`, two quiet processors).
PROFILED = 100_000
PHASES: dict[str, Phase] = {
    "planning": Phase(0.21, 0),
    "stage 1: events": Phase(13.58, 1.53),
    "stage 1: tables": Phase(0.41, 0.2),
    "stage 2: facts": Phase(2.15, 0.99),
    "stage 2: layer 2": Phase(0.27, 0.15),
    "stage 2: layer 3": Phase(0.05, 0.05),
    "stage 2: layer 4": Phase(0.04, 0.04),
    "stage 2: layer 5": Phase(1.02, 1.02),
    "stage 2: layer 6": Phase(0.36, 0.36),
    "stage 2: tables": Phase(0.81, 0.26),
    "catching up": Phase(0.0, 0),
    "comparing and switching": Phase(0.01, 0),
}
WORK = {1: (160.4, 60.4), 16: (170.8, 72.7)}
"""By the number of shards: microseconds of processor time an event, of stages 1 and 2 (100,000 events, decision 95)."""
LONGEST = {1: 60.4, 16: 5.2}
"""Of stage 2, of the longest shards of all layers together."""


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
    """Seconds at least: what cannot be dealt out, and of each phase its share, or its longest task. At 1,000,000 events
    two processors took so much of it all. Postgres' own limits are not in it."""
    return events / 1e6 * REPLAY_WALL * _on(processors, events) / _on(2, events)


def _on(processors: int, events: float) -> float:
    """Tasks hold as many events however many there are; tables are one task each."""
    more = events / PROFILED
    return sum(
        more * phase.cpu_s
        if not phase.longest_s
        else max(more * phase.cpu_s / processors, phase.longest_s * (more if "tables" in name else 1))
        for name, phase in PHASES.items()
    )


def serial_share() -> float:
    return sum(phase.cpu_s for phase in PHASES.values() if not phase.longest_s) / sum(p.cpu_s for p in PHASES.values())


def rates() -> Iterator[list[str]]:
    """What folds keep up with, by the number of shards, with a processor for each shard of a layer."""
    yield ["shards", "stage 1", "stage 2", "events/s at most"]
    for shards, (first, second) in WORK.items():
        most = 1e6 / max((first + second) / shards, LONGEST[shards])
        yield [str(shards), f"{first:.0f} µs", f"{second:.0f} µs", f"{most:,.0f}"]


def table(rows: Iterator[list[str]]) -> str:
    head, *rest = rows
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rest)])


def written(page: str) -> str:
    """The page with the tables that this module computes."""
    for name, rows in (("sizes", sizes()), ("rates", rates())):
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
        print(table(sizes()), table(rates()), sep="\n\n")
