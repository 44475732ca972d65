"""The verbs for what the work has to do with: `entities`, `graph`, and what people say of both."""

from __future__ import annotations

from collections import defaultdict
from urllib.parse import quote

import click
from msgspec import UNSET

from memctl.api.reading.learnt import EntityItem, GraphAnswer
from memctl.cli.connection import NOTHING_FOUND, looking_back, placed, running
from memctl.cli.output import Cell, Column, line, notice, print_json, print_lines, when
from memctl.cli.pages import Reading, in_json, print_items, reading, table


@click.command()
@click.argument("name", required=False)
@reading(limit=40)
@click.option("--kind", type=click.Choice(["library", "service", "person", "file"]))
def entities(ask: Reading, name: str | None, kind: str | None) -> None:
    """List libraries, services and people that the work met; with NAME, show one whole.

    \b
    memctl entities --kind library
    memctl entities pytest
    """
    if name is not None:
        item = ask.read(f"/v1/entities/{quote(name, safe='')}", EntityItem)
        if ask.as_json:
            print_json(item.json)
        else:
            _print_entity(item.value)
        return
    shown = table(_row, "kind", "name", "version", Column("sessions", "right"), Column("in", give=True))
    answer = ask.page("entities", EntityItem, kind=kind)
    empty = "no library, service or person was met here yet"
    print_items(answer, ask.as_json, shown, empty, whole=True)


def _row(item: EntityItem) -> list[Cell | str]:
    name = item.name if item.kind == "library" or item.display_name is UNSET else item.display_name
    version = item.versions[0] if item.versions else ""
    return [item.kind, Cell(name, "bold"), version, str(item.interactions), ", ".join(item.projects or ())]


def _print_entity(item: EntityItem) -> None:
    click.echo(click.style(line(item.node), bold=True))
    if item.summary:
        print_lines(f"  {line(item.summary)}")
    if item.interactions:
        versions = f", version {', '.join(item.versions)}" if item.versions else ""
        print_lines(f"  met in {item.interactions} sessions, last {when(item.last_seen or None)}{versions}")
    for felt in item.sentiment or ():
        where = f" in {felt.project}" if felt.project else ""
        print_lines(f"  {felt.label} ({felt.score:+.2f}){where}")
        for feeling in felt.path[:8]:
            print_lines(f"    {when(feeling.at):<13} {feeling.score:+.1f}  {line(feeling.words)[:55]}")
    _print_edges([(e.relation, e.label, e.weight) for e in item.edges or ()], "  ")


@click.command()
@click.argument("entity")
@click.option("--hops", type=click.IntRange(1, 2), default=1, show_default=True, help="How far to look.")
@click.option("--project", metavar="NAME|PATH|*", help="Which project; '*' for all.")
@looking_back
@in_json
@click.pass_context
def graph(context: click.Context, entity: str, hops: int, project: str | None, as_json: bool) -> None:
    """Show what ENTITY is tied to: who uses a library, which files change together, which errors a file's edits fixed.

    ENTITY is a library, service or person by name, `project:NAME`, or a file by the end of its path.

    \b
    memctl graph pytest --hops 2
    """
    with running() as client:
        answer = client.read(f"/v1/graph/{quote(entity, safe='')}", GraphAnswer, **placed(project), hops=hops)
    if as_json:
        print_json(answer.json)
        return
    found = answer.value
    labels = {node.node: node.label for node in found.nodes}
    below: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    for edge in found.edges:
        below[edge.source].append((edge.relation, edge.target, edge.weight))
    click.echo(click.style(line(found.start), bold=True))
    _print_tree(found.start, below, labels, "", frozenset((found.start,)))
    if not found.edges:
        notice("nothing is tied to it yet")
        context.exit(NOTHING_FOUND)


def _print_tree(
    node: str,
    below: dict[str, list[tuple[str, str, float]]],
    labels: dict[str, str],
    indent: str,
    above: frozenset[str],
) -> None:
    edges = [edge for edge in below[node] if edge[1] not in above]
    for number, (relation, target, weight) in enumerate(edges, 1):
        last = number == len(edges)
        times = f" ×{weight:g}" if weight != 1 else ""
        print_lines(f"{indent}{'└─' if last else '├─'} {relation.replace('_', ' ')} {line(labels[target])[:90]}{times}")
        _print_tree(target, below, labels, indent + ("   " if last else "│  "), above | {target})


def _print_edges(edges: list[tuple[str, str, float]], indent: str) -> None:
    for relation, label, weight in edges:
        times = f" ×{weight:g}" if weight != 1 else ""
        print_lines(f"{indent}{relation.replace('_', ' ')} {line(label)[:90]}{times}")
