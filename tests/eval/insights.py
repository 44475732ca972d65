"""Draw insights from real sessions, to be judged one by one by readers who know nothing else of them.

    python tests/eval/insights.py [--seed N] [--count N] [--out FOLDER] [--waiting] [--sessions FOLDER]

Writes `insights.md`, a sheet with the rubric and each claim with the places that it rests on (file and line of a
transcript), and `insights.json`, the same for a machine, with `useful` and `true` left open. Everything is folded in
memory, as the read models fold it; no server is needed.

    python tests/eval/insights.py --agreement JUDGED.json JUDGED.json

tells the shares of two sheets that were judged, and how far they agree (Cohen's kappa).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from sessions import FOLDER, Data

from memctl.domain.events.event import Event
from memctl.domain.events.facts import Fact, InsightFound, PlaceSeen, Span
from memctl.domain.projects.identity import Projects
from memctl.infra.readmodels.known_projects import place_of
from memctl.projections.candidates import candidates
from memctl.projections.insights import Insight, insights
from memctl.projections.kernel import Changed
from memctl.projections.locations import Location, locations
from memctl.projections.verified_knowledge import VerifiedKnowledge, knowledge_id, verified_knowledge

ROOT = Path(__file__).parents[2]
OUT = ROOT / ".scratch" / "insights"
AROUND = 160
SOURCES = 4
"""Places that are told of a claim, at most: the one whose words are shown first, each of another session."""

RUBRIC = """\
Each claim below was learnt by rules from recorded sessions of coding agents, and would be told to an agent that begins
to work in the project named beside it (`everywhere`: on any project of this user). Judge each by itself.

**true**: whoever reads the source in its surroundings agrees that it says or shows this, of this project or this
person, and that it holds beyond the one task at hand.

**useful**: an agent who is told of it at the start of a session would do something better for it, or would not have to
ask, look it up, or try.

A claim is good when it is both. Doubt counts as no. So does a fragment; a claim that cannot be understood alone (its
project stands beside it and counts as said); a claim that any agent would take for granted; and one that another claim
of this sheet about the same project already says: of those the fuller is good, the others are not.

