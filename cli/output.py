"""What commands print: tables for people, JSON for programs, moments as dates, and nothing that could steer a terminal.

Data goes to stdout, messages to stderr. On a terminal a table fits its width; elsewhere lines are left whole.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import click

# Control characters steer terminals, and direction marks make a text read other than it is. Line feed and tab stay.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STEERING_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

NARROWEST = 40


class Column(NamedTuple):
    """A column of a table. `give` columns are cut first where room is short; others only when they must."""

    heading: str
    align: Literal["left", "right"] = "left"
    give: bool = False


class Cell(NamedTuple):
    """A cell's text, and how it is shown on a terminal (a rich style)."""

    text: str
    style: str = ""


def safe(text: str) -> str:
    """The text with control characters made visible: an escape becomes `␛`, a carriage return `␍`, others `�`."""
    return _STEERING.sub(_visible, text)


def line(text: str) -> str:
    """The text on one line, safe to print."""
    return safe(" ".join(text.split()))


def when(iso: str | None, now: datetime | None = None) -> str:
    """A moment (ISO 8601) as a local date: `today 14:03`, `yesterday 09:10`, `2 Mar 11:20`, `2025-03-02`."""
    if not iso:
        return ""
    try:
        at = datetime.fromisoformat(iso).astimezone()
        today = (now or datetime.now()).astimezone()
    except (ValueError, OverflowError):
        return safe(iso)
    if at.date() == today.date():
        return f"today {at:%H:%M}"
    if at.date() == (today - timedelta(days=1)).date():
        return f"yesterday {at:%H:%M}"
    if at.year == today.year:
        return f"{at.day} {at:%b} {at:%H:%M}"
    return f"{at:%Y-%m-%d}"


def span(seconds: float | None) -> str:
    """A duration as people say it: `40 s`, `12 min`, `3 h`, `2 d`."""
    if seconds is None:
        return ""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: int) -> str:
    """Bytes as people say it: `1.2 MB`."""
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def tell(message: str) -> None:
    """A message for people, to stderr."""
    click.echo(safe(message), err=True)


def print_json(answer: Any) -> None:
    """JSON for programs, indented. Equal to the answer when it is read, and safe to look at."""
    text = json.dumps(answer, indent=2, ensure_ascii=False)
    click.echo(_STEERING_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_lines(*lines: str) -> None:
    """Texts of stored content, made safe."""
    for each in lines:
        click.echo(safe(each))


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Cell | str]]) -> None:
    """A table without borders. Cells are one line each; wide characters count two columns."""
    cells = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    cells = [[Cell(line(cell.text), cell.style) for cell in row] for row in cells]
    if sys.stdout.isatty():
        _print_fitting(columns, cells)
    else:
        _print_whole(columns, cells)


def width_of(text: str) -> int:
    """Columns that a text takes on a terminal."""
    from rich.cells import cell_len

    return cell_len(text)


def _print_fitting(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        # What may be cut is on one line with an ellipsis; the rest keeps its width for as long as that is possible.
        widest = max((width_of(row[len(table.columns)].text) for row in rows), default=0)
        least = None if column.give else min(max(widest, width_of(column.heading)), 24)
        table.add_column(
            column.heading, justify=column.align, no_wrap=True, overflow="ellipsis", min_width=least,
            ratio=1 if column.give and _overfull(columns, rows, console.width) else None,
        )  # fmt: skip
    for row in rows:
        table.add_row(*(Text(cell.text, style=cell.style) for cell in row))
    console.print(table)


def _overfull(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> bool:
    widths = [
        max([width_of(column.heading), *(width_of(row[at].text) for row in rows)]) for at, column in enumerate(columns)
    ]
    return sum(widths) + 2 * (len(columns) - 1) > width


def _print_whole(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    told = [[column.heading for column in columns], *([cell.text for cell in row] for row in rows)]
    widths = [max(width_of(row[at]) for row in told) for at in range(len(columns))]
    for row in told:
        parts = []
        for at, text in enumerate(row):
            room = " " * (widths[at] - width_of(text))
            parts.append(room + text if columns[at].align == "right" else text + room)
        click.echo("  ".join(parts).rstrip())


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"
