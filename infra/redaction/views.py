"""The ways in which a text reads where that is not as it is written, each with the way of its offsets back."""

from __future__ import annotations

import html
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import accumulate

from memctl.domain.support import patterns
from memctl.domain.support.line_prefixes import LONGEST, begin_alike, prefixes
from memctl.domain.support.wording import HIDDEN
from memctl.infra.redaction.likely import value_like

# JSON inside of text: an escaped line break in front of a key hides its word boundary, an escaped quote or equals sign
# its assignment. Any number of backslashes counts as one, for JSON inside of JSON.
_ESCAPE = patterns.compile(rb"""\\+(?:([nrtbf"'/])|u00([0-7][0-9A-Fa-f]))|\\{2,}""")
ESCAPED = r"""\\(?:[nrtbf"'/\\]|u00[0-7][0-9A-Fa-f])|\x1b\\"""
"""What a text holds in which there is an escape, or the end of a link in a terminal, which is none."""
_CODE = patterns.compile(rb"\\u00([0-7][0-9A-Fa-f])")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b'"': b'"', b"'": b"'", b"/": b"/"}


_HIDDEN_CODES = frozenset(HIDDEN) - {0x7F}


def _exact(data: bytes) -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in data)


def _bytes_of_hidden() -> bytes:
    """A pattern of what shows nothing, as UTF-8."""
    last: dict[bytes, set[int]] = defaultdict(set)
    for code in _HIDDEN_CODES:
        if code < 0xE0000:
            *first, end = chr(code).encode()
            last[bytes(first)].add(end)
    classes = (_exact(first) + b"[" + _exact(bytes(sorted(ends))) + b"]" for first, ends in last.items())
    return b"|".join((*classes, rb"\xf3\xa0[\x80-\xbf][\x80-\xbf]"))


_FULL_WIDTH = rb"\xef\xbc[\x81-\xbf]|\xef\xbd[\x80-\x9e]"
_PERCENT = rb"%(?:25)*[2-7][0-9A-Fa-f]"
_TERMINAL = (
    rb"(?:\x1b\[|\xc2\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\xc2\x9d)(?:[^\x07\x1b\xc2]|\xc2[^\x9d])*(?:\x07|\x1b\\)|"
    rb"\x1b[ -/]*[0-Z\\^-~]|"
    rb"(?:\\(?:x1[bB]|033|e)|\^\[)\[[0-9;:]*[A-Za-z]"
)
"""What a terminal obeys and does not show (colours, links), also in letters. Nothing of these goes on over another
beginning of its kind: else each would be looked for up to the end of the text."""
_CODED = rb"\\u(?:00[aA][dD]|200[b-fB-F]|2060|[fF][eE][fF]{2})"
_ENTITY = rb"&(?:amp;){0,4}(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,20});"
_TAG = (
    rb"</?(?:wbr|WBR|b|i|em|strong|mark|span|code|font|a|u|s|small|sub|sup|tt|kbd|ins|del|var|samp|bdi|nobr)"
    rb"(?:[ /][^<>\n]*)?>|<!--[^<>\n]*-->"
)
"""Tags and comments that stand within a word."""
_HIDDEN = _bytes_of_hidden()
_UNSEEN = patterns.compile(b"|".join((_TERMINAL, _FULL_WIDTH, _HIDDEN, _PERCENT, _CODED, _ENTITY, _TAG)))
"""Letters of full width or named by number, and what shows nothing: what is written with them reads as without."""
INTERRUPTED = tuple(
    pattern.decode("latin-1")
    for pattern in (
        _FULL_WIDTH, _PERCENT, _TERMINAL, _CODED, b"(?:" + _ENTITY + b")[!-~]", b"(?:" + _TAG + b")[!-~]",
        rb"[!-~](?:" + _HIDDEN + rb")[^ \n]",
    )
)  # fmt: skip
"""What a text holds in which something may be written so. (Emoji hold what shows nothing, too.)"""
JOINT = r"""["'][ \t]*(?:\+|\.\.?|&|<>|\|\|)\s*[a-z]?["']"""
"""What joins two strings into one."""
_JOINT = patterns.compile(JOINT.encode())
_NAME = (
    r"(?:key|token|secret|pass(?:w(?:or)?d|phrase|code)?|passwort|pwd|psk|credentials?|auth|authorization|access|"
    r"private|salt|[_-]pat|[_-]pw)s?(?:\b|_)"
)
_SIGN_ENDS = (
    r"(?:[^\w\n]*(?:(?:\w+[^\w\n]*){1,2}[=(\[|>:\\]|[\"'`=(:,>|\\+*-])[ \t]*|"
    r"[^\w\n<]*(?:cat[ \t]*)?<<-?[ \t]*[\"'\\]?\w[^\n<]*|[\"'`]?[ \t]*"
    r"(?:[|\t][\w \t\"'`|,;.-]*|(?:[,;][ \t]*[\"'`]?[\w.-]*(?: [\w.-]+)?[\"'`]?)+))\r?\n"
)
_NAME_ENDS = rf"(?i){_NAME}{_SIGN_ENDS}|(?:[^\w \t\r\n\f.-]|\t|  |- )[ \t]?[\w.-]*{_NAME}[ \t]*\r?\n"
"""The name of a secret that ends its line, but for a sign, a type, a heredoc's mark or the names of other columns. One
that nothing follows stands behind a sign: else it is prose."""
_STANDS_FIRST = (
    r"passw(?:or)?d[ \t]+[^\s\"'`<>(){}\[\]\\|;,$&:=./%-][^\s\"'`<>(){}\[\]\\|;,$&]{5,}(?:[\s\"']|\z)",
    r":(?:[0-9]{4,5}|\*):[\w.*-]+:[\w.*@-]+:[^\s:]",
)
_KEY_ENDS = "----[- ]END [A-Z0-9 ]*PRIVATE KEY"
LINED = (_NAME_ENDS, *_STANDS_FIRST, _KEY_ENDS)
"""What a text holds in which prefixes may keep a name from its value on the next line, what is known by standing first
on its line from the line's beginning, or the lines of a key from its end."""
_KEPT_APART = tuple(
    patterns.compile(source.encode())
    for source in (_NAME_ENDS, *_STANDS_FIRST, rf"[A-Za-z0-9+/_-]{{48,}}={{0,2}}\r?\n|{_KEY_ENDS}")
)
"""The same, the last of any Base64 over lines. (One pattern for all is ten times as slow.)"""
_BEFORE, _BEHIND = 500, 4_000
"""Bytes before such a place and behind it that are read without prefixes."""
_PART = rb"""[^\s"'`<>(){}|,;:=/.]"""
_VALUE = b"|".join(
    (
        *(_PART + b"{%d}[0-9]" % at + _PART + b"{%d}" % (5 - at) for at in range(6)),
        rb"\w[!@#%^&*+?~]+\w|[A-Za-z0-9]{20}",
    )
)
"""What each value that a name stands before has: a digit among its letters, signs between them, or many."""
_WORD_OF_VALUE = patterns.compile(rb"""[^\s"'`<>(){}|,;:]*(?:%b)[^\s"'`<>(){}|,;:]*""" % _VALUE)
_SHORTEST = 6
"""Bytes of a value."""
_BELOW = 4
"""Lines below a name in which its value may stand, if it is not in the one above."""
_MOST_REFUSED = 100
"""Names of a text that are found to keep no value apart before all are taken to keep one."""
_NOT_OF_CHARACTERS = (b"\x1b", b"\xc2\x9b", b"\xc2\x9d", b"%", b"&", b"<", b"\\", b"^")


