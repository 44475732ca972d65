"""How things went over time: errors and how often they came back, what hindsight shows, what recall was used for, how
memory grew, what the work was. A new chart is one more entry of `trends`."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import NamedTuple

from memctl.api.queries import figures, hindsight
from memctl.api.reading.hindsight import Record
from memctl.api.reading.places import Places
from memctl.api.reading.reader import Reader
from memctl.api.viewer.plots import Plot, Values, stacked


class Trend(NamedTuple):
    """What is drawn of one thing: a name, its series, and their values by day. `{each}` in the name is what a bar is
    of, a day or a week. `sums`: each bar has those before it, too."""

    label: str
    series: tuple[str, ...]
    values: Values
    sums: bool = False


def trends(reader: Reader, places: Places) -> list[Trend]:
    """Everything that can be drawn, of all days."""
    days = figures.happened(reader, places)

    def of(*names: str) -> Values:
        return {day: [row[name] for name in names] for day, row in days.items()}

    errors = of("errors", "errors_seen_before")
    needs = hindsight.records(reader, places)
    return [
        Trend("Errors a {each}", ("new", "seen before"), {day: (e - s, s) for day, (e, s) in errors.items()}),
        Trend("Errors resolved a {each}", ("resolved",), of("errors_resolved")),
        Trend(
            "Minutes a {each} until what memory held was found", ("recalled", "not recalled"),
            {day: (other / 60, lost / 60) for day, (other, lost) in hindsight.seconds_by_day(needs).items()},
        ),
        held(needs),
        Trend(
            "Work a {each} that ended in a known way", ("with memory recalled", "without memory", "held back"),
            figures.recall_by_day(reader, places),
        ),
        Trend("Memories", ("memories",), figures.memories_by_day(reader, places), sums=True),
        Trend("Prompts and uses of tools a {each}", ("prompts", "tools"), of("prompts", "tool_uses")),
        Trend("Tokens a {each}", ("in", "out"), of("tokens_in", "tokens_out")),
    ]  # fmt: skip


def held(needs: Iterable[Record]) -> Trend:
    """The needs that memory held and that were recalled, and those that were not."""
    days: dict[date, tuple[int, int]] = {}
    for each in needs:
        recalled, lost = days.get(day := each.at.date(), (0, 0))
        days[day] = (recalled, lost + 1) if each.recall is None else (recalled + 1, lost)
    return Trend("Needs a {each} that memory held", ("recalled", "not recalled"), days)


def drawn(found: Iterable[Trend], today: date, since: date | None, before: date | None) -> list[Plot]:
    """The plots that there is something to draw of, of the days from `since` on and before `before`. What a clock put
    behind tomorrow is left out."""
    end = min(before or date.max, today + timedelta(days=2))  # before the day after tomorrow
    plots = (
        stacked(each.label, each.series, each.values, sums=each.sums, since=since or date.min, before=end)
        for each in found
    )
    return [plot for plot in plots if plot is not None]
