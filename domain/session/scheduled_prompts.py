"""What stood in a session before it came as a prompt: it is not the user's word, whoever put it there.

What an agent had its client say to it later comes back in the user's place. Hooks deliver such a prompt without a mark.
It is known by its text: a tool that schedules was called with it before. An agent may type into its own terminal as
well, by any tool, and a user pastes what a tool has shown. Then the prompt stands, for its user may have said the same,
but it settles nothing.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from itertools import islice
from string import hexdigits
from uuid import UUID

from memctl.domain.events.event_order import OrderedEvent, text_digest
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolOutcome
from memctl.domain.failures.templates import ANSI
from memctl.domain.language.claims import sentences
from memctl.domain.language.prompts import said_in
from memctl.domain.support import patterns
from memctl.domain.support.markup import without_markup
from memctl.domain.support.provenance import of_client
from memctl.domain.support.remembered import remembered

MOST = 4_000
"""Scheduled prompts of one session that are known again: the newest."""

LONGEST = 1_000
"""Characters by which one is known: calls and prompts are cut at different lengths."""

MOST_GIVEN, LONGEST_GIVEN = 200, 2_000
"""Texts that tools were given which are looked through for a prompt, the newest; longer ones are none that is typed."""

MOST_SHOWN, LEAST_SHOWN = 1_000_000, 25
"""Letters (bytes) of what tools answered with that are looked through, the newest: all of most sessions; and letters of
a sentence that nobody types by chance as it stands there."""

PIECE, BETWEEN = 12, 120
"""Letters (bytes) of a piece of a sentence that a tool showed over several lines, and most letters that stand before
each of them: a file's name, a time, who wrote it."""

SCANNED, BLOCK = 300, PIECE // 2
"""Sentences that are looked for from end to end; then blocks of so many letters are indexed. One lies in any piece."""

LOOKS, TRY = 20_000, 32
"""Blocks that are looked at for the sentences of one prompt, and how many of them a place or a further piece counts for
that is tried. A prompt that wants more counts as shown."""

_BETWEEN_ANSWERS = f"\n{'q' * (BETWEEN + PIECE)}\n"
"""More letters than may stand between two pieces of a sentence: none is found half in one answer, half in the next."""

_BETWEEN_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
_LOWER = bytes(range(256)).lower()
"""Letters alone are compared, in lower case: a tool numbers the lines that it shows."""
_CODED = patterns.compile(rb"&#([0-9]{2,3});|(?:&#[xX]0{0,4}|\\u00|\\x|%)([2-7][0-9A-Fa-f]);?")
"""A letter that is written by its number."""
_HEX = frozenset(f"{first}{second}".encode() for first in "234567" for second in hexdigits)
_ESCAPES = (b"n", b"r", b"t")
_INSTEAD = dict.fromkeys("\xad\u200b\u200c\u200d\u2060\ufeff", b"") | dict.fromkeys(
    "。．、，！？：；「」『』（）《》“”‘’«»…–—→│", b" "
)
"""What stands for marks that nobody sees, and for those between sentences."""
_ASCII = bytes(range(128))

_SCHEDULES = patterns.compile(r"cron|schedul|wake_?up|remind|trigger|later|loop", patterns.I)
_FIELDS = ("prompt", "message", "text", "body")


@remembered(1024)
def schedules(tool: str) -> bool:
    """Whether a tool of that name has its client say something later. One too many costs little: only what it was
    called with is no longer the user's."""
    return _SCHEDULES.search(tool) is not None


