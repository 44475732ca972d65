"""Plots as SVG, drawn here: bars over days and weeks. Styled by the page's own sheet."""

from collections.abc import Mapping
from datetime import date, timedelta

import msgspec

WIDTH, HEIGHT = 720, 120
"""Of a bar plot, in units of its view box."""


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
        _bar(number, step, value / most, f"{day:%-d %b %Y}: {value:,}")
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
