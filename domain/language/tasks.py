"""Tasks as prompts open them: description, type, and the key that makes one task of several sessions' work."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from memctl.domain.events.facts import TaskType
from memctl.domain.support import patterns
from memctl.domain.support.text import canonical, digest_of

LONGEST = 200
"""Characters of a description, and of a canonical key."""

SHORTEST_PARAGRAPH = 15
"""Characters of a first paragraph that says what is wanted by itself."""

_PLAN = patterns.compile(r"\s*implement the following plan:?\s*", patterns.I)
_HEADING = patterns.compile(r"^#{1,3} +(?:(?:implementation )?plan:? +)?(?P<title>\S.*)$", patterns.I | patterns.M)
_MARK = patterns.compile(r"^(?:\s*\[\[ ?##.*?\]\]\s*|\s*@\[\w+\]:\s*)+")
_POLITE = patterns.compile(
    r"^(?:\W*(?:hi|hello|hey|ok(?:ay)?|so|alright|now|please|pls|great|thanks|thank you|perfect|cool|nice|yes|"
    r"yeah|and|also|then)\b[,.!: ]*)+",
    patterns.I,
)
_GAP = patterns.compile(r"[.!?。？！]\s+|\s*\n\s*")
"""Where a sentence may end: behind a mark, or at a line break."""
_ABBREVIATED = patterns.compile(r"\b(?:re|e\.g|i\.e|etc|vs)\.$")
_LONGEST_ABBREVIATION = 6
"""Characters before a gap that are looked at: the longest of the abbreviations above, and what stands before it."""


_PARAGRAPH = patterns.compile(r"\n\s*\n")


def _sentences(text: str) -> Iterator[str]:
    """What stands between the marks that end sentences, between paragraphs, and between points of a list."""
    start = 0
    for gap in _GAP.finditer(text):
        at, behind = gap.span()
        at += not text[at].isspace()
        before, after = text[max(0, at - _LONGEST_ABBREVIATION) : at], text[behind : behind + 1]
        breaks = gap[0].count("\n")
        ends = before.endswith((*".!?。？！",)) and not _ABBREVIATED.search(before)
        if ends or breaks > 1 or (breaks and (after in ("-", "*", "#") or after.isdecimal())):
            yield text[start:at]
            start = behind
    yield text[start:]


def description_of(words: str) -> str:
    """What the task is, in the prompt's own first sentence or two, at most 200 characters.

    A plan is called by its title; a pasted error or link is kept when nothing else was said.
    """
    text = words
    if plan := _PLAN.match(text):
        text = text[plan.end() :]
        if title := _HEADING.search(text[:400]):
            return _cut(title["title"].partition(" ## ")[0].strip(" #*"))
    text = _MARK.sub("", text).strip()
    polite = _POLITE.match(text)
    if polite and len(text) - polite.end() > 15:
        text = text[polite.end() :]
    text = text.lstrip("#*->` \t\n")
    paragraph, _, rest = (part.strip() for part in _PARAGRAPH.sub("\0", text[:2_000], count=1).partition("\0"))
    if len(paragraph) < SHORTEST_PARAGRAPH:
        paragraph = text[:2_000]
    elif paragraph.endswith(":") and rest:
        # What is announced is what it is about.
        paragraph = f"{' '.join(paragraph.split())} {_PARAGRAPH.split(rest, maxsplit=1)[0]}"
    sentences = list(islice((said for part in _sentences(paragraph) if (said := " ".join(part.split()))), 3))
    if not sentences:
        return _cut(" ".join(text.split()))
    found = sentences[0]
    for sentence in sentences[1:]:
        if len(found) >= 60 or len(found) + len(sentence) + 1 > LONGEST:
            break
        found += " " + sentence
    return _cut(found)


def titled(words: str) -> str:
    """What words are called: a plan by its title, anything else as it is, without a client's marks."""
    return description_of(words) if _PLAN.match(words) else _MARK.sub("", words)


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    head = text[: LONGEST - 1]
    blank = head.rfind(" ")
    return (head[:blank] if blank > LONGEST * 0.6 else head).rstrip(" ,;:") + "…"


def canonical_of(description: str) -> str:
    """The canonical key of a task: equal for descriptions that differ in form only. At most 200 characters."""
    return canonical(description)[:LONGEST].strip() or description.strip()[:LONGEST].lower()


def task_key(location: str, canonical_key: str) -> str:
    """16 hex digits that name a task by location and canonical key, in every session alike."""
    return digest_of(f"{location}\0{canonical_key}")


