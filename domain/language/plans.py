"""What a plan settles: what it is for, the way it takes, and what it decides; read once its work was committed."""

from __future__ import annotations

from memctl.domain.language.decisions import Decision
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

MOST, LONGEST = 6, 20_000
"""Points that are taken from one plan, and characters of it that are read."""

_TITLE_ROOM, _SECTION_ROOM, _SHORTEST, _LONGEST_POINT = 90, 60, 30, 300
"""Characters of its title, of a heading, and of a point: shorter ones name a thing, longer ones are accounts."""

_SENT = patterns.compile(
    r"\s*(?:(?:please )?(?:implement|execute|carry out) (?:the following|this) plan|## Approved Plan)\s*:?[ \t]*\n",
    patterns.I,
)
_APPROVED = patterns.compile(r"^## Approved Plan[^\n]*:[ \t]*\n", patterns.M)
_TITLE = patterns.compile(r"^(?:(?:implementation )?plan|proposal)\s*[:—–-]\s*", patterns.I)
_PURPOSE = patterns.compile(
    r"(?:context|background|problem(?: statement)?|motivation|goal|overview|summary|purpose|root cause|why)\W*\z",
    patterns.I,
)
_WAY = patterns.compile(r"(?:(?:proposed )?(?:approach|solution|fix|design|strategy)|key insight)\W*\z", patterns.I)
_SETTLES = patterns.compile(
    r"\b(?:decisions?|decided|requirements?|rationale|trade-?offs?|constraints?|rules|principles|"
    r"not (?:chang\w+|touch\w+|covered|included)|by design|(?:does|do|will) not|out of scope|why (?:no|not|this))\b",
    patterns.I,
)
_ITEM = patterns.compile(r"(?:[-*+]|\d{1,2}[.)])[ \t]+")
_STOP = patterns.compile(r"(?:[^.\s]{4}|[)`\"'”*\]])(?P<stop>[.!])(?:\*{0,2}[)\"'”]?(?:\s|$))")
_STEP = patterns.compile(
    # What is done on the way, or is a list of files, and what leans on the line before.
    r"(?:run|open|start|check|verify|confirm|test|manual\w*|read|commit|push|build|install|"
    r"create (?:the )?(?:new )?files?|update (?:the )?(?:docs?|tests?|imports?)|(?:single )?files?|line|"
    r"[\w ]{0,24}:? ?(?:re)?uses existing|it|this|that|these|those|they|here)\b|"
    r"`?[\w.@~-]*(?:/[\w.@*\[\]-]+)+`?(?:\W|\z)",
    patterns.I,
)


def plan_in(text: str) -> int | None:
    """Where the plan begins that a client sends to be carried out, or reports as approved; None where there is none."""
    begins = _SENT.match(text) or _APPROVED.search(text)
    return begins.end() if begins else None


def points_of(text: str) -> list[Decision]:
    """What the plan in a text settles, each in one sentence under the plan's title."""
    at = plan_in(text) or 0
    title, section, found = "", "", list[Decision]()
    taken = fenced = False
    for line in text[at : at + LONGEST].splitlines(keepends=True):
        start, at = at, at + len(line)
        said = line.strip()
        if said.startswith("```"):
            fenced = not fenced
        elif fenced or not said or len(found) == MOST:
            continue
        elif said.startswith("#"):
            section, taken = said.lstrip("# ").strip("* ") if title else "", False
            title = title or one_line(_TITLE.sub("", said.lstrip("# "), 1), _TITLE_ROOM)
        elif (item := _ITEM.match(said)) is not None:
            if _SETTLES.search(section):
                # The heading may say who decided it, or that it is what stays as it was.
                lead = f"Planned and done ({title}, under “{one_line(section, _SECTION_ROOM)}”)"
                _take(found, lead, said[item.end() :], start + line.find(said) + item.end())
        elif not taken and (_PURPOSE.match(section) or _WAY.match(section)):
            taken = True
            # What a plan is for held before it.
            lead = f"Planned and done: {title}. Why" if _PURPOSE.match(section) else f"Planned and done ({title})"
            _take(found, lead, said, start + line.find(said))
    return found if title else []


def _take(found: list[Decision], lead: str, said: str, start: int) -> None:
    """One sentence of a plan, unless it only leads to others or is a step on the way."""
    stop = _STOP.search(said)
    sentence = said[: stop.start("stop") if stop else len(said)]
    words = " ".join(sentence.replace("**", "").split())
    if words[-1:] in (":", "?", ",") or not _SHORTEST <= len(words) <= _LONGEST_POINT or _STEP.match(words):
        return
    found.append(Decision(f"{lead}: {words}", "", start, start + len(sentence)))
