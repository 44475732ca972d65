"""What a plan settles: what it is for, the way it takes, and what it decides; read once its work was committed."""

from __future__ import annotations

from memctl.domain.language.decisions import Decision
from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

MOST, LONGEST = 6, 20_000
"""Points that are taken from one plan, and characters of it that are read."""

_TITLE_ROOM, _SECTION_ROOM, _SHORTEST, _LONGEST_POINT, _PARAGRAPH = 90, 60, 30, 300, 360
"""Characters of its title, of a heading, of a point (shorter ones name a thing, longer ones are accounts), and of a
paragraph."""

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
_WAY = patterns.compile(
    r"(?:(?:the |proposed )?(?:approach|solution|fix|design|strategy)|key (?:insight|finding))\W*\z", patterns.I
)
_SETTLES = patterns.compile(
    r"\b(?:decisions?|decided|requirements?|rationale|trade-?offs?|constraints?|rules|principles|"
    r"not (?:chang\w+|touch\w+|covered|included)|by design|(?:does|do|will) not|out of scope|why (?:no|not|this))\b",
    patterns.I,
)
_LABEL = patterns.compile(r"\*\*(?P<label>[^*\n]{3,60}?)(?::\*\*|\*\*[ \t]*[:—–])[ \t]*")
"""A label in bold, which stands for a heading of its line."""
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
    """What the plan in a text settles, each under the plan's title."""
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
        else:
            label = _LABEL.match(said)
            begins = label.end() if label else 0
            if (label or not taken) and (lead := _lead(title, section, label["label"] if label else "")):
                done = _take(found, lead, said[begins:], start + line.find(said) + begins, more=True)
                taken = taken or done
    return found if title else []


def _lead(title: str, section: str, label: str) -> str:
    """What stands before a sentence of a plan where its heading or its label says what the plan is for, how it goes
    about it, or what it settles; empty where neither does."""
    for heading in filter(None, (label, section)):
        if _PURPOSE.match(heading):
            return f"Planned and done: {title}. {label or 'Why'}"  # what a plan is for held before it
        if _WAY.match(heading) or (label and _SETTLES.search(heading)):
            return f"Planned and done ({title}){f': {label}' if label else ''}"
    return ""


def _take(found: list[Decision], lead: str, said: str, start: int, *, more: bool = False) -> bool:
    """One sentence of a plan, with `more` those behind it as far as there is room, unless it only leads to others or is
    a step on the way. Whether it was taken."""
    ends = [stop.start("stop") for stop in _STOP.finditer(said)] or [len(said)]
    end = max((each for each in ends if each <= _PARAGRAPH), default=ends[0]) if more else ends[0]
    words = " ".join(said[:end].replace("**", "").split())
    if (
        words[-1:] in (":", "?", ",")
        or not _SHORTEST <= len(words) <= (_PARAGRAPH if more else _LONGEST_POINT)
        or _STEP.match(words)
    ):
        return False
    found.append(Decision(f"{lead}: {words}", "", start, start + end))
    return True