Sources are named `file:line` in the folder of unpacked sessions. Look up each where the words quoted do not settle it:
the line, and those around it. The words that the claim rests on stand between » and «. "sessions" is in how many
sessions the claim was seen. What people in the data said is taken for one user's, though they are a dozen.
"""


class Learnt(NamedTuple):
    """A claim of a project, however many of its worktrees and clones it was learnt in."""

    project: str
    row: Insight
    level: int
    sessions: int
    sources: list[Insight]


def learnt(data: Data) -> list[Learnt]:
    """All claims, one for each project: those that memory holds true are of level 3, waiting ones of level 2."""
    rows: dict[str, Insight] = {}
    places: dict[str, Location] = {}
    facts: Iterable[Fact] = (fact for of_one in data.facts.values() for fact in of_one)
    for fact in facts:
        if isinstance(fact, InsightFound):
            row = insights(None, fact)
            assert row is not None
            rows[row.id] = insights(rows.get(row.id), fact) or row
        elif isinstance(fact, PlaceSeen) and fact.place:
            places[fact.place] = locations(places.get(fact.place), fact) or places[fact.place]
    standing = _standing(rows)
    projects = Projects(place_of(row) for row in places.values() if row.worked)
    same: dict[tuple[str, ...], list[Insight]] = defaultdict(list)
    for row in rows.values():
        if row.sayings:
            project = projects.of(row.location)
            where = project.anchor if project else row.location
            same["everywhere" if row.everywhere else where, row.kind, str(row.polarity), row.canonical].append(row)
    found = []
    for alike in same.values():
        alike.sort(key=lambda r: (r.id in standing, len(r.sessions), r.last_seen), reverse=True)
        first = alike[0]
        sessions = {session.name for row in alike for session in row.sessions}
        name = "everywhere" if first.everywhere else projects.name_of(first.location)
        found.append(Learnt(name, first, 3 if first.id in standing else 2, len(sessions), alike))
    return sorted(found, key=lambda each: (each.project, each.row.kind, each.row.text, each.row.id))


def _standing(rows: dict[str, Insight]) -> set[str]:
    """Ids of the claims that pass all checks, and that none of higher trust contradicts."""
    known: dict[str, VerifiedKnowledge] = {}
    for id, row in rows.items():
        candidate = candidates(None, Changed(id, row))
        if candidate is not None and candidate.ready:
            key = knowledge_id(candidate.subject, None if candidate.everywhere else candidate.location)
            made = verified_knowledge(known.get(key), Changed(id, candidate))
            assert made is not None
            known[key] = made
    return {claim.id for each in known.values() for claim in each.claims if not claim.superseded_by}


def told(number: int, each: Learnt, data: Data, events: dict[UUID, Event]) -> dict[str, Any]:
    spans: dict[str, Span] = {}
    for row in each.sources:
        for saying in (row.best, *row.evidence):
            if saying is not None and saying.span is not None:
                spans.setdefault(saying.stream, saying.span)
    return {
        "number": number,
        "project": each.project,
        "claim": each.row.text,
        "kind": each.row.kind,
        "level": each.level,
        "sessions": each.sessions,
        "rule": each.row.best.rule if each.row.best else "",
        "sources": [_source(span, data, events) for span in list(spans.values())[:SOURCES]],
        "true": None,
        "useful": None,
        "why": "",
    }


def _source(span: Span, data: Data, events: dict[UUID, Event]) -> dict[str, str]:
    file, line = data.lines[events[span.event].dedupe_key]
    return {"at": f"{file}:{line}", "quote": _in_place(span, events)}


def _in_place(span: Span, events: dict[UUID, Event]) -> str:
    """The quote between »« with what stands around it, on one line."""
    value: Any = events[span.event].payload
    for name in span.field.split("."):
        value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
    if not isinstance(value, str):
        return ""
    parts = value[max(span.start - AROUND, 0) : span.start], value[span.start : span.end], value[span.end :][:AROUND]
    return " ".join("{}»{}«{}".format(*parts).split())


def sheet(drawn: list[dict[str, Any]], seed: int, of: int) -> str:
    """The sheet that a reader judges by."""
    lines = [
        "# Insights to be judged",
        "",
        f"{len(drawn)} of {of}, drawn with seed {seed}.",
        "",
        "## Rubric",
        "",
        RUBRIC,
    ]
    lines += ["## Claims", ""]
    for each in drawn:
        lines.append(f"{each['number']}. **{each['project']}**: {each['claim']}")
        lines.append(f"   ({each['kind']}, {each['sessions']} session{'s' if each['sessions'] > 1 else ''})")
        lines += [f"   - `{source['at']}` {source['quote']}" for source in each["sources"]]
    return "\n".join(lines) + "\n"


def draw(data: Data, *, seed: int, count: int, waiting: bool = False) -> tuple[list[dict[str, Any]], Counter[int]]:
    """So many claims at random, and how many there are of each level."""
    all_of = learnt(data)
    there = [each for each in all_of if each.level == (2 if waiting else 3)]
    drawn = random.Random(seed).sample(there, min(count, len(there)))
    events = {event.event_id: event for stream in data.streams.values() for event in stream}
    levels = Counter(each.level for each in all_of)
    return [told(number, each, data, events) for number, each in enumerate(drawn, 1)], levels


def write(drawn: list[dict[str, Any]], out: Path, *, seed: int, of: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "insights.json").write_text(json.dumps(drawn, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "insights.md").write_text(sheet(drawn, seed, of), encoding="utf-8")


def agreement(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> str:
    """The share of good claims on each of two judged sheets, and how far they agree, in words."""
    verdicts = [{each["number"]: bool(each["true"] and each["useful"]) for each in sheet} for sheet in (one, other)]
    numbers = sorted(verdicts[0].keys() & verdicts[1].keys())
    first, second = ([verdict[n] for n in numbers] for verdict in verdicts)
    total = len(numbers)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / total
    by_chance = sum(first.count(word) / total * second.count(word) / total for word in (True, False))
    kappa = (same - by_chance) / (1 - by_chance) if by_chance < 1 else 1.0
    shares = " and ".join(
        f"{verdict.count(True)} of {total} ({verdict.count(True) / total:.2f})" for verdict in (first, second)
    )
    differ = [n for n, a, b in zip(numbers, first, second, strict=True) if a != b]
    return f"good: {shares}; they agree on {same:.2f} (kappa {kappa:.2f}) and differ on {differ}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--waiting", action="store_true", help="draw from what waits for more sessions")
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--sessions", type=Path, help="a folder of transcripts, in place of the data's own")
    parser.add_argument("--agreement", type=Path, nargs=2, metavar="JUDGED")
    given = parser.parse_args()
    if given.agreement:
        print(agreement(*(json.loads(path.read_text(encoding="utf-8")) for path in given.agreement)))
        return
    drawn, levels = draw(Data(given.data, given.sessions), seed=given.seed, count=given.count, waiting=given.waiting)
    write(drawn, given.out, seed=given.seed, of=levels[2 if given.waiting else 3])
    print(f"{levels[3]} held true, {levels[2]} waiting; {len(drawn)} drawn to {given.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
