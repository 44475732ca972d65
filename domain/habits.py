"""Habits that show in what people ask for: rules over the user's own prompts, in English and Korean.

A habit shown once is a coincidence; it graduates when several sessions show it. What is `stated` needs no repetition:
the words say outright where issues are kept or who reviews.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memctl.domain.facts import InsightKind
from memctl.domain.prompts import Said

LONGEST = 800
"""Characters of a prompt from which it is a document, which shows nothing of the one who hands it over."""


class Habit(NamedTuple):
    """What a prompt shows, on its characters `start` to `end`. `everywhere`: of the person, not of the project."""

    text: str
    kind: InsightKind
    everywhere: bool
    stated: bool
    start: int
    end: int


class _Rule(NamedTuple):
    text: str
    hints: tuple[str, ...]
    """One of these is in every prompt, in lower case, that the pattern finds something in."""
    pattern: re.Pattern[str]
    kind: InsightKind = "pattern"
    everywhere: bool = True
    stated: bool = False


def _of(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_RULES = (
    _Rule(
        "Asks for tests along with a change",
        ("test", "테스트"),
        _of(r"""\b(?:add|write|create|include)\b[^.?!\n]{0,40}\btests?\b(?!\ (?:repo|mode|file))
            |\bmake\ sure\ (?:this|it)\ is\ tested\b|테스트(?:도|를|코드도|\ 코드)?\s*(?:추가|작성|만들)"""),
    ),
    _Rule(
        "Has the changelog updated with a change",
        ("change", "체인지", "이력"),
        _of(r"\bupdate\b[^.?!\n]{0,20}\bchange-?log\b|체인지로그|변경\s*이력"),
        everywhere=False,
    ),
    _Rule(
        "Pushes straight to the main branch",
        ("push", "푸시"),
        _of(r"\bpush\b[^.?!\n]{0,12}\b(?:directly|straight)\s+(?:in)?to\s+(?:main|master)\b|메인에\s*바로\s*푸시"),
        everywhere=False,
    ),
    _Rule(
        "Goes back to main and pulls the latest before new work",
        ("to main", "latest"),
        _of(r"\b(?:get\ |go\ )?back\ (?:on)?to\ main\b|\bpull\ (?:in\ )?(?:the\ )?latest\b"),
        everywhere=False,
    ),
    _Rule(
        "Has finished work committed and pushed by the agent",
        ("push", "푸시"),
        _of(
            r"\bcommit(?:\ (?:this|it|that|all|everything))?\s*(?:,|and|then|&|\+)+\s*(?:then\ )?push\b|커밋.{0,6}푸시"
        ),
    ),
    _Rule(
        "Has changes reviewed by the agent",
        ("review", "리뷰"),
        _of(r"""\breview\ (?:the\ |my\ |these\ |this\ )?(?:added\ |local\ )?(?:changes|tests|branch|PR\b|pull\ request)
            |\bcode\ review\b|코드\s*리뷰|리뷰해"""),
    ),
    _Rule(
        "Watches for duplicated code",
        ("duplicat", "중복"),
        _of(r"""\b(?:de)?duplicat(?:e[ds]?|ing|ion)\b[^\n]{0,60}\b(?:code|now|tests?|logic|functions?|helpers?)\b
            |\b(?:tests?|functions?|code)\b[^.\n]{0,40}\bduplicated\b|중복"""),
    ),
    _Rule(
        "Hands parts of the work to subagents",
        ("agent", "에이전트"),
        _of(r"\bsub-?agents?\b|\bcompeting\ agents\b|서브\s*에이전트"),
    ),
    _Rule(
        "Wants texts and answers short",
        ("verbose", "brief", "short", "concise", "clearly", "quick", "간단", "짧게", "간결"),
        _of(r"""\b(?:too|quite|so|very|overly)\ verbose\b|\b(?:be|keep\ (?:it|this|that))\ (?:brief|short|concise)\b
            |\bwriting\ clearly\b|\breal\ quick\b|간단(?:히|하게)|짧게|간결"""),
    ),
    _Rule(
        "Asks for an explanation of the code or the change",
        ("explain", "설명"),
        _of(r"\bcan\ you\ explain\b|\bexplain\ (?:me|to\ me|why|how)\b|설명해"),
    ),
    _Rule(
        "Wants the documentation kept in step with the code",
        ("doc", "readme", "문서"),
        _of(r"""\b(?:docs|documentation|readme)\b[^.?!\n]{0,25}\b(?:consistent|up\ to\ date|updated|in\ sync)\b
            |\bupdate\ (?:the\ )?(?:docs|documentation|readme)\b|문서.{0,6}(?:업데이트|갱신|맞춰)"""),
    ),
)
_PLAN = re.compile(r"\s*implement the following plan", re.IGNORECASE)
_REVIEWERS = re.compile(r"\b(coderabbit|copilot|bugbot|greptile|sourcery|codecov|sonarqube)\b", re.IGNORECASE)
_REVIEWING = re.compile(r"\b(?:comment|review|feedback|pr\b|pull request|issue)", re.IGNORECASE)
_NAMES = {"coderabbit": "CodeRabbit", "copilot": "Copilot", "bugbot": "Bugbot", "greptile": "Greptile",
          "sourcery": "Sourcery", "codecov": "Codecov", "sonarqube": "SonarQube"}  # fmt: skip
_TRACKERS = re.compile(
    r"\b(linear|jira|youtrack|shortcut|asana)\s+(?:issue|ticket|improvement|comment|story|[a-z]{2,5}-\d+)", re.I
)
_TRACKER_PROJECT = re.compile(r"\bproject:\s*([\w-]+)", re.IGNORECASE)
_SKILL = re.compile(r"\buse (?:the |your )?([\w][\w -]{2,40}?) skills?\b", re.IGNORECASE)


def habits_in(said: Said) -> Iterator[Habit]:
    """What a prompt of the user shows of habits, in order of the rules."""
    text = said.text
    if said.command:
        yield Habit(f"Works with the command `/{said.command}`", "pattern", True, False, 0, len(text))
    if plan := _PLAN.match(text):
        yield Habit("Has the work planned in writing before it begins", "pattern", True, False, *plan.span())
        return
    if len(said.words) > LONGEST:
        return
    lowered = text.lower()
    for rule in _RULES:
        if any(hint in lowered for hint in rule.hints) and (found := rule.pattern.search(text)):
            yield Habit(rule.text, rule.kind, rule.everywhere, rule.stated, *found.span())
    if (found := _REVIEWERS.search(text)) and _REVIEWING.search(text):
        name = _NAMES[found[1].lower()]
        yield Habit(f"Pull requests are reviewed by {name}", "fact", False, True, *found.span())
    if found := _TRACKERS.search(text):
        tracker = found[1].capitalize()
        project = _TRACKER_PROJECT.search(text)
        where = f"{tracker}, project {project[1]}" if project else tracker
        yield Habit(f"Issues are kept in {where}", "fact", False, True, *found.span())
    if found := _SKILL.search(text):
        yield Habit(f"Works with the skill `{found[1].lower().strip()}`", "pattern", True, False, *found.span())
