"""Decisions, read out of what a user answered. What an agent settles on counts where it is recorded."""

from __future__ import annotations

from typing import NamedTuple

from memctl.domain.support import patterns

LONGEST_PROMPT = 1_500
"""Characters of a prompt that is still taken for somebody's own words."""

MOST = 3
"""Decisions that are taken from one text."""

_ONWARD = patterns.compile(
    r"\b(?:(?:what|how) (?:would you like|do you want|should (?:i|we)) (?:me )?(?:to )?(?:do|proceed|continue)|"
    r"what next|ready to|can you (?:reproduce|confirm|share|provide)|"
    r"(?:shall|should) (?:i|we) (?:continue|proceed|start|commit|push)|"
    r"be committed|which branch|commit message|"
    r"would you like (?:me )?to (?:continue|proceed|start|commit|push))\b|다음(?:에|으로)|계속할까|진행할까",
    patterns.I,
)
_ANSWER = patterns.compile(r'"(?P<question>[^"\n]{3,300})"="(?P<answer>[^"\n]{1,300})"')


class Decision(NamedTuple):
    """One decision. Characters `start` to `end` of the text say it."""

    text: str
    rationale: str
    start: int
    end: int
    alternatives: tuple[str, ...] = ()


def decisions_in_answers(text: str) -> list[Decision]:
    """What the user answered to the agent's questions, as the client reports it: not what to do next."""
    return [
        Decision(f"{found['question']} {found['answer']}"[:300], "", found.start(), found.end())
        for found in _ANSWER.finditer(text)
        if not _ONWARD.search(found["question"])
    ][:MOST]
