"""Draw what memory says of its own accord, to be read one by one: strategies, and reflections as projects grew.

    python tests/eval/lessons.py [--out FOLDER] [--sessions FOLDER] [--draw 60 --seed 8]

Writes `lessons.json` and `lessons.md`: each lesson with what it rests on. Reflections are made as the reflector makes
them, each time that a project's memories have grown enough; of one topic the last stands. (A project is a folder of the
data. Of memories only turns, episodes, kinds of errors and strategies are counted.)

With `--draw`, so many are drawn of all that single pieces of work taught (a lesson that 20 of them taught is there 20
times, each with what that one rests on) and of the reflections.

    python tests/eval/lessons.py --against READ.json READ.json

tells of two readings how many lessons each finds good, by kind, and how far they agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from sessions import FOLDER, Data, in_order

from memctl.domain.events.facts import CommandRan, Episode, ErrorOccurred, ErrorResolved, Fact, StrategyShown, Turn
from memctl.domain.knowledge.reflections import Grown, Piece, by_rule, clusters, due
from memctl.domain.support.bounded import one_line
from memctl.infra.settings_model import Processors
from memctl.projections.bug_patterns import BugPattern, bug_patterns
from memctl.projections.kernel import Changed, Projection, projections
from memctl.projections.memories import memories
from memctl.projections.strategies import Strategy
from memctl.workers.processors.reflector import piece_of

OUT = Path(__file__).parents[2] / ".scratch"
DAY_US = 86_400_000_000

RUBRIC = """\
A lesson is good when it is **true** (what it rests on shows it, and it holds beyond that one piece of work) and
**useful** (an agent that is told of it before work of that kind does something better, or is spared a try that fails).
What every agent does unasked, what the error itself says, and what only names what happened is not useful. Doubt
counts as no. `why`, where it is not good: *untrue*, *trivial* (known without it), *narrow* (of one piece of work), or
*empty* (nothing follows from it).
"""


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be read. `rests_on` are lines of what it was made of."""

    kind: str
    project: str
    title: str
    text: str
    told: bool
    """Whether it is told; else it waits for another session to show it."""
    rests_on: list[str]

    @property
    def id(self) -> str:
        about = self.rests_on[0] if self.kind == "taught" else ""
        return hashlib.sha256(f"{self.kind}\n{self.project}\n{self.title}{about}".encode()).hexdigest()[:12]


def lessons(data: Data) -> list[Lesson]:
    """Every lesson, in an order that says nothing of it."""
    found: list[Lesson] = []
    for project, facts in sorted(_by_project(data).items()):
        found += [*_strategies(project, facts), *_reflections(project, facts)]
    return sorted(found, key=lambda lesson: lesson.id)


def taught(data: Data) -> list[Lesson]:
    """What each piece of work taught that is told by now, with what it rests on in that work; and the reflections."""
    told = {(each.project, each.title) for each in lessons(data) if each.told}
    found: list[Lesson] = []
    for project, facts in sorted(_by_project(data).items()):
        grounds: dict[Any, dict[str, None]] = defaultdict(dict)
        for fact in facts:
            for span in fact.evidence:
                grounds[fact.stream, span.event].update(dict.fromkeys(_ground(fact)))
        for fact in facts:
            if isinstance(fact, StrategyShown) and (project, fact.lesson.title) in told:
                lines = [line for span in fact.evidence for line in grounds[fact.stream, span.event]]
                found.append(
                    Lesson(
                        kind="taught", project=project, title=fact.lesson.title,
                        text=f"{fact.lesson.description} {fact.lesson.content}", told=True,
                        rests_on=[f"{fact.stream} {fact.id}", *lines],
                    )
                )  # fmt: skip
    return [*found, *(each for each in lessons(data) if each.kind.startswith("reflection"))]


def _ground(fact: Fact) -> Iterator[str]:
    match fact:
        case ErrorOccurred():
            yield f"`{one_line(fact.command, 160)}` failed: {one_line(fact.message, 200)}"
        case ErrorResolved():
            yield f"then `{one_line(fact.command, 160)}` passed: {one_line(fact.approach, 300)}"
            for edit in fact.edits[:3]:
                yield f"{edit.path}: {one_line(edit.before, 160)} → {one_line(edit.after, 200)}"
        case CommandRan():
            yield f"`{one_line(fact.command, 200)}` {'passed' if fact.ok else 'failed'}"


def _by_project(data: Data) -> dict[str, list[Fact]]:
    """Facts in order of time, by the folder of the data that their session lies in."""
    folders = {event.stream: data.lines[event.dedupe_key][0].split("/")[0] for event in reversed(data.events)}
    streams: dict[str, list[list[Fact]]] = defaultdict(list)
    for stream, of_one in data.facts.items():
        streams[folders[stream]].append(of_one)
    return {project: in_order(each) for project, each in streams.items()}


def _strategies(project: str, facts: list[Fact]) -> Iterator[Lesson]:
    """By title: what clones of a project taught is told once."""
    rows = _folded(_named("strategies"), [fact for fact in facts if isinstance(fact, StrategyShown)])
    by_title: dict[str, list[Strategy]] = defaultdict(list)
    for row in rows.values():
        by_title[row.title].append(row)
    for title, same in by_title.items():
        first = max(same, key=lambda row: row.enough)
        told = [f"{telling.stream}: {telling.lesson.content}" for row in same for telling in row.tellings]
        sessions = {seen.name for row in same for seen in row.sessions}
        yield Lesson(
            kind="strategy", project=project, title=title, text=f"{first.description} {first.content}",
            told=first.enough, rests_on=[f"{len(sessions)} sessions", *told],
        )  # fmt: skip


