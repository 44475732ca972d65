"""Redacting one text: cleaned of what no database takes, private blocks dropped, secrets cut out."""

from __future__ import annotations

import binascii
import itertools
import string
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard, cast

from memctl.domain.events.observations import CONTEXT_BLOCK_OPEN
from memctl.domain.support import patterns
from memctl.domain.support.dumps import DUMP, dumps
from memctl.infra.redaction.layouts import COLUMN, columns
from memctl.infra.redaction.likely import JUDGES, entropy, goes_on
from memctl.infra.redaction.personal import CHECKS
from memctl.infra.redaction.rules import Rule, load_rules, personal_rules, user_rule
from memctl.infra.redaction.scanner import Scan, filtered, scanner
from memctl.infra.redaction.views import ESCAPED, INTERRUPTED, JOINT, LINED, Origins, joined, lined, seen, unescaped

PRIVATE = "[private]"
"""What stands where a private block stood."""

_PRIVATE_TAG = patterns.compile(r"<(/?)private>", patterns.I)
_BLANK_LINE = patterns.compile(r"\n[ \t\r]*\n")
_MARKER = patterns.compile(rb"\[redacted:[a-z0-9-]+\]")

_REST = patterns.compile(rb"[A-Za-z0-9+/_.~%=:!@#^*-]*")
"""What belongs to a secret that was found by its first characters."""

_GOES_ON = patterns.compile(
    rb"""\\*["'`](?:\s|\\[nrt])*[+.&|]{0,2}(?:\s|\\[nrt])*[a-z]?\\*["'`]([A-Za-z0-9+/_.~%=:@^*!#-]{6,})|"""
    rb"""\\\r?\n[ \t]*([A-Za-z0-9+/_.~%=:@^*-]{6,})|\r?\n[ \t]+([A-Za-z0-9+/_.~%=-]{16,})[ \t]*(?:\r?\n|\z)"""
)
"""What a secret goes on with: a string that is joined to it, or a line of its own."""
_MOST_PIECES = 64
"""Pieces of one secret."""

_ESCAPED, _JOINED, _LINED = 8, 9, 10
_INTERRUPTED = _LINED + len(LINED)
"""Places of patterns behind the rules: those before find something, these say that a text reads otherwise."""
_ROUNDS = 4

_STARTS = r"A[KS]IA|AIza|SG\.|dapi|gh[us]_|[rs]k_(?:live|test)_|xox[ae-z]-|ya29\."
_START = patterns.compile(r"^(?:\(\?[imsx]+\)|\s|\\b|\(|\?:)*([A-Za-z][A-Za-z0-9_-]{1,20}[_-])[\[(]")
"""What tokens begin with, and how a rule says so."""
_BREAK = r"""[ \t]*["']?[ \t]*\\?\r?\n[ \t>|+]*\\?["']?"""
"""Where a terminal, a shell or a quoted text breaks a token."""
_PART = "[A-Za-z0-9_.-]"
_PIECE = patterns.compile(f"{_PART}+".encode())

MOST_BROKEN = 50
"""Broken tokens of one text that are judged; of a text with more, the others are cut as they stand."""

MOST_REFUSED = 16
"""Values that one rule refuses in a text before all of it is looked at again."""

_PRINTED_THREE = r"[CDI-Za-f][AC-HQS-Xgi-nwy-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
_PRINTED = f"(?:{_PRINTED_THREE}){{6}}"
"""Base64 of 18 bytes of ASCII that are printed: the top bits of each byte are known."""
_WIDE = r"(?:[I-Za-f][AQgw][AB][A-Za-z0-9+/_-]A[C-H][AEIMQUYcgkosw048]A){3}"
"""The same of UTF-16: each other byte is zero."""
_READS = patterns.compile(f"{_PRINTED}|{_WIDE}".encode())
_PACKED = "(?:H4sI|e(?:J[w-z]|N[o-r]|A[E-H]|F[4-7]))"
"""What Base64 of gzip and of zlib begins with."""
_UNPACKS = patterns.compile(f"^{_PACKED}".encode())
_MOST_UNPACKED = 1 << 16
"""Bytes of what was packed that are looked at."""
_DEEPEST = 2
"""How often what is encoded may be encoded again."""
_HEX = "(?i)70617373|50415353|7365637265|5345435245|746f6b656e|544f4b454e|6b6579(?:22)?3[ad]|4b4559(?:22)?3[ad]"
"""`pass`, `secre`, `token` and `key:` in hexadecimal digits."""
_HEX_RUN = patterns.compile(rb"(?:[2-7][0-9A-Fa-f]|0[9AaDd]){16,}")
_ENCODED = patterns.compile(rb"(?:[A-Za-z0-9+/_-]{48,}\r?\n[ \t]*)*[A-Za-z0-9+/_-]{4,}={0,2}")
"""A run of Base64, over lines too."""
_STANDARD = bytes.maketrans(b"-_", b"+/")

