"""Patterns over text that others wrote, matched in time linear in the text, whatever it says.

The engine is RE2: it cannot backtrack, so no text makes it slow, and it gives one answer on every version of Python.
The interface is that of the standard library's `re`, as far as memctl uses it. The dialect is RE2's, with these
differences from `re`:

- a look-around is checked in code, at the match that would be found without it: where it refuses that match, the
  search goes on behind its beginning. At the very beginning and end of a pattern it is as in `re`. There is none
  within a repetition;
- there is no back-reference, no possessive or atomic group;
- `\\w` is a letter, digit, mark or `_` of any script, `\\s` white space of any script; `\\d` is 0-9, and `\\b` stands
  between ASCII words only, so a Korean particle ends an English word (at a pattern's beginning and end, beside another
  letter, it is one of any script);
- `$` without `M` is the end of the text, also where a line break ends it;
- a count is at most 1,000; `{20,1024}` is `{20,}`.

Source: Cox, "Regular Expression Matching in the Wild" (2010).
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, AnyStr, Generic, NamedTuple
from weakref import WeakSet

from memctl.domain.support.errors import MemctlError

I, M, S, X = 1, 2, 4, 8  # noqa: E741  # as `re` calls them
"""Flags, to be joined by `|`: ignore case, `^` and `$` at each line, `.` matches line breaks, verbose."""

LETTERS = (
    r"A-Za-z\x{aa}\x{b5}\x{ba}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1fff}\x{2c00}-\x{2dff}\x{3005}-\x{3007}"
    r"\x{3021}-\x{302f}\x{3031}-\x{303c}\x{3041}-\x{d7ff}\x{f900}-\x{fdff}\x{fe70}-\x{fefe}\x{ff21}-\x{ff3a}"
    r"\x{ff41}-\x{ff5a}\x{ff66}-\x{ffdc}\x{10000}-\x{1efff}\x{20000}-\x{3ffff}"
)
"""Letters and marks of any script, for the inside of a character class: `[{LETTERS}-]`. Blocks, not properties: those
differ between versions of Unicode, and make programs a hundred times as large."""

_SPACE = r"\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"

_CLASSES = {"w": rf"0-9_\x{{ff10}}-\x{{ff19}}{LETTERS}", "s": _SPACE}

_BYTES = 16
"""A flag of patterns over bytes: classes are of ASCII."""

_MAX_MEMORY = 8 << 20
"""Bytes that one pattern's automaton may take. RE2 starts its table of states over beyond that, which is slower."""

_SHORT = 1_024
"""Characters: encoding a shorter text again costs less than looking whether it is the one encoded last."""

_WORDS, _REMEMBERED = 64, 16_384
"""Characters of a text that counts as short, and how many such questions and answers are remembered, some 6 MB in all:
words, names and commands come again and again. Of longer texts four in five come once."""

_CONTEXT = 16
"""Characters before a window that are kept: a line's beginning, a word's boundary and a look-behind see no further."""

_GUARDED = 300
"""Characters behind a place that a look-ahead sees: more would make each refusal cost as much as the text is long."""

_BLOCK = 256
"""Characters between two known offsets of a text that is not ASCII."""

_CONTINUATION = bytes(range(0x80, 0xC0))
"""The bytes that begin no character in UTF-8."""


Spans = Sequence[tuple[int, int]]
"""Where a match and its groups begin and end, in bytes: (-1, -1) for each that there is not."""

Engine = Callable[[bytes, int, int], Spans]
"""Looks at a text from one byte up to another."""

_SEARCH, _MATCH, _FULL = range(3)
"""Where a match may begin and end: anywhere, at the beginning, at both."""


class BadPattern(MemctlError):
    """A pattern is not of the dialect."""


