"""Processor time of reading and folding, an event: parsing, redaction, stage 1, stage 2, and the ten costliest rules.

    python tests/bench/stages.py [FOLDER] [--rounds 3] [--json FILE]

FOLDER holds transcripts; without it, both published sets are measured. Nothing is stored, so what Postgres costs is not
in these figures (`make bench` has it). Of several rounds the quickest counts: the first compiles the patterns.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import published  # noqa: E402
from events import as_read  # noqa: E402
from transcript_files import format_of, parse_file  # noqa: E402

from memctl.domain.events.event import Event, NewEvent  # noqa: E402
from memctl.domain.events.facts import Fact  # noqa: E402
from memctl.domain.session.stream_facts import derive  # noqa: E402
from memctl.domain.support import patterns  # noqa: E402
from memctl.infra.redaction import prepare_all  # noqa: E402
from memctl.infra.transcripts.files import discover  # noqa: E402
from memctl.projections.kernel import projections  # noqa: E402

SETS = {"set 1": "agent-sessions.tar.xz", "set 2": "agent-sessions-2.tar.xz"}
COSTLIEST = 10

Result = TypeVar("Result")


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    """Microseconds an event."""
    paths = sorted(discover([folder]))
    spent: dict[str, list[float]] = defaultdict(list)

    def timed(what: str, work: Callable[[], Result]) -> Result:
        began = time.process_time()
        result = work()
        spent[what].append(time.process_time() - began)
        return result

    for _ in range(rounds):
        parsed = timed("parsing", lambda: [event for path in paths for event in _parsed(path)])
        events = timed("redaction", partial(_redacted, parsed))
        streams = _streams(events)
        facts = timed("stage 1", partial(_folded, streams))
        timed("stage 2", partial(_rows, facts))
    figures: dict[str, Any] = {"events": len(events), "facts": len(facts)}
    figures |= {what: round(min(seconds) / len(events) * 1e6, 1) for what, seconds in spent.items()}
    with _watched() as (seconds, calls):
        _folded(streams)
    figures["costliest rules of stage 1"] = {
        f"{place}, {calls[place]} times": round(taken / len(events) * 1e6, 2)
        for place, taken in seconds.most_common(COSTLIEST)
    }
    return figures


def _parsed(path: Path) -> Iterator[NewEvent]:
    if (format := format_of(path)) is not None:
        for line in parse_file(path, format):
            yield from line.events


def _redacted(events: list[NewEvent]) -> list[NewEvent]:
    return prepare_all(events).events


def _streams(events: Sequence[NewEvent]) -> dict[str, list[Event]]:
    once = {event.dedupe_key: event for event in reversed(events)}
    streams: dict[str, list[Event]] = defaultdict(list)
    for position, event in enumerate(reversed(once.values()), 1):
        streams[event.stream].append(as_read(event, position))
    return streams


def _folded(streams: dict[str, list[Event]]) -> list[Fact]:
    return [fact for stream, events in streams.items() for fact in derive(stream, events).drain()]


def _rows(facts: Sequence[Fact]) -> None:
    """Fold the facts into the rows of the read models that take facts alone."""
    for p in projections(2):
        if p.upstream:
            continue
        rows: dict[str, Any] = {}
        for fact in facts:
            if isinstance(fact, tuple(p.facts)):
                for key in p.keys(fact):
                    rows[key] = p.fold(rows.get(key), fact)


@contextmanager
def _watched() -> Iterator[tuple[Counter[str], Counter[str]]]:
    """Seconds that patterns take, and how often they are asked, by the function that asks."""
    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    names = ("search", "match", "fullmatch", "finditer", "findall", "subn", "split")
    kept = {name: getattr(patterns.Pattern, name) for name in names}

    def watch(name: str) -> Callable[..., Any]:
        def asked(*given: Any, **named: Any) -> Any:
            caller = sys._getframe(1)
            while caller.f_code.co_filename == patterns.__file__ and caller.f_back is not None:
                caller = caller.f_back
            place = f"{Path(caller.f_code.co_filename).relative_to(ROOT.resolve())}:{caller.f_code.co_name}"
            began = time.process_time()
            found = kept[name](*given, **named)
            if name == "finditer":
                found = iter(list(found))
            seconds[place] += time.process_time() - began
            calls[place] += 1
            return found

        return asked

    for name in names:
        setattr(patterns.Pattern, name, watch(name))
    try:
        yield seconds, calls
    finally:
        for name, method in kept.items():
            setattr(patterns.Pattern, name, method)


@contextmanager
def _sets(folder: Path | None) -> Iterator[dict[str, Path]]:
    if folder is not None:
        yield {folder.name: folder}
        return
    with tempfile.TemporaryDirectory(prefix="memctl-bench-") as unpacked:
        found = {}
        for name, archive in SETS.items():
            if not (published.FOLDER / archive).exists():
                print(published.lacking(published.FOLDER / archive), file=sys.stderr)
                continue
            found[name] = Path(unpacked) / name
            with tarfile.open(published.FOLDER / archive) as packed:
                packed.extractall(found[name])  # as the archive says; `filter` came with 3.11.4
        yield found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    prepare_all([])  # compiling the rules of redaction is not what is measured
    gc.disable()  # as a rebuild does
    with _sets(given.folder) as sets:
        figures = {name: measure(folder, given.rounds) for name, folder in sets.items()}
    for name, found in figures.items():
        rules = found["costliest rules of stage 1"]
        print(f"{name}: " + ", ".join(f"{what} {value}" for what, value in found.items() if value is not rules))
        print(*(f"  {value:>6} {what}" for what, value in rules.items()), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
