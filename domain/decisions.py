"""Decisions, read out of what the agent and the user said."""

from __future__ import annotations

import re
from typing import NamedTuple

from memctl.domain.literals import mentions

LONGEST_PROMPT = 1_500
"""Characters of a prompt that is still taken for somebody's own words."""

MOST = 3
"""Decisions that are taken from one text."""

_AGENT = re.compile(
    r"(?:(?:So|Therefore|OK|Okay|Given (?:this|that)|Instead|For now),? )?"
    r"(?:(?:I'll|I will|We'll|we'll|Let's|let's) (?:go with|stick with|keep|switch to|opt for|adopt)\b|"
    r"(?:I|We|we)(?:'ve| have)? (?:decided (?:to|on|against)|chose|opted|settled|went with|am going with|'m going "
    r"with)\b|"
    r"Going with\b|\*{0,2}Decision:\*{0,2} )[^\n]{8,280}?(?=[.!?](?:\s|$)|\n|$)"
)
_AGENT_HINTS = (
    "go with", "stick with", "keep", "switch to", "opt for", "adopt", "decided ", "chose", "opted", "settled",
    "went with", "going with", "Going with", "Decision:",
)  # fmt: skip
"""One of these is in every text that the pattern finds something in."""
_USER = re.compile(
    r"(?:^|(?<=[.!?,:]\s)|(?<=\n))\W*+(?:(?:and|so|ok(?:ay)?|yes|yeah|then|but|well|sure)[, ]+)*"
    r"(?:(?:let'?s|we'?ll|we will|we should|i'?ll|please) (?:go with|use|stick with|keep|switch to|do option)\b|"
    r"i (?:like|prefer|choose|pick|want|vote for) (?:the )?(?:option|approach|idea|first|second)\b|option [0-9a-d]\b|"
    r"(?:go|going) with\b|we decided\b|(?:let'?s|rather) not\b)[^\n]{0,280}?(?=[.!?](?:\s|$)|\n|$)",
    re.I,
)
_KOREAN = re.compile(r"(?<![^\n.!?])[^\n.!?]{2,150}?로 (?:하자|가자|갑시다|합시다|결정|진행하자|정하자)[^\n.!?]{0,40}")
_LEAD = re.compile(r"[\s*>\-.!?,:]*(?:(?:and|so|ok(?:ay)?|yes|yeah|then|but|well|sure)[, ]+)*", re.I)
_WHY = re.compile(
    r"\b(?:because|since|so that|as it|to (?:avoid|keep|ensure|prevent|reduce|match)|which (?:is|keeps|avoids|"
    r"makes))\b.*|(?:때문|위해).*",
    re.I,
)
_ANSWER = re.compile(r'"(?P<question>[^"\n]{3,300})"="(?P<answer>[^"\n]{1,300})"')


class Decision(NamedTuple):
    """One decision. Characters `start` to `end` of the text say it."""

    text: str
    rationale: str
    start: int
    end: int


def decisions_by_agent(text: str) -> list[Decision]:
    """What the agent settled on, as its words say."""
    return _read(_AGENT, text) if mentions(text, _AGENT_HINTS) else []


def decisions_by_user(text: str) -> list[Decision]:
    """What the user settled on, as the prompt says. Long prompts are documents, whose options nobody has chosen yet."""
    if len(text) > LONGEST_PROMPT:
        return []
    found = _read(_USER, text)
    return (found + _read(_KOREAN, text))[:MOST] if "로 " in text else found


def decisions_in_answers(text: str) -> list[Decision]:
    """What the user answered to the agent's questions, as the client reports it."""
    return [
        Decision(f"{found['question']} {found['answer']}"[:300], "", found.start(), found.end())
        for found in list(_ANSWER.finditer(text))[:MOST]
    ]


def _read(pattern: re.Pattern[str], text: str) -> list[Decision]:
    decided: list[Decision] = []
    for found in pattern.finditer(text[:8_000]):
        if text[found.start() - 1 : found.start()].isalnum():
            continue
        lead = _LEAD.match(text, found.start(), found.end())
        start = lead.end() if lead else found.start()
        words = " ".join(text[start : found.end()].split())
        if len(words) < 12:
            continue
        why = _WHY.search(words)
        decided.append(Decision(words[:300], why[0][:200] if why else "", start, found.end()))
        if len(decided) == MOST:
            break
    return decided
