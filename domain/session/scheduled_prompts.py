"""What stood in a session before it came as a prompt: it is not the user's word, whoever put it there.

What an agent had its client say to it later comes back in the user's place. Hooks deliver such a prompt without a mark.
It is known by its text: a tool that schedules was called with it before. An agent may type into its own terminal as
well, by any tool, and a user pastes what a tool has shown. Then the prompt stands, for its user may have said the same,
but it settles nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import NamedTuple
from uuid import UUID

from memctl.domain.events.event_order import OrderedEvent, text_digest
from memctl.domain.events.observations import PromptSubmitted, ToolCalled, ToolOutcome
from memctl.domain.language.prompts import said_in
from memctl.domain.language.statements import sentences
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

MOST = 4_000
"""Scheduled prompts of one session that are known again: the newest."""

LONGEST = 1_000
"""Characters by which one is known: calls and prompts are cut at different lengths."""

MOST_GIVEN, LONGEST_GIVEN = 200, 2_000
"""Texts that tools were given which are looked through for a prompt, the newest; longer ones are none that is typed."""

MOST_SHOWN, LEAST_SHOWN = 1_000_000, 25
"""Characters of what tools answered with that are looked through, the newest: all of most sessions; and letters (bytes)
of a sentence that nobody types by chance as it stands there."""
_SHORT_SHOWN = 250
"""Characters that a shorter answer counts as: so there are no more than some thousand."""

_APART = bytes(
    byte if byte >= 128 else ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ") for byte in range(256)
)
_MARKUP = patterns.compile(
    rb"(?:^|\n)[ \t]*[0-9]+ *(?:\xe2\x86\x92|\xe2\x94\x82|[:|\t])|"
    rb"<[^<>\n]{1,400}>|\\[nrt]|&#?[A-Za-z0-9]{2,8};|\x1b\[[0-9;]*m"
)
"""What stands between a sentence's letters in a tool's answer, and not where it is read: a line's number, a tag."""
_STOPS = tuple(mark.encode() for mark in "。．、，！？：；「」『』（）《》“”‘’«»…–—")

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
        self._shown: deque[tuple[int, str | _Shown]] = deque()
        self._left = MOST_SHOWN
        self.deliveries: set[UUID] = set()
        """Prompts that were scheduled, by their deliveries."""

    def called(self, seen: ToolCalled) -> None:
        """The agent used a tool."""
        self._given.extend(map(_plain, _short_texts(seen.input)))
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
            size = max(len(seen.text), _SHORT_SHOWN)
            self._shown.append((size, seen.text))
            self._left -= size
            while self._left < 0:
                self._left += self._shown.popleft()[0]

    def has(self, seen: PromptSubmitted) -> bool:
        """Whether a prompt was scheduled before it came."""
        return bool(self._texts) and _known_by(seen.text) in self._texts

    def gave(self, placed: OrderedEvent, words: str) -> bool:
        """Whether the agent gave these words of a prompt to a tool before they came, or a tool showed a sentence of
        them."""
        asked = _plain(words)
        if not asked or not (any(asked in each for each in self._given) or self._was_shown(words)):
            return False
        self.deliveries.update(filter(None, (placed.cite, placed.hook)))
        return True

    def _was_shown(self, words: str) -> bool:
        parts = (b"".join(_words(words[start:end])) for start, end in sentences(words))
        wanted = [part for part in (b"".join(_words(words)), *parts) if len(part) >= LEAST_SHOWN]
        if not wanted:
            return False
        for at, (size, each) in enumerate(self._shown):
            if isinstance(each, str):
                each = _shown(each)
                self._shown[at] = size, each
            if any(part[:LEAST_SHOWN] in each.starts and part in each.letters for part in wanted):
                return True
        return False

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


class _Shown(NamedTuple):
    """What a tool showed, as letters alone; and the letters behind each place where a word begins, for a sentence is
    looked for by how it begins: all sentences in all texts would be too many."""

    letters: bytes
    starts: frozenset[bytes]


def _shown(text: str) -> _Shown:
    words = _words(text)
    letters = b"".join(words)
    return _Shown(letters, frozenset(letters[at : at + LEAST_SHOWN] for at in accumulate(map(len, words), initial=0)))


def _words(text: str) -> list[bytes]:
    """The words of a text in lower case, without what stands between them."""
    plain = text.encode("utf-8", "surrogatepass")
    for mark in _STOPS if len(plain) > len(text) else ():
        plain = plain.replace(mark, b" ")
    return _MARKUP.sub(b" ", plain).translate(_APART).split()


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _known_by(text: str) -> str:
    words = said_in(text).words
    return text_digest(" ".join(words.split())[:LONGEST]) if words else ""
