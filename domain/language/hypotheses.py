"""Hypotheses: what an agent holds to be the cause, read out of its words, and how far each has been shown.

The same description merges (the higher confidence, the evidence of both), one that is confirmed at 0.9
or more becomes a decision, one that is rejected leaves.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

from memctl.domain.support import patterns
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import canonical

Status = Literal["proposed", "supported", "confirmed", "rejected"]

CONFIRMED = 0.9
"""From this confidence on, a confirmed hypothesis becomes a decision."""

OPEN = 8
"""Hypotheses that are held at once; the one least believed, then the oldest, goes first."""

MOST = 2
"""Hypotheses that are taken from one text."""

_SHORTEST, _LONGEST = 30, 300
"""Characters of a sentence that supposes something: shorter ones name nothing, longer ones are accounts."""


class Finding(NamedTuple):
    """What a text says of a hypothesis. Characters `start` to `end` say it.

    An empty `text` means the hypothesis that was spoken of last.
    """

    text: str
    status: Status
    confidence: float
    start: int
    end: int


class Hypothesis(NamedTuple):
    """One hypothesis as it stands: `key` is equal for the same description, `confidence` 0 to 1."""

    key: str
    text: str
    status: Status
    confidence: float
    said_by: Provenance
    mentions: int = 1
    """How often it was mentioned."""
    stated: bool = False
    """Somebody recorded it as such: then only what is recorded moves it."""


_CAUSE = r"(?:issue|problem|bug|cause|culprit|reason|failure)"
_CUE = patterns.compile(
    r"\b(?:suspect|hypothesis|theory|root cause|found (?:the|it)\b|"
    r"(?:issue|problem|bug|cause|culprit|reason|failure) (?:is|was|might|may|could|seems|appears)\b|"
    r"(?:confirms|proves) (?:it|the|my)\b|(?:is|was) (?:\w+ )?not (?:the|it)\b|"
    r"rules (?:it|that|this) out|is wrong|was wrong)|"
    r"'s (?:\w+ )?not (?:the|it)\b|[Rr]oot cause|Found (?:the|it)\b|원인은|문제는"
)
"""What stands in each sentence that a pattern finds something in: only those sentences are looked at."""

HINTS = (
    "issue is", "issue was", "issue might", "issue may", "issue could", "problem is", "problem was", "problem might",
    "problem seems", "bug is", "bug might", "cause is", "cause might", "reason is", "culprit", "suspect", "ypothesis",
    "theory", "oot cause", "ound the root", "ound the culprit", "ound the bug", "ound the actual", "ound it",
    "confirms ", "not the issue", "not the problem", "not the cause", "rules it out", "rules that out",
    "원인은", "문제는",
)  # fmt: skip
"""One of these is in nearly every text that holds a cue, and to look for them is quicker."""

_LEAD = (
    r"[\s*>\-]*(?:(?:so|but|and|ah|aha|ok(?:ay)?|hmm+|wait|actually|however|now i see|i see|yes|right|good|"
    r"interesting)\b[,!.—– -]*)*"
)
_DEEP = r"(?:real|actual|core|underlying|deeper|main|root|true)"
_REST = r"(?:that )?(?P<rest>[^\n]{8,300}?)(?=[.!](?:\s|$)|\n|$)"
_PROPOSED = patterns.compile(
    _LEAD + r"(?:(?:i (?:strongly )?suspect|my (?:(?:working|current|best) )?(?:hypothesis|theory)(?: is)?)"
    r"(?: based on (?:the code|this))?\W* |"
    rf"(?:i think |i believe |maybe |perhaps |it seems )?the (?:more |most )?(?:{_DEEP} |likely |other )*{_CAUSE} "
    r"(?:is (?:likely|probably|most likely|perhaps)|might (?:be|lie)|may be|could be|seems to be|appears to be) )"
    + _REST,
    patterns.I,
)
_ROOT = patterns.compile(
    _LEAD
    + r"(?:(?:the |here's the |it's the )?\*{0,2}root cause\*{0,2}(?: here)?(?:\*{0,2}:\*{0,2}| is| was| ?[—–]| -)|"
    r"(?:i(?:'ve)? )?found (?:the|it)(?: (?:root cause|culprit|bug|actual (?:issue|problem|bug)))?"
    r"(?:: (?=\S)| ?[—–] ?|[.!] (?=the )))\s*" + _REST,
    patterns.I,
)
_SHOWN = patterns.compile(
    _LEAD + rf"the (?:{_DEEP} {_CAUSE} (?:is|was)|{_CAUSE} (?:is|was) (?=that\b|because\b)) " + _REST,
    patterns.I,
)
_KOREAN = patterns.compile(
    r"[\s*>\-]*(?:근본 |실제 )?(?:원인은|문제는)[ :]+(?P<rest>[^\n]{8,200}?)(?=[.!](?:\s|$)|\n|$)"
)
_UNSURE = patterns.compile(r"것 같|수 있|수도|듯|로 보|의심|추정|아마")
_CONFIRMS = patterns.compile(
    _LEAD + r"(?:(?:this|that|which) (?:confirms|proves) (?:it|the|my)\b|(?:the|my) (?:hypothesis|theory) (?:is|was) "
    r"(?:right|correct|confirmed))",
    patterns.I,
)
_REJECTED = patterns.compile(
    _LEAD + rf"(?:(?:that|this|it)(?:'s| is| was) (?:\w+ )?not (?:the {_CAUSE}\b|it\b(?= either|[.,]))|"
    rf"my (?:hypothesis|theory) (?:is|was) wrong|(?:that|this|which) rules (?:it|that|this) out)",
    patterns.I,
)
_IDLE = patterns.compile(
    # What goes wrong between an agent and its tools, what refers to elsewhere, and what announces.
    r"\b(?:edit|read|write) tool\b|\bold_string\b|\bindentation\b|\bwhitespace\b|\btabs? (?:vs|and|versus)\b|"
    r"\b(?:here|these|those|this|with|that|and|to|of)\W*$|"
    r"^(?:(?:in|at) )?(?:lines? \d|here\b|as follows|clear\b|confirmed\b|fixed\b|simple\b)|"
    r"^(?:in|at) (?:another|a different|the other|some other)\b|"
    # What is known of a design is no cause that was found.
    r"\b(?:fundamental|known|inherent|documented) limitations?\b|"
    r"^(?:let me|looking|i'll|i will|i need|now)\b",
    patterns.I,
)
_CODE = patterns.compile(r"[`/]|\w\.\w|[a-z][A-Z]|_")
_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_BREAKS = (". ", "\n", "! ", ": ", "? ")


def key_of(description: str) -> str:
    """16 hex digits that are equal for descriptions that differ in form only."""
    said = canonical(description) or description.strip().lower()
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def findings_in(text: str, *, thought: bool) -> list[Finding]:
    """What the agent says of causes: proposed at 0.5, shown at 0.7, and aloud a root cause, confirmed at 0.9.

    In thoughts nothing is confirmed: there the agent weighs.
    """
    text = text[:8_000]
    found: list[Finding] = []
    fenced: list[tuple[int, int]] | None = None
    read = 0
    for cue in _CUE.finditer(text):
        if cue.start() < read:
            continue
        if fenced is None:
            fenced = [code.span() for code in _FENCED.finditer(text)] if "```" in text else []
        if any(start <= cue.start() < end for start, end in fenced):
            continue
        said = _finding(text, _sentence_at(text, cue.start()), thought)
        if said is not None:
            found.append(said)
            read = said.end
            if len(found) == MOST:
                break
    # What confirms or rejects counts only by itself: beside a finding, it is about that one.
    return [said for said in found if said.text] or found


def _sentence_at(text: str, at: int) -> int:
    """Where the sentence begins that holds this place; only so far back as a sentence's head may reach."""
    near = max(0, at - 60)
    return max(near, *(text.rfind(mark, near, at) + len(mark) for mark in _BREAKS if mark in text[near:at]), 0)


