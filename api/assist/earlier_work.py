"""What earlier sessions built of what a prompt asks for: the files that they changed, and what came of it.

A wish for a screen or a command is mostly about files that some session made. Their names say it as well as words do:
"the labels of the remediation tab" means RemediationTab.tsx. So what was found counts for how much of the prompt its
text holds, and more for how much the name of a file holds that it changed.
"""

from collections.abc import Collection, Iterator, Sequence
from posixpath import basename, splitext

from memctl.api.assist.before_tool import COMMON_FILES
from memctl.api.assist.lines import Line, line
from memctl.api.reading import models
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import several
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found
from memctl.domain.events.recalls import quoted
from memctl.domain.knowledge.memory import day_of, distinctive, is_chore
from memctl.domain.knowledge.orders import only_names, unobeyed
from memctl.domain.language.documents import named
from memctl.domain.retrieval.answering import passage, said_in, weights
from memctl.domain.support.mentions import path_within
from memctl.domain.support.provenance import Provenance, words_of
from memctl.domain.support.text import tokens
from memctl.projections.memory_rows import Memory

MOST_FILES, PASSAGE = 3, 300
"""Files that are named of earlier work, and characters of what came of it."""

OF_A_CHORE = 8
"""Words of a prompt that asks to commit or push, and for more than that: who commits what is done is past the files."""

BY_NAME, LEAST_NAMED = 2.0, 0.04
"""How many times what the name of a file holds of a prompt counts, and the share it has to hold to count."""

NAMED, HELD = 0.45, 0.65
"""The share of a prompt from which on work is meant, with the name of a file and without. Of 27 said in set 1 eleven
name a file that the session then came to, of 24 in set 2, where it was only counted, as many."""


def earlier_work(
    reader: Reader, prompt: str, found: Sequence[Found], said: Collection[str], in_play: Collection[str]
) -> Iterator[Line]:
    """The earlier work that a prompt goes on with, at most one line: none where the session is at those files, or the
    prompt names them. `said` are memories that the session was given, `in_play` its files."""
    every = weights(prompt[:4_000], [frozenset(tokens(each.text)) for each in found])
    weight = {word: every[word] for word in distinctive(prompt) & every.keys()}
    worked = _worked(reader, found) if len(weight) >= (OF_A_CHORE if is_chore(prompt) else 2) else []
    if not worked:
        return
    each, row = max(worked, key=lambda one: (round(bearing(one[1], weight), 2), one[1].kind == "episode"))
    files = by_name(row, weight)[:MOST_FILES]
    at_hand = frozenset(map(named, in_play))
    if each.id in said or not is_meant(row, weight) or at_hand & set(map(named, files)):
        return
    within = [
        path for path in (path_within(row.location, file) for file in files) if only_names(path) and path not in prompt
    ]
    if not within:
        return
    came = passage([said_in(unobeyed(row.text.partition("\n→ ")[2] or row.text))], weight, PASSAGE).text
    said = f"; the agent said: {quoted(came, PASSAGE)}" if came else ""
    text = f"{day_of(row.last_at)[:10]} earlier work changed {quoted(', '.join(within), 300)}{said}"
    yield line(text, row.id, each.score, each.class_, origin=words_of(Provenance.AGENT))


def _worked(reader: Reader, found: Sequence[Found]) -> list[tuple[Found, Memory]]:
    """Those that changed files, each with its row, and without those that were rejected or corrected."""
    rows = several(reader, models.memories, [each.id for each in found if each.kind in ("turn", "episode")])
    rejected = {id for id, each in regards(reader, list(rows)).items() if each.rejected}
    rejected |= {id for id, row in rows.items() if row.kind == "turn" and row.outcome}
    return [(each, rows[each.id]) for each in found if each.id in rows.keys() - rejected and rows[each.id].files]


def is_meant(row: Memory, weight: dict[str, float]) -> bool:
    holds = bearing(row, weight)
    return holds >= HELD or (holds >= NAMED and _named(by_name(row, weight)[0], weight) >= LEAST_NAMED)


def bearing(row: Memory, weight: dict[str, float]) -> float:
    """How much of a prompt the text of earlier work holds, and the best named of its files."""
    return _share(row.text, weight) + BY_NAME * max(_named(file, weight) for file in row.files)


def by_name(row: Memory, weight: dict[str, float]) -> list[str]:
    """Its files, those first whose names hold most of a prompt."""
    return sorted(dict.fromkeys(row.files), key=lambda file: -_named(file, weight))


def _named(file: str, weight: dict[str, float]) -> float:
    name = basename(file)
    return _share(splitext(name)[0], weight) if name.lower() not in COMMON_FILES else 0.0


def _share(text: str, weight: dict[str, float]) -> float:
    """0 to 1: how much of the weight the words of a text hold."""
    held = frozenset(tokens(text))
    return sum(each for word, each in weight.items() if word in held) / max(sum(weight.values()), 1e-9)
