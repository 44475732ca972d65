"""Decisions, read out of what the agent and the user said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.literals import lines_with

LONGEST_PROMPT = 1_500
"""Characters of a prompt that is still taken for somebody's own words."""

_LONGEST_TEXT = 8_000
"""Characters of an agent's text that are read."""

MOST = 3
"""Decisions that are taken from one text."""

_AGENT = patterns.compile(
    r"(?:(?:So|Therefore|OK|Okay|Given (?:this|that)|Instead|For now),? )?"
    r"(?:(?:I'll|I will|We'll|we'll|Let's|let's) (?:go with|stick with|keep|switch to|opt for|adopt)\b|"
    r"(?:I|We|we)(?:'ve| have)? (?:decided (?:to|on|against)|chose|opted|settled|went with|am going with|'m going "
    r"with)\b|"
    r"Going with\b|\*{0,2}Decision:\*{0,2} |"
    r"[Tt]he (?:simplest|cleanest|best|right|safest|proper|better) (?:fix|approach|solution|option|way)(?: here)? "
    r"is(?: to)?\b|"
    r"(?:I'll|I will|I'm going to|[Ww]e'll|[Ww]e should) (?:just |simply |also |now )?"
    r"(?:use|add|make|extract|replace|modify|skip|store|return|put|move|reset|throw|adapt|implement|build|define|pass|"
    r"load|leave|drop|remove|create|inject|write|treat|split|merge|rename|wrap|derive|compute|compare|keep|base) "
    r"(?=[^\n.]{4,140} (?:instead of|rather than) ))"
    r"(?P<rest>)[^\n]{8}[^\n]*?(?=[.!?](?:\s|$)|\n|$)"
)
_LONGEST_REST = 280
"""Characters behind the words that settle something. Counted in the pattern, they take ten times as long."""
AGENT_HINTS = (
    "go with", "stick with", "'ll keep", "will keep", "switch to", "opt for", "adopt", "decided ", " chose", "opted",
    "settled", "went with", "going with", "Going with", "Decision:", "simplest ", "cleanest ", "best approach",
    "best fix", "best solution", "best option", "right fix", "right approach", "proper fix", "safest ",
    "better approach", "instead of ", "rather than ",
)  # fmt: skip
"""One of these is in every text that the pattern finds something in."""
_LINE_HINTS = (*AGENT_HINTS, "'s keep", "best ", "right ", "proper ", "better ")
"""One of these is in every line that the pattern finds something in; no match goes beyond a line."""

_IDLE = patterns.compile(
    r"\b(?:edit tool|write tool|the user|old_string|plan mode|this (?:file|script)|skill|todo list|commit message|"
    r"speculat)\b|"
    r"(?:where|when|if|as) (?:needed|necessary|appropriate|possible)\W*$|"
    r"\bor\b|\blines? \d|\b(?:one by one|guess(?:ing)?|all at once|in parallel|manually)\b|:$",
    patterns.I,
)
"""How an agent goes about its own work, which decides nothing of the user's."""
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


def decisions_by_agent(text: str, *, thought: bool = False) -> list[Decision]:
    """What the agent settled on, as its words say. A thought counts only with what it was weighed against."""
    found = [decision for decision in _read(_by_agent(text), text) if not _IDLE.search(decision.text)]
    return [decision for decision in found if decision.alternatives] if thought else found


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


def _by_agent(text: str) -> Iterator[patterns.Match[str]]:
    text = text[:_LONGEST_TEXT]
    for start in lines_with(text, _LINE_HINTS):
        end = text.find("\n", start) % (len(text) + 1)
        while found := _AGENT.search(text, start, end):
            short = found.end() - found.start("rest") <= _LONGEST_REST
            start = found.end() if short else found.start() + 1
            if short:
                yield found


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
