"""Texts as people read them, in whatever form they were written: what forgetting compares.

A text has readings. The first is its normal form: NFKC, in Latin letters where others look alike, without signs that
nobody sees and codes of terminals. The next are the same with escapes of JSON, entities of HTML, percent signs and
quoted-printable undone, as often as they are nested. A line break may stand anywhere in a text that is looked for, with
a hyphen before it, and marks of a diff, a quotation, a comment or a line's number behind it. Its words may be joined as
in names of code, and have emphasis, commas or cells of a table between them: what is canonically the same is the same.
Tags, marks of Markdown and joints of a string in parts may stand within its words.
Its base64, base32 and hex (of UTF-8 and UTF-16), its bytes as lists of numbers, its letters in reverse and by ROT13 are
looked for, too, and what a dump of bytes shows is read. Case does not matter.

Each step is linear in the text, and works on bytes, since most text is of ASCII. Sources: UAX 15 (normalization forms),
ECMA-48 (codes of terminals), RFC 4648 (base64), RFC 2045
(quoted-printable), UTS 39 (letters that look alike).
"""

import codecs
import html
import unicodedata
from base64 import b32encode, b64encode
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.dumps import DUMP, dumps
from memctl.domain.support.line_prefixes import prefixes
from memctl.domain.support.literals import Literals, mentions
from memctl.domain.support.markup import without_markup
from memctl.domain.support.text import canonical

ROUNDS = 5
"""How often one way of escaping may stand in another: a row of a database as it is copied, JSON in it, JSON in that."""

SHORTEST_SKELETON = 8
"""Letters and digits of what counts as near, and of an encoding: fewer stand anywhere by chance."""

LONGEST_PATTERN = 1_000
"""Characters of a text whose blanks and signs are compared; of a longer one the others count by their letters."""

_PIECE, _STEP_BACK = 512, 64
"""Characters that are normalized at once: sorting marks takes time in the square of their number."""