_RUN = string.ascii_letters + string.digits + "+/=_.~%@-\\"
"""What a secret is written in."""


def clean(text: str) -> str:
    """The text without NUL, and with U+FFFD for each lone surrogate. (NUL is taken out, not replaced, so that UTF-16
    read as UTF-8 cannot hide a secret between its zeros.)
    """
    text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


def drop_private(text: str) -> tuple[str, int]:
    """The text with `[private]` for each `<private>…</private>`, and how many.

    Blocks nest. One that nothing closes reaches to the next blank line; behind a backtick it only names the tag.
    """
    spans: list[tuple[int, int]] = []
    unclosed: list[tuple[int, int]] = []
    for tag in _PRIVATE_TAG.finditer(text):
        if not tag[1]:
            unclosed.append(tag.span())
        elif unclosed:
            spans.append((unclosed.pop()[0], tag.end()))
    reach = 0
    for start, end in unclosed:
        if start >= reach and text[start - 1 : start] != "`":
            blank = _BLANK_LINE.search(text, end)
            reach = blank.start() if blank else len(text)
            spans.append((start, reach))
    kept: list[str] = []
    dropped = position = 0
    for start, end in sorted(spans):
        if start >= position:
            kept += (text[position:start], PRIVATE)
            dropped += 1
        position = max(position, end)
    return ("".join([*kept, text[position:]]), dropped) if dropped else (text, 0)