class ScheduledPrompts:
    """What the agent of one stream scheduled so far."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._given: deque[str] = deque(maxlen=MOST_GIVEN)
        self._new: deque[str] = deque(maxlen=MOST_GIVEN)
        self._answers: list[str] = []
        self._answered = 0
        """Characters of the answers that came since the last prompt."""
        self._shown = (Shown(), Shown())
        """What came before it, the newer half first."""
        self.deliveries: set[UUID] = set()
        """Prompts that were scheduled, by their deliveries."""

    def called(self, seen: ToolCalled) -> None:
        """The agent used a tool."""
        self._new.extend(_short_texts(seen.input))
        if not schedules(seen.tool):
            return
        for name in _FIELDS:
            given = seen.input.get(name)
            if isinstance(given, str) and (known := _known_by(given)):
                self._texts.pop(known, None)
                self._texts[known] = None
        while len(self._texts) > MOST:
            del self._texts[next(iter(self._texts))]

    def came_back(self, seen: ToolOutcome) -> None:
        """A tool answered."""
        if seen.text:
            self._answers.append(seen.text)
            self._answered += len(seen.text) + len(_BETWEEN_ANSWERS)
            if self._answered >= MOST_SHOWN:
                self._keep_answers()

    def _keep_answers(self) -> None:
        newer, _ = self._shown
        if newer.size >= MOST_SHOWN:
            self._shown = (Shown(), newer)
        self._shown[0].add(_BETWEEN_ANSWERS.join(["", *self._answers]))
        self._answers, self._answered = [], 0

    def has(self, seen: PromptSubmitted) -> bool:
        """Whether a prompt was scheduled before it came."""
        return bool(self._texts) and _known_by(seen.text) in self._texts

    def gave(self, placed: OrderedEvent, words: str) -> bool:
        """Whether the client had these words of a prompt from a file, or the agent gave them to a tool before they
        came, or a tool showed a sentence of them."""
        self._given.extend(map(_plain, self._new))
        self._new.clear()
        asked = _plain(words)
        by_client = of_client(placed.event.actor)
        if not asked or not (by_client or asked in "\n".join(self._given) or self._was_shown(words)):
            return False
        self.deliveries.update(filter(None, (placed.cite, placed.hook)))
        return True

    def _was_shown(self, words: str) -> bool:
        parts = (_letters(_unmarked(words[start:end])) for start, end in sentences(words))
        wanted = [part for part in (_letters(_unmarked(words)), *parts) if len(part) >= LEAST_SHOWN]
        if not wanted:
            return False
        if self._answers:
            self._keep_answers()
        looks = Looks()
        return any(shown.has(part, looks) for shown in self._shown for part in wanted)

    def fired(self, placed: OrderedEvent, seen: PromptSubmitted) -> bool:
        """The same, of a prompt at its place."""
        if not self.has(seen):
            return False
        self.deliveries.update(filter(None, (placed.cite, placed.hook)))
        return True


def _short_texts(given: object) -> Iterator[str]:
    """The texts in what a tool was given, in lists and objects too, as far as they are short enough to be typed."""
    waiting, left = [given], MOST_GIVEN
    while waiting and left:
        each, left = waiting.pop(), left - 1
        if isinstance(each, str):
            if len(each) <= LONGEST_GIVEN:
                yield each
        elif isinstance(each, dict):
            waiting.extend(islice(each.values(), MOST_GIVEN))
        elif isinstance(each, (list, tuple)):
            waiting.extend(each[:MOST_GIVEN])


class Shown:
    """What tools showed, its letters alone."""

    def __init__(self) -> None:
        self._letters = bytearray()
        self._scanned = 0
        self._blocks = _Blocks()

    @property
    def size(self) -> int:
        return len(self._letters)

    def add(self, text: str) -> None:
        self._letters += _letters(_unmarked(text))

    def has(self, sentence: bytes, looks: Looks) -> bool:
        """Whether a sentence stands here, whole or in pieces, or the looks end."""
        found = any(not looks.take(TRY) or self._goes_on(sentence, at, looks) for at in self._places(sentence, looks))
        return found or looks.ended

    def _places(self, sentence: bytes, looks: Looks) -> Iterator[int]:
        """Where it may begin."""
        piece, letters = sentence[:PIECE], self._letters
        if self._scanned >= SCANNED:
            yield from self._blocks.places(piece, letters, looks)
            return
        self._scanned += 1
        at = letters.find(piece)
        while at >= 0:
            yield at
            at = letters.find(piece, at + 1)

    def _goes_on(self, sentence: bytes, at: int, looks: Looks) -> bool:
        """Whether all of a sentence stands from there on, with little between its pieces."""
        letters, left = self._letters, sentence
        while True:
            alike = _alike(left, letters[at : at + len(left)])
            left, at = left[alike:], at + alike
            if not left:
                return True
            at = letters.find(left[:PIECE], at, at + BETWEEN + PIECE)
            if at < 0:
                return False
            if not looks.take(TRY):
                return True


class Looks:
    """How much is still looked at for one prompt."""

    def __init__(self) -> None:
        self._left = LOOKS

    def take(self, count: int = 1) -> bool:
        self._left -= count
        return not self.ended

    @property
    def ended(self) -> bool:
        return self._left < 0


class _Blocks:
    """Where each block of letters stands in a text that grows. A copy of a state begins without."""

    def __init__(self) -> None:
        self._last: dict[bytes, int] = {}
        """The last block that reads so; of each block, the one before it that does, or -1."""
        self._before = array("i")

    def __reduce__(self) -> tuple[type[_Blocks], tuple[()]]:
        return _Blocks, ()

    def places(self, piece: bytes, letters: bytearray, looks: Looks) -> Iterator[int]:
        """Where a piece stands, as far as the looks go."""
        last, before = self._last, self._before
        for at in range(len(before) * BLOCK, len(letters) - BLOCK + 1, BLOCK):
            block = bytes(letters[at : at + BLOCK])
            before.append(last.get(block, -1))
            last[block] = at // BLOCK
        for offset in range(BLOCK):
            number = last.get(piece[offset : offset + BLOCK], -1)
            while number >= 0 and looks.take():
                at = number * BLOCK - offset
                if at >= 0 and letters.startswith(piece, at):
                    yield at
                number = before[number]


def _alike(text: bytes, other: bytes | bytearray) -> int:
    """How many bytes two texts have in common from their beginning on."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low


def _letters(text: bytes) -> bytes:
    """The letters of a text in lower case, without what stands between them."""
    return text.translate(_LOWER, _BETWEEN_LETTERS)


def _unmarked(text: str) -> bytes:
    """A text without marks that stand between its letters, or instead of them."""
    text = ANSI.sub("", text) if "\x1b" in text else text
    plain = text.encode("utf-8", "surrogatepass")
    if not text.isascii():
        for mark in _INSTEAD.keys() & frozenset(plain.translate(None, _ASCII).decode("utf-8", "surrogatepass")):
            plain = plain.replace(mark.encode(), _INSTEAD[mark])
    if _has_codes(plain):
        plain = _CODED.sub(_decoded, plain)
    first, *others = plain.split(b"\\")
    behind = (b" " + other[1:] if other.startswith(_ESCAPES) else b"\\" + other for other in others)
    return without_markup(b"".join((first, *behind)))


def _has_codes(plain: bytes) -> bool:
    """Whether `_CODED` may find something: to look behind each sign takes a fraction of its time."""
    return (
        any(part.startswith(b"#") for part in plain.split(b"&"))
        or any(part.startswith((b"u00", b"x")) for part in plain.split(b"\\"))
        or any(part[:2] in _HEX for part in plain.split(b"%"))
    )


def _decoded(coded: patterns.Match[bytes]) -> bytes:
    return bytes((int(coded[1]) & 0x7F if coded[1] else int(coded[2], 16),))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _known_by(text: str) -> str:
    words = said_in(text).words
    return text_digest(" ".join(words.split())[:LONGEST]) if words else ""