class Pattern(Generic[AnyStr]):
    """A compiled pattern. It is compiled when it is first used, so importing a module costs nothing."""

    pattern: AnyStr

    def __init__(self, source: AnyStr, flags: int = 0) -> None:
        self.pattern = source
        self.flags = flags

    def __repr__(self) -> str:
        return f"Pattern({self.pattern!r}, {self.flags})"

    def __reduce__(self) -> tuple[type[Pattern[AnyStr]], tuple[AnyStr, int]]:
        return Pattern, (self.pattern, self.flags)

    @cached_property
    def _translation(self) -> Translation:
        if isinstance(self.pattern, bytes):
            return translated(self.pattern.decode("latin-1"), self.flags | _BYTES)
        return translated(self.pattern, self.flags)

    @cached_property
    def _program(self) -> Any:
        return self._compiled(self._translation.source)

    def _compiled(self, source: str) -> Any:
        from re2 import _re2  # type: ignore[attr-defined]  # the wrapper is five times as slow

        encoded, options = self._for_engine(source)
        program = _re2.RE2(encoded, options)
        if not program.ok():
            raise BadPattern(f"the pattern {self.pattern!r} is not of RE2's dialect: {program.error().decode()}")
        return program

    def _for_engine(self, source: str) -> tuple[bytes, Any]:
        from re2 import Options

        options = Options()
        options.max_mem = _MAX_MEMORY
        options.log_errors = False
        options.case_sensitive = not self.flags & I
        options.dot_nl = bool(self.flags & S)
        encoding = "utf-8"
        if isinstance(self.pattern, bytes):
            options.encoding, encoding = Options.Encoding.LATIN1, "latin-1"
        return (("(?m)" if self.flags & M else "") + source).encode(encoding), options

    @cached_property
    def _engines(self) -> tuple[Engine, Engine, Engine]:
        """The engine for each place where a match may be."""
        return _engines_of(self._program)

    @cached_property
    def _later(self) -> tuple[Engine, Engine, Engine]:
        """The engines for what does not begin at the beginning of the text, where the pattern has to stand behind
        something that was matched with it."""
        return _engines_of(self._compiled(self._translation.source.replace(_AT_START, "(?:", 1)))

    @cached_property
    def _around(self) -> _LookAround | None:
        """What code has to look at; None where a match of RE2's is a match as it is."""
        found = self._translation
        return _LookAround(found, self._named) if found.guards or found.begins or found.ends else None

    @cached_property
    def groups(self) -> int:
        """How many groups there are."""
        return int(self._program.NumberOfCapturingGroups()) - sum(name.startswith("_") for name in self._named)

    @cached_property
    def groupindex(self) -> Mapping[str, int]:
        """The numbers of the named groups."""
        markers = [number for name, number in self._named.items() if name.startswith("_")]
        named = [(name, number) for name, number in self._named.items() if number not in markers]
        return {name: number - sum(marker < number for marker in markers) for name, number in named}

    @cached_property
    def _named(self) -> dict[str, int]:
        return {name.decode(): number for name, number in self._program.NamedCapturingGroups()}

    def search(self, text: AnyStr, pos: int = 0, endpos: int | None = None) -> Match[AnyStr] | None:
        """The leftmost match. What lies before `pos` counts for `^` and `\\b`; the text ends at `endpos`."""
        if pos or endpos is not None or len(text) > _WORDS:
            return self._find(_SEARCH, text, pos, endpos)
        return _remembered(self, _SEARCH, text)

    def match(self, text: AnyStr, pos: int = 0, endpos: int | None = None) -> Match[AnyStr] | None:
        """The match that begins at `pos`."""
        if pos or endpos is not None or len(text) > _WORDS:
            return self._find(_MATCH, text, pos, endpos)
        return _remembered(self, _MATCH, text)

    def fullmatch(self, text: AnyStr, pos: int = 0, endpos: int | None = None) -> Match[AnyStr] | None:
        """The match of all from `pos` to `endpos`."""
        if pos or endpos is not None or len(text) > _WORDS:
            return self._find(_FULL, text, pos, endpos)
        return _remembered(self, _FULL, text)

    def _find(self, place: int, text: AnyStr, pos: int = 0, endpos: int | None = None) -> Match[AnyStr] | None:
        if endpos is None and not pos and self._around is None and len(text) < _SHORT and text.isascii():
            data = text.encode() if isinstance(text, str) else text  # most texts are short, and do not match
            spans = self._engines[place](data, 0, len(data))
            return Match(self, text, _Encoded(text), spans) if spans[0][0] >= 0 else None
        encoded = _encoded(text, pos, endpos)
        start = encoded.byte_at(pos)
        if start < 0:
            return None
        if self._around is None:
            spans = self._engines[place](encoded.data, start, len(encoded.data))
            return Match(self, text, encoded, spans) if spans[0][0] >= 0 else None
        found = (
            next(self._around.each(self, text, encoded, start), None)
            if place == _SEARCH
            else (self._around.anchored(self, text, encoded, start, full=place == _FULL))
        )
        return None if found is None else Match(self, text, encoded, found)

    def finditer(self, text: AnyStr, pos: int = 0, endpos: int | None = None) -> Iterator[Match[AnyStr]]:
        """All matches that do not overlap, from the left."""
        encoded = _encoded(text, pos, endpos)
        return map(partial(Match, self, text, encoded), self._each(text, encoded, encoded.byte_at(pos)))

    def _each(self, text: AnyStr, encoded: _Encoded, at: int = 0) -> Iterator[Spans]:
        """The spans of all matches from that byte on that do not overlap."""
        if self._around is not None:
            yield from self._around.each(self, text, encoded, at)
            return
        engine, data, end = self._engines[_SEARCH], encoded.data, len(encoded.data)
        while 0 <= at <= end:
            spans = engine(data, at, end)
            start, at = spans[0]
            if start < 0:
                return
            yield spans
            if start == at:
                at = encoded.behind(at)

    def findall(self, text: AnyStr, pos: int = 0, endpos: int | None = None) -> list[Any]:
        """Of all matches the text; of a pattern with one group that group, of one with several all of them."""
        encoded = _encoded(text, pos, endpos)
        found, piece = self._each(text, encoded, encoded.byte_at(pos)), encoded.piece
        if self.groups > 1:
            return [tuple(piece(*span) for span in spans[1:]) for spans in found]
        group = self.groups
        return [piece(*spans[group]) for spans in found]

    def sub(self, replacement: AnyStr | Callable[[Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0) -> AnyStr:
        """The text with its matches replaced. A replacement is taken as it is, or is made of the match."""
        return self.subn(replacement, text, count)[0]

    def subn(
        self, replacement: AnyStr | Callable[[Match[AnyStr]], AnyStr], text: AnyStr, count: int = 0
    ) -> tuple[AnyStr, int]:
        """As `sub`, and how many were replaced."""
        pieces: list[AnyStr] = []
        end = done = 0
        encoded = _encoded(text)
        for spans in self._each(text, encoded):
            made = replacement(Match(self, text, encoded, spans)) if callable(replacement) else replacement
            pieces += encoded.piece(end, spans[0][0]), made
            end, done = spans[0][1], done + 1
            if done == count:
                break
        pieces.append(encoded.piece(end, len(encoded.data)))
        return (text[:0].join(pieces), done) if done else (text, 0)

    def split(self, text: AnyStr, maxsplit: int = 0) -> list[AnyStr]:
        """What stands between the matches, and between each two the groups of what parts them."""
        pieces: list[Any] = []
        end = done = 0
        encoded = _encoded(text)
        for spans in self._each(text, encoded):
            pieces.append(encoded.piece(end, spans[0][0]))
            pieces += (None if start < 0 else encoded.piece(start, behind) for start, behind in spans[1:])
            end, done = spans[0][1], done + 1
            if done == maxsplit:
                break
        pieces.append(encoded.piece(end, len(encoded.data)))
        return pieces


def _engines_of(program: Any) -> tuple[Engine, Engine, Engine]:
    from re2 import _re2  # type: ignore[attr-defined]

    anchor, looks = _re2.RE2.Anchor, program.Match
    return partial(looks, anchor.UNANCHORED), partial(looks, anchor.ANCHOR_START), partial(looks, anchor.ANCHOR_BOTH)


@lru_cache(maxsize=_REMEMBERED)
def _remembered(pattern: Pattern[Any], place: int, text: Any) -> Match[Any] | None:
    """The match in a short text, as it was found when it was last asked for."""
    return pattern._find(place, text)


class Match(Generic[AnyStr]):
    """Where a pattern matched. Positions are in characters."""

    __slots__ = ("_encoded", "_spans", "re", "string")

    re: Pattern[AnyStr]
    string: AnyStr

    def __init__(self, pattern: Pattern[AnyStr], text: AnyStr, encoded: _Encoded, spans: Spans) -> None:
        self.re = pattern
        self.string = text
        self._encoded = encoded
        self._spans = spans

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Where a group begins and ends, (-1, -1) where it took no part."""
        start, end = self._spans[group if isinstance(group, int) else self.re.groupindex[group]]
        if start < 0:
            return start, end
        return self._encoded.character_at(start), self._encoded.character_at(end)

    def start(self, group: int | str = 0) -> int:
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        return self.span(group)[1]

    def __getitem__(self, group: int | str) -> AnyStr | Any:
        start, end = self._spans[group if isinstance(group, int) else self.re.groupindex[group]]
        return None if start < 0 else self._encoded.piece(start, end)

    def group(self, *groups: int | str) -> AnyStr | Any:
        """The text of a group, the whole match where none is given, or a tuple of several; None: it took no part."""
        return self[groups[0] if groups else 0] if len(groups) < 2 else tuple(self[group] for group in groups)

    def groups(self, default: Any = None) -> tuple[Any, ...]:
        found = (self[group] for group in range(1, len(self._spans)))
        return tuple(default if each is None else each for each in found)

    def groupdict(self) -> dict[str, Any]:
        return {name: self[group] for name, group in self.re.groupindex.items()}

    @property
    def lastgroup(self) -> str | None:
        """The name of the first named group that took part: of a pattern of alternatives, which one it was."""
        spans = self._spans
        return next((name for name, number in self.re.groupindex.items() if spans[number][0] >= 0), None)


def compile(source: AnyStr, flags: int = 0) -> Pattern[AnyStr]:
    """A pattern of the dialect above. Raises: BadPattern when it is first used, where it is not of the dialect."""
    pattern = Pattern(source, flags)
    _made.add(pattern)
    return pattern


def made() -> tuple[Pattern[Any], ...]:
    """All patterns of `compile` that are in use."""
    return tuple(_made)


_made: WeakSet[Pattern[Any]] = WeakSet()


_SPECIAL = {ord(character): f"\\{character}" for character in "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"}


def escape(text: str) -> str:
    """A pattern of this very text."""
    return text.translate(_SPECIAL)


# --- the dialect ---


class Guard(NamedTuple):
    """A look-around that is checked in code, where the group of that name stands in a match."""

    group: str
    pattern: Pattern[Any]
    wanted: bool
    width: int
    """0 for what must, or must not, follow; else how many characters before must, or must not, be it."""


class Translation(NamedTuple):
    """A pattern in RE2's own syntax, and what code has to look after."""

    source: str
    guards: tuple[Guard, ...] = ()
    begins: bool = False
    """Whether the group `_begin` says where the match begins: what it must stand behind was matched with it."""
    ends: tuple[str, ...] = ()
    """Groups that say where the match ends: what must follow was matched with it."""


_AT_START = r"(?:\A|"
"""Where what a pattern must not stand behind begins: nothing stands before the beginning of a text."""

_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_LETTER_CLASSES = {r"[^\W\d_]": f"[{LETTERS}]", r"[^\W_]": f"[0-9{LETTERS}]"}
_QUANTIFIERS = ("*", "+", "{", "?")


def translated(source: str, flags: int = 0) -> Translation:
    """A pattern in RE2's own syntax. Raises: BadPattern where it has none."""
    under_way, at = _UnderWay(source, flags), 0
    while at < len(source):
        if edge := _edge(source, at, bool(under_way.made), bool(under_way.open_groups)):
            at = under_way.look_around(edge, r"\w", at + 2)
        elif opening := next((each for each in _AROUND if source.startswith(each, at)), ""):
            end = _closing(source, at, flags)
            at = under_way.look_around(opening, source[at + len(opening) : end - 1], end)
        else:
            at = under_way.add(*_piece(source, at, flags))
    return Translation("".join(under_way.made), tuple(under_way.guards), under_way.begins, tuple(under_way.ends))


class _UnderWay:
    """A pattern that is translated from its beginning to its end."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags
        self.made: list[str] = []
        self.guards: list[Guard] = []
        self.ends: list[str] = []
        self.begins = "(?P<_begin>)" in source
        self.open_groups: list[int] = []
        """How many look-arounds there were when each group began."""

    def look_around(self, opening: str, inner: str, end: int) -> int:
        """Add a look-around that ends there: as what is matched with the rest where it can be, else as a guard."""
        wanted, behind = opening.endswith("="), "<" in opening
        name = f"_{len(self.guards) + len(self.ends)}"
        plain = wanted or _is_character(inner)
        last = not self.open_groups and self._source[end : end + 1] in ("", "|")
        if plain and behind and not self.made and not _has_alternatives(self._source):
            self.begins = True
            self.made.append(_around(inner, wanted, r"\A", self._flags) + "(?P<_begin>)")
        elif plain and not behind and last:
            self.ends.append(name)
            self.made.append(f"(?P<{name}>)" + _around(inner, wanted, r"\z", self._flags))
        else:
            width = _width(inner) if behind else 0
            self.guards.append(Guard(name, Pattern(inner, self._flags), wanted, width))
            self.made.append(f"(?P<{name}>)")
        return end

    def add(self, piece: str, end: int) -> int:
        """Add a piece that is no look-around and ends there."""
        if piece == "(":
            self.open_groups.append(len(self.guards))
        elif piece == ")" and self.open_groups:
            repeated = self._source.startswith(_QUANTIFIERS, end)
            if self.open_groups.pop() < len(self.guards) and repeated:
                raise BadPattern(f"a look-around within a repetition cannot be checked in code: {self._source!r}")
        self.made.append(piece)
        return end


class _LookAround:
    """What a pattern's look-arounds ask, seen at the matches that RE2 finds without them."""

    def __init__(self, translation: Translation, named: Mapping[str, int]) -> None:
        self._guards = [(named[guard.group], guard) for guard in translation.guards]
        self._ends = [named[name] for name in translation.ends]
        self._begin = named["_begin"] if translation.begins else 0
        self._markers = frozenset(number for name, number in named.items() if name.startswith("_"))

    def anchored(self, pattern: Pattern[Any], text: Any, encoded: _Encoded, at: int, full: bool) -> Spans | None:
        """The match that begins at that byte, where `full` is asked for the one that ends with the text too."""
        place = _MATCH if self._begin or self._ends or not full else _FULL
        found = self._checked(text, encoded, self._found(pattern, place, encoded, at))
        if found is None or found[0][0] != at or (full and found[0][1] < len(encoded.data)):
            return None
        return found

    def each(self, pattern: Pattern[Any], text: Any, encoded: _Encoded, at: int) -> Iterator[Spans]:
        """All matches from that byte on that do not overlap."""
        end = len(encoded.data)
        while 0 <= at <= end:
            spans = self._found(pattern, _SEARCH, encoded, at)
            if spans[0][0] < 0:
                return
            found = self._checked(text, encoded, spans)
            if found is None:
                at = encoded.behind(self._start(spans))
                continue
            yield found
            start, at = found[0]
            if start == at:
                at = encoded.behind(at)

    def _found(self, pattern: Pattern[Any], place: int, encoded: _Encoded, at: int) -> Spans:
        """The spans that RE2 finds from that byte on, what they stand behind matched with them."""
        if self._begin and at:
            spans = pattern._later[place](encoded.data, encoded.before(at), len(encoded.data))
            if spans[0][0] < 0 or self._start(spans) >= at:
                return spans
        return pattern._engines[place](encoded.data, at, len(encoded.data))

    def _start(self, spans: Spans) -> int:
        """The byte at which a match begins, what it stands behind left out."""
        return max(spans[self._begin][0], spans[0][0])

    def _checked(self, text: Any, encoded: _Encoded, spans: Spans) -> Spans | None:
        """The spans of the match, None where there is none or a look-around refuses it."""
        if spans[0][0] < 0:
            return None
        end = next((spans[number][0] for number in self._ends if spans[number][0] >= 0), spans[0][1])
        for number, guard in self._guards:
            if spans[number][0] < 0:
                continue
            at = encoded.character_at(spans[number][0])
            if guard.width:
                holds = guard.pattern.fullmatch(text[max(0, at - guard.width) : at])
            else:
                start = at - encoded.base
                holds = guard.pattern.match(encoded.text[start : start + _GUARDED])
            if (holds is not None) != guard.wanted:
                return None
        kept = [span for number, span in enumerate(spans) if number and number not in self._markers]
        return [(self._start(spans), end), *kept]


def _edge(source: str, at: int, inside: bool, grouped: bool) -> str:
    """The look-around that a `\\b` beside a letter that is not ASCII stands for; "" where it is none of these.

    Raises: BadPattern where such a `\\b` is neither at the beginning nor at the end of the pattern.
    """
    if not source.startswith(r"\b", at):
        return ""
    before, after = source[at - 1 : at] if at else "", source[at + 2 : at + 3]
    if after > "\x7f" and not inside:
        return "(?<!"
    if before > "\x7f" and not grouped and after in ("", "|"):
        return "(?!"
    if before > "\x7f" or after > "\x7f":
        raise BadPattern(f"\\b stands between ASCII words; beside another letter write (?!\\w) in {source!r}")
    return ""


def _around(inner: str, wanted: bool, edge: str, flags: int) -> str:
    """What must stand there, to be matched with the rest. The opposite of a character is another one, or the edge."""
    if wanted:
        return f"(?:{translated(inner, flags).source})"
    one = translated(inner, flags).source
    opposite = f"[{one[2:]}" if one.startswith("[^") else f"[^{one[1:]}" if one.startswith("[") else f"[^{one}]"
    return f"(?:{edge}|{opposite})"


def _has_alternatives(source: str) -> bool:
    """Whether all of a pattern is one of several alternatives."""
    at = depth = 0
    while at < len(source):
        piece, at = _piece(source, at, 0)
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and depth == 0:
            return True
    return False


def _is_character(source: str) -> bool:
    """Whether a pattern is one character or class."""
    return (source[:1] == "[" and _class_end(source, 0) == len(source)) or (
        (len(source) == 2 and source[0] == "\\" and source[1] not in "bBAZz")
        or (len(source) == 1 and source not in ".$^")
    )


def _width(source: str) -> int:
    """How many characters a look-behind takes. Raises: BadPattern where that is not plain."""
    if _is_character(source):
        return 1
    plain = source.replace("\\b", "").replace("\\", "")
    if any(each in plain for each in "*+?{[(|^$"):
        raise BadPattern(f"this look-behind is of no plain width: {source!r}")
    return len(plain)


def _closing(source: str, at: int, flags: int) -> int:
    """Where the group that begins there ends."""
    depth = 0
    while at < len(source):
        piece, at = _piece(source, at, flags)
        depth += (piece == "(") - (piece == ")")
        if depth == 0:
            return at
    raise BadPattern(f"a group is not closed in {source!r}")


def _piece(source: str, at: int, flags: int) -> tuple[str, int]:
    """The next piece (an escape, a class, a character) in RE2's syntax, and where it ends."""
    character = source[at]
    if character == "\\":
        return _escape(source, at, flags)
    if character == "[":
        for letters, made in _LETTER_CLASSES.items():
            if source.startswith(letters, at):
                return made, at + len(letters)
        end, pieces = _class_end(source, at), []
        while at < end:
            piece, at = _escape(source, at, flags, inside=True) if source[at] == "\\" else (source[at], at + 1)
            pieces.append(piece)
        return "".join(pieces), end
    if flags & X and character.isspace():
        return "", at + 1
    if flags & X and character == "#":
        return "", source.find("\n", at) % (len(source) + 1)
    if source.startswith("(?#", at):
        return "", source.find(")", at) % (len(source) + 1) + 1
    if character == "{" and (end := source.find("}", at, at + _LONGEST_COUNT)) > 0:
        least, _, most = source[at + 1 : end].partition(",")
        if most.isdecimal() and int(most) > _MOST_COUNTED:
            return f"{{{least},}}", end + 1
    if source.startswith("{,", at):
        raise BadPattern(f"write {{0,n}} for {{,n}}, which RE2 takes for itself: {source!r}")
    return character, at + 1


_MOST_COUNTED, _LONGEST_COUNT = 1_000, 40
"""Repetitions that RE2 takes in a pattern, and characters in which they are written."""


def _class_end(source: str, at: int) -> int:
    """Where the class that begins there ends. Raises: BadPattern where it does not."""
    at += 2 if source[at + 1 : at + 2] == "^" else 1
    at += source[at : at + 1] == "]"
    while at < len(source) and source[at] != "]":
        at += 2 if source[at] == "\\" else 1
    if at >= len(source):
        raise BadPattern(f"a class is not closed in {source!r}")
    return at + 1


def _escape(source: str, at: int, flags: int, inside: bool = False) -> tuple[str, int]:
    """What the escape at that place is in RE2's syntax, and where it ends."""
    name = source[at + 1 : at + 2]
    if flags & _BYTES and name in "wWsS":
        return source[at : at + 2], at + 2
    if name in ("w", "s"):
        return (_CLASSES[name] if inside else f"[{_CLASSES[name]}]"), at + 2
    if name in ("W", "S"):
        if inside:
            raise BadPattern(f"\\{name} within a class cannot be put in RE2's syntax: {source!r}")
        return f"[^{_CLASSES[name.lower()]}]", at + 2
    if name == "Z":
        return r"\z", at + 2
    if name in ("u", "U"):
        end = at + (6 if name == "u" else 10)
        return f"\\x{{{source[at + 2 : end]}}}", end
    if name.isspace() or name > "\x7f" or name in ('"', "'", "_"):
        return name, at + 2
    return source[at : at + 2], at + 2


# --- texts ---


class _Encoded:
    """A text in UTF-8, with the offsets of its characters; bytes are taken as they are.

    `base` is the character at which the text begins in the one that it was cut from.
    """

    __slots__ = ("base", "data", "exact", "offsets", "plain", "text")

    offsets: list[int] | None

    def __init__(self, text: Any, base: int = 0) -> None:
        self.text = text
        self.base = base
        self.exact = True
        if text.__class__ is bytes:
            self.data = text
        else:
            try:
                self.data = text.encode()
            except UnicodeEncodeError:
                # A lone surrogate counts as a question mark: one byte, for one character.
                self.data, self.exact = text.encode("utf-8", "replace"), False
        self.plain = len(self.data) == len(text)
        self.offsets = None

    def piece(self, start: int, end: int) -> Any:
        """The text from one byte up to another; an empty one where there is none."""
        if self.plain:
            return self.text[start:end]
        if self.exact:
            return self.data[start:end].decode()
        return self.text[self.character_at(start) - self.base : self.character_at(end) - self.base]

    def before(self, byte: int) -> int:
        """Where the character before begins."""
        byte -= 1
        while not self.plain and byte > 0 and self.data[byte] & 0xC0 == 0x80:
            byte -= 1
        return byte

    def behind(self, byte: int) -> int:
        """Where the character that begins there ends; beyond the end where none does."""
        byte += 1
        while not self.plain and byte < len(self.data) and self.data[byte] & 0xC0 == 0x80:
            byte += 1
        return byte

    def byte_at(self, character: int) -> int:
        """Where a character begins; -1 beyond the end."""
        character -= self.base
        if character > len(self.text):
            return -1
        if self.plain or character <= 0:
            return max(character, 0)
        block = character // _BLOCK
        return self._offsets()[block] + len(self.text[block * _BLOCK : character].encode("utf-8", "replace"))

    def character_at(self, byte: int) -> int:
        """Which character begins at that byte."""
        if self.plain:
            return self.base + byte
        if byte <= _BLOCK:
            return self.base + len(self.data[:byte].translate(None, _CONTINUATION))
        offsets = self._offsets()
        block = bisect_right(offsets, byte) - 1
        return self.base + block * _BLOCK + len(self.data[offsets[block] : byte].translate(None, _CONTINUATION))

    def _offsets(self) -> list[int]:
        if self.offsets is None:
            offsets = [0]
            for at in range(0, len(self.text) - _BLOCK + 1, _BLOCK):
                offsets.append(offsets[-1] + len(self.text[at : at + _BLOCK].encode("utf-8", "replace")))
            self.offsets = offsets
        return self.offsets


class _Latest(threading.local):
    """The long text that this thread matched last: rules look at one text many times."""

    encoded = _Encoded("")


_latest = _Latest()


def _encoded(text: Any, pos: int = 0, endpos: int | None = None) -> _Encoded:
    """The text up to `endpos`; where that is given, from a little before `pos` on."""
    if endpos is not None and endpos < len(text):
        base = max(0, pos - _CONTEXT)
        return _Encoded(text[base : max(base, endpos)], base)
    if len(text) < _SHORT:
        return _Encoded(text)
    latest = _latest.encoded
    if latest.text is not text:
        latest = _latest.encoded = _Encoded(text)
    return latest
