"""How things went over weeks: errors and how often they came back, what hindsight shows, what recall was used for, how
memory grew, what the work was."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from memctl.api.queries import figures, hindsight
from memctl.api.reading.hindsight import Record
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.viewer.plots import Plot, Values, stacked


def trends(reader: Reader, places: Places, today: date) -> list[Plot]:
    """The plots that there is something to draw of. What a clock put behind tomorrow is left out."""

    def drawn(label: str, series: tuple[str, ...], values: Values, *, sums: bool = False) -> Plot | None:
        return stacked(label, series, until(values, today + timedelta(days=1)), sums=sums)

    days = figures.by_day(reader, places)
    errors = figures.in_weeks(days, "errors", "errors_seen_before", "errors_resolved")
    needs = hindsight.records(reader, places)
    recalls = figures.recall_by_week(reader, places)
    found = (
        drawn("Errors a week", ("new", "seen before"), {w: (e - s, s) for w, (e, s, _) in errors.items()}),
        drawn("Errors resolved a week", ("resolved",), {w: (row[2],) for w, row in errors.items()}),
        drawn(
            "Minutes a week until what memory held was found", ("recalled", "not recalled"),
            {week: (other / 60, lost / 60) for week, (lost, other) in hindsight.seconds_by_week(needs).items()},
        ),
        drawn(*HELD, held(needs)),
        drawn(
            "Work a week that ended in a known way", ("without memory", "with memory recalled", "held back"),
            {week: (without, with_it, back) for week, (with_it, without, back, *_) in recalls.items()},
        ),
        drawn("Memories", ("memories",), figures.memories_by_week(reader, places), sums=True),
        drawn("Prompts and uses of tools a week", ("prompts", "tools"), figures.in_weeks(days, "prompts", "tool_uses")),
        drawn("Tokens a week", ("in", "out"), figures.in_weeks(days, "tokens_in", "tokens_out")),
    )  # fmt: skip
    return [plot for plot in found if plot is not None]


HELD = "Needs a week that memory held", ("recalled", "not recalled")


def held(needs: Sequence[Record]) -> Values:
    """By week, the needs that memory held and that were recalled, and those that were not."""
    return {each.week: (each.recalled, each.count - each.recalled) for each in hindsight.by_week(needs)}


def until(values: Values, last: date) -> Mapping[date, tuple[float, ...]]:
    return {day: tuple(row) for day, row in values.items() if day <= last}
