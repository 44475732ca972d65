"""Entities and the edges between them: libraries, services, people and files, with what ties them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta
from psycopg import sql

from memctl.api.queries.code import met_in
from memctl.api.reading import models
from memctl.api.reading.evidence import events_of, evidence_of
from memctl.api.reading.feedback import standing
from memctl.api.reading.learnt import (
    EntityItem,
    FeelingItem,
    GraphAnswer,
    GraphEdge,
    GraphNode,
    MentionItem,
    Neighbour,
    SentimentItem,
)
from memctl.api.reading.pages import Condition, Keyed, equal, page, several, table_of
from memctl.api.reading.places import Places, projects_of
from memctl.api.reading.questions import Cursor, Limit, question
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Page, iso, moment, shown_as
from memctl.domain.code.entities import EntityKind, node_of, parts_of
from memctl.domain.events.event import Event
from memctl.domain.language.mood import averaged, label_of
from memctl.domain.projects.identity import Projects
from memctl.domain.support.bounded import names
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.structs import carried_over
from memctl.projections.entities import Entity
from memctl.projections.relations import Relation
from memctl.projections.sentiment import Feeling, Sentiment

Name = Annotated[str, Meta(min_length=1, max_length=512, examples=["react", "library:go/github.com/spf13/cobra"])]
Hops = Annotated[int, Meta(ge=1, le=2)]

MOST_HOPS = 2
"""Hops of a graph from the node that was asked for."""

MOST_EDGES = 12
"""Edges of one node that are followed, the heaviest first."""


class UnknownEntity(MemctlError):
    """Memory knows no entity {name!r}."""

    exit_code = 3
    name: str


@question("/entities", "code", whole=True)
def entities(
    reader: Reader, places: Places, *, kind: EntityKind | None = None, limit: Limit = 50, cursor: Cursor = None
) -> Page[EntityItem]:
    """Libraries, services and people, those met in most sessions first."""
    p = models.entities
    rows, after = page(
        reader, p, "interactions", [*met_in(places), *equal(p, "kind", kind)], limit=limit, cursor=cursor
    )
    rows = standing(reader, "entity", rows)
    return Page([_entity(keyed, projects_of(reader)) for keyed in rows], after, places.scope)


@question("/entities/{name:path}", "code", whole=True)
def entity(reader: Reader, places: Places, name: Name) -> EntityItem:
    """One entity, by node (`library:go/github.com/spf13/cobra`), name or the last part of a name, with its feelings and
    edges. Raises: UnknownEntity."""
    node, keyed = _resolved(reader, places, name)
    kind, platform, called = parts_of(node)
    if keyed is not None:
        item = _entity(keyed, projects_of(reader))
    else:
        item = EntityItem(id=None, node=node, kind=kind, platform=platform, name=called)
    return msgspec.structs.replace(
        item,
        sentiment=_feelings(reader, places, node) or UNSET,
        edges=[
            Neighbour(relation=relation, node=other, label=label, weight=weight)
            for relation, other, label, weight in _edges(reader, places, [node])[node]
        ],
    )


@question("/graph/{name:path}", "code", whole=True)
def graph(reader: Reader, places: Places, name: Name, *, hops: Hops = 1) -> GraphAnswer:
    """The nodes within one or two hops, as `nodes` (by name, with labels) and `edges`. Raises: UnknownEntity."""
    start, _ = _resolved(reader, places, name)
    nodes = {start: GraphNode(node=start, label=_label(start), hop=0)}
    edges: dict[tuple[str, str, str], float] = {}
    frontier = [start]
    for hop in range(1, min(max(hops, 1), MOST_HOPS) + 1):
        found = _edges(reader, places, frontier)
        fresh: list[str] = []
        for node in frontier:
            for relation, other, label, weight in found[node]:
                if (other, relation, node) not in edges:
                    edges[node, relation, other] = weight
                if other not in nodes:
                    nodes[other] = GraphNode(node=other, label=label, hop=hop)
                    fresh.append(other)
        frontier = fresh
    return GraphAnswer(
        start=start,
        nodes=list(nodes.values()),
        edges=[
            GraphEdge(source=source, relation=relation, target=target, weight=weight)
            for (source, relation, target), weight in edges.items()
        ],
        scope=places.scope,
    )


# --- which entity is meant ---


def _resolved(reader: Reader, places: Places, name: str) -> tuple[str, Keyed[Entity] | None]:
    name = name.strip()
    if not name or "\0" in name:
        raise UnknownEntity(name=name)
    p = models.entities
    ends = "(lower(row->>'name') = %s OR lower(row->>'name') LIKE %s)"
    for wanted, kind in dict.fromkeys([(name.lower(), None), _as_node(name)]):
        if not wanted:
            continue
        likely = "%/" + wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        conditions = [*met_in(places), Condition(sql.SQL(ends), (wanted, likely)), *equal(p, "kind", kind)]
        rows, _ = page(reader, p, "interactions", conditions, limit=20)
        exact = [keyed for keyed in rows if keyed.row.name.lower() == wanted]
        if rows:
            best = (exact or rows)[0]
            return node_of(best.row.kind, best.row.platform, best.row.name), best
    if name.startswith("project:") and (found := projects_of(reader).named(name.partition(":")[2])):
        return f"project:{found[0].name}", None
    node = _node_like(reader, name)
    if node is None:
        raise UnknownEntity(name=name, hint="`memctl entities` lists libraries, services and people; files go by path.")
    return node, None


def _as_node(name: str) -> tuple[str, str | None]:
    if ":" not in name:
        return "", None
    try:
        kind, _, called = parts_of(name)
    except MemctlError:
        return "", None
    return called.lower(), kind


def _node_like(reader: Reader, name: str) -> str | None:
    """A node of an edge, or somebody felt about, whose name ends so: a file by the end of its path, an agent."""
    relations, felt = models.relations, models.sentiment
    found = reader.connection.execute(
        sql.SQL(
            "SELECT node FROM ("
            " SELECT n AS node FROM {relations}, jsonb_array_elements_text(row->'nodes') AS n"
            " WHERE space_id = %(space)s"
            " UNION ALL SELECT row->>'node' FROM {felt} WHERE space_id = %(space)s) AS known"
            " WHERE node = %(name)s OR (right(node, %(length)s) = %(name)s"
            " AND substr(node, length(node) - %(length)s, 1) IN ('/', ':'))"
            " GROUP BY node ORDER BY (node = %(name)s) DESC, count(*) DESC, node LIMIT 1"
        ).format(relations=table_of(reader, relations), felt=table_of(reader, felt)),
        {"space": reader.space_id, "name": name, "length": len(name)},
    ).fetchone()
    return None if found is None else str(found[0])


# --- edges ---

Edge = tuple[str, str, str, float]
"""Relation, the other node, what it is called, and the weight."""


def _edges(reader: Reader, places: Places, nodes: Sequence[str]) -> dict[str, list[Edge]]:
    """The heaviest edges of each node."""
    weights: dict[str, dict[tuple[str, str], float]] = {node: defaultdict(float) for node in nodes}
    _add_relations(reader, places, weights)
    _add_entities(reader, places, weights)
    labels = _labels(reader, {other for edges in weights.values() for _, other in edges})
    return {node: _heaviest(edges, labels) for node, edges in weights.items()}


def _heaviest(edges: dict[tuple[str, str], float], labels: dict[str, str]) -> list[Edge]:
    """The heaviest edges. Edges that look alike (a file in several clones) are listed once, by the heaviest of them."""
    alike: dict[tuple[str, str], tuple[str, float]] = {}
    for (relation, other), weight in sorted(edges.items(), key=lambda e: (-e[1], e[0])):
        node, total = alike.get((relation, labels[other]), (other, 0.0))
        alike[relation, labels[other]] = (node, total + weight)
    ranked = sorted(alike.items(), key=lambda e: (-e[1][1], e[0]))[:MOST_EDGES]
    return [(relation, node, label, round(weight, 4)) for (relation, label), (node, weight) in ranked]


_BACK = {
    "fixes": "fixed_in", "uses": "used_by", "depends_on": "needed_by", "part_of": "has_part", "replaces": "replaced_by",
    "works_on": "worked_on_by", "calls": "called_by", "tests": "tested_by",
}  # fmt: skip


def _add_relations(reader: Reader, places: Places, weights: dict[str, dict[tuple[str, str], float]]) -> None:
    p = models.relations
    conditions = [Condition(sql.SQL("row->'nodes' ?| %s::text[]"), (list(weights),))]
    if places.locations is not None:
        conditions.append(
            Condition(
                sql.SQL("(row->>'location' = ANY(%s::text[]) OR row->'said' <> 'null'::jsonb)"),
                (list(places.locations),),
            )
        )
    rows, _ = page(reader, p, "at", conditions, limit=200)
    for keyed in rows:
        row: Relation = keyed.row
        if row.weight <= 0:
            continue
        for node in weights.keys() & set(row.nodes):
            for other in row.nodes:
                if other == node:
                    continue
                if not row.source:
                    weights[node][row.relation, other] += row.weight
                elif row.relation == "fixes":
                    if node == row.source:
                        weights[node]["fixed_in", other] += row.weight
                    elif other == row.source:
                        weights[node]["fixes", other] += row.weight
                else:
                    relation = row.relation if node == row.source else _BACK.get(row.relation, row.relation)
                    weights[node][relation, other] += row.weight


def _add_entities(reader: Reader, places: Places, weights: dict[str, dict[tuple[str, str], float]]) -> None:
    """Edges that the entities' own rows show: which projects use them, and which files name them."""
    p = models.entities
    wanted = [parts_of(node) for node in weights if not node.startswith(("file:", "project:", "bug:"))]
    files = [node.partition(":")[2] for node in weights if node.startswith("file:")]
    asked = sql.SQL(
        "(lower(row->>'name') = ANY(%s::text[])"
        " OR EXISTS (SELECT FROM jsonb_array_elements(row->'files') AS f WHERE f->>0 = ANY(%s::text[])))"
    )
    projects = {node.partition(":")[2] for node in weights if node.startswith("project:")}
    conditions = [*met_in(places)]
    if not projects:
        conditions.append(Condition(asked, ([name.lower() for _, _, name in wanted], files)))
    rows, _ = page(reader, p, "interactions", conditions, limit=200)
    known = projects_of(reader)
    for keyed in rows:
        row: Entity = keyed.row
        node = node_of(row.kind, row.platform, row.name)
        verb, back = ("works_on", "worked_on_by") if row.kind == "person" else ("used_by", "uses")
        if node in weights:
            for mention in row.mentions:
                if mention.location:
                    weights[node][verb, f"project:{known.name_of(mention.location)}"] += 1
            for path in names(row.files)[:MOST_EDGES]:
                weights[node]["named_in", f"file:{path}"] += 1
        for file in weights.keys() & {f"file:{path}" for path in names(row.files)}:
            weights[file]["uses", node] += 1
        for project in projects & {known.name_of(place) for place in names(row.locations)}:
            there = sum(known.name_of(mention.location) == project for mention in row.mentions)
            weights[f"project:{project}"][back, node] += max(there, 1)


