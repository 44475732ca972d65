"""What a project's commits say of a prompt: the decision that one gives reasons for, the newer before the older.

A commit is short and has one subject, so it is given whole. Its words alone may lead anywhere: a weak one is given only
where it holds a name of the prompt's that hardly anything else found does, and nothing else comes near it.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from memctl.api.assist.before_tool import COMMON_FILES
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.pages import several
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found
from memctl.domain.events.recalls import quoted
from memctl.domain.knowledge.memory import day_of
from memctl.domain.knowledge.orders import unobeyed
from memctl.domain.retrieval.passages import likeness
from memctl.domain.support.mentions import names_in
from memctl.domain.support.provenance import Provenance, words_of
from memctl.domain.support.text import tokens
from memctl.projections.memory_rows import Memory

MOST, CHARACTERS = 2, 1_200
"""Commits that are given for one prompt, and characters of each."""

LEAST, LEAD, HOLDING = 0.12, 2.0, 2
"""Of a weak one: its score, how many times it is that of anything else, and the results that may hold its name."""

SAME_SUBJECT = 0.3
"""From this likeness on two commits that changed one file are about one subject."""


def commits_for(reader: Reader, prompt: str, found: Sequence[Found], said: Collection[str]) -> Iterator[Line]:
    """The commits that bear on a prompt, each behind what was decided of its subject later."""
    every = {each.id: each for each in found if each.kind == "commit" and each.id not in said}
    meant = [each for each in every.values() if _is_meant(each, prompt, found)][:MOST]
    rows = several(reader, models.memories, list(every)) if meant else {}
    for row in newest_decision_first([rows[each.id] for each in meant if each.id in rows], list(rows.values()))[:MOST]:
        each = every[row.id]
        if words := " ".join(unobeyed(row.text).split()):
            text = f"{day_of(row.first_at)[:10]} a commit said: {quoted(words, CHARACTERS)}"
            origin = words_of(Provenance.HISTORY, member=row.member, asking=reader.member)
            yield line(text, row.id, each.score, each.class_, origin=origin)


def _is_meant(each: Found, prompt: str, found: Sequence[Found]) -> bool:
    if each.class_ != "none":
        return True
    rival = max((other.score for other in found if other.id != each.id), default=0.0)
    if each.score < max(LEAST, LEAD * rival):
        return False
    wanted = frozenset(name for name in names_in(prompt) if name.lower() not in COMMON_FILES)
    counts = Counter(name for other in found for name in wanted if name in other.text)
    return any(name in each.text and counts[name] <= HOLDING for name in wanted)


def newest_decision_first(kept: Sequence[Memory], every: Sequence[Memory]) -> list[Memory]:
    """Those that are kept, each behind what came later of the same subject."""
    words = {row.id: frozenset(tokens(row.text)) for row in every}
    counts = Counter(word for of_one in words.values() for word in of_one)
    rarity = {word: math.log((1 + len(every)) / count) + 0.1 for word, count in counts.items()}
    ordered: dict[str, Memory] = {}
    for row in kept:
        later = [
            other
            for other in every
            if other.first_at > row.first_at
            and not {*other.files}.isdisjoint(row.files)
            and likeness(words[row.id], words[other.id], rarity) >= SAME_SUBJECT
        ]
        for one in (*sorted(later, key=lambda other: -other.first_at), row):
            ordered.setdefault(one.id, one)
    return list(ordered.values())
