"""Verbs that read: what each is given, and how it prints the items that came, or that none did."""

from __future__ import annotations

import difflib
import functools
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import click

from memctl.api.reading.views import Json, Listing, Page, Scope
from memctl.cli.connection import NOTHING_FOUND, looking_back, placed, running
from memctl.cli.output import Cell, Column, notice, print_json, print_table

if TYPE_CHECKING:
    from memctl.api.client import Asked, Received

T = TypeVar("T")

_PROJECT = "project"

in_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""The option of verbs that print JSON for programs."""


_AGO = {"d": 1, "day": 1, "days": 1, "w": 7, "week": 7, "weeks": 7}
_BY_NAME = {"today": 0, "yesterday": 1}
_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _days_ago(words: str) -> int | None:
    """How many days ago a day was that is named by that, or by its day of the week: the last that there was, today
    not counted."""
    if words in _BY_NAME:
        return _BY_NAME[words]
    day = words.removeprefix("last ")
    if day in _WEEK:
        return (date.today().weekday() - _WEEK.index(day) - 1) % 7 + 1
    number, unit = words[:-1], words[-1:]
    if words.endswith(" ago"):
        number, _, unit = words.removesuffix(" ago").partition(" ")
        number = "1" if number in ("a", "one") else number
    known = unit in _AGO and number.isascii() and number.isdigit() and len(number) < 5
    return int(number) * _AGO[unit] if known else None


_DAYS = "2026-03-01, yesterday, monday, 7d or 2 weeks ago"


class Moment(click.ParamType):  # type: ignore[type-arg]  # older ones have none
    """A day or a moment as people write it: 2026-03-01, 2026-03-01T14:30, today, yesterday, monday, 7d, 2 weeks ago."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As the API is asked: a day of this machine begins at its own midnight where it was named by how long ago."""
        word = str(value).strip().lower()
        ago = _days_ago(word)
        if ago is not None:
            return datetime.combine(date.today() - timedelta(days=ago), datetime.min.time()).astimezone().isoformat()
        with suppress(ValueError):
            return date.fromisoformat(word).isoformat()
        with suppress(ValueError):
            return datetime.fromisoformat(word).isoformat()
        self.fail(f"{value!r} is no day: write {_DAYS}", param, ctx)


class OneOf(click.Choice):  # type: ignore[type-arg]
    """One of some words: in any case, with - for _, and where it is none of them, the one that it is most like."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value).lower().replace("-", "_")
        if word in self.choices:
            return word

        longer = [each for each in self.choices if word and each.startswith(word)]
        near = [*longer, *difflib.get_close_matches(word, self.choices, n=1, cutoff=0.5)]
        meant = f" Did you mean {near[0]}?" if near else ""
        self.fail(f"{value!r} is none of {', '.join(self.choices)}.{meant}", param, ctx)


since = click.option("--since", type=Moment(), metavar="DATE", help=f"Only what happened from this day on ({_DAYS}).")
"""The option of verbs that look at what is not older."""

before = click.option("--before", type=Moment(), metavar="DATE", help="Only what happened before this day.")
"""The option of verbs that look at what is older."""


class Reading(NamedTuple):
    """What a reading verb was given: the project that is asked about, the most items to print, and whether as JSON."""

    project: str | None
    limit: int
    as_json: bool

    def page(self, what: str, of: type[T], **asked: Asked) -> Received[Page[T]]:
        """One page of that list."""
        with running() as client:
            return client.page(what, of, **placed(self.project), limit=self.limit, **asked)

    def read(self, path: str, of: type[T], **asked: Asked) -> Received[T]:
        """What a path answers with."""
        with running() as client:
            return client.read(path, of, **placed(self.project), **asked)


def reading(*, limit: int, most: int = 200) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb the options that every reading verb has; it takes them as one `Reading`. `limit`: the items that are
    printed where nothing else is asked for, up to `most`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def verb(project: str | None, limit: int, as_json: bool, **given: object) -> None:
            command(Reading(project, limit, as_json), **given)

        allowed = click.IntRange(1, most)
        for option in (
            looking_back,
            in_json,
            click.option("--limit", type=allowed, default=limit, show_default=True, help="Most items to print."),
            click.option(
                "--project",
                metavar="NAME|PATH|*",
                help="Which project; '*' for all. Without it, the one this directory belongs to, if memory knows it.",
            ),
        ):
            verb = option(verb)
        return verb

    return decorate


def print_items(
    answer: Received[Page[T]] | Received[Listing[T]],
    as_json: bool,
    print_them: Callable[[list[T]], object],
    empty: str,
    *,
    whole: bool = False,
) -> None:
    """Print the items of a page or list; where there are none, say so and exit. JSON is of the items, or the `whole`
    answer."""
    found = answer.value
    scope = getattr(found, "scope", None)
    if as_json:
        print_json(answer.json if whole else items_of(answer.json))
    elif found.items:
        print_scope(scope)
        print_them(found.items)
    if not found.items:
        nothing(scope, empty)


def table(row: Callable[[T], list[Cell | str]], *columns: Column | str) -> Callable[[list[T]], None]:
    """Prints items as a table. A column that is named only is one of plain text. On a terminal, where room is
    short, the project is left out where all are of one; elsewhere a column is always in its place."""
    named = [Column(each) if isinstance(each, str) else each for each in columns]

    def print_rows(items: list[T]) -> None:
        rows = [row(item) for item in items]
        kept = list(range(len(named)))
        if sys.stdout.isatty():
            one = [len({str(cells[at]) for cells in rows}) < 2 for at in kept]
            kept = [at for at in kept if named[at].heading != _PROJECT or not one[at]]
        print_table([named[at] for at in kept], [[cells[at] for at in kept] for cells in rows])

    return print_rows


def each(print_one: Callable[[T], object]) -> Callable[[list[T]], None]:
    """Prints items one after the other."""

    def print_all(items: list[T]) -> None:
        for item in items:
            print_one(item)

    return print_all


def items_of(answer: Json) -> Any:
    """The items of a page or list, as it was sent."""
    return answer["items"] if isinstance(answer, dict) else answer


def nothing(scope: Scope | None, message: str) -> NoReturn:
    """Say that nothing is there, and exit."""
    if scope is not None and scope.project is not None:
        message += f" in project {scope.project}; --project '*' asks all"
    notice(message)
    raise click.exceptions.Exit(NOTHING_FOUND)


def print_scope(scope: Scope | None) -> None:
    """Print which project was asked, if the user did not name one."""
    if scope is None:
        return
    if scope.chosen == "here":
        notice(f"project {scope.project} (--project '*' for all)")
    elif scope.chosen == "unknown":
        notice("memory does not know this directory: what holds everywhere (--project '*' for all)")
    elif scope.chosen == "everywhere":
        limited = scope.locations > 0
        notice(f"asking {'the projects of your key' if limited else 'all projects'}: this folder is of none")
