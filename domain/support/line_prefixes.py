"""What a tool puts before each line of what it shows: whatever neighbouring lines begin with alike.

Lines begin alike where their fronts are equal, but for numbers (a line's, a moment's, an offset, a commit's hash), for
the blanks of a column, for the sign of a margin or of a search's context, and for a word of a column (an author, a
level) that a bracket or a date ends. A front ends behind a sign or a blank, never within a word.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import takewhile

from memctl.domain.support import patterns

LONGEST = 200
"""Bytes of a line that are compared with its neighbour's."""

_WORDS_APART = 6
"""Places at which two fronts may differ."""

_AROUND = 3
"""Neighbours before a line and behind it that have to begin alike for its shorter front."""

_HASH = patterns.compile(rb"^\^?[0-9a-f]{7,40}\b")
_HASHES = patterns.compile(rb"^\^?[0-9a-f]{7,40}\b", patterns.M)
_ESCAPED_ARROW = rb"\u2192"
_DIGITS = b"0123456789"
_AS_SHAPE = bytes.maketrans(b"123456789\t", b"000000000 ")
_RUNS = tuple((sign * length, sign) for sign in (b"0", b" ") for length in (16, 4, 3, 2, 2))
"""Runs of digits and of blanks, each as one: what is left of a run of `LONGEST` after the first is at most 27 long."""
_COLUMN = patterns.compile(rb"[A-Za-z<][\w.@<>,'-]*(?: [A-Za-z][\w.,'-]*){0,3} ?([\])|]|0[-/:]0)")
"""Words of a column, in a shape, and what ends it."""
_COLUMN_BEGINS = (string.ascii_letters + "<").encode()
_MARGIN, _CONTEXT = b" +-<>!|*#=~^", b":-="
_COUNTS = b"0123456789abcdef^"
_MAY_DIFFER = _MARGIN + b"0"
_OF_WORDS = (string.ascii_letters + "._-<@ ").encode()
_WORD = (string.ascii_letters + "0_").encode()
_OPENS = b"\"'`({[<$"


