"""What commands print: tables for people, JSON for programs, moments as dates, and nothing that could steer a terminal.

Data goes to stdout, messages to stderr. On a terminal tables and texts fit its width; elsewhere lines are left whole.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import click
import msgspec

from memctl.domain.support.wording import HIDDEN, seen

# Control characters steer terminals, and what is hidden is read by agents. Line feed and tab stay.
_STEERING = dict.fromkeys(range(0xD800, 0xE000), "�") | {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_IN_JSON = (*HIDDEN, *range(0xD800, 0xE000))
for _kept in "\t\n":
    del _STEERING[ord(_kept)]


class Column(NamedTuple):
    """A column of a table. `give` columns are cut first where room is short; others only when they must."""

    heading: str
    align: Literal["left", "right"] = "left"
    give: bool = False


class Cell(NamedTuple):
    """A cell's text, and how it is shown on a terminal."""

    text: str
    style: Literal["", "bold", "dim", "red", "green", "yellow", "cyan"] = ""


def safe(text: str) -> str:
    """The text with control characters made visible: an escape becomes `␛`, a carriage return `␍`, others `�`, as what
    is hidden."""
    return seen(text.translate(_STEERING), "�")


def line(text: str) -> str:
    """The text on one line, safe to print."""
    return safe(" ".join(text.split()))


def by_whom(text: str, member: str) -> str:
    """A text with the name of the member through whose key it came, where it was one."""
    return f"{member}: {text}" if member else text


def when(iso: str | datetime | None, now: datetime | None = None) -> str:
    """A moment (ISO 8601) as a local date: `today 14:03`, `yesterday 09:10`, `2 Mar 11:20`, `2025-03-02`."""
    if not iso:
        return ""
    try:
        at = (iso if isinstance(iso, datetime) else datetime.fromisoformat(iso)).astimezone()
        today = (now or datetime.now()).astimezone()
    except (ValueError, OverflowError):
        return safe(str(iso))
    if at.date() == today.date():
        return f"today {at:%H:%M}"
    if at.date() == (today - timedelta(days=1)).date():
        return f"yesterday {at:%H:%M}"
    if at.year == today.year:
        return f"{at.day} {at:%b} {at:%H:%M}"
    return f"{at:%Y-%m-%d}"


def notice(message: str) -> None:
    """A message for people, on one line of stderr."""
    click.echo(safe(message.replace("\n", " ")), err=True)


def print_json(answer: object, indent: int | None = 2) -> None:
    """JSON for programs; on one line without indent. Equal to the answer when it is read, and safe to look at."""
    text = json.dumps(answer, indent=indent, ensure_ascii=False, default=_plain)
    if not text.isascii() or "\x7f" in text:
        text = text.translate({code: json.dumps(chr(code))[1:-1].replace("\x7f", r"\u007f") for code in _IN_JSON})
    click.echo(text)


def print_outcome(outcome: object, as_json: bool, message: str) -> None:
    """What a command came to: as JSON to stdout, else the message for people."""
    if as_json:
        print_json(outcome)
    else:
        notice(message)


def _plain(value: object) -> object:
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)


def print_lines(*lines: str) -> None:
    """Lines of stored content, each made safe and one line, so that no name begins another. On a terminal they are
    broken at words, below where each begins."""
    for row in (safe(each.replace("\n", " ")) for each in lines):
        click.echo("\n".join(broken(row, len(row) - len(row.lstrip(" ")))))


def broken(text: str, indent: int) -> list[str]:
    """On a terminal, the rows that a line takes: each ends with a word, the others begin `indent` in; else the line.

    A word that is wider than the terminal stays whole: it may be a path, to be copied.
    """
    if not sys.stdout.isatty() or width_of(text) <= (room := shutil.get_terminal_size().columns):
        return [text]
    first, *words = text[indent:].split(" ")
    rows, row = [], text[:indent] + first
    for word in words:
        if width_of(f"{row} {word}") > room:
            rows.append(row)
            row = " " * indent + word
        else:
            row += f" {word}"
    return [*rows, row]


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """On a terminal, a bar for each reported thing: its name, how much of it is done, and of how much."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        tasks: dict[str, int] = {}

        def progress(what: str, done: int, of: int) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bar.add_task(what, total=of or None, rate="")
            speed = bar.tasks[task].speed
            bar.update(bar.tasks[task].id, completed=done, total=of or None, rate=f"{speed:,.0f}/s" if speed else "")

        yield progress


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], *, headings: bool = True) -> None:
    """A table without borders. Cells are one line each; wide characters count two columns."""
    for each in table_lines(columns, rows, headings=headings):
        click.echo(each)


def table_lines(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]], *, headings: bool = True
) -> Iterator[str]:
    """The lines of such a table."""
    heading = [Cell(column.heading, "bold") for column in columns]
    cells = [
        *([heading] if headings else ()),
        *([cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows),
    ]
    cells = [[Cell(line(cell.text), cell.style) for cell in row] for row in cells]
    widths = [max(width_of(row[at].text) for row in cells) for at in range(len(columns))]
    if sys.stdout.isatty():
        widths = _fitting(columns, widths, shutil.get_terminal_size().columns)
    for row in cells:
        parts = [_laid(cell, column.align, width) for cell, column, width in zip(row, columns, widths, strict=True)]
        yield "  ".join(parts).rstrip()


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text in at most so many columns, ending in an ellipsis where something was left out."""
    from rich.cells import set_cell_size

    return text if width_of(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _fitting(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Widths that fit the room: columns that give are narrowed first, to a dozen; then the widest of all."""
    fitted = list(widths)
    room -= 2 * (len(columns) - 1)
    giving = [at for at, column in enumerate(columns) if column.give]
    for among, least in ((giving, 12), (range(len(columns)), 1)):
        while sum(fitted) > room and (wide := max(among, key=lambda at: fitted[at], default=None)) is not None:
            if fitted[wide] <= least:
                break
            fitted[wide] = max(
                least, fitted[wide] - max(1, sum(fitted) - room) if len(among) == 1 else fitted[wide] - 1
            )
    return fitted


def _laid(cell: Cell, align: Literal["left", "right"], width: int) -> str:
    text = cut(cell.text, width)
    blank = " " * (width - width_of(text))
    # click leaves the colours out by itself where stdout is no terminal.
    shown = click.style(text, **_STYLES[cell.style]) if cell.style else text
    return blank + shown if align == "right" else shown + blank


_STYLES: dict[str, dict[str, Any]] = {
    "bold": {"bold": True},
    "dim": {"dim": True},
    **{colour: {"fg": colour} for colour in ("red", "green", "yellow", "cyan")},
}
