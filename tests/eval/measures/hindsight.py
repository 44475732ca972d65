"""Hindsight: how often a session needed what an earlier one had left in memory, by kind, on sets tuned on and not.

Events count as recorded when they happened. Counts only: whether the records are true is read by hand
(docs/internals/evaluation/hindsight.md). The rules were made looking at the first set; the second is unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from figures import Figure, Missing
from sessions import Data, unseen

from memctl.domain.events.facts import Fact, Identified
from memctl.domain.retrieval.hindsight import Pair, pairs, without_twins
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
    with unseen(data) as second:
        other = None if second is None else (_by_kind(second), len(second.streams))
    for kind in KINDS:
        yield Figure(f"{kind}: tuned, records a session", round(tuned[kind] / sessions, 3), tuned[kind])
        if other is not None:
            found, of = other
            yield Figure(f"{kind}: unseen, records a session", round(found[kind] / of, 3), found[kind])


def _by_kind(data: Data) -> Counter[str]:
    return Counter(str(record.row.kind) for record in records(data.facts.values()))


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
