"""What a claim says of how its user likes to work: the aspect of it, and which way.

An aspect has a few values to choose from; what fits none is kept in its own words, as often accepted or rejected, or
as a shortcut.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from memctl.domain.support import patterns

Group = Literal["coding_style", "interaction_style", "tool_preferences", "accepted", "rejected", "shortcuts"]


class Leaning(NamedTuple):
    """`name` of an aspect within its group, and the value that a claim speaks for; both empty for words of its own."""

    group: Group
    name: str = ""
    value: str = ""


def _of(pattern: str) -> patterns.Pattern[str]:
    return patterns.compile(pattern, patterns.I)


class _Aspect(NamedTuple):
    """Words that speak of an aspect, and its value where a claim affirms or denies them (empty: none)."""

    group: Group
    name: str
    words: patterns.Pattern[str]
    affirmed: str
    denied: str


_CODING, _INTERACTION, _TOOLS = get_args(Group)[:3]
_NAMES = r"(?:variable )?names?\b"
_COMMENTS = r"(?:code )?(?:comments?|docstrings?)\b"
_NO_TALK = (
    r"(?!.*(?:\bcommit|\bpull requests?\b|\bprs?\b|\bissues?\b|\bchangelog|\breadme|\bdocs?\b|"
    r"커밋|함수|메서드|변수|문서))"
)
"""What is to be brief or detailed there is not an answer to the user."""
_ASPECTS = (
    _Aspect(
        _CODING,
        "comment_style",
        _of(rf"\b(?:no|without|fewer|few|minimal|unnecessary|needless|obvious|redundant) {_COMMENTS}|불필요한 주석"),
        "minimal",
        "minimal",
    ),
    _Aspect(
        _CODING,
        "comment_style",
        _of(
            # How many there are; not in which language, and not those of a review.
            rf"\b(?:add|write|leave|put|many|more|detailed|extensive|thorough) (?:more |detailed )?{_COMMENTS}"
            r"(?! (?:in (?!(?:the |this |your |my )?code\b)|on\b|to\b(?! (?:the |your )?code\b)|from\b|about\b|as\b))|"
            r"주석(?:을|은|도)? ?(?:많이|자세|꼭|달|추가|넣|남)"
        ),
        "extensive",
        "minimal",
    ),
    _Aspect(_CODING, "verbosity", _of(r"\b(?:concise|compact|terse) code\b|간결한 코드"), "minimal", "detailed"),
    _Aspect(_CODING, "variable_naming", _of(rf"\b(?:descriptive|meaningful) {_NAMES}"), "descriptive", "short"),
    _Aspect(_CODING, "variable_naming", _of(rf"\bshort {_NAMES}"), "short", "descriptive"),
    _Aspect(_CODING, "function_size", _of(r"\b(?:small|short) (?:functions?|methods?)\b|작은 함수"), "small", "large"),
    _Aspect(
        _INTERACTION,
        "explanation_depth",
        _of(
            r"texts and answers short|\b(?:brief|short|concise) (?:answers?|repl(?:y|ies)|explanations?)\b|"
            rf"\A{_NO_TALK}.*(?:짧게|간단히)"
        ),
        "brief",
        "thorough",
    ),
    _Aspect(
        _INTERACTION,
        "explanation_depth",
        _of(rf"explanation of the code|\A{_NO_TALK}.*(?:\b(?:explain|detailed answers?|in detail)\b|자세히|설명해)"),
        "thorough",
        "brief",
    ),
    _Aspect(
        _INTERACTION,
        "confirmation_frequency",
        _of(r"\b(?:nothing|no|never|not|n't)\b.*\bwithout (?:asking|my (?:ok|approval|permission))\b|물어보고|허락"),
        "always",
        "always",
    ),
    _Aspect(
        _INTERACTION,
        "confirmation_frequency",
        _of(r"\bwithout (?:asking|my (?:ok|approval|permission))\b"),
        "rarely",
        "always",
    ),
    _Aspect(_INTERACTION, "confirmation_frequency", _of(r"\bask (?:me )?(?:first|before)\b"), "always", "rarely"),
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
    _Aspect(
        _TOOLS,
        "refactoring_aggressiveness",
        _of(r"\b(?:freely|aggressively|feel free to) refactor|\brefactor (?:freely|aggressively|boldly)\b"),
        "aggressive",
        "conservative",
    ),
    _Aspect(_TOOLS, "refactoring_aggressiveness", _of(r"\brefactor"), "", "conservative"),
)
_SHORTCUT = _of(r"^works with the (?:skill\b|`/)")


def leaning_of(kind: str, text: str, polarity: int) -> Leaning | None:
    """What a claim says of its user's preferences; None where it says nothing of them."""
    if kind not in ("preference", "pattern"):
        return None
    if _SHORTCUT.search(text):
        return Leaning("shortcuts")
    for aspect in _ASPECTS:
        if (value := aspect.denied if polarity < 0 else aspect.affirmed) and aspect.words.search(text):
            return Leaning(aspect.group, aspect.name, value)
    refused = polarity < 0 or text.startswith("Did not let the agent")
    return Leaning("rejected" if refused else "accepted")
