"""Decisions, read out of what the user said or answered. What an agent settles on counts where it is recorded: of its
musing hardly anything holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memctl.domain.support import patterns

LONGEST_PROMPT = 1_500
"""Characters of a prompt that is still taken for somebody's own words."""

MOST = 3
"""Decisions that are taken from one text."""

_USER = patterns.compile(
    r"(?:^|[.!?,:]\s|\n)(?P<_begin>)\W*(?:(?:and|so|ok(?:ay)?|yes|yeah|then|but|well|sure)[, ]+)*"
    r"(?:(?:let'?s|we'?ll|we will|we should|i'?ll|please) (?:go with|use|stick with|keep|switch to|do option)\b|"
    r"i (?:like|prefer|choose|pick|want|vote for) (?:the )?(?:option|approach|idea|first|second)\b|option [0-9a-d]\b|"
    r"(?:go|going) with\b|we decided\b|(?:let'?s|rather) not\b)[^\n]{0,280}?(?=[.!?](?:\s|$)|\n|$)",
    patterns.I,
)
_KOREAN = patterns.compile(
    r"(?<![^\n.!?])[^\n.!?]{2,150}?로 (?:하자|가자|갑시다|합시다|결정|진행하자|정하자)[^\n.!?]{0,40}"
)
_LEAD = patterns.compile(r"[\s*>\-.!?,:]*(?:(?:and|so|ok(?:ay)?|yes|yeah|then|but|well|sure)[, ]+)*", patterns.I)
_WHY = patterns.compile(
    r"\b(?:because|since|so that|as it|to (?:avoid|keep|ensure|prevent|reduce|match)|which (?:is|keeps|avoids|"
    r"makes))\b.*|(?:때문|위해).*",
    patterns.I,
)
_OTHER = patterns.compile(
    r"\b(?:instead of|rather than) (?P<other>[^.;—]{4,120}?)(?= because| since| so that| — |[.;,]|$)",
    patterns.I,
)
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


def decisions_by_user(text: str) -> list[Decision]:
    """What the user settled on, as the prompt says. Long prompts are documents, whose options nobody has chosen yet."""
    if len(text) > LONGEST_PROMPT:
        return []
    found = _read(_USER.finditer(text), text)
    return (found + _read(_KOREAN.finditer(text), text))[:MOST] if "로 " in text else found


def decisions_in_answers(text: str) -> list[Decision]:
    """What the user answered to the agent's questions, as the client reports it: not what to do next."""
    return [
        Decision(f"{found['question']} {found['answer']}"[:300], "", found.start(), found.end())
        for found in _ANSWER.finditer(text)
        if not _ONWARD.search(found["question"])
    ][:MOST]


def _read(matches: Iterator[patterns.Match[str]], text: str) -> list[Decision]:
    decided: list[Decision] = []
    for found in matches:
        if text[found.start() - 1 : found.start()].isalnum():
            continue
        lead = _LEAD.match(text, found.start(), found.end())
        start = lead.end() if lead else found.start()
        words = " ".join(text[start : found.end()].split())
        if len(words) < 12 or words[-1] == ":":
            continue
        why = _WHY.search(words)
        other = _OTHER.search(words)
        decided.append(
            Decision(
                words[:300],
                why[0][:200] if why else "",
                start,
                found.end(),
                (other["other"].strip(" ,;—-")[:120],) if other else (),
            )
        )
        if len(decided) == MOST:
            break
    return decided
