"""Edges between entities: what was changed with what, what fixed what, and what somebody said belongs together.

A row is one source of edges, so nothing grows; a graph is put together of them by who asks.
"""

from __future__ import annotations

import msgspec

from memctl.domain.code.entities import RelationAsserted, file_of, node_of
from memctl.domain.events.event import derived_id
from memctl.domain.events.facts import ErrorResolved, FilesCommitted, Span
from memctl.domain.support.bounded import clipped
from memctl.projections.kernel import Recorded, projection


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody said of an edge, and when. A weight of 0 takes it back."""

    at: int
    id: str
    weight: float
    why: str = ""
    by: str = ""


class Relation(msgspec.Struct, frozen=True, kw_only=True):
    """Edges from `source` (or, where that is empty, among all) to the other `nodes`. `at` in microseconds.

    `weight` is 1 for what happened once; who asks adds up the rows of a pair. 0 is a relation that was taken back.
    """

    relation: str
    source: str
    nodes: tuple[str, ...]
    """Every node that the row ties, `source` first where there is one; written as `node_of` writes them."""
    at: int
    location: str = ""
    weight: float = 1.0
    why: str = ""
    said: Said | None = None
    evidence: tuple[Span, ...] = ()


Input = FilesCommitted | ErrorResolved | Recorded[RelationAsserted]


def relation_id(source: str, relation: str, target: str) -> str:
    """Key of an edge that somebody asserted."""
    return str(derived_id(f"relation:{source}\0{relation}\0{target}"))


def _key(item: Input) -> str | None:
    if isinstance(item, Recorded):
        asserted = item.payload
        return relation_id(asserted.source, asserted.relation, asserted.target)
    if isinstance(item, ErrorResolved) and not item.edits:
        return None
    return str(item.id)


@projection(row=Relation, key=_key, indexes=(("at",), ("source",)))
def relations(
    row: Relation | None, item: FilesCommitted | ErrorResolved | Recorded[RelationAsserted]
) -> Relation | None:
    """Typed, weighted edges of the graph: changed_with, fixes, and those that were asserted."""
    if isinstance(item, Recorded):
        return _asserted(row, item)
    at = int(item.occurred_at)
    if isinstance(item, FilesCommitted):
        return Relation(
            relation="changed_with",
            source="",
            nodes=tuple(_file(path) for path in item.paths[:8]),
            at=at,
            location=item.location,
            evidence=item.evidence[:2],
        )
    bug = node_of("bug", "", item.signature)
    paths = dict.fromkeys(_file(file_of(edit.path, item.location)) for edit in item.edits[:8])
    return Relation(
        relation="fixes",
        source=clipped(bug, 200),
        nodes=(clipped(bug, 200), *paths),
        at=at,
        location=item.location,
        why=clipped(item.approach, 200),
        evidence=item.evidence[:2],
    )


def _file(path: str) -> str:
    return clipped(node_of("file", "", path), 300)


def _asserted(row: Relation | None, item: Recorded[RelationAsserted]) -> Relation:
    asserted, at, id = item.payload, int(item.event.occurred_at), str(item.event.delivery_id)
    if row is not None and row.said is not None and (row.said.at, row.said.id) > (at, id):
        return row
    weight = round(min(max(asserted.weight, 0.0), 100.0), 4) + 0.0
    source, target = clipped(asserted.source, 300), clipped(asserted.target, 300)
    return Relation(
        relation=asserted.relation,
        source=source,
        nodes=(source, target),
        at=at,
        location=item.event.location,
        weight=weight,
        why=clipped(asserted.why, 300),
        said=Said(at, id, weight, clipped(asserted.why, 300), clipped(asserted.by, 40)),
    )