def _labels(reader: Reader, nodes: Iterable[str]) -> dict[str, str]:
    """What people call a node: a bug by its message, a file by the end of its path."""
    labels = {node: _label(node) for node in nodes}
    signatures = {node.partition(":")[2]: node for node in labels if node.startswith("bug:")}
    for signature, pattern in several(reader, models.bug_patterns, list(signatures)).items():
        labels[signatures[signature]] = pattern.message.split("\n", 1)[0][:120] or ", ".join(pattern.error_types)
    return labels


def _label(node: str) -> str:
    kind, _, name = node.partition(":")
    if kind == "file":
        return "/".join(name.split("/")[-3:])
    return name.partition("/")[2] if kind == "library" else name


# --- what is shown of an entity ---


def _entity(keyed: Keyed[Entity], known: Projects) -> EntityItem:
    row: Entity = keyed.row
    return carried_over(
        row,
        EntityItem,
        id=keyed.key,
        node=node_of(row.kind, row.platform, row.name),
        interests=list(row.interests),
        versions=list(names(row.versions)),
        projects=sorted({known.name_of(place) for place in names(row.locations) if place}),
        files=list(names(row.files)),
        sources=list(names(row.sources)),
        first_seen=iso(moment(row.first_seen)) if row.first_seen else None,
        last_seen=iso(moment(row.last_seen)) if row.last_seen else None,
        mentions=[
            shown_as(mention, MentionItem, span=None, event_id=str(mention.span.event) if mention.span else None)
            for mention in row.mentions[:8]
        ],
    )