def _reflections(project: str, facts: list[Fact]) -> Iterator[Lesson]:
    """What the reflector would have recorded by now, had it watched."""
    made: dict[str, Lesson] = {}
    pieces: dict[str, Piece] = {}
    kept: dict[str, float] = {}
    sightings: dict[str, Any] = {}
    of_sightings = _named("bug_sightings")
    before, weight, began = 0, 0.0, 0
    for fact in facts:
        for key in of_sightings.keys(fact) if type(fact) in of_sightings.facts else ():
            sightings[key] = of_sightings.fold(sightings.get(key), fact)
        if not isinstance(fact, (Turn, Episode)):
            continue
        memory = memories(None, fact)
        if memory is None:
            continue
        kept[memory.id] = memory.importance
        if isinstance(fact, Episode):
            pieces[memory.id] = piece_of(memory)
        known = len(kept) + len(sightings)
        began = began or memory.occurred_at
        grown = Grown(
            memories=known - before, weight=sum(kept.values()) - weight, days=(memory.occurred_at - began) / DAY_US
        )
        if due(grown, Processors().reflect_memories) is None:
            continue
        before, weight, began = known, sum(kept.values()), memory.occurred_at
        bugs = [piece_of(row) for row in _bugs(sightings)]
        for each in by_rule(clusters([*pieces.values(), *bugs]), bugs):
            cited = [pieces[id] for id in each.memories if id in pieces]
            made[each.topic] = Lesson(
                kind=f"reflection ({each.topic.partition(':')[0]})", project=project, title=each.title, text=each.text,
                told=True, rests_on=[f"{piece.outcome}: {piece.title}" for piece in cited],
            )  # fmt: skip
    yield from made.values()


def _bugs(sightings: dict[str, Any]) -> Iterator[Any]:
    """The memories of kinds of errors, as they stand."""
    patterns: dict[str, BugPattern | None] = {}
    for key, row in sightings.items():
        if row is not None:
            patterns[row.signature] = bug_patterns(patterns.get(row.signature), Changed(key, row))
    made = (memories(None, Changed(signature, row)) for signature, row in patterns.items())
    return (memory for memory in made if memory is not None)


def _folded(p: Projection[Any], facts: list[Any]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for fact in facts:
        for key in p.keys(fact):
            rows[key] = p.fold(rows.get(key), fact)
    return rows


def _named(name: str) -> Projection[Any]:
    return next(p for p in projections() if p.name == name)


def sheet(found: list[Lesson]) -> str:
    lines = ["# Lessons to be read", "", RUBRIC]
    for number, each in enumerate(found, 1):
        lines += [f"## {number}. {each.kind}, {each.project}{'' if each.told else ' (waits)'}: {each.title}", ""]
        lines += [each.text, "", *(f"- {line}" for line in each.rests_on), ""]
    return "\n".join(lines)


def compared(readings: list[dict[str, Any]]) -> str:
    """How many lessons each reading finds good, by kind, and of two how far they agree (Cohen's kappa)."""
    kinds = {id: each["kind"] for reading in readings for id, each in reading.items()}
    lines = []
    for reading in readings:
        for kind in sorted({*kinds.values()}):
            good = [each["good"] for each in reading.values() if each["kind"] == kind]
            lines.append(f"{kind}: {sum(good)} of {len(good)}")
        everything = [each["good"] for each in reading.values()]
        lines.append(f"together: {sum(everything)} of {len(everything)} ({sum(everything) / len(everything):.2f})")
    if len(readings) == 2:
        one, other = readings
        both = sorted(one.keys() & other.keys())
        same = sum(one[id]["good"] == other[id]["good"] for id in both) / len(both)
        first, second = (sum(reading[id]["good"] for id in both) / len(both) for reading in readings)
        chance = first * second + (1 - first) * (1 - second)
        kappa = (same - chance) / (1 - chance) if chance < 1 else 1.0
        lines.append(f"they agree on {same:.2f} of {len(both)}, kappa {kappa:.2f}")
        lines += [f"  apart: {one[id]['title']}" for id in both if one[id]["good"] != other[id]["good"]]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--data", type=Path, default=FOLDER)
    parser.add_argument("--sessions", type=Path, help="a folder of transcripts, in place of the data's own")
    parser.add_argument("--draw", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--against", type=Path, nargs="+", metavar="READ")
    given = parser.parse_args()
    if given.against:
        readings = [json.loads(path.read_text(encoding="utf-8")) for path in given.against]
        print(compared([{each["id"]: each for each in reading} for reading in readings]))
        return
    data = Data(given.data, given.sessions)
    found = lessons(data)
    if given.draw:
        all_taught = sorted(taught(data), key=lambda each: each.id)
        found = random.Random(given.seed).sample(all_taught, min(given.draw, len(all_taught)))
        print(f"{len(found)} of {len(all_taught)}", file=sys.stderr)
    given.out.mkdir(parents=True, exist_ok=True)
    blank = [{"id": each.id, **msgspec.to_builtins(each), "good": None, "why": ""} for each in found]
    (given.out / "lessons.json").write_text(json.dumps(blank, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (given.out / "lessons.md").write_text(sheet(found), encoding="utf-8")
    print(f"{len(found)} lessons to {given.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
