"""How long a start takes: `memctl --help` as a whole process, `memctl up` from nothing, and again over what it made.

    python tests/bench/starts.py [--turns 5] [--json FILE]

Each `up` from nothing has a folder of its own; "again" is after `memctl down`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine import machine
from hooks import Memory, proportional, run

HELPS = 4
"""Times that the help is asked for in each turn, in turn with the bare interpreter."""


def started(one: Memory) -> float:
    """Seconds of `memctl up`."""
    began = time.perf_counter()
    one("up")
    return time.perf_counter() - began


def middle(seconds: Sequence[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    line = [str(Path(sys.executable).with_name("memctl")), "--help"]
    helps, bare, first, again, resident = [], [], [], [], 0
    for _ in range(given.turns):
        with tempfile.TemporaryDirectory(prefix="memctl-bench-") as folder:
            one = Memory(Path(folder) / "data")
            for _ in range(HELPS):
                bare.append(run([sys.executable, "-c", "pass"], b"", one.environment)[0])
                helps.append(run(line, b"", one.environment)[0])
            for took in (first, again):
                try:
                    took.append(started(one))
                    resident = proportional(one)["everything"]
                finally:
                    one("down")
    figures: dict[str, Any] = {
        "machine": machine(),
        "python -c pass (ms)": round(middle(bare) * 1e3, 1),
        "memctl --help (ms)": round(middle(helps) * 1e3, 1),
        "memctl up from nothing (s)": round(middle(first), 2),
        "memctl up again (s)": round(middle(again), 2),
        "resident with nothing remembered (MB)": resident,
    }
    for name, value in figures.items():
        print(f"{name:<28} {value}")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