def _finding(text: str, start: int, thought: bool) -> Finding | None:
    read: tuple[tuple[patterns.Pattern[str], Status, float], ...] = (
        (_ROOT, "supported" if thought else "confirmed", 0.8 if thought else CONFIRMED),
        (_PROPOSED, "proposed", 0.5),
        (_SHOWN, "supported", 0.7),
        (_KOREAN, "proposed", 0.5),
    )
    for pattern, status, confidence in read:
        match = pattern.match(text, start)
        if match is None:
            continue
        at, end = match.span("rest")
        words = " ".join(match["rest"].replace("**", "").split()).strip("*—–- ")
        if words.lower().startswith("in ") and not _CODE.search(words):
            return None  # a place that nobody could look at
        if (
            not _SHORTEST <= len(words) <= _LONGEST
            or text[end : end + 1] == "?"
            or words[-1] in "?:|"
            or _IDLE.search(words)
        ):
            return None
        if pattern is _KOREAN and not thought and not _UNSURE.search(words):
            status, confidence = "supported", 0.7
        return Finding(words, status, confidence, at, end)
    if match := _CONFIRMS.match(text, start):
        return Finding("", "confirmed", 0.95, match.start(), match.end())
    if match := _REJECTED.match(text, start):
        return Finding("", "rejected", 0.1, match.start(), match.end())
    return None


class Hypotheses:
    """The hypotheses that are open in one task."""

    def __init__(self) -> None:
        self._open: dict[str, Hypothesis] = {}

    @property
    def open(self) -> tuple[Hypothesis, ...]:
        return tuple(self._open.values())

    def clear(self) -> None:
        self._open.clear()

    def move(
        self,
        key: str,
        text: str,
        status: Status,
        confidence: float | None,
        said_by: Provenance,
        *,
        stated: bool = False,
    ) -> Hypothesis | None:
        """The hypothesis after another word on it; None where the word changes nothing.

        Confirmed and rejected ones are open no more.
        """
        known = self._open.get(key)
        if known is None:
            moved = Hypothesis(key, text, status, 0.5 if confidence is None else confidence, said_by, 1, stated)
        elif known.stated and not stated:
            return None
        else:
            sure = known.confidence if confidence is None else max(known.confidence, confidence)
            if status == "rejected":
                sure = min(known.confidence, 0.1 if confidence is None else confidence)
            moved = known._replace(
                status=known.status if status == "proposed" else status,
                confidence=sure,
                mentions=known.mentions + 1,
                stated=stated,
            )
        self._open.pop(key, None)
        if moved.status == "rejected" or (moved.status == "confirmed" and moved.confidence >= CONFIRMED):
            return moved
        self._open[key] = moved
        if len(self._open) > OPEN:
            del self._open[min(self._open, key=lambda each: self._open[each].confidence)]
        return moved

    def latest(self) -> Hypothesis | None:
        """The one that was spoken of last."""
        return next(reversed(self._open.values()), None)
