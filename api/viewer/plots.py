"""Plots as SVG, drawn here: bars over days, and a graph's nodes around its middle. Styled by the page's own sheet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import msgspec

from memctl.api.reading.learnt import GraphEdge, GraphNode

WIDTH, HEIGHT = 720, 120
"""Of a bar plot, in units of its view box."""

MOST_NODES = 40
"""Nodes of a graph that are drawn; more would only be a smear."""

RADIUS = 260.0


class Bar(msgspec.Struct, frozen=True):
    """One bar: its place in the view box, and what hovering says."""

    x: float
    y: float
    width: float
    height: float
    title: str


class Bars(msgspec.Struct, frozen=True):
    """`most` is the value of a bar of full height."""

    bars: list[Bar]
    most: int
    first: str
    last: str


def by_day(counts: Mapping[date, int], days: int = 60) -> Bars | None:
    """The last `days` days up to the newest that has a count; None where there is none."""
    if not counts:
        return None
    newest = max(counts)
    shown = [newest - timedelta(days=back) for back in range(days - 1, -1, -1)]
    most = max(max((counts.get(day, 0) for day in shown), default=0), 1)
    step = WIDTH / days
    bars = [
        Bar(
            x=round(number * step + 1, 1),
            y=round(HEIGHT * (1 - value / most), 1),
            width=round(step - 2, 1),
            height=round(HEIGHT * value / most, 1),
            title=f"{day:%-d %b %Y}: {value:,}",
        )
        for number, day in enumerate(shown)
        if (value := counts.get(day, 0))
    ]
    return Bars(bars, most, f"{shown[0]:%-d %b %Y}", f"{newest:%-d %b %Y}")


class Stack(msgspec.Struct, frozen=True):
    """A week's bar: the whole of it, and within it, from the bottom, the part that was recalled."""

    whole: Bar
    part: Bar


class Stacks(msgspec.Struct, frozen=True):
    """`most` is the value of a bar of full height."""

    stacks: list[Stack]
    most: int
    first: str
    last: str


def by_week(counts: Mapping[date, tuple[int, int]], weeks: int = 52) -> Stacks | None:
    """The last `weeks` weeks up to the newest that has a count, by their Mondays: of each the whole and the part of it
    that was recalled. None where there is none."""
    if not counts:
        return None
    newest = max(counts)
    shown = [newest - timedelta(weeks=back) for back in range(weeks - 1, -1, -1)]
    most = max(max(counts.get(week, (0, 0))[0] for week in shown), 1)
    step = WIDTH / weeks
    stacks = []
    for number, week in enumerate(shown):
        whole, part = counts.get(week, (0, 0))
        if whole:
            title = f"week of {week:%-d %b %Y}: held {whole:,}, recalled {part:,}"
            stacks.append(Stack(_bar(number, step, whole / most, title), _bar(number, step, part / most, title)))
    return Stacks(stacks, most, f"{shown[0]:%-d %b %Y}", f"{newest:%-d %b %Y}")


def _bar(number: int, step: float, share: float, title: str) -> Bar:
    return Bar(
        x=round(number * step + 1, 1),
        y=round(HEIGHT * (1 - share), 1),
        width=round(step - 2, 1),
        height=round(HEIGHT * share, 1),
        title=title,
    )


class Node(msgspec.Struct, frozen=True):
    """A node where it is drawn; `anchor` is how its label stands to it."""

    node: str
    label: str
    x: float
    y: float
    anchor: str
    hop: int


class Line(msgspec.Struct, frozen=True):
    """An edge between two nodes that are drawn."""

    a: Node
    b: Node
    relation: str


def around(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> tuple[list[Node], list[Line]]:
    """The first node in the middle, the others on a circle around it, with the edges between those that are drawn."""
    shown = nodes[:MOST_NODES]
    placed: dict[str, Node] = {}
    for number, node in enumerate(shown):
        angle = 2 * math.pi * (number - 1) / max(len(shown) - 1, 1) - math.pi / 2
        far = 0.0 if number == 0 else RADIUS
        x, y = far * math.cos(angle), far * math.sin(angle)
        anchor = "middle" if abs(x) < 1 else "start" if x > 0 else "end"
        placed[node.node] = Node(node.node, node.label, round(x, 1), round(y, 1), anchor, node.hop)
    lines = [
        Line(a, b, edge.relation.replace("_", " "))
        for edge in edges
        if (a := placed.get(edge.source)) and (b := placed.get(edge.target))
    ]
    return list(placed.values()), lines
