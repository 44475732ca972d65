"""What an agent's report of its work settles: how it was mended, what was done in place of what or for which reason,
and what had been wrong. The report alone proves nothing: who asks looks whether the work came to good."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from memctl.domain.events.facts import DecisionKind
from memctl.domain.failures.explanations import guesses, links, says_why, sentences
from memctl.domain.language.hypotheses import TITLE, causes_in
from memctl.domain.language.summaries import done_sentences, says_done, says_words
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered

MOST = 4
"""Points that are taken from one report."""

_SHORTEST, _LONGEST = 40, 300
"""Characters of a point."""

_WAY_OUT = patterns.compile(r"(?:the )?(?:fix|solution|resolution)(?: \([^)]*\))?\W*", patterns.I)
"""A label of how something was mended."""
_FIX_IS = patterns.compile(r"the (?:fix|solution)\b[^:.]{1,24}: (?P<rest>\S.{30,})", patterns.I)
_PARAGRAPH = patterns.compile(r"\s*(?P<rest>[^\s`|#](?:[^\n]|\n[^\n])*)")
_WAS_WRONG = patterns.compile(
    r"(?:\w+, )?the (?:\w+ ){0,2}(?:issue|problem|cause|bug|errors?|failures?) (?:was|were|occurred|happened|came)\b",
    patterns.I,
)
"""How begins a sentence that says, once it is over, what had been wrong."""
_OF_TESTS = patterns.compile(r"\b[Tt]est|Test|_test")


class Point(NamedTuple):
    text: str
    kind: DecisionKind = "choice"


@remembered(64, longest=16_384)
def settled_in(report: str) -> tuple[Point, ...]:
    """What a report says, in its own words and order of weight."""
    causes = {each.text for each in causes_in(report)}
    points = dict.fromkeys((*_mended(report), *_wrong(report), *_done(report)))
    return tuple(islice((each for each in points if each.text not in causes), MOST))


def _mended(report: str) -> Iterator[Point]:
    """What stands behind a label that says how it was mended, with the list it leads to."""
    for title in TITLE.finditer(report):
        behind = _PARAGRAPH.match(report, title.end())
        if behind and _WAY_OUT.fullmatch((title["heading"] or title["bold"]).strip()):
            said = one_line(behind["rest"].replace("**", ""), _LONGEST)
            if len(said) >= _SHORTEST and says_words(said):
                yield Point(f"Fix: {said}")
    for sentence in sentences(report):
        mended = _FIX_IS.match(sentence)
        if mended is not None and says_done(mended["rest"][:1].upper() + mended["rest"][1:], sure=True):
            yield Point(f"Fix: {one_line(mended['rest'], _LONGEST)}")


def _wrong(report: str) -> Iterator[Point]:
    for sentence in sentences(report):
        if len(sentence) >= _SHORTEST and _WAS_WRONG.match(sentence) and links(sentence) and not guesses(sentence):
            yield Point(one_line(sentence, _LONGEST), "cause")


def _done(report: str) -> Iterator[Point]:
    for sentence, _ in done_sentences(report, sure=True):
        leads_on = sentence.endswith(":")
        if len(sentence) >= _SHORTEST and says_why(sentence) and not (leads_on or _OF_TESTS.search(sentence)):
            yield Point(f"Done: {one_line(sentence, _LONGEST)}")