def _unescaped(data: bytes) -> bytes:
    """What `_ESCAPE` matches, each as the one byte it stands for. Splitting is much faster than the pattern."""
    first, *behind = data.split(b"\\")
    pieces = [first]
    for piece in (*filter(None, behind[:-1]), *behind[-1:]):  # nothing is between two backslashes of one run
        byte = _ESCAPED.get(piece[:1])
        pieces += (b"\\", piece) if byte is None else (byte, piece[1:])
    data = b"".join(pieces)
    return _CODE.sub(lambda code: bytes((int(code[1], 16),)), data) if b"\\u00" in data else data


def _looks_like(found: patterns.Match[bytes]) -> bytes:
    whole: bytes = found[0]
    if whole[:1] == b"%":
        return bytes((int(whole[-2:], 16),))
    if whole[:1] == b"&":
        shown = html.unescape(f"&{whole[1:-1].rsplit(b';', 1)[-1].decode()};")
        return _shown(shown) if len(shown) == 1 else whole
    return _shown(whole.decode()) if whole[0] == 0xEF else b""


def _shown(character: str) -> bytes:
    return character.translate(_AS_SEEN).encode()


_AS_SEEN = {full: full - 0xFEE0 for full in range(0xFF01, 0xFF5F)} | dict.fromkeys(_HIDDEN_CODES, None)


def _seen(data: bytes) -> bytes:
    """What `_UNSEEN` matches as what it looks like. Where only characters are changed, there is a faster way."""
    if any(each in data for each in _NOT_OF_CHARACTERS):
        return _UNSEEN.sub(_looks_like, data)
    return data.decode("utf-8", "surrogateescape").translate(_AS_SEEN).encode("utf-8", "surrogateescape")


Origins = Callable[[], Callable[[int], int]]
"""How to make what brings offsets back."""


def unescaped(data: bytes) -> tuple[bytes, Origins]:
    """The bytes without escapes."""
    return _unescaped(data), partial(_origin, data, _ESCAPE, lambda _: b"?")


def joined(data: bytes, before: Origins | None) -> tuple[bytes, Origins]:
    """The bytes with strings that are joined as one; `before` as below."""
    return _JOINT.sub(b"", data), partial(_both, before, partial(_origin, data, _JOINT, lambda _: b""))


