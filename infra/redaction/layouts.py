"""Secrets that stand apart from what they are known by: in the column below a name."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import accumulate

from memctl.domain.support import patterns
from memctl.infra.redaction.likely import beside

_NAME = "(?:passwords?|passwd|passphrase|pwd|secrets?|tokens?|(?:api|access|secret|auth|private)[ _-]?keys?)"
_WORDS = r"[\w \t\"'`|,;│.-]*"
COLUMN = (
    rf"(?i){_NAME}[\"'`]?[ \t]*(?:(?:[|,;\t]|│){_WORDS})?(?:\r?\n[^\n]*(?:[|,;\t+]|│)|\)\s*values\s*\(|\r?\n[ \t]*--)"
)
"""The name of a secret at the end of a cell, on a line of names, with a line of cells, or a rule, below it."""

_HEADER = patterns.compile(rf"^[^\n]{{0,12}}?({_WORDS}{_NAME}{_WORDS})\r?$".encode(), patterns.I | patterns.M)
_LISTED = patterns.compile(rb"\(([^()\n]*)\)\s*values\s*", patterns.I)
_ROW = patterns.compile(rb"\s*,?\s*\(([^()\n]*)\)")
_ENDS_SO = patterns.compile(f"{_NAME}$", patterns.I)
_RULED = patterns.compile("^[\\s|+:=─━┄═│├┼┤╞╪╡┌┐└┘┬┴-]*[+=─━═-][\\s|+:=─━┄═│├┼┤╞╪╡┌┐└┘┬┴-]*$".encode())
_RULE = patterns.compile(rb"\r?\n[ \t]*-{2,}[ \t]*(?:\r?\n|\z)")
"""What stands below a heading of one column."""
_QUOTED = patterns.compile(rb"\"[^\"\n]*\"|'[^'\n]*'")
_SIGNS = ("│".encode(), b"|", b"\t", b";", b",")
_NUMBERED = patterns.compile(rb"^[ \t>+-]*(?:[0-9]{1,6}(?:\xe2\x86\x92|[:\t]))?[\s\"'`*]*")
_AROUND = b" \t\r\n\"'`*"

_MOST_ROWS, _LONGEST_NAME = 1_000, 40
"""Lines below a heading that are looked at, and bytes of a cell that may name a secret."""

Span = tuple[int, int]

_Header = tuple[int, dict[int, str]]
"""How many columns a table has, and which of them hold secrets, by their names."""


def columns(data: bytes) -> Iterator[Span]:
    """Values that stand in a table below the name of a secret, or behind it in a statement."""
    at = 0
    while (header := _HEADER.search(data, at)) is not None:
        at = header.end()
        begin, end = header.span(1)
        alone = _RULE.match(data, at) is not None
        sign = next((each for each in _SIGNS if each in header[1]), b"\n" if alone else b"")
        names = _cells(data, begin, end, sign) if sign else []
        least = 1 if alone else 2
        of_all, behind = _promising(data, names, least), None if alone else _promising(data, names[1:], least)
        if of_all is None and behind is None:
            continue
        at = yield from _rows(data, at + 1, sign, b"" if alone else data[slice(*names[0])], of_all, behind)
    for listed in _LISTED.finditer(data):
        if wanted := _promising(data, _cells(data, *listed.span(1), b",")):
            at = listed.end()
            while (row := _ROW.match(data, at)) is not None:
                at = row.end()
                yield from _below(data, _cells(data, *row.span(1), b","), wanted)


def _rows(
    data: bytes, at: int, sign: bytes, begins: bytes, of_all: _Header | None, behind: _Header | None
) -> Generator[Span, None, int]:
    """Values in the lines from there on, below a heading that `begins` so; returns where they end. `behind`: what the
    heading is without its first cell, for lines that begin as it does."""
    for _ in range(_MOST_ROWS):
        if at > len(data):
            break
        end = data.find(b"\n", at)
        end = end if end >= 0 else len(data)
        line = data[at : end + 1]
        if sign in line or not _RULED.search(line):
            cells = _cells(data, at, end, sign)
            wanted = of_all
            if begins and _is_prefix(begins, data[slice(*cells[0])]):
                cells, wanted = cells[1:], behind
            if wanted is None or (wanted[0] == 1 and b" " in data[slice(*cells[0])]):
                break  # a text below a heading
            if len(cells) == wanted[0]:
                yield from _below(data, cells, wanted)
            elif not _RULED.search(line):
                break
        at = end + 1
    return at


def _is_prefix(cell: bytes, below: bytes) -> bool:
    """Whether what begins a line and the next is no cell of them: a line's number, or the name of who printed both."""
    return cell == below or (cell.isdigit() and below.isdigit())


def _cells(data: bytes, begin: int, end: int, sign: bytes) -> list[Span]:
    """Where the cells of a line stand, without what is around them."""
    line = data[begin:end]
    quoted = b'"' in line or b"'" in line
    parts = (_QUOTED.sub(lambda found: b"_" * len(found[0]), line) if quoted else line).split(sign)
    found: list[Span] = []
    for low in accumulate((len(part) + len(sign) for part in parts[:-1]), initial=0):
        part = line[low : low + len(parts[len(found)])]
        lead = _NUMBERED.match(part)
        shift = lead.end() if lead else 0
        found.append((begin + low + shift, begin + low + max(shift, len(part.rstrip(_AROUND)))))
    return found


def _promising(data: bytes, cells: list[Span], least: int = 2) -> _Header | None:
    """How many columns a header has, and which of them hold secrets by their names."""
    names = [data[low:high].decode("utf-8", "replace") for low, high in cells]
    if len(names) < least or max(map(len, names)) > _LONGEST_NAME:
        return None
    wanted = {n: name for n, name in enumerate(names) if _ENDS_SO.search(name)}
    return (len(names), wanted) if wanted else None


def _below(data: bytes, cells: list[Span], header: _Header) -> Iterator[Span]:
    for n, name in header[1].items() if len(cells) == header[0] else ():
        if beside(data[slice(*cells[n])].decode("utf-8", "replace"), name):
            yield cells[n]
