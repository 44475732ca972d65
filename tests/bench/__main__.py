"""All benchmarks, one after the other: one table against the targets, missed ones included, and one file of JSON.

python tests/bench [FOLDER] [--events 1000000] [--hooks 10000] [--only engine,hooks] [--json FILE]

FOLDER holds real sessions; without it, the published ones (tests/published.py). A benchmark that fails leaves its rows
unmeasured, and the end is 1; so does one whose published data is not there, and the end is 0.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

HERE = Path(__file__).parent

Figures = Mapping[str, Any]
"""What each benchmark wrote, by its name."""


class Target(NamedTuple):
    """Something to reach: `figure` finds it in what was measured, or raises KeyError."""

    what: str
    sense: Literal["≤", "≥"]
    limit: float
    figure: Callable[[Figures], float]

    def held(self, measured: float) -> bool:
        return measured <= self.limit if self.sense == "≤" else measured >= self.limit


def _at(*path: str) -> Callable[[Figures], float]:
    def find(figures: Figures) -> float:
        found: Any = figures
        for name in path:
            found = found[name]
        return float(found)

    return find


def _replays(figures: Figures) -> list[Figures]:
    """Replays from the smallest to the largest."""
    return sorted(figures["engine"]["replay"].values(), key=lambda each: int(each["events"]))


def _of_a_million(figures: Figures) -> Figures:
    """The replay of a million events; what fewer take is not told as if it were that."""
    largest = _replays(figures)[-1]
    if largest["events"] < _NEARLY * 1e6:
        raise KeyError(f"the largest replay was of {largest['events']} events")
    return largest


def _cpu(figures: Figures) -> float:
    largest = _replays(figures)[-1]
    return float(largest["CPU of memctl, µs an event"]) + float(largest["CPU of Postgres, µs an event"])


def _memory(figures: Figures) -> float:
    largest, smallest = _of_a_million(figures), _replays(figures)[0]
    if smallest["events"] > 1e5:
        raise KeyError("no smaller replay to hold it against")
    return float(largest["peak MB, memctl"]) / float(smallest["peak MB, memctl"])


def _divided(one: Sequence[str], by: Sequence[str]) -> Callable[[Figures], float]:
    return lambda figures: _at(*one)(figures) / _at(*by)(figures)


def _forgotten(figures: Figures) -> float:
    if figures["viewer"]["memory"]["events"] < _NEARLY * 1e6:
        raise KeyError("there were less than a million events")
    return float(figures["viewer"]["forget one memory (s)"][1])


def _disk(figures: Figures) -> float:
    largest = _replays(figures)[-1]
    if largest["raw MB"] < 1_000:
        raise KeyError("what is there whatever is kept counts too much below 1 GB of transcripts")
    return float(largest["disk MB"]["all of it / raw transcripts"])


def _to_best_peer(questions: str, figure: str) -> Callable[[Figures], float]:
    def find(figures: Figures) -> float:
        systems = figures["recall"][questions]
        return float(
            systems["memctl"][figure] / max(found[figure] for name, found in systems.items() if name != "memctl")
        )

    return find


_NEARLY = 0.999
"""Some real sessions hold a line twice, and so do the events drawn from them: a few of a million are appended once."""
_PEER = ("engine", "against eventsourcing")
_SINGLE = "append, one event a commit, 1500 B"
_WRITTEN = ("search", "one project, 50 points/s written")
_LARGEST = ("viewer", "pages", "largest project", "median (ms)")
_TIMES = ("hooks", "times")
_TURNS, _FROM_KOREAN, _KOREAN = (("recall", those) for those in ("turns", "Korean to English", "Korean to Korean"))

TARGETS = (
    Target("hook, service up, to `python -c pass`", "≤", 3,
           _at(*_TIMES, "hook as installed, service up", "times python -c pass")),
    Target("hook, service down, to `python -c pass`", "≤", 3,
           _at(*_TIMES, "hook as installed, service down", "times python -c pass")),
    Target("hook, service up, p95 (ms)", "≤", 100, _at(*_TIMES, "hook as installed, service up", "p95 (ms)")),
    Target("hook, memory (MB)", "≤", 20, _at(*_TIMES, "resident: hook as installed, service up (MB)")),
    Target("hook that asks at a prompt, 100,000 memories, p95 (ms)", "≤", 150,
           _at("hooks", "recall", "hook that asks at a prompt", "p95 (ms)")),
    Target("everything, 100,000 memories (MB)", "≤", 1200, _at("hooks", "recall", "resident: everything (MB)")),
    Target("append, one event a commit, 100 B, to the peer", "≥", 3,
           _at(*_PEER, "append, one event a commit, 100 B", "ratio")),
    Target("append, one event a commit, 1.5 KB, to the peer", "≥", 3,
           _at(*_PEER, "append, one event a commit, 1500 B", "ratio")),
    Target("append, 500 a commit, 100 B, to the peer", "≥", 1.5, _at(*_PEER, "append, 500 a commit, 100 B", "ratio")),
    Target("append, 500 a commit, 1.5 KB, to the peer", "≥", 1.5,
           _at(*_PEER, "append, 500 a commit, 1500 B", "ratio")),
    Target("append, one event a commit, 1.5 KB, to a bare INSERT", "≥", 1,
           _at(*_PEER, _SINGLE, "ratio to a bare INSERT")),
    Target("reading a stream, 1.5 KB, to the peer", "≥", 1, _at(*_PEER, "read, a stream at a time, 1500 B", "ratio")),
    Target("reading the log, 1.5 KB, to the peer", "≥", 1,
           _at(*_PEER, "read, the whole log in order, 1500 B", "ratio")),
    Target("ingest of real transcripts, parse to commit (MB/s)", "≥", 20,
           _at("sessions", "ingest, parse to commit (MB/s)")),
    Target("replay of 1,000,000 events (s)", "≤", 60, lambda figures: float(_of_a_million(figures)["replay (s)"])),
    Target("replay, CPU of memctl and Postgres (µs an event)", "≤", 90, _cpu),
    Target("its memory, to that of 100,000 events", "≤", 1.3, _memory),
    Target("lag at 500 events/s, p99 (ms)", "≤", 250, _at("engine", "lag", "p99 (ms)")),
    Target("disk, to 1 GB or more of raw transcripts", "≤", 1, _disk),
    Target("search of 100,000 memories, p50 (ms)", "≤", 10, _at("search", "one project, 50 points/s written", "p50")),
    Target("search of 100,000 memories, p95 (ms)", "≤", 25, _at("search", "one project, 50 points/s written", "p95")),
    Target("the same, p50 to the vector engine's own hybrid query", "≤", 2.5,
           _divided((*_WRITTEN, "p50"), ("search", "the engine's own hybrid query", "p50"))),
    Target("the same, p95 to p50", "≤", 2, _divided((*_WRITTEN, "p95"), (*_WRITTEN, "p50"))),
    Target("vectors of an import, for 100 MB of transcripts (s)", "≤", 300, _at("sessions", "of 100 MB (s)")),
    Target("the largest project's page over 1,000,000 events (ms)", "≤", 300, _at(*_LARGEST)),
    Target("forgetting one memory among 1,000,000 events (s)", "≤", 3, _forgotten),
    Target("vector server at 100,000 memories (MB)", "≤", 500, _at("search", "vector server (MB)")),
    Target("API with its embedder, 100,000 memories (MB)", "≤", 300, _at("hooks", "recall", "resident: api (MB)")),
    Target("turns of conversations, hit@1", "≥", 0.76, _at(*_TURNS, "memctl", "hit@1")),
    Target("the same, to the best peer", "≥", 1, _to_best_peer("turns", "hit@1")),
    Target("turns of conversations, hit@5", "≥", 0.92, _at(*_TURNS, "memctl", "hit@5")),
    Target("turns of conversations, hit@10", "≥", 0.95, _at(*_TURNS, "memctl", "hit@10")),
    Target("turns of conversations, MRR", "≥", 0.83, _at(*_TURNS, "memctl", "mrr")),
    Target("English pages asked for in Korean, hit@1", "≥", 0.45, _at(*_FROM_KOREAN, "memctl", "hit@1")),
    Target("English pages asked for in Korean, hit@10", "≥", 0.75, _at(*_FROM_KOREAN, "memctl", "hit@10")),
    Target("Korean pages asked for in Korean, hit@1", "≥", 0.85, _at(*_KOREAN, "memctl", "hit@1")),
    Target("`memctl --help` (ms)", "≤", 150, _at("starts", "memctl --help (ms)")),
    Target("`memctl up` from nothing (s)", "≤", 5, _at("starts", "memctl up from nothing (s)")),
    Target("`memctl up` again (s)", "≤", 2, _at("starts", "memctl up again (s)")),
    Target("everything, nothing remembered (MB)", "≤", 300, _at("starts", "resident with nothing remembered (MB)")),
)  # fmt: skip


def table(figures: Figures) -> Iterator[str]:
    yield "| what | measured | target | |"
    yield "| --- | ---: | ---: | --- |"
    for target in TARGETS:
        try:
            measured = target.figure(figures)
        except (KeyError, IndexError):
            yield f"| {target.what} | not measured | {target.sense} {target.limit:g} | |"
            continue
        held = "held" if target.held(measured) else "**missed**"
        yield f"| {target.what} | {measured:.3g} | {target.sense} {target.limit:g} | {held} |"


def measured(name: str, arguments: Sequence[str]) -> Any:
    """What one benchmark wrote; None where it failed. What it prints goes to the terminal."""
    with tempfile.TemporaryDirectory(prefix="memctl-bench-") as folder:
        written = Path(folder) / "figures.json"
        print(f"\n== {name}", flush=True)
        ended = subprocess.run([sys.executable, *arguments, "--json", str(written)], check=False)
        return json.loads(written.read_text()) if ended.returncode == 0 and written.exists() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--events", type=int, default=100_000, help="of the largest replay")
    parser.add_argument("--hooks", type=int, default=1_000, help="under which services are killed")
    parser.add_argument("--only", default="starts,sessions,engine,hooks,search,recall,viewer")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    real = [given.folder] if given.folder else []
    parts = {
        "starts": [str(HERE / "starts.py")],
        "sessions": [str(HERE / "real_sessions.py"), *real],
        "engine": [str(HERE / "engine.py"), *real, "--events", f"{given.events // 10},{given.events}"],
        "hooks": [str(HERE / "hooks.py"), *real, "--hooks", str(given.hooks)],
        "search": [str(HERE / "search.py"), *real, "--memories", "100000"],
        "recall": [str(HERE / "recall.py")],
        "viewer": [str(HERE / "viewer.py"), *real, "--events", str(given.events)],
    }
    figures = {name: measured(name, parts[name]) for name in given.only.split(",")}
    print("", *table({name: found for name, found in figures.items() if found is not None}), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(any(found is None for found in figures.values()))


if __name__ == "__main__":
    main()
