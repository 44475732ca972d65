"""Habits that show in what people ask for: rules over the user's own prompts, in English and Korean.

Shown once it is a coincidence; it graduates when several sessions show it (`domain.knowledge.graduation`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memctl.domain.events.facts import InsightKind
from memctl.domain.language.claims import own_prose
from memctl.domain.language.prompts import Said
from memctl.domain.language.typed import typed_of
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns

LONGEST = 800
"""Characters of a prompt from which it is a document, which shows nothing of the one who hands it over."""


class Habit(NamedTuple):
    """What a prompt shows, on its characters `start` to `end`. `everywhere`: of the person, not of the project."""

    text: str
    kind: InsightKind
    everywhere: bool
    start: int
    end: int
    same: str = ""
    """What is equal for the same habit, where the text is not."""

    @property
    def about(self) -> str:
        return self.same or self.text


class _Rule(NamedTuple):
    text: str
    hints: tuple[str, ...]
    """One of these is in every prompt, in lower case, that the pattern finds something in."""
    pattern: patterns.Pattern[str]
    everywhere: bool = True


def _of(pattern: str) -> patterns.Pattern[str]:
    return patterns.compile(pattern, patterns.I | patterns.X)


_RULES = (
    _Rule(
        "Asks for tests along with a change: write them unasked",
        ("test", "테스트"),
        _of(r"""\b(?:add|write|create|include)\b[^.?!\n]{0,40}\btests?\b(?!\ (?:repo|mode|file|data|user|account))
            |\bmake\ sure\ (?:this|it)\ is\ tested\b|테스트(?:도|를|코드도|\ 코드)?\s*(?:추가|작성|만들)"""),
    ),
    _Rule(
        "Has the changelog updated with a change",
        ("change", "체인지", "이력"),
        _of(r"\bupdate\b[^.?!\n]{0,20}\bchange-?log\b|\bchange-?log\ entry\b|체인지로그|변경\s*이력"),
        everywhere=False,
    ),
    _Rule(
        "Hands parts of the work, such as reviews, to subagents",
        ("agent", "에이전트"),
        _of(r"""\b(?:in|by|with|use|using|as|to|via|spawn|launch)\ (?:an?\ |the\ |\d\ |several\ |parallel\ )*
                sub-?agents?\b|서브\s*에이전트"""),
    ),
    _Rule(
        "Wants the documentation kept in step with the code",
        ("doc", "readme", "문서"),
        _of(r"""\b(?:docs|documentation|readme)\b[^.?!\n]{0,25}\b(?:consistent|up\ to\ date|in\ sync)\b
                [^.?!\n]{0,25}\b(?:code|changes?)\b
            |\bupdate\ (?:the\ )?(?:docs|documentation|readme)\b|문서.{0,6}(?:업데이트|갱신|맞춰)"""),
    ),
)
_NOT = patterns.compile(
    r"(?:\b(?:not|never|no|without|stop|avoid|skip)\b|n['’]t\b|\bdont\b)[^.?!,;:\n]{0,40}\Z", patterns.I
)
_NOT_SO = patterns.compile(r"[^.?!,;:\n]{0,12}?(?:지\s*(?:마|말|않)|필요\s*없|하지\s*말|빼고|없이)")
"""What turns words around: in front of them in English, behind them in Korean."""
_PLAN = patterns.compile(r"\s*implement the following plan", patterns.I)
_EVERYBODYS = words_of("review init security-review pr-comments simplify batch debug loop ask code architect goal")
"""Commands that the clients bring along and that ask for work."""


def habits_in(said: Said) -> Iterator[Habit]:
    """What a prompt of the user shows of habits, in order of the rules."""
    text = said.text
    if said.command and said.command not in _EVERYBODYS:
        # A family of commands is one way of working, whichever of them was typed.
        family, colon, _ = said.command.rpartition(":")
        one = f"`/{said.command}`"
        way = f"Works with the `/{family}:…` commands, such as {one}" if colon else f"Works with the {one} command"
        yield Habit(way, "pattern", False, 0, len(text), f"works with /{family or said.command}")
    if plan := _PLAN.match(text):
        way = "Has larger work planned in writing before it begins: propose a plan first"
        yield Habit(way, "pattern", True, *plan.span())
        return
    if len(said.words) > LONGEST:
        return
    text = own_prose(typed_of(text))
    lowered = text.lower()
    for rule in _RULES:
        if any(hint in lowered for hint in rule.hints) and (found := _asked(rule, text)):
            yield Habit(rule.text, "pattern", rule.everywhere, *found.span())


def _asked(rule: _Rule, text: str) -> patterns.Match[str] | None:
    """The first place that shows it, and is not turned around."""
    for found in rule.pattern.finditer(text):
        if not _NOT.search(text, max(found.start() - 60, 0), found.start()) and not _NOT_SO.match(text, found.end()):
            return found
    return None