_UNSEEN = patterns.compile(
    r"[\x{ad}\x{34f}\x{61c}\x{115f}\x{1160}\x{17b4}\x{17b5}\x{180b}-\x{180f}\x{200b}-\x{200f}\x{202a}-\x{202e}"
    r"\x{2060}-\x{206f}\x{3164}\x{fe00}-\x{fe0f}\x{feff}\x{ffa0}\x{fff9}-\x{fffb}\x{e0000}-\x{e0fff}]+"
)
_LIKE_LATIN = (
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u051b\u051d"
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"
)
_ALIKE = str.maketrans(f"{_LIKE_LATIN}{_LIKE_LATIN.upper()}", 2 * "abekmhopctyxijsdhqwabezhikvoptyx")
"""Letters of Cyrillic and Greek that look like Latin ones, in either case as one: what is the same word stays so."""
_OF_ALIKE = patterns.compile(rb"[\xcd-\xd4]")
"""With these bytes Greek and Cyrillic letters begin in UTF-8, and no others that are frequent."""
_TYPESET = tuple(
    (mark.encode(), typed.encode())
    for typed, marks in (("-", "\u2010\u2012\u2013\u2014"), ("'", "\u2018\u2019"), ('"', "\u201c\u201d"))
    for mark in marks
)
"""Dashes and quotation marks as they are set, and as they are typed."""
_QUOTED = patterns.compile(rb"=\r?\n|=(?:20|3D|C[2-9A-F]|D[0-9A-F]|E[0-9A-F])(?:=[0-9A-F]{2})*")
"""What only quoted-printable has: a line that goes on, and how its blanks, `=` and other letters are written."""
_CONTROLS = bytes({*range(0x20), 0x7F} - set(b"\t\n\r"))
_CONTROL = patterns.compile(rb"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]")
_TERMINAL = patterns.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])?")
_CODES = patterns.compile(
    rb"\\00[0-9A-Fa-f]{4} ?|"
    rb"(?:\\u[0-9A-Fa-f]{4})+|(?:\\x[0-9A-Fa-f]{2})+|\\u\{[0-9A-Fa-f]{1,6}\}|\\U[0-9A-Fa-f]{8}|\\[0-3][0-7]{2}|\\e"
)
_PERCENT = patterns.compile(rb"(?:%[0-9A-Fa-f]{2})+")
_ENTITY = patterns.compile(rb"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_SIMPLE = ((b"\\n", b"\n"), (b"\\r", b"\r"), (b"\\t", b"\t"), (b'\\"', b'"'), (b"\\'", b"'"), (b"\\/", b"/"))
_SIGNS = bytes(code for code in range(0x80) if not chr(code).isalnum())
_OTHER_SIGNS = patterns.compile(rf"[^\x00-\x7f{patterns.LETTERS}]+")
_SMALL = bytes(range(0x100)).lower()
_DUMP = patterns.compile(DUMP.encode())
_MARKS_LEFT = patterns.compile(r"[\x{300}-\x{36f}]+")
"""Marks that no letter has of its own: what strikes it through, or stands above it."""
_PIECES, _PIECE_LENGTH = 2, 5
"""Words of a text, the longest ones, of which at least one begins or ends so in a text that is read without prefixes,
and how many letters of it are looked for."""
_HEX = patterns.compile(r"[0-9a-f]+")
_JOINED = patterns.compile(rb"""["'`][ \t\r\n]*[+.&][ \t\r\n]*["'`]""")
"""What stands within words of a string that is written in parts."""
_COUNTED = patterns.compile(rb"[ \t]*((?:[^\s:]{1,100}:)?)([0-9]{1,7})(\t|\xe2\x86\x92|[:|)]|  | \|)")
"""What a tool puts before a line that it numbers: a file's name, the number, and what stands behind it."""
_MARKS = r"[\s<>+\-|#*/;%!\x{2502}]*"


class Found(NamedTuple):
    """Of some texts, those that stand in another in a form that people read as the same, and those that nearly do: with
    other signs between their letters."""

    held: frozenset[str]
    near: frozenset[str]


class WrittenForms:
    """Some texts to look for, in any of the forms in which they may be written. Safe to use from several threads."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._plain: dict[str, set[str]] = {}
        self._encoded: dict[str, set[str]] = {}
        self._patterns: dict[str, list[patterns.Pattern[str]]] = {}
        self._of_signs: set[str] = set()
        self._canonical: dict[str, set[str]] = {}
        asked = list(dict.fromkeys(texts))
        self._fold = _as_it_is if all(map(str.isascii, asked)) else _folded
        for text in asked:
            forms = dict.fromkeys(
                b" ".join(_folded(form).split()) for form in readings(text.encode("utf-8", "replace"))
            )
            self._patterns[text] = [_pattern(form.decode()) for form in forms if form]
            words = {f" {said} " for form in forms if " " in (said := canonical(form.decode()))}
            if words:
                self._canonical[text] = words
            bare = {skeleton(form) for form in forms} - {""}
            if not bare:
                self._of_signs.add(text)
            for each in bare:
                self._plain.setdefault(each, set()).add(text)
            for each in encodings(text):
                self._encoded.setdefault(each, set()).add(text)
        words_of = (sorted(form.split(), key=len)[-_PIECES:] for form in asked)
        ends = {
            end
            for words in words_of
            for word in words
            for end in _ends(skeleton(_folded(word.encode("utf-8", "replace"))))
        }
        # A line may break within a word: of one that stands alone no such piece need be left.
        alone = any(" " not in text.strip() for text in asked)
        self._pieces = None if self._of_signs or alone or "" in ends else Literals(ends)
        self._literals = Literals([*self._plain, *self._encoded])
        self.may_be_ids = any(map(_HEX.fullmatch, self._plain))
        """Whether one could stand within an id."""

    def within(self, data: bytes) -> Found:
        """Which of the texts stand in those bytes, of UTF-8."""
        held: set[str] = set()
        near: set[str] = set()
        if not self._patterns:
            return Found(frozenset(), frozenset())
        for reading in readings(data):
            folded = self._fold(reading)
            bare = skeleton(folded)
            self._look(folded, bare, held, near)
            for instead in (b"", b" "):
                if (read := _JOINED.sub(b"", without_markup(folded, instead).replace(b"**", b""))) != folded:
                    self._look(read, skeleton(read), held, near, SHORTEST_SKELETON)
            for other in self._apart(reading, folded, bare):
                self._look(other, skeleton(other), held, near)
        return Found(frozenset(held), frozenset(near - held))

    def _apart(self, reading: bytes, folded: bytes, bare: str) -> Iterator[bytes]:
        """What a text says without what its lines begin with alike, and what dumps in it show."""
        if b"\n" in folded and (self._pieces is None or self._pieces.within(bare)):
            lines = folded.split(b"\n")
            if (uncounted := _uncounted(lines)) != lines:
                yield b"\n".join(uncounted)
            for lengths in prefixes(lines):
                if any(lengths):
                    yield b"\n".join(line[length:] for line, length in zip(lines, lengths, strict=True))
        if _DUMP.search(reading):
            yield from (self._fold(_visible(shown)) for _, _, shown in dumps(reading))

    def _look(self, reading: bytes, bare: str, held: set[str], near: set[str], least: int = 0) -> None:
        literals = self._literals.within(bare)
        held.update(*(self._encoded.get(each, ()) for each in literals))
        asked = self._of_signs.union(*(self._plain.get(each, ()) for each in literals)) - held
        if least:
            asked = {each for each in asked if len(skeleton(each.encode("utf-8", "replace"))) >= least}
        text = reading.decode("utf-8", "replace").lower() if asked else ""
        exact = {each for each in asked if any(pattern.search(text) for pattern in self._patterns[each])}
        if not exact.issuperset(words := self._canonical.keys() & asked):
            said = f" {canonical(text)} "
            exact |= {each for each in words if mentions(said, self._canonical[each])}
        held |= exact
        near |= {each for each in asked - exact if len(skeleton(each.encode("utf-8", "replace"))) >= SHORTEST_SKELETON}


def _uncounted(lines: list[bytes]) -> list[bytes]:
    """Lines without their numbers where these go on counting. In the line before, the number may stand behind words:
    what was pasted begins where somebody typed."""
    left = lines[:1]
    for before, line in pairwise(lines):
        found = _COUNTED.match(line)
        last = b"%s%d%s" % (found[1], int(found[2]) - 1, found[3]) if found else b""
        at = before.find(last) if last else -1
        counts = found is not None and at >= 0 and not before[:at][-1:].isdigit()
        left.append(line[found.end() :] if found is not None and counts else line)
    return left


def readings(data: bytes) -> Iterator[bytes]:
    """A text as people may read it: in its normal form, then with its escapes undone, as often as they are nested."""
    for _ in range(ROUNDS):
        yield (seen := _visible(data))
        data = _unescaped(seen)
        if data == seen:
            return


def skeleton(data: bytes) -> str:
    """The letters and digits of a text in small letters."""
    text = data.translate(_SMALL, _SIGNS).decode("utf-8", "replace")
    return text if text.isascii() else _OTHER_SIGNS.sub("", text)


def _ends(word: str) -> tuple[str, str]:
    return word[:_PIECE_LENGTH], word[-_PIECE_LENGTH:]


_DECIMAL = tuple(map(str, range(256)))

LONGEST_ENCODED = 4_096
"""Characters of a phrase that are looked for encoded: who holds so many of its first holds the phrase."""


def encodings(text: str) -> list[str]:
    """The skeletons of a text's base64, base32 and hex, whatever stands before and behind it there, of its bytes as
    numbers, and of it in reverse."""
    found: list[str] = []
    text = text[:LONGEST_ENCODED]
    cases = (text, text.lower(), text.upper(), text.title(), text.capitalize())
    for form in dict.fromkeys(unicodedata.normalize(way, case) for case in cases for way in ("NFC", "NFD")):
        data = form.encode("utf-8", "replace")
        # By the whole text at once: a loop over its bytes takes many times as long.
        found += (data.hex(), f"{int.from_bytes(data):b}".zfill(8 * len(data)), data.hex(" ").replace(" ", "0x"))
        numbers = ",".join(map(_DECIMAL.__getitem__, data))
        found += (numbers.replace(",", between) for between in ("", "char", "chr"))
        for before in range(5):
            encoded = b32encode(bytes(before) + data).decode().lower()
            found.append(encoded[-(-before * 8 // 5) : (before + len(data)) * 8 // 5])
        for wide in (data, form.encode("utf-16-le", "replace")):
            for before, cut in ((0, 0), (1, 2), (2, 3)):
                encoded = b64encode(bytes(before) + wide).decode()
                found.append(skeleton(encoded[cut : (before + len(wide)) * 8 // 6].encode()))
    found.append(text.encode("utf-16-le", "replace").hex())
    found += (skeleton(each.encode("utf-8", "replace")) for each in (text[::-1], codecs.encode(text, "rot13")))
    return [each for each in dict.fromkeys(found) if len(each) >= SHORTEST_SKELETON]


def _pattern(form: str) -> patterns.Pattern[str]:
    """A form with any blanks between its words, and line breaks wherever they may stand. Words of some length may be
    joined, as in names of code."""
    broken = rf"-?\s*\n{_MARKS}"
    joints = "[\\s+_.-]*" if len(skeleton(form.encode())) >= SHORTEST_SKELETON else "[\\s+]+"
    between = rf"(?:{joints}|{broken})"
    words = form[:LONGEST_PATTERN].split()
    return patterns.Pattern(between.join(f"(?:{broken})?".join(map(patterns.escape, word)) for word in words))


def _visible(data: bytes) -> bytes:
    """A text without what nobody sees, in the letters that people take it for."""
    if b"\x1b" in data:
        data = _TERMINAL.sub(b"", data)
    if _CONTROL.search(data):
        data = data.translate(None, _CONTROLS)
    return data if data.isascii() else _composed(data)


def _composed(data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    if _UNSEEN.search(text):
        text = _UNSEEN.sub("", text)
    if _OF_ALIKE.search(data):
        # A letter with its mark is taken apart first: `ё` is one letter or two, and looks like `ë`.
        apart = (unicodedata.normalize("NFKD", piece).translate(_ALIKE) for piece in _pieces(text))
        composed = "".join(unicodedata.normalize("NFC", piece) for piece in apart).encode()
    else:
        composed = "".join(unicodedata.normalize("NFKC", piece) for piece in _pieces(text)).encode()
    if b"\xcc" in composed or b"\xcd" in composed:
        composed = _MARKS_LEFT.sub("", composed.decode()).encode()
    for mark, typed in _TYPESET if b"\xe2\x80" in composed else ():
        composed = composed.replace(mark, typed)
    return composed


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start + _PIECE
        while start + _PIECE - _STEP_BACK < end < len(text) and unicodedata.combining(text[end]):
            end -= 1
        yield text[start:end]
        start = end


def _as_it_is(data: bytes) -> bytes:
    return data


def _folded(data: bytes) -> bytes:
    """A text in small letters, those of other alphabets than ASCII's among them."""
    return data.lower() if data.isascii() else data.decode("utf-8", "replace").casefold().encode()


def _unescaped(data: bytes) -> bytes:
    """A text with the escapes of JSON and programs, the entities of HTML and the percent signs of addresses undone."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"\0")
        for escaped, meant in _SIMPLE:
            data = data.replace(escaped, meant)
        data = (_CODES.sub(_of_code, data) if b"\\" in data else data).replace(b"\0", b"\\")
    if b"=" in data:
        data = _QUOTED.sub(_of_quoted, data)
    if b"%" in data:
        data = _PERCENT.sub(lambda found: _known(bytes.fromhex(found[0].replace(b"%", b"").decode())), data)
    return _ENTITY.sub(lambda found: html.unescape(found[0].decode()).encode(), data) if b"&" in data else data


def _of_quoted(found: patterns.Match[bytes]) -> bytes:
    """What a run of quoted-printable stands for."""
    return b"" if found[0][1:2] in b"\r\n" else _known(bytes.fromhex(found[0].replace(b"=", b"").decode()))


def _known(data: bytes) -> bytes:
    """Bytes that are UTF-8, whatever they were."""
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


def _of_code(found: patterns.Match[bytes]) -> bytes:
    """What an escape of a character stands for."""
    escape = found[0].decode()
    if escape[1] == "x":
        return _known(bytes.fromhex(escape.replace("\\x", "")))
    if escape[1] == "u" and escape[2] != "{":
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "replace").encode()
    if escape[1] == "e":
        return b"\x1b"
    if escape[1:3] == "00" and len(escape) > 4:  # of a style sheet
        return chr(int(escape[1:7], 16)).encode("utf-8", "replace")
    code = int(escape[1:], 8) if escape[1].isdigit() else int(escape[2:].strip("{}"), 16)
    return chr(code).encode("utf-8", "replace") if code < 0x110000 else b"?"
