"""How things went over weeks: errors and how often they came back, what hindsight shows, what recall was used for, how
memory grew, what the work was."""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from memctl.api.queries import figures, hindsight
from memctl.api.reading.hindsight import Record
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.viewer.plots import Plot, Values, stacked

LEAST_DAYS = 30
"""Of the ranges that are offered: each bar is a week."""


class Trend(NamedTuple):
    """What is drawn of one thing: a name, its series, and their values by week. `sums`: each week has those before it,
    too."""

    label: str
    series: tuple[str, ...]
    values: Values
    sums: bool = False


def trends(reader: Reader, places: Places) -> list[Trend]:
    """Everything that can be drawn, of all weeks."""
    days = figures.by_day(reader, places)
    errors = figures.in_weeks(days, "errors", "errors_seen_before", "errors_resolved")
    needs = hindsight.records(reader, places)
    recalls = figures.recall_by_week(reader, places)
    return [
        Trend("Errors a week", ("new", "seen before"), {w: (e - s, s) for w, (e, s, _) in errors.items()}),
        Trend("Errors resolved a week", ("resolved",), {w: (row[2],) for w, row in errors.items()}),
        Trend(
            "Minutes a week until what memory held was found", ("recalled", "not recalled"),
            {week: (other / 60, lost / 60) for week, (lost, other) in hindsight.seconds_by_week(needs).items()},
        ),
        Trend(*HELD, held(needs)),
        Trend(
            "Work a week that ended in a known way", ("without memory", "with memory recalled", "held back"),
            {week: (without, with_it, back) for week, (with_it, without, back, *_) in recalls.items()},
        ),
        Trend("Memories", ("memories",), figures.memories_by_week(reader, places), sums=True),
        Trend("Prompts and uses of tools a week", ("prompts", "tools"), figures.in_weeks(days, "prompts", "tool_uses")),
        Trend("Tokens a week", ("in", "out"), figures.in_weeks(days, "tokens_in", "tokens_out")),
    ]  # fmt: skip


def drawn(found: Iterable[Trend], today: date, since: date | None, before: date | None) -> list[Plot]:
    """The plots that there is something to draw of, of the weeks from the one of `since` up to `before`. What a clock
    put behind tomorrow is left out."""
    end = min(before or date.max, today + timedelta(days=2))  # before the day after tomorrow
    plots = (
        stacked(each.label, each.series, each.values, sums=each.sums, since=since or date.min, before=end)
        for each in found
    )
    return [plot for plot in plots if plot is not None]


HELD = "Needs a week that memory held", ("recalled", "not recalled")


def held(needs: Sequence[Record]) -> Values:
    """By week, the needs that memory held and that were recalled, and those that were not."""
    return {each.week: (each.recalled, each.count - each.recalled) for each in hindsight.by_week(needs)}
