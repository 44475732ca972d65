"""What came later of the same things: of two memories that name the same, the newer one says how it is now.

Likeness of words pairs what merely sounds alike: of 18 such pairs 2 shared a subject. Names do better: of 15 pairs
whose names are alike by .55, among what 113 real prompts found, 12 are of one subject whose state the newer one says.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.mentions import names_in
from memctl.domain.support.remembered import remembered

SAME_THINGS, LEAST = 0.55, 2
"""The cosine of the names of two memories from which on they are of one subject, and how many they share at least."""


SAME_DAY, WORDS = 24 * 3_600_000_000, 2
"""Microseconds within which a word replaces one of the same project, and how many words of content both hold."""

_REPLACES = patterns.compile(
    r"\A\W*(?:(?:no|oh|ok|okay|wait|sorry|hm+|please|let's)\b[,. ]*)*(?:actually|scratch that|"
    r"on second thoughts?|instead|i changed my mind|revert|undo|(?:roll|go|change|switch)(?: \w+)? back)\b|"
    r"\b(?:use|take|prefer|go with|switch to|make it|set)\b[^.\n]{1,80}\binstead\b",
    patterns.I,
)
"""How somebody speaks who takes back what was said before, and puts something else in its place."""

_SETTING = patterns.compile(r"([A-Za-z_][\w.-]{4,})[`'\"]? ?(?:=|:|to|is(?: now)?) ?[`'\"]?(\d+(?:\.\d+)*\w*)")


class NamedMemory(NamedTuple):
    """A memory, what it names, and when it was made; the project it is of, and what was asked or said in it."""

    id: str
    names: frozenset[str]
    at: int
    project: str = ""
    said: str = ""
    words: frozenset[str] = frozenset()


def _replaces(each: NamedMemory, older: NamedMemory) -> bool:
    """Whether a memory says something else in place of one of the same project and day: it takes back what shares
    words with it, or gives a setting another value."""
    if each.project != older.project or each.at - older.at > SAME_DAY:
        return False
    if _REPLACES.search(each.said[:2_000]) and len(each.words & older.words) >= WORDS:
        return True
    now, then = _settings(each.said[:2_000]), _settings(older.said[:2_000])
    return any(then[name] != value for name, value in now.items() if name in then)


@remembered(256)
def _settings(said: str) -> Mapping[str, str]:
    names = names_in(said)
    return {name: value for name, value in _SETTING.findall(said) if name in names}


def later(found: Sequence[NamedMemory]) -> dict[str, str]:
    """The ids of those that a newer one of these followed, each with the newest that did."""
    followed: dict[str, str] = {}
    for each in sorted(found, key=lambda each: each.at):
        for older in found:
            if older.at >= each.at:
                continue
            shared = len(older.names & each.names)
            alike = SAME_THINGS * math.sqrt(len(older.names) * len(each.names))
            if _replaces(each, older) or (shared >= LEAST and shared >= alike):
                followed[older.id] = each.id
    return followed


def newest_first(ids: Iterable[str], followed: Mapping[str, str]) -> list[str]:
    """The ids in their order, but each behind the one that followed it."""
    ordered: dict[str, None] = {}
    for id in ids:
        chain = {id: None}
        while (id := followed.get(id, id)) not in chain:
            chain[id] = None
        ordered.update(dict.fromkeys(each for each in reversed(chain) if each not in ordered))
    return list(ordered)
