"""Decisions, read out of what a user answered. What an agent settles on counts where it is recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from memctl.domain.language.prompts import words_in
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line
from memctl.domain.support.remembered import remembered

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


class Asked(NamedTuple):
    """What a client shows beside a question: a short label, and the answers that it offers."""

    header: str
    options: tuple[str, ...] = ()


_ASK, _ASKED = "Question “", "”, answer “"
"""What stands before a question, and between it and its answer."""


def decisions_in_answers(
    text: str, asked: Mapping[str, Asked] = MappingProxyType({}), about: str = ""
) -> list[Decision]:
    """What the user answered to the agent's questions, as the client reports it: not what to do next. The agent's words
    and the user's stand apart. `asked` are the questions that were put, where they are known.

    A short question leans on the talk before it: it is kept with what was asked for (`about`) and its label.
    """
    found: list[Decision] = []
    for question, answer, start, end in _known_in(text[:_LONGEST], asked) or _answers_in(text):
        header = asked[question].header.strip() if question in asked else ""
        few = len(words_in(question)) < _FEW
        if _ONWARD.search(question):
            continue
        said = ", ".join(filter(None, (one_line(about, _SUBJECT), header))) if few else ""
        if said or len(words_in(question) | words_in(answer)) > 1:
            put = f"{said}: " * bool(said) + one_line(question, _QUESTION)
            given = one_line(answer.removesuffix(_ADVISED), _ANSWER)
            found.append(Decision(f"{_ASK}{put}{_ASKED}{given}”", "", start, end))
    return found[:MOST]


_ADVISED = " (Recommended)"
"""What an agent writes behind the answer that it would choose."""


def _known_in(text: str, asked: Mapping[str, Asked]) -> list[tuple[str, str, int, int]]:
    """As `_answers_in`, of questions that were put. What a client writes between them, as a drawing of the answer that
    was chosen, or a note to it, is neither."""
    at = sorted((text.find(f'"{question}{_BETWEEN}'), question) for question in islice(asked, MOST) if question)
    placed = [each for each in at if each[0] >= 0]
    found: list[tuple[str, str, int, int]] = []
    for number, (start, question) in enumerate(placed, 1):
        following = placed[number][0] if number < len(placed) else len(text)
        begin = start + 1 + len(question) + len(_BETWEEN)
        piece = text[begin:following]
        offered = max((each for each in asked[question].options if piece.startswith(f'{each}"')), key=len, default="")
        answer = offered or piece[: piece.rfind('". ' if following == len(text) and '". ' in piece else '"')]
        if answer.strip():
            found.append((question, answer.strip(), start, begin + len(answer) + 1))
    return found


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


@remembered(256)
def _asked_about(text: str) -> AbstractSet[str]:
    """The words of the question that a decision answers."""
    return words_in(text[len(_ASK) : max(text.find(_ASKED), 0)])


def asks_again(earlier: str, later: str) -> bool:
    """Whether two decisions answer one question: what was asked is in nearly the same words."""
    first, second = map(_asked_about, (earlier, later))
    return min(len(first), len(second)) >= _FEW and len(first & second) >= _SAME * len(first | second)