_TYPES: tuple[tuple[TaskType, patterns.Pattern[str]], ...] = (
    ("review", patterns.compile(
        r"\b(?:review(?!s? comments?| feedback)|code review|audit|critique)\b|리뷰|검토", patterns.I)),
    ("bugfix", patterns.compile(
        r"\b(?:fix(?:e[sd])?|bugs?|bugfix|hotfix|debug|broken|crash(?:e[sd]|ing)?|fail(?:s|ed|ing|ure|ures)?|"
        r"errors?|exception|regression|"
        r"not working|doesn'?t work|does not work|won'?t|wrong|incorrect(?:ly)?|root cause|troubleshoot|"
        r"investigate why|hangs?|leaks?|flaky|"
        r"stuck|bomb(?:s|ed|ing)? out|blow(?:s|ing)? up|barf(?:s|ed|ing)?)\b|"
        r"버그|오류|에러|고쳐|고치|안 ?(?:돼|되|됨)|실패|문제", patterns.I)),
    ("test", patterns.compile(r"\b(?:(?:unit|integration|e2e|end-to-end|regression)? ?tests?|test coverage|test suite|"
                        r"lacks? test|specs?)\b|테스트", patterns.I)),
    ("docs", patterns.compile(r"\b(?:readme|docs?|documentation|document(?:ed)?|changelog|docstrings?|comments?|"
                        r"explain in|guide|tutorial|skill\.md|agents\.md|claude\.md)\b|문서|주석", patterns.I)),
    ("refactor", patterns.compile(
        r"\b(?:refactor(?:ing)?|rename|clean ?up|simplif(?:y|ied)|dedup\w*|deduplicate|consolidat\w+|restructure|"
        r"reorgani[sz]e|extract|"
        r"inline|move|replace|rewrite|migrate|convert|split)\b|리팩토링|리팩터|정리|이름 변경", patterns.I)),
    ("feature", patterns.compile(
        r"\b(?:add|implement|create|build|support|introduce|develop|new feature|feature|enable|allow|extend|"
        r"integrate|make it|make the|"
        r"write|generate|design|enhance|improve|optimi[sz]e|redesign|increase|propagate|display|show|hide)\b|추가|"
        r"구현|만들|생성|기능|개선", patterns.I)),
    ("chore", patterns.compile(
        r"\b(?:commit|push|merge|rebase|pull|checkout|branch|release|publish|deploy|bump|upgrade|update|"
        r"dependenc\w+|install|configure|config|set ?up|ci\b|pipeline|"
        r"lint|format|version|remove|delete|clean|restore|rename|enable|run)\b|"
        r"커밋|푸시|배포|설치|설정|업데이트|삭제|제거", patterns.I)),
)  # fmt: skip
_QUESTION = patterns.compile(
    r"\W*(?:how|what|why|where|when|which|who|is|are|was|were|does|do|did|has|have|should|would|can (?:i|we|it|this)|"
    r"could (?:i|we|it|this)|(?:can|could) you (?:explain|tell|describe|show me how)|explain|tell me|describe|"
    r"(?:quick |learning )?q(?:uestion)?:)\b|(?:어떻게|무엇|뭐|왜|어디|언제|누가)(?:\W|$)|"
    r".*(?:인가요|나요|까요|뭐야|뭔가요|설명해)",
    patterns.I,
)
_ORDERS = patterns.compile(
    r"\b(?:please|(?:can|could|would) you (?!explain|tell|describe|show)|can we (?:add|fix|do|make|use|have|get)|"
    r"and (?:fix|add|implement))\b|"
    r"해 ?줘|해 ?주세요|고쳐|만들어|추가해",
    patterns.I,
)
_CONFLICTS = patterns.compile(
    r"\b(?:merge|rebase)[- ]conflicts?\b|\bresolve (?:the |all |these )?conflicts?\b|충돌", patterns.I
)
_QUOTED = patterns.compile(r"`[^`]*`|\"[^\"\n]*\"|https?://\S+")


def task_type_of(words: str, description: str) -> TaskType:
    """What sort of work a prompt asks for, by what it names first."""
    head = description or words[:LONGEST]
    if _QUESTION.match(head) and not _ORDERS.search(head):
        return "question"
    if _CONFLICTS.search(head):
        return "chore"
    for text in (_QUOTED.sub(" ", head), words[:1_000]):
        found = [
            (match.start(), rank, name) for rank, (name, rule) in enumerate(_TYPES) if (match := rule.search(text))
        ]
        if found:
            # What stands first says what to do. Of what stands near it, the more specific sort counts. An
            # error counts from further away.
            first = min(at for at, _, _ in found)
            near = [(rank, name) for at, rank, name in found if at <= first + (45 if name == "bugfix" else 12)]
            return min(near)[1]
    return "question" if "?" in words[:500] else "unknown"
