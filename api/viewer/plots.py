"""Plots as SVG, drawn here: stacked bars over days or weeks, with a scale and dates. Styled by the page's own sheet."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import accumulate

import msgspec

from memctl.api.reading.views import week_of

WIDTH, HEIGHT = 720, 120
"""Of a plot, in units of its view box."""

MOST, LEAST = 60, 12
"""Bars of a plot: the newest, and empty ones before them where there are few."""

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
    """The values of each series by day, one upon the other, up to the newest; with `sums` those of all days before as
    well. A bar is a week from its Monday on; a day, where `since` is no more than `MOST` days before that. Weeks are
    whole: those with a day from `since` on and `before` another. None where there is nothing. `{each}` in the label is
    what a bar is of."""
    end = before or date.max
    newest = max((day for day in values if day < end), default=date.min)
    each, length = ("day", 1) if since > date.min and (newest - since).days < MOST else ("week", 7)
    start = since if length == 1 else week_of(since)
    by_bar = _together(values, len(series), week_of if length == 7 else lambda day: day)
    asked = [bar for bar in by_bar if start <= bar < end]
    if not asked:
        return None
    shown = _dates_between(min(asked), max(asked), start, length)
    nothing = (0.0,) * len(series)
    rows: list[Sequence[float]] = [by_bar.get(bar, nothing) for bar in shown]
    if sums:
        rows = _summed_up([*(row for bar, row in by_bar.items() if bar < shown[0]), *rows])[-len(shown) :]
    top = above(max(map(sum, rows)))
    width = WIDTH / len(shown)
    bars: list[Bar] = []
    for number, (day, row) in enumerate(zip(shown, rows, strict=True)):
        title = _title("week of " if each == "week" else "", day, series, row)
        bars += _bars(row, round(number * width + 1, 1), round(width - 2, 1), top, title)
    places = sorted({round(n * (len(shown) - 1) / (DATES - 1)) for n in range(DATES)})
    dates = [f"{shown[at]:%-d %b %Y}" for at in places]
    return Plot(label.format(each=each), series, bars, [_short(top), _short(top / 2), "0"], dates)


def _dates_between(first: date, last: date, start: date, length: int) -> list[date]:
    """Where bars of so many days stand, up to the last: from the first on, `LEAST` to `MOST`, none before the start."""
    count = min(max((last - first).days // length + 1, LEAST), MOST, (last - start).days // length + 1)
    ago = (length * back for back in range(count - 1, -1, -1))
    return [last - timedelta(days) for days in ago if last.toordinal() > days]


def _summed_up(rows: Iterable[Sequence[float]]) -> list[Sequence[float]]:
    """Each row with all before it added."""
    return list(accumulate(rows, lambda before, row: [a + b for a, b in zip(before, row, strict=True)]))


def _title(lead: str, day: date, series: Sequence[str], row: Sequence[float]) -> str:
    """What is shown of a bar that is pointed at."""
    parts = ", ".join(f"{name} {value:,.0f}" for name, value in zip(series, row, strict=True))
    return f"{lead}{day:%-d %b %Y}: {parts}"


def _together(values: Values, count: int, bar_of: Callable[[date], date]) -> dict[date, list[float]]:
    """The sums of the values that fall into each bar, without bars that are empty."""
    found: dict[date, list[float]] = {}
    for day, row in values.items():
        if any(row):
            bar = found.setdefault(bar_of(day), [0.0] * count)
            bar[:] = [a + b for a, b in zip(bar, row, strict=True)]
    return found


def _bars(row: Sequence[float], x: float, width: float, top: float, title: str) -> Iterator[Bar]:
    """The values of a week, one upon the other."""
    below = 0.0
    for which, value in enumerate(row, 1):
        if value:
            below += value
            yield Bar(which, x, round(HEIGHT * (1 - below / top), 1), width, round(HEIGHT * value / top, 1), title)


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