def lined(data: bytes, before: Origins | None, places: Iterable[int]) -> Iterator[tuple[bytes, Origins]]:
    """Of the bytes what stands around secrets that prefixes may hide, each line without what it begins with as its
    neighbours do: all that one of them does, and what several do where that is less. `before` as below. `places`: which
    of `LINED` it may hold."""
    views: tuple[list[tuple[int, int, int]], ...] = ([], [])
    end = 0
    for low, high in _stretches(data, places):
        lines = data[low:high].split(b"\n")
        starts = list(accumulate((len(line) + 1 for line in lines[:-1]), initial=low))
        for left_out, lengths in zip(views, prefixes(lines), strict=True):
            left_out.append((end, low, 0))
            left_out += ((at, at + length, 0) for at, length in zip(starts, lengths, strict=True) if length)
        end = high
    for left_out in (views if views[0] != views[1] else views[:1]) if end else ():
        left_out.append((end, len(data), 0))
        edges = [0, *(edge for start, stop, _ in left_out for edge in (start, stop))]
        view = b"".join(data[low:high] for low, high in zip(edges[::2], edges[1::2], strict=False))
        yield view, partial(_both, before, partial(_Origin, left_out))


def seen(data: bytes, before: Origins | None) -> tuple[bytes, Origins]:
    """The bytes as people see them; `before` is of the bytes that they were made of."""
    return _seen(data), partial(_both, before, partial(_origin, data, _UNSEEN, _looks_like))


def _stretches(data: bytes, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Whole lines around what prefixes keep apart, none over another."""
    low = high = looked_at = refused = 0
    found = sorted((*each.span(), place) for place in places for each in _KEPT_APART[place].finditer(data))
    for start, stop, place in found:
        if start >= high and refused < _MOST_REFUSED:
            if start < looked_at:
                continue
            looked_at = data.find(b"\n", start, start + _BEHIND) + 1 or start + _BEHIND
            if not (_keeps_apart(data, start, stop) if place == 0 else _has_prefix(data, start, looked_at)):
                refused += 1
                continue
        begin, end = start - _BEFORE, stop + _BEHIND
        if begin > high:
            if high:
                yield low, high
            low = data.rfind(b"\n", high, begin) + 1 or high
        if end > high:
            high = data.find(b"\n", end) + 1 or len(data)
    if high:
        yield low, high


def _keeps_apart(data: bytes, start: int, stop: int) -> bool:
    """Whether the line that ends with a name there begins as the next one does, and what may be a value stands near."""
    named = data.rfind(b"\n", max(0, start - _BEHIND), start) + 1
    above = data[max(0, named - LONGEST) : max(0, named - 1)].rsplit(b"\n", 1)[-1]
    line, others = _beginning(data, named), [above, *data[stop : stop + _BELOW * LONGEST].split(b"\n", _BELOW)[:_BELOW]]
    if not begin_alike(line, others[1]) or not _holds_value(b"\n".join(others)):
        return False
    lengths, _ = prefixes([above, line, *others[1:]])
    return any(map(_holds_value, others, (lengths[0], *lengths[2:])))


def _holds_value(text: bytes, at: int = 0) -> bool:
    """Whether a word of a text from there on may be a secret."""
    words = (word[0] for word in _WORD_OF_VALUE.finditer(text, at))
    return any(len(word) >= _SHORTEST and value_like(word.decode("utf-8", "replace")) for word in words)


def _has_prefix(data: bytes, at: int, end: int) -> bool:
    """Whether the line that an offset is in, up to `end`, begins as the next one does, or as the one before."""
    start = data.rfind(b"\n", max(0, at - _BEHIND), at) + 1
    here = _beginning(data, start)
    if begin_alike(here, _beginning(data, end)):
        return True
    return start > 0 and begin_alike(_beginning(data, data.rfind(b"\n", max(0, start - _BEHIND), start - 1) + 1), here)


def _beginning(data: bytes, start: int) -> bytes:
    """What the line that starts there begins with."""
    return data[start : start + LONGEST].split(b"\n", 1)[0]


def _both(first: Origins | None, second: Origins) -> Callable[[int], int]:
    """How offsets are brought back that were moved twice."""
    moved, before = second(), first() if first else None
    return moved if before is None else lambda offset: before(moved(offset))


def _origin(data: bytes, pattern: patterns.Pattern[bytes], became: Callable[[patterns.Match[bytes]], bytes]) -> _Origin:
    """The origin of offsets in bytes of which `pattern` found some and `became` says what each became."""
    return _Origin((*found.span(), len(became(found))) for found in pattern.finditer(data))


class _Origin:
    """Offsets in bytes brought back to where they came from: of what became other bytes there is given where it stood
    and how many these are."""

    def __init__(self, changed: Iterable[tuple[int, int, int]]) -> None:
        self._views, self._sources = [0], [0]
        shrunk = 0
        for start, end, length in changed:
            self._views.append(start - shrunk)
            self._sources.append(start)
            shrunk += end - start - length
            self._views.append(end - shrunk)
            self._sources.append(end)

    def __call__(self, offset: int) -> int:
        at = bisect_right(self._views, offset) - 1
        return self._sources[at] + offset - self._views[at]
