"""Hindsight: how often a session needed what an earlier one had left in memory, by kind, on sets tuned on and not.

Events count as recorded when they happened. Counts only: whether the records are true is read by hand
(docs/internals/evaluation/hindsight.md). The rules were made looking at the first set; the second is unseen. Ways out
that earlier sessions share count as said at a session's first error of a kind, and as taken where the session's own
way has a command or word of them; wrong calls are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from figures import Figure, Missing, share
from sessions import Data, in_order, unseen

from memctl.domain.events.facts import ErrorOccurred, ErrorResolved, Fact, Identified
from memctl.domain.failures.known_commands import wrong_call
from memctl.domain.retrieval.hindsight import RAN, Pair, check_of, common_way, pairs, way_of, without_twins
from memctl.domain.support.location import project_name
from memctl.projections.hindsight import Hindsight, hindsight

KINDS = ("known error", "known command", "found out again", "known place")


class Record(NamedTuple):
    row: Hindsight
    pair: Pair


def measure(data: Data) -> Iterator[Figure]:
    if not data.has_sessions:
        raise Missing("there are no sessions (agent-sessions.tar.xz)")
    tuned, sessions = _by_kind(data), len(data.streams)
    yield from _ways("tuned", data)
    with unseen(data) as second:
        other = None if second is None else (_by_kind(second), len(second.streams))
        if second is not None:
            yield from _ways("unseen", second)
    for kind in KINDS:
        yield Figure(f"{kind}: tuned, records a session", round(tuned[kind] / sessions, 3), tuned[kind])
        if other is not None:
            found, of = other
            yield Figure(f"{kind}: unseen, records a session", round(found[kind] / of, 3), found[kind])


def _by_kind(data: Data) -> Counter[str]:
    return Counter(str(record.row.kind) for record in records(data.facts.values()))


def _ways(which: str, data: Data) -> Iterator[Figure]:
    shown = in_order(data.facts.values())
    resolved = {fact.error: way_of(fact.edits, fact.ran) for fact in shown if isinstance(fact, ErrorResolved)}
    rows: dict[str, Hindsight] = {}
    met: set[tuple[str, str]] = set()
    said: list[bool | None] = []
    """Whether the way was taken; None where the session shows none."""
    for fact in shown:
        if (
            isinstance(fact, ErrorOccurred)
            and (fact.stream, fact.signature) not in met
            and wrong_call(fact.command, fact.location, [fact]) is None
        ):
            met.add((fact.stream, fact.signature))
            row = rows.get(hindsight.keys(fact)[0], Hindsight())
            others = (each for each in row.memories if each.stream != fact.stream)
            way = common_way(others, fact.text, check_of(fact.error_types[0]) if fact.error_types else "")
            if way is not None:
                taken = {word.removeprefix(RAN) for word in resolved.get(fact.id, ())}
                said.append(not taken.isdisjoint((*way.commands, *way.words)) if taken else None)
        if isinstance(fact, ErrorOccurred | ErrorResolved):
            for key in hindsight.keys(fact):
                rows[key] = hindsight(rows.get(key), fact)
    known = [taken for taken in said if taken is not None]
    yield Figure(f"{which}: shared ways out, of first errors", share(len(said), len(met)), len(met))
    yield Figure(f"{which}: taken, of ways out that show", share(sum(known), len(known)), len(known))


def records(sessions: Iterable[list[Fact]]) -> list[Record]:
    """Every need of these sessions that an earlier one could have met, in order of time."""
    last: dict[object, Identified] = {}
    for facts in sessions:
        last |= {fact.id: fact for fact in facts if isinstance(fact, tuple(hindsight.facts))}  # type: ignore[attr-defined]
    rows: dict[str, Hindsight] = {}
    for fact in last.values():
        for key in hindsight.keys(fact):
            row = hindsight(rows.get(key), fact)
            assert row is not None
            rows[key] = row
    found = [
        Record(row, pair)
        for row in rows.values()
        if row.several and row.kind is not None
        for pair in pairs(row.kind, row.needs, row.memories, together=_one_project)
    ]
    stands = without_twins([(record.row.kind, record.pair) for record in found if record.row.kind is not None])
    found = [record for record, stays in zip(found, stands, strict=True) if stays]
    return sorted(found, key=lambda record: (record.pair.need.at, record.pair.need.id))


def _one_project(one: str, other: str) -> bool:
    return project_name(one) == project_name(other)
