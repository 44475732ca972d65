"""Plots as SVG, drawn here: stacked bars over weeks, with a scale and dates. Styled by the page's own sheet."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

import msgspec

WIDTH, HEIGHT = 720, 120
"""Of a plot, in units of its view box."""

MOST, LEAST = 60, 12
"""Bars of a plot: the newest, and weeks without one before them where there are few."""

DATES = 5
"""Below a plot."""


class Bar(msgspec.Struct, frozen=True):
    """A part of a bar: the number of its series from 1, its place in the view box, and what hovering says."""

    series: int
    x: float
    y: float
    width: float
    height: float
    title: str


class Plot(msgspec.Struct, frozen=True):
    """`series` from the bottom; `scale` from the top; `dates` from the left."""

    label: str
    series: tuple[str, ...]
    bars: list[Bar]
    scale: list[str]
    dates: list[str]


Values = Mapping[date, Sequence[float]]


def stacked(
    label: str, series: tuple[str, ...], values: Values, *, sums: bool = False, since: date = date.min,
    before: date | None = None,
) -> Plot | None:  # fmt: skip
    """The values of each series by week, each under its Monday, one upon the other, up to the newest; with `sums` those
    of all weeks before as well. Weeks are whole: those with a day from `since` on and `before` another. None where
    there is none."""
    first = monday(since)
    asked = [week for week in values if first <= week and (before is None or week < before)]
    if not asked:
        return None
    newest = max(asked)
    count = min(max((newest - min(asked)).days // 7 + 1, LEAST), MOST, (newest - first).days // 7 + 1)
    shown = [newest - timedelta(weeks=back) for back in range(count - 1, -1, -1) if newest.toordinal() > 7 * back]
    nothing = (0.0,) * len(series)
    rows = [values.get(day, nothing) for day in shown]
    if sums:
        former = [sum(row[n] for day, row in values.items() if day < shown[0]) for n in range(len(series))]
        rows = [former := [a + b for a, b in zip(former, row, strict=True)] for row in rows]
    top = above(max(map(sum, rows)))
    width = WIDTH / len(shown)
    bars: list[Bar] = []
    for number, (day, row) in enumerate(zip(shown, rows, strict=True)):
        parts = ", ".join(f"{name} {value:,.0f}" for name, value in zip(series, row, strict=True))
        bars += _bars(row, round(number * width + 1, 1), round(width - 2, 1), top, f"week of {day:%-d %b %Y}: {parts}")
    places = sorted({round(n * (len(shown) - 1) / (DATES - 1)) for n in range(DATES)})
    return Plot(label, series, bars, [_short(top), _short(top / 2), "0"], [f"{shown[at]:%-d %b %Y}" for at in places])


def _bars(row: Sequence[float], x: float, width: float, top: float, title: str) -> Iterator[Bar]:
    """The values of a week, one upon the other."""
    below = 0.0
    for which, value in enumerate(row, 1):
        if value:
            below += value
            yield Bar(which, x, round(HEIGHT * (1 - below / top), 1), width, round(HEIGHT * value / top, 1), title)


def monday(day: date) -> date:
    """The first day of its week, as far as calendars go."""
    return day - timedelta(days=min(day.weekday(), day.toordinal() - 1))


def above(most: float) -> int:
    """The least of 2, 4, 10, 20, 40, 100 and so on that is not below `most`."""
    if most <= 2:
        return 2
    power = 10 ** math.floor(math.log10(most))
    return next(int(by * power) for by in (1, 2, 4, 10) if by * power >= most and by * power >= 2)


def _short(number: float) -> str:
    """A whole number in at most four characters and a unit: 950, 1.5k, 20M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
