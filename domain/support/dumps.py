"""What dumps of bytes show: `xxd`, `hexdump` and `od`, read line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from memctl.domain.support import patterns

DUMP = (
    r"\b0000[0-9a-fA-F]{2,4}:? {1,3}(?:[0-9a-fA-F]{2} ?[0-9a-fA-F]{2} {1,2}){4}"
    r"|\b0000[0-7]{3}(?: {3}[!-~]| {2}\\[a-z0]| [0-7]{3}| {4}){8}"
)
"""One of the first lines of `xxd`, `hexdump` or `od`."""

_MOST_DUMPED = 4_096
"""Lines of one dump."""

_HEX = "(?:[0-9a-fA-F]{2}){1,4}"
_DUMPED = patterns.compile(
    (
        rf"(?:^[^\n]{{0,12}}?\b[0-9a-fA-F]{{6,8}}|[ \t\"'`]0000[0-9a-fA-F]{{2,4}}):? {{1,3}}"
        rf"({_HEX}(?: {{1,2}}{_HEX})*)"
    ).encode(),
    patterns.M,
)
"""A line of one; of a dump that begins within a line, what stands before it is none of it."""
_LETTERED = patterns.compile(
    rb"(?:^[^\n]{0,12}?\b[0-7]{7}|[ \t\"'`]0000[0-7]{3})((?: {3}[!-~]| {2}\\[a-z0]| [0-7]{3}| {4}){1,16})", patterns.M
)
_LETTER = patterns.compile(rb" {3}([!-~])| {2}(\\[a-z0])| ([0-7]{3})| {4}")
_WIDTH = 16
"""Bytes of a line."""

Span = tuple[int, int]


def dumps(data: bytes) -> Iterator[tuple[list[Span], list[int], bytes]]:
    """What each dump shows, in each order that its bytes may have: its lines, where in the bytes each begins, and the
    bytes."""
    readings: tuple[Callable[[bytes], bytes], ...]
    for pattern, readings in ((_DUMPED, (_in_order, _swapped)), (_LETTERED, (_lettered,))):
        lines: list[Span] = []
        shown: list[bytes] = []
        for line in pattern.finditer(data):
            end = data.find(b"\n", line.end())
            span = (line.start(), end if end >= 0 else len(data))
            if lines and (span[0] > lines[-1][1] + 1 or len(lines) == _MOST_DUMPED):
                yield from _read(lines, shown, readings)
                lines, shown = [], []
            lines.append(span)
            shown.append(line[1])
        yield from _read(lines, shown, readings)


def _read(
    lines: list[Span], shown: list[bytes], readings: tuple[Callable[[bytes], bytes], ...]
) -> Iterator[tuple[list[Span], list[int], bytes]]:
    for reading in readings if len(lines) > 1 or (shown and len(shown[0]) >= 2 * _WIDTH) else ():
        pieces = [reading(each)[:_WIDTH] for each in shown]
        yield lines, list(accumulate(map(len, pieces), initial=0))[:-1], b"".join(pieces)


def _in_order(shown: bytes) -> bytes:
    return bytes.fromhex(shown.decode())


def _swapped(shown: bytes) -> bytes:
    return b"".join(bytes.fromhex(each.decode())[::-1] for each in shown.split())


def _lettered(shown: bytes) -> bytes:
    escapes = {b"\\n": b"\n", b"\\t": b"\t", b"\\r": b"\r"}
    return b"".join(
        each[1] or (escapes.get(each[2], b" ") if each[2] else bytes((int(each[3], 8) & 255,)) if each[3] else b" ")
        for each in _LETTER.finditer(shown)
    )