def prefixes(lines: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """How long the prefix of each line is: what it shares with the neighbour that begins most like it, and what it
    shares with all of the nearest neighbours; 0 where no neighbour begins alike."""
    before, behind = [0], []
    shapes = _shapes(lines)
    for n in range(len(lines) - 1):
        here, below = _shared(shapes[n], shapes[n + 1])
        behind.append(here)
        before.append(below)
    behind.append(0)
    most = list(map(max, before, behind))
    longest = [_length(*each) if each[2] else 0 for each in zip(lines, shapes, most, strict=True)]
    shortest = longest.copy()
    for n, length in enumerate(most):
        if length and (least := _least(before, behind, n)) != length:
            shortest[n] = _length(lines[n], shapes[n], least)
    return longest, shortest


def begin_alike(line: bytes, below: bytes) -> bool:
    """Whether a line and the next have a prefix."""
    first, second = line.lstrip()[:1], below.lstrip()[:1]
    may = first == second or (first in _COUNTS and second in _COUNTS) or (b"|" in line and b"|" in below)
    if not may and (line[:1] not in _MARGIN or below[:1] not in _MARGIN):
        return False
    here, there = _shapes((line, below))
    return _shared(here, there) != (0, 0)


def _least(before: list[int], behind: list[int], n: int) -> int:
    """The least that a line and its nearest neighbours share, each with the next, as far as they share anything."""
    found = [*takewhile(bool, behind[n : n + _AROUND]), *takewhile(bool, before[n : max(0, n - _AROUND) : -1])]
    return min(found)


def _shapes(lines: Sequence[bytes]) -> list[bytes]:
    """The beginnings of lines in which a number is `0` and a column's blanks are one."""
    data = b"\n".join(line[:LONGEST] for line in lines)
    if _ESCAPED_ARROW in data:
        data = data.replace(_ESCAPED_ARROW, b"\1" * len(_ESCAPED_ARROW))
    if _HASHES.search(data):
        data = _HASHES.sub(b"0", data)
    data = data.translate(_AS_SHAPE)
    for run, sign in _RUNS:
        data = data.replace(run, sign)
    return data.replace(b"[ 0", b"[0").replace(b"( 0", b"(0").split(b"\n")


def _shared(shape: bytes, below: bytes) -> tuple[int, int]:
    """How much of two shapes is a prefix of both: in either, for what differs may be longer in one."""
    may = shape[:1] == below[:1] or (shape[:1] in _MAY_DIFFER and below[:1] in _MAY_DIFFER)
    if not may and (b"|" not in shape or b"|" not in below):
        return 0, 0
    here = there = 0
    for _ in range(_WORDS_APART):
        same = _same(shape, here, below, there)
        here, there = here + same, there + same
        step = _passed(shape, here, below, there)
        if step is None:
            break
        here, there = step
    here, there = _ended(shape, here), _ended(below, there)
    if not here or not there or (shape[:here].isspace() and below[:there].isspace()):
        return 0, 0
    return here, there


def _same(shape: bytes, here: int, below: bytes, there: int) -> int:
    """How many bytes are equal from there on."""
    length = min(len(shape) - here, len(below) - there)
    one, other = shape[here : here + length], below[there : there + length]
    differ = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")  # its highest bit is of the first that do
    return length - (differ.bit_length() + 7) // 8


def _passed(shape: bytes, here: int, below: bytes, there: int) -> tuple[int, int] | None:
    """Where two fronts go on behind what may differ in them; None where they end."""
    one, other = shape[here : here + 1], below[there : there + 1]
    if not one or not other:
        return None
    if other == b"0" and shape.startswith(b" 0", here):  # a column that a number fills
        return here + 1, there
    if one == b"0" and below.startswith(b" 0", there):
        return here, there + 1
    signs = _MARGIN if here == 0 else _CONTEXT
    if one in signs and other in signs and (here == 0 or b"0" in (shape[here - 1 : here], shape[here + 1 : here + 2])):
        return here + 1, there + 1
    if here and b"0" not in shape[:here] and shape[:1] not in b"[(":
        return None
    return _columns_passed(shape, _word_start(shape, here), below, _word_start(below, there))


def _columns_passed(shape: bytes, here: int, below: bytes, there: int) -> tuple[int, int] | None:
    """Where two fronts go on behind a column whose words differ; None where there is none."""
    if shape[here : here + 1] not in _COLUMN_BEGINS or below[there : there + 1] not in _COLUMN_BEGINS:
        return None
    word = _COLUMN.match(shape, here)
    others = _COLUMN.match(below, there) if word else None
    if word and others and word[1] == others[1] and (word[1] != b"|" or here == 0):
        return word.start(1), others.start(1)
    return None


def _word_start(shape: bytes, at: int) -> int:
    """Where the words of a column begin."""
    words = shape[:at].rstrip(_OF_WORDS)
    return at - len(shape[len(words) : at].lstrip(b" "))


def _ended(shape: bytes, at: int) -> int:
    """Where a front ends that is alike up to there: behind a sign or a blank, and before what opens a text."""
    while at and at < len(shape) and 0x80 <= shape[at] < 0xC0:  # within a character
        at -= 1
    return len(shape[:at].rstrip(_WORD).rstrip(_OPENS))


def _length(line: bytes, shape: bytes, length: int) -> int:
    """How long what a shape begins with is in its line: of blanks at its end one, for the others may be the text's."""
    if line.startswith(shape[:length]) and b"0" not in shape[:length]:
        return length
    at = 0
    for n, byte in enumerate(shape[:length], 1):
        if byte == 0x30:
            at += _run(line, at, b" \t")
            found = _HASH.search(line) if not at else None
            at = found.end() if found else at + _run(line, at, _DIGITS)
        elif byte == 0x20 and n < length:
            at += _run(line, at, b" \t")
        else:
            at += 1
    return at


def _run(line: bytes, at: int, letters: bytes) -> int:
    """How many bytes from there on are one of those."""
    rest = line[at : at + LONGEST]
    return len(rest) - len(rest.lstrip(letters))
