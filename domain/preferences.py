"""What a claim says of how its user likes to work: the aspect of it, and which way.

An aspect has a few values to choose from; what fits none is kept in its own words, as often accepted or rejected, or
as a shortcut.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

Group = Literal["coding_style", "interaction_style", "tool_preferences", "accepted", "rejected", "shortcuts"]


class Leaning(NamedTuple):
    """`name` of an aspect within its group, and the value that a claim speaks for; both empty for words of its own."""

    group: Group
    name: str = ""
    value: str = ""


def _of(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


class _Aspect(NamedTuple):
    """Words that speak of an aspect, and its value where a claim affirms or denies them."""

    group: Group
    name: str
    words: re.Pattern[str]
    affirmed: str
    denied: str


_CODING, _INTERACTION, _TOOLS = get_args(Group)[:3]
_NAMES = r"(?:variable )?names?\b"
_ASPECTS = (
    _Aspect(_CODING, "comment_style", _of(r"\b(?:comments?|docstrings?)\b|주석|독스트링"), "extensive", "minimal"),
    _Aspect(_CODING, "verbosity", _of(r"\b(?:concise|compact|terse) code\b|간결한 코드"), "minimal", "detailed"),
    _Aspect(_CODING, "variable_naming", _of(rf"\b(?:descriptive|meaningful) {_NAMES}"), "descriptive", "short"),
    _Aspect(_CODING, "variable_naming", _of(rf"\bshort {_NAMES}"), "short", "descriptive"),
    _Aspect(_CODING, "function_size", _of(r"\b(?:small|short) (?:functions?|methods?)\b|작은 함수"), "small", "large"),
    _Aspect(
        _INTERACTION,
        "explanation_depth",
        _of(
            r"texts and answers short|\b(?:brief|short|concise) (?:answers?|repl(?:y|ies)|explanations?)\b|짧게|간단히"
        ),
        "brief",
        "thorough",
    ),
    _Aspect(
        _INTERACTION,
        "explanation_depth",
        _of(r"explanation of the code|\b(?:explain|detailed answers?|in detail)\b|자세히|설명해"),
        "thorough",
        "brief",
    ),
    _Aspect(
        _INTERACTION,
        "confirmation_frequency",
        _of(r"\bwithout (?:asking|my (?:ok|approval|permission))\b|\bask (?:me )?(?:first|before)\b|물어보고|허락"),
        "always",
        "always",
    ),
    _Aspect(_INTERACTION, "confirmation_frequency", _of(r"\bask(?:ing)? me\b"), "always", "rarely"),
    _Aspect(
        _INTERACTION,
        "proactivity",
        _of(r"\b(?:unless|only (?:what|when|if)) i (?:ask|say|tell)\b"),
        "reactive",
        "reactive",
    ),
    _Aspect(_INTERACTION, "proactivity", _of(r"\bgo ahead\b|\bon your own\b|알아서"), "proactive", "reactive"),
    _Aspect(
        _TOOLS, "preferred_test_approach", _of(r"\btests? first\b|\btdd\b|테스트(?:를|부터)? 먼저"), "tdd", "after"
    ),
    _Aspect(_TOOLS, "preferred_test_approach", _of(r"tests along with a change"), "after", "minimal"),
    _Aspect(
        _TOOLS,
        "patch_style",
        _of(r"\b(?:small|minimal) (?:commits?|changes?|patch(?:es)?|diffs?|prs?)\b|작은 커밋"),
        "minimal",
        "comprehensive",
    ),
    _Aspect(_TOOLS, "refactoring_aggressiveness", _of(r"\brefactor"), "aggressive", "conservative"),
)
_SHORTCUT = _of(r"^works with the (?:skill\b|`/)")


def leaning_of(kind: str, text: str, polarity: int) -> Leaning | None:
    """What a claim says of its user's preferences; None where it says nothing of them."""
    if kind not in ("preference", "pattern"):
        return None
    if _SHORTCUT.search(text):
        return Leaning("shortcuts")
    for aspect in _ASPECTS:
        if aspect.words.search(text):
            return Leaning(aspect.group, aspect.name, aspect.denied if polarity < 0 else aspect.affirmed)
    refused = polarity < 0 or text.startswith("Did not let the agent")
    return Leaning("rejected" if refused else "accepted")