class Redactor:
    """The rules, ready to use. Safe to share between threads.

    `cache` is a folder that keeps Hyperscan's compiled rules for the next process.
    """

    def __init__(self, rules: Iterable[Rule] | None = None, cache: Path | None = None) -> None:
        self._rules = list(rules) if rules is not None else load_rules()
        self._patterns = [rule.compiled() for rule in self._rules]
        self._unless = [patterns.compile(rule.unless.encode()) if rule.unless else None for rule in self._rules]
        self._must = [patterns.compile(rule.must.encode()) if rule.must else None for rule in self._rules]
        self._checks = [CHECKS[rule.check] if rule.check else None for rule in self._rules]
        self._within = [patterns.compile(rule.within.encode()) if rule.within else None for rule in self._rules]
        self._of = [patterns.compile(rule.of.encode()) if rule.of else None for rule in self._rules]
        self._judges = [JUDGES[rule.judge] if rule.judge else None for rule in self._rules]
        # Clients draw the names of sessions, lines and calls at random: only a vendor's shape makes a secret of one.
        self._of_names = {
            n
            for n, rule in enumerate(self._rules)
            if not rule.id.startswith(("user.", "memctl.personal.")) and rule.judge in ("", "shaped", "block")
        }
        self._of_tokens = self._of_names | {n for n, rule in enumerate(self._rules) if rule.judge == "prefixed"}
        self._begun = {
            n: cast("patterns.Pattern[bytes]", self._patterns[n])
            for n, rule in enumerate(self._rules)
            if rule.of and not rule.within
        }
        self._of_lines = {len(self._rules) + _LINED + n: n for n in range(len(LINED))}
        self._printed = len(self._rules) + 2
        self._of_lines[self._printed] = len(LINED) - 1  # any Base64
        self._behind_names = {n for n, rule in enumerate(self._rules) if rule.judge and rule.names and not rule.within}
        starts = sorted({found[1] for rule in self._rules if (found := _START.search(rule.pattern))})
        begun = rf"\b(?:{'|'.join([_STARTS, *starts])}){_PART}*"
        self._broken = f"{begun}{_BREAK}{_PART}"
        self._tokens = patterns.compile(f"({begun})((?:{_BREAK}{_PART}+){{1,4}})".encode())
        self._scans = self._scans_by_group(cache)

    def _scans_by_group(self, cache: Path | None) -> list[tuple[list[int], Scan]]:
        """A scan for each group of rules, with their indices: memctl's, those of personal data, a user's own."""
        # What stands around names a rule before what it finds does. Private blocks and memctl's own words are cut
        # elsewhere, but seen in the same pass.
        sources = [
            *(rule.of or rule.source for rule in self._rules),
            "(?i)<private>",
            self._broken,
            f"(?:{_PRINTED_THREE}){{3}}|{_WIDE}",
            rf"\b{_PACKED}[A-Za-z0-9+/_-]{{44}}",
            _HEX,
            COLUMN,
            DUMP,
            CONTEXT_BLOCK_OPEN,
            ESCAPED,
            rf"\w{JOINT}\w",
            *LINED,
            *INTERRUPTED,
        ]
        of_characters = {n for n, rule in enumerate(self._rules) if rule.of_characters}
        users = [n for n, rule in enumerate(self._rules) if rule.id.startswith("user.")]
        personal = [n for n, rule in enumerate(self._rules) if rule.id.startswith("memctl.personal.")]
        ours = [n for n in range(len(sources)) if n not in users and n not in personal]
        scans = [
            (group, scanner([sources[n] for n in group], {at for at, n in enumerate(group) if n in of_characters},
                            shared=True, cache=cache))
            for group in (ours, personal) if group
        ]  # fmt: skip
        if users:
            scans.append((users, filtered([cast("patterns.Pattern[str]", self._patterns[n]) for n in users])))
        return scans

    def _scan(self, data: bytes) -> set[int]:
        """Indices of the rules that may find something in it."""
        if len(self._scans) == 1:  # of all rules, in their order
            found = self._scans[0][1](data)
        else:
            found = {group[n] for group, scan in self._scans for n in scan(data)}
        # Hyperscan looks for the half of it, which takes a seventh less time for all rules together.
        if self._printed in found and not _READS.search(data):
            found.discard(self._printed)
        return found

    def suspects(self, data: bytes) -> bool:
        """Whether UTF-8 text may hold a secret, or what is cut elsewhere. False is certain."""
        indices = self._scan(data)
        return bool(indices) and any(
            self._may_find(index, view)
            for view, _, there, _ in self._looks(data, indices)
            for index in there
            if index < len(self._rules) + _ESCAPED
        )

    def _may_find(self, index: int, view: bytes) -> bool:
        """Whether what the scan found may be cut, in a text of which parts may be texts of their own."""
        if index >= len(self._rules):
            return index != len(self._rules) + 5 or any(columns(view))
        if index not in self._behind_names:
            whole = self._begun.get(index)
            return whole is None or whole.search(view) is not None
        for number, (low, high, marker) in enumerate(self._judged(index, view), 1):
            # A value that is refused may reach over the end of such a part.
            if marker or number == MOST_REFUSED or b"\n" in view[low:high]:
                return True
        return False

    def _looks(self, data: bytes, indices: set[int]) -> Iterator[tuple[bytes, Origins | None, set[int], bool]]:
        """The bytes as they are, in which the scan finds `indices`, and as they read otherwise, each with the way of
        its offsets back, what the scan finds in it, and whether its strings are joined."""
        yield data, None, indices, False
        plain, before = data, None
        if len(self._rules) + _ESCAPED in indices:
            if b"\x1b\\" in data:  # the end of a link in a terminal, and no escape
                view, origins = seen(data, None)
                yield view, origins, self._scan(view), False
            unwritten, origins = unescaped(data)
            if unwritten != data:
                plain, before = unwritten, origins
                indices = self._scan(plain)
                yield plain, before, indices, False
        if indices and max(indices) >= len(self._rules) + _INTERRUPTED:
            plain, before = seen(plain, before)
            indices = self._scan(plain)
            yield plain, before, indices, False
        joint = len(self._rules) + _JOINED in indices
        if places := {self._of_lines[index] for index in self._of_lines.keys() & indices}:
            for view, origins in lined(plain, before, places):
                yield view, origins, self._scan(view), False
        if joint:
            view, origins = joined(plain, before)
            yield view, origins, self._scan(view), True

    def names_a_secret(self, name: str) -> bool:
        """Whether a name, as of a session, holds what memctl's rules know for a secret.

        What a user wants cut besides is not asked: a name is the same under all settings.
        """
        data = clean(name).encode()
        return self._kind(data, self._of_names) != ""

    def redact(self, text: str, before: str = "", after: str = "") -> tuple[str, Counter[str]]:
        """The text with `[redacted:<kind>]` for each secret, and how many of each kind.

        `before` and `after` are what stands around the text (its key in an object), which a rule may go by.
        The text is cleaned; private blocks are not looked for.
        """
        text = clean(text)
        before_mark, behind_it, counts = self._redacted(text, before, after, 0)
        return (before_mark + behind_it, counts) if counts else (text, counts)

    def redact_ends(
        self, text: str, head: int, tail: int, margin: int, before: str = "", after: str = ""
    ) -> tuple[str, str, Counter[str]]:
        """What stands in the first `head` and the last `tail` characters of a longer text, each redacted, and how many
        of each kind were cut out. Secrets are looked for in `margin` more characters on the inner side, so that one
        that stands over an edge is found whole; a run of letters and digits longer than that is left out.
        """
        # One that goes on to where nobody looks may be part of a secret, whose name or end is not seen.
        first, last = text[: head + margin].rstrip(_RUN), text[-tail - margin :]
        first = first if len(first) < head else text[: head + margin]
        going_on = last.lstrip(_RUN)
        last = going_on if len(going_on) < tail else last
        kept, _, counts = self._redacted(first, before, "", min(head, len(first)))
        _, end, more = self._redacted(last, "", after, max(0, len(last) - tail))
        return kept, end, counts + more

    def _redacted(self, text: str, before: str, after: str, mark: int) -> tuple[str, str, Counter[str]]:
        """What a text reads up to a character of it and behind that, redacted. A secret over it is cut in the first."""
        counts: Counter[str] = Counter()
        head, tail = clean(before).encode(), clean(after).encode()
        data, mark = text.encode(), len(text[:mark].encode())
        # What a cut leaves may show a neighbour that shared a delimiter with it; nothing found ends it.
        for _ in range(_ROUNDS):
            spans = self._spans(head + data + tail, len(head), len(head) + len(data))
            if not spans:
                break
            pieces: list[bytes] = []
            position = size = 0
            moved = mark
            for start, end, marker in spans:
                pieces += (data[position:start], f"[redacted:{marker}]".encode())
                counts[marker] += 1
                size += start - position + len(pieces[-1])
                position = end
                if start < mark:
                    moved = size + max(0, mark - end)
            data, mark = b"".join(pieces) + data[position:], moved
        return data[:mark].decode("utf-8", "replace"), data[mark:].decode("utf-8", "replace"), counts

    def _spans(self, data: bytes, start: int, end: int) -> list[tuple[int, int, str]]:
        """What to cut between two offsets: offsets from `start` on, sorted, none touching another."""
        found: list[tuple[int, int, str]] = []
        for view, of, indices, of_joined in self._looks(data, self._scan(data)):
            if there := self._there(view, indices):
                origin = of() if of else int
                more = [(origin(low), origin(high), marker) for low, high, marker in there]
                # What is joined to a secret that shows by itself is judged as what goes on with it.
                found += _apart(more, found) if of_joined else more
        if not found:
            return []
        found += [piece for each in found for piece in _pieces_behind(data, *each[1:])]
        markers = [match.span() for match in _MARKER.finditer(data)]
        starts, ends = [start for start, _ in markers], [end for _, end in markers]
        spans: list[tuple[int, int, str]] = []
        for low, high, marker in sorted(found):
            low, high = max(low, start), min(high, end)
            touched = markers[bisect_right(ends, low) : bisect_left(starts, high)] if low < high else []
            if low >= high or (len(touched) == 1 and touched[0][0] <= low and high <= touched[0][1]):
                continue
            if touched:  # a marker is cut whole or not at all
                low, high = min(low, touched[0][0]), max(high, touched[-1][1])
            if spans and low <= spans[-1][1] - 1:
                first, last, name = spans[-1]
                spans[-1] = (first, max(last, high), name)
            else:
                spans.append((low, high, marker))
        return [(low - start, high - start, marker) for low, high, marker in spans]

    def _there(self, data: bytes, indices: set[int]) -> list[tuple[int, int, str]]:
        """What is found in bytes as they read, over the breaks of lines and within Base64."""
        private = len(self._rules)
        found = [each for index in indices if index < private for each in self._matches(index, data)]
        if private + 1 in indices:
            found += self._over_breaks(data)
        if not indices.isdisjoint((private + 2, private + 3)):
            found += self._encoded(data)
        if private + 4 in indices:
            found += self._hidden_in((run.span(), binascii.unhexlify(run[0])) for run in _HEX_RUN.finditer(data))
        if private + 5 in indices:
            found += ((low, high, "secret-in-a-table") for low, high in columns(data))
        if private + 6 in indices:
            found += self._dumped(data)
        return found

    def _over_breaks(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Tokens of a known prefix that are whole only with what the next lines begin with."""
        judged = at = 0
        while (broken := self._tokens.search(data, at)) is not None:
            if judged == MOST_BROKEN:
                at = broken.end(1)  # another may begin on the lines that it reaches over
                yield *broken.span(), "token"
                continue
            judged += 1
            whole, end = broken[1], broken.end(1)
            for piece in _PIECE.finditer(broken[2]):
                longer = whole + piece[0]
                known, grown = (bool(self._kind(each, self._of_names)) for each in (whole, longer))
                alike = known == grown and (known or self._kind(whole, self._of_tokens))
                if known > grown or (alike and not goes_on(_text(piece[0]))):
                    break
                whole, end = longer, broken.end(1) + piece.end()
            at = end
            if end > broken.end(1) and (marker := self._kind(whole, self._of_tokens)):
                yield broken.start(), end, marker

    def _kind(self, data: bytes, rules: set[int]) -> str:
        """What the first of these rules calls what it finds, if any does."""
        return next((marker for n in sorted(self._scan(data) & rules) for _, _, marker in self._matches(n, data)), "")

    def _encoded(self, data: bytes, deep: int = 0) -> Iterator[tuple[int, int, str]]:
        """Runs of Base64 that hold a secret, each whole."""
        runs = ((run.span(), plain) for run in _ENCODED.finditer(data) if (plain := _decoded(run[0])))
        return self._hidden_in(runs, deep)

    def _hidden_in(
        self, runs: Iterable[tuple[tuple[int, int], bytes]], deep: int = 0
    ) -> Iterator[tuple[int, int, str]]:
        encoded = {len(self._rules) + 2, len(self._rules) + 3}
        for span, plain in runs:
            indices = self._scan(plain)
            inside = (each for n in sorted(indices) if n < len(self._rules) for each in self._matches(n, plain))
            again = self._encoded(plain, deep + 1) if deep < _DEEPEST and not encoded.isdisjoint(indices) else ()
            if (found := next(itertools.chain(inside, again), None)) is not None:
                yield (*span, found[2])

    def _dumped(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """The lines of dumps that show a secret."""
        for lines, starts, plain in dumps(data):
            for index in self._scan(plain):
                for low, high, marker in self._matches(index, plain) if index < len(self._rules) else ():
                    first, last = (bisect_right(starts, at) - 1 for at in (low, high - 1))
                    yield lines[first][0], lines[last][1], marker

    def _matches(self, index: int, data: bytes) -> list[tuple[int, int, str]]:
        if self._rules[index].judge and self._rules[index].names:
            return list(self._named(index, data))
        pattern, unless, must = self._patterns[index], self._unless[index], self._must[index]
        check = self._checks[index]
        marker, names = self._rules[index].marker, self._rules[index].names
        groups = [group for group in range(1, pattern.groups + 1) if group not in names] or [0]
        least, judge = self._rules[index].entropy, self._judges[index]
        found: list[tuple[int, int, str]] = []
        for low, high in _groups_of(pattern, groups, data):
            value = data[low:high]
            if (unless and unless.search(value)) or (must and not must.search(value)):
                continue
            if check and not check(value.decode("utf-8", "replace")):
                continue
            if least and entropy(value.decode("utf-8", "replace")) < least:
                continue
            if judge and not judge(value.decode("utf-8", "replace"), ""):
                continue
            found.append((low, high, marker))
        return found

    def _named(self, index: int, data: bytes) -> Iterator[tuple[int, int, str]]:
        """What a rule finds behind a name."""
        return (found for found in self._judged(index, data) if found[2])

    def _judged(self, index: int, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Every value behind a name, with no marker where it is refused: such a one may hold the next name."""
        pattern, rule = cast("patterns.Pattern[bytes]", self._patterns[index]), self._rules[index]
        judge = JUDGES[rule.judge]
        of = rule.names[0]
        values = [group for group in range(1, pattern.groups + 1) if group != of]
        for begin, end in self._stretches(index, data):
            text, at = data[begin:end], 0
            while (match := pattern.search(text, at)) is not None:
                at, high = next(span for group in values if (span := match.span(group))[0] >= 0)
                if judge(_text(text[at:high]), _text(match[of])):
                    low, rest = at, _REST.match(text, high)
                    at = rest.end() if rest else high
                    yield begin + low, begin + at, rule.marker
                    continue
                yield begin + at, begin + high, ""
                if not match[of]:  # nothing stands before it that could be the value's name
                    at = high

    def _stretches(self, index: int, data: bytes) -> Iterator[tuple[int, int]]:
        """Where a rule is looked for: everywhere, or within something."""
        within, of = self._within[index], self._of[index]
        if within is None or of is None:
            yield 0, len(data)
            return
        for around in within.finditer(data):
            if of.search(data, around.start(), around.end()):
                yield around.span()


def _apart(spans: Iterable[tuple[int, int, str]], others: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The spans that touch none of the others."""
    others = sorted(others)
    starts, reach = [low for low, _, _ in others], list(itertools.accumulate((high for _, high, _ in others), max))
    return [each for each in spans if not (before := bisect_left(starts, each[1])) or reach[before - 1] <= each[0]]


def _decoded(run: bytes) -> bytes:
    """What a run of Base64 says, where that is text or was packed."""
    letters = run.translate(_STANDARD, b"= \t\r\n")
    packed = _UNPACKS.search(letters)
    if not packed:
        if (reads := _READS.search(letters)) is None:
            return b""
        letters = letters[reads.start() % 4 :]
    plain = binascii.a2b_base64(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
    if not packed:
        return plain.replace(b"\0", b"")
    try:
        return zlib.decompressobj(47).decompress(plain, _MOST_UNPACKED)
    except zlib.error:
        return b""


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _groups_of(
    pattern: patterns.Pattern[bytes] | patterns.Pattern[str], groups: Iterable[int], data: bytes
) -> Iterator[tuple[int, int]]:
    """Where in the bytes these groups of a pattern's matches stand, but for empty ones."""
    if _of_bytes(pattern):
        for match in pattern.finditer(data):
            yield from ((low, high) for group in groups if (low := match.start(group)) < (high := match.end(group)))
        return
    text = data.decode("utf-8", "surrogateescape")
    at, position = 0, 0
    for found in cast("patterns.Pattern[str]", pattern).finditer(text):
        start = found.start()
        at, position = at + _bytes_of(text[position:start]), start
        for group in groups:
            low, high = found.span(group)
            if low < high:
                # What a look-behind caught stands before the match.
                begin = at + (_bytes_of(text[start:low]) if low >= start else -_bytes_of(text[low:start]))
                yield begin, begin + _bytes_of(text[low:high])


def _of_bytes(pattern: patterns.Pattern[bytes] | patterns.Pattern[str]) -> TypeGuard[patterns.Pattern[bytes]]:
    return isinstance(pattern.pattern, bytes)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _pieces_behind(data: bytes, end: int, marker: str) -> Iterator[tuple[int, int, str]]:
    """What a secret that ends there goes on with: the strings joined to it, the lines that it was broken over."""
    for _ in range(_MOST_PIECES):
        found = _GOES_ON.match(data, end)
        if found is None:
            return
        start, end = next(span for group in (1, 2, 3) if (span := found.span(group))[0] >= 0)
        if not goes_on(_text(data[start:end])):
            return
        yield start, end, marker


@lru_cache(maxsize=4)
def redactor_of(patterns: tuple[str, ...], *, anonymize: bool, cache: Path | None = None) -> Redactor:
    """The rules that memctl ships, with what a user wants cut besides; made once a process. Raises: BadPattern."""
    rules = [*load_rules(), *(user_rule(n, pattern) for n, pattern in enumerate(patterns, 1))]
    return Redactor([*rules, *personal_rules()] if anonymize else rules, cache)


@lru_cache(maxsize=1)
def default_redactor() -> Redactor:
    """The rules that memctl ships, compiled once a process."""
    return Redactor()


def redact(text: str, redactor: Redactor | None = None) -> tuple[str, dict[str, int]]:
    """The text as it may be kept, and how many of each kind were cut out of it (`private` among them)."""
    text, private = drop_private(clean(text))
    text, counts = (redactor or default_redactor()).redact(text)
    return text, dict(counts) | ({"private": private} if private else {})
