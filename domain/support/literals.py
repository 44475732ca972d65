"""Which of many literal strings occur in a text, by one pass over it."""

import threading
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from memctl.domain.support import patterns


def mentions(text: str, words: Iterable[str]) -> bool:
    """Whether one of a few strings occurs in the text."""
    for word in words:  # noqa: SIM110 - half the time of any() with a generator, and this is asked of every text
        if word in text:
            return True
    return False


def lines_with(text: str, words: Iterable[str]) -> list[int]:
    """Where the lines begin that have one of the strings, in order."""
    starts: set[int] = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            starts.add(text.rfind("\n", 0, at) + 1)
            end = text.find("\n", at)
            at = text.find(word, end) if end >= 0 else -1
    return sorted(starts)


class Literals:
    """A set of strings to look for: Hyperscan finds them all at once, ten times as fast as one `in` after the other.

    Safe to use from several threads.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(dict.fromkeys(words))

    def within(self, text: str) -> set[str]:
        """Those of the strings that occur in the text."""
        return self._scan(text)

    @cached_property
    def _scan(self) -> Callable[[str], set[str]]:
        import hyperscan

        database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        database.compile(
            expressions=[patterns.escape(word).encode("utf-8", "surrogatepass") for word in self._words],
            ids=list(range(len(self._words))),
            elements=len(self._words),
            flags=[hyperscan.HS_FLAG_SINGLEMATCH] * len(self._words),
        )
        local = threading.local()

        def scan(text: str) -> set[str]:
            # A scratch space serves one scan at a time.
            scratch = getattr(local, "scratch", None)
            if scratch is None:
                scratch = local.scratch = hyperscan.Scratch(database)
            found: list[int] = []
            data = text.encode("utf-8", "surrogatepass")
            database.scan(data, match_event_handler=_note, context=found, scratch=scratch)
            return {self._words[index] for index in found}

        return scan


def _note(index: int, start: int, end: int, flags: int, found: Any) -> None:
    found.append(index)