def _feelings(reader: Reader, places: Places, node: str) -> list[SentimentItem]:
    """How users feel about a node: for each project where that leads, and the path there, newest first."""
    p = models.sentiment
    conditions = [*equal(p, "node", node)]
    if places.locations is not None:
        conditions.append(Condition(sql.SQL("row->>'location' = ANY(%s::text[])"), (list(places.locations),)))
    rows, _ = page(reader, p, "last_seen", conditions, limit=50)
    spans = [f.span for keyed in rows for f in keyed.row.path if f.span is not None]
    events = events_of(reader, spans)
    known = projects_of(reader)
    projects: dict[str, list[Feeling]] = defaultdict(list)
    for keyed in rows:
        row: Sentiment = keyed.row
        projects[known.name_of(row.location) if row.location else ""] += row.path
    found = []
    for project, feelings in projects.items():
        feelings.sort(key=lambda f: (f.at, f.id), reverse=True)
        score = averaged(f.score for f in reversed(feelings))
        found.append(
            SentimentItem(
                project=project,
                label=label_of(score),
                score=score,
                path=[_feeling(feeling, events) for feeling in feelings],
            )
        )
    return found


def _feeling(feeling: Feeling, events: Mapping[UUID, Event]) -> FeelingItem:
    evidence = evidence_of([feeling.span], events) if feeling.span is not None else []
    return FeelingItem(
        at=iso(moment(feeling.at)),
        score=feeling.score,
        words=feeling.words,
        by=feeling.by,
        session=feeling.stream,
        evidence=evidence,
    )
