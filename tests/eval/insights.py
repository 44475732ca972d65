"""A draw of insights from real sessions, to be judged by a reader: useful and true, or not, and why.

    python tests/eval/insights.py [FOLDER] [--seed N] [--count N] > draw.json

Prints a JSON list of objects: number, kind, level (2: passed its checks, 3: verified), claim, project, sessions, rule,
the quote it rests on in its surroundings, and the session of the quote; `useful` and `true` are left for the reader.
Without a folder, the real sessions beside the project. Everything is folded in memory; no server is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parents[1]))

from events import as_read
from histories import events_of, real_sessions

from memctl.domain.derive import derive
from memctl.domain.event import Event, NewEvent
from memctl.domain.facts import InsightFound, Span
from memctl.domain.location import project_name
from memctl.projections.candidates import Candidate, candidates
from memctl.projections.insights import Insight, insights
from memctl.projections.kernel import Changed

AROUND = 80


def learnt(files: Iterable[list[NewEvent]]) -> tuple[dict[str, Insight], dict[UUID, Event]]:
    """Every insight of these files by id, and the events by theirs."""
    events: dict[UUID, Event] = {}
    streams: dict[str, list[Event]] = {}
    for position, new in enumerate(new for file in files for new in file):
        event = as_read(new, position + 1)
        if event.event_id not in events:
            events[event.event_id] = event
            streams.setdefault(event.stream, []).append(event)
    rows: dict[str, Insight] = {}
    for stream in sorted(streams):
        for fact in derive(stream, streams[stream]).drain():
            if isinstance(fact, InsightFound):
                row = insights(None, fact)
                assert row is not None
                rows[row.id] = insights(rows.get(row.id), fact) or row
    return rows, events


def told(number: int, row: Insight, candidate: Candidate, events: dict[UUID, Event]) -> dict[str, Any]:
    saying = row.best
    assert saying is not None
    return {
        "number": number,
        "kind": row.kind,
        "level": 3 if candidate.ready else 2 if all(check.passed for check in candidate.checks) else 1,
        "claim": row.text,
        "project": project_name(row.location) if row.location else "everywhere",
        "sessions": len(row.sessions),
        "said_by": row.said_by,
        "rule": saying.rule,
        "quote": in_place(saying.span, events) if saying.span is not None else "",
        "session": saying.stream,
        "useful": None,
        "true": None,
    }


def in_place(span: Span, events: dict[UUID, Event]) -> str:
    """The quote between »« with what stands around it, on one line."""
    value: Any = events[span.event].payload
    for name in span.field.split("."):
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    if not isinstance(value, str):
        return ""
    parts = value[max(span.start - AROUND, 0) : span.start], value[span.start : span.end], value[span.end :][:AROUND]
    return " ".join("{}»{}«{}".format(*parts).split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    with nullcontext(asked.folder) if asked.folder else real_sessions() as folder:
        rows, events = learnt(events_of(folder))
    # A claim of several worktrees and clones of one project is one claim to a reader.
    one_each = {(project_name(row.location) if row.location else "", row.text): id for id, row in sorted(rows.items())}
    drawn = random.Random(asked.seed).sample(sorted(one_each.values()), min(asked.count, len(one_each)))
    print(
        f"{len(rows)} insights, {len(one_each)} by project, {len(drawn)} drawn with seed {asked.seed}", file=sys.stderr
    )
    table = []
    for number, id in enumerate(drawn, 1):
        candidate = candidates(None, Changed(id, rows[id]))
        assert candidate is not None
        table.append(told(number, rows[id], candidate, events))
    json.dump(table, sys.stdout, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
