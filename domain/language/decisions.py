"""Decisions, read out of what a user answered. What an agent settles on counts where it is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from memctl.domain.language.prompts import words_in
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

LONGEST_PROMPT = 1_500
"""Characters of a prompt that is still taken for somebody's own words."""

MOST = 4
"""Decisions that are taken from one text: clients ask up to four questions at once."""

_QUESTION, _ANSWER, _SUBJECT = 160, 600, 80
"""Characters that are kept of a question, of its answer, and of what a short question is about."""

_FEW = 3
"""Words of content without which a question does not say what it is about."""

_ONWARD = patterns.compile(
    # What the agent is to do next, and with what: not how the product is to be.
    r"\b(?:(?:what|how) (?:would you like|do you want|should (?:i|we)) (?:me )?(?:to )?(?:do|proceed|continue|go on)|"
    r"what(?:['’]s)? next|ready to|can you (?:reproduce|confirm|share|provide)|"
    r"(?:shall|should|can|may|want|like) (?:i|we|me)(?: to)? (?:now |also |just |first )?(?:continue|proceed|start|"
    r"begin|commit|push|rebase|amend|squash|submit|post)\b|"
    r"(?:these|this|those|the|my|your|all) (?:[\w-]+ ){0,2}(?:be|get) (?:committed|pushed|merged|squashed|staged)|"
    r"(?:which|what) (?:commit message|branch should (?:i|we|this|it|the (?:work|change|pr)))|"
    r"(?:which|what) [^?]{0,80}\b(?:first|next)\b|"
    r"(?:open|create|raise|submit|update|merge) (?:an? |the |this )?(?:draft )?(?:pr|pull request|merge request)\b|"
    r"(?:in|into|for|part of|with|within|scope of) (?:this|the current) "
    r"(?:pr|pull request|change|commit|session|branch|task|round|plan|work|phase)\b)|다음(?:에|으로)|계속할까|진행할까",
    patterns.I,
)
_CHORE = patterns.compile(
    r"next(?: steps?)?|action|proceed|continue|commit(?: \w+)?|(?:force[ -])?push|prs?|pull request|merge|order",
    patterns.I,
)
"""Headers of questions about the work at hand."""
_BETWEEN, _LONGEST, _SAME = '"="', 20_000, 0.6
"""What stands between question and answer; characters that are read; and the share of the words of two questions that
both have, where they ask the same."""


class Decision(NamedTuple):
    """One decision. Characters `start` to `end` of the text say it."""

    text: str
    rationale: str
    start: int
    end: int
    alternatives: tuple[str, ...] = ()


_ASK, _ASKED = "Question “", "”, answer “"
"""What stands before a question, and between it and its answer."""


def decisions_in_answers(text: str, headers: Mapping[str, str] | None = None, about: str = "") -> list[Decision]:
    """What the user answered to the agent's questions, as the client reports it: not what to do next. The agent's words
    and the user's stand apart.

    A short question leans on the talk before it: it is kept with what was asked for (`about`) and its label, of which
    `headers` holds one by question.
    """
    found: list[Decision] = []
    for question, answer, start, end in _answers_in(text):
        header, few = (headers or {}).get(question, "").strip(), len(words_in(question)) < _FEW
        if _ONWARD.search(question) or _CHORE.fullmatch(header):
            continue
        said = ", ".join(filter(None, (one_line(about, _SUBJECT), header))) if few else ""
        if said or len(words_in(question) | words_in(answer)) > 1:
            asked = f"{said}: " * bool(said) + one_line(question, _QUESTION)
            found.append(Decision(f"{_ASK}{asked}{_ASKED}{one_line(answer, _ANSWER)}”", "", start, end))
    return found[:MOST]


def _answers_in(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Each question and its answer, in which quotation marks and line breaks may stand, and where they stand."""
    pieces = text[:_LONGEST].split(_BETWEEN)[: MOST + 1]
    at = pieces[0].rfind(': "') + 3 if ': "' in pieces[0] else pieces[0].find('"') + 1
    question = pieces[0][at:]
    for number, piece in enumerate(pieces[1:], 1):
        last = number == len(pieces) - 1
        mark = '". ' if last and '". ' in piece else '"' if last else '", "'
        answer, _, following = piece.rpartition(mark)
        end = at + len(question) + len(_BETWEEN) + len(answer)
        if question.strip() and answer.strip():
            yield question.strip(), answer.strip(), at - 1, end + 1
        at, question = end + len(mark), following


def asks_again(earlier: str, later: str) -> bool:
    """Whether two decisions answer one question: what was asked is in nearly the same words."""
    first, second = (words_in(each[len(_ASK) : max(each.find(_ASKED), 0)]) for each in (earlier, later))
    return min(len(first), len(second)) >= _FEW and len(first & second) >= _SAME * len(first | second)
