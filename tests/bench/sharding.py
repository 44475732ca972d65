"""What dealing stage 2 out costs: processor time of each shard, one against sixteen, and of each phase of a replay.

    python tests/bench/sharding.py [FOLDER] [--events 100000] [--shards 1,16] [--json FILE]

The same events are appended, folded as workers do, a batch at a time, with garbage collected as they do, and rebuilt.
Time is that of the process and of its session in Postgres. Digests of all read models are compared between the numbers
of shards.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import engine
from generated import Cut, read_sessions

from memctl.infra.database import connect
from memctl.infra.log.mark import move_mark
from memctl.infra.log.reach import Reach, next_section
from memctl.infra.readmodels import generations
from memctl.infra.readmodels import rows as readmodels
from memctl.projections.kernel import projections
from memctl.projections.layers import layer_of
from memctl.workers.folding.stage1 import Stage1
from memctl.workers.folding.stage2 import Stage2
from memctl.workers.rebuild.profile import Profile, cpu_s
from memctl.workers.rebuild.replay import replay
from memctl.workers.runtime.worker import collect_seldom

PROCESSORS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--shards", default="1,16")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sessions = read_sessions(given.folder)
    collect_seldom()
    found: dict[str, Any] = {"events": given.events}
    for shards in map(int, given.shards.split(",")):
        engine.SHARDS = shards
        found[f"{shards} shards"] = measure(sessions, given.events, shards)
    first, *others = (each for each in found.values() if isinstance(each, dict))
    for each in others:
        assert each["digests"] == first["digests"], "rows depend on the number of shards"
        each["stage 2, against one"] = round(each["stage 2, CPU s"] / first["stage 2, CPU s"], 3)
        each["stage 1, against one"] = round(each["stage 1, CPU s"] / first["stage 1, CPU s"], 3)
    for each in (first, *others):
        del each["digests"]
    print(json.dumps(found, indent=2))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


def seconds_on(done: Profile, processors: int) -> float:
    """How long a rebuild takes at least on so many processors: no phase begins before the one before it has ended, nor
    is shorter than its longest piece."""
    phases = done.phases
    return sum(each.cpu_s if each.serial else max(each.cpu_s / processors, each.longest_s) for each in phases)


def measure(sessions: Sequence[Cut], events: int, shards: int) -> dict[str, Any]:
    with engine.database() as (url, _, _):
        engine.load(url, sessions, events)
        with connect(url) as connection:
            connection.execute("VACUUM (ANALYZE) memctl.events")
            live, upto = generations.live(connection), Reach(move_mark(connection))
            spent: dict[str, float] = defaultdict(float)
            longest: dict[int, float] = defaultdict(float)
            for shard in range(shards):
                began, stage1 = cpu_s(connection), Stage1()
                lease = generations.take(connection, live.stage1, shard, "bench", 5)
                while next_section(lease.reach, upto):
                    lease = stage1.drain_batch(connection, lease, upto)
                generations.release(connection, lease)
                spent["stage 1"] += cpu_s(connection) - began
            connection.execute(f"ANALYZE memctl.facts_g{live.stage1}".encode())
            of = generations.shards(connection, live.stage2)
            for shard in range(of):
                began, stage2 = cpu_s(connection), Stage2(shares=of)
                lease = generations.take(connection, live.stage2, shard, "bench", 5)
                while next_section(lease.reach, upto):
                    lease = stage2.drain_batch(connection, lease, live.stage1, upto)
                generations.release(connection, lease)
                took = cpu_s(connection) - began
                spent["stage 2"] += took
                spent[f"stage 2, layer {layer_of(shard, of) + 1}"] += took
                longest[layer_of(shard, of)] = max(longest[layer_of(shard, of)], took)
            figures: dict[str, Any] = {f"{what}, CPU s": round(seconds, 2) for what, seconds in spent.items()}
            figures["stage 2, longest shards, CPU s"] = round(sum(longest.values()), 2)
            figures["digests"] = [readmodels.digest(connection, p, live.of(p.stage)).hex for p in projections()]
        done = replay(url, None).profile
        figures["replay"] = {
            each.name: {"CPU s": round(each.cpu_s, 2), "pieces": each.pieces, "longest": round(each.longest_s, 2)}
            for each in done.phases
        }
        figures["serial share"] = round(done.serial_share, 4)
        figures[f"seconds on {PROCESSORS} processors, at least"] = round(seconds_on(done, PROCESSORS), 2)
        figures["CPU s of a replay"] = round(done.cpu_s, 2)
        return figures


if __name__ == "__main__":
    sys.exit(main())
