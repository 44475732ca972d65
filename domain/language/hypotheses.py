"""Causes that an agent says it found, read out of its words; and hypotheses, as somebody records them.

What an agent merely supposes, or says of a cause in passing, is not read: most of it is musing. A recorded hypothesis
that is confirmed at 0.9 or more becomes a decision, one that is rejected leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from memctl.domain.failures.explanations import TAKEN_BACK, guesses, says_what_was_wrong
from memctl.domain.support import patterns
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import canonical, digest_of

Status = Literal["proposed", "supported", "confirmed", "rejected"]

CONFIRMED = 0.9
"""From this confidence on, a confirmed hypothesis becomes a decision."""

OPEN = 8
"""Hypotheses that are held at once; the one least believed, then the oldest, goes first."""

MOST = 2
"""Causes that are taken from one text."""

_SHORTEST, _LONGEST = 30, 300
"""Characters of a sentence that is a cause: shorter ones name nothing, longer ones are accounts."""


class Cause(NamedTuple):
    """A cause that an agent found. Characters `start` to `end` say it."""

    text: str
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


HINTS = ("ause", "ound ", "bug", "Bug", "rong", "roblem", "ssue", "ault", "ulprit", "iagnosis", "appened", "hy ")
"""One of these is in every text that names a cause, and to look for them is quicker."""

_OTHERWISE = patterns.compile(rf"(?:[.!?]\**\s+|\n\s*){TAKEN_BACK}", patterns.I)
"""A later sentence of the same text that says that what was said before is not so."""

_CUE = patterns.compile(r"\b(?:[Rr]oot cause|[Ff]ound (?:the|it)\b)")
_LEAD = (
    r"[\s*>\-]*(?:(?:so|but|and|ah|aha|ok(?:ay)?|hmm+|wait|actually|however|now i see|i see|yes|right|good|"
    r"interesting)\b[,!.—– -]*)*"
)
_FOUND = patterns.compile(
    _LEAD
    + r"(?:(?:the |here's the |it's the )?\*{0,2}root cause\*{0,2}(?: here)?(?:\*{0,2}:\*{0,2}| is| was| ?[—–]| -)|"
    r"(?:i(?:'ve)? )?found (?:the|it)(?: (?:root cause|culprit|bug|actual (?:issue|problem|bug)))?"
    r"(?:: (?=\S)| ?[—–] ?))\s*(?:that )?(?P<rest>[^\n]{8,300}?)(?=[.!](?:\s|$)|\n|$)",
    patterns.I,
)
TITLE = patterns.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,2}[.)])[ \t]+)?(?:#{1,6}[ \t]+(?:\d{1,2}[.)][ \t]+)?\*{0,2}(?P<heading>[^*\n]+)"
    r"\*{0,2}:?[ \t]*\n|\*\*(?:\d{1,2}[.)][ \t]+)?(?P<bold>[^*\n]+)\*\*[ \t]*(?:[:.—–-][ \t]*)?)",
    patterns.M,
)
"""A heading, or what stands in bold at a line's beginning."""
_FAULT = patterns.compile(
    r"(?:[^?]{0,60}[ \t])?(?:(?:why (?:it|this|that|they|the) [^?]{0,40}"
    r"(?:fail|br[oe]ke?|crash|happen|hang|hung|stuck|n['’]t\b|not\b)\w*(?:[ \t(&/:,][^?]{0,100})?)|"
    r"(?:(?:root )?causes?|bugs?|problem|issue|fault|culprit|diagnosis|"
    r"key finding|what (?:was|is|went|goes) (?:wrong|the (?:problem|bug|issue|cause))\??|what (?:has )?happened\??)"
    # "Issue labels" name no fault, "issue of the labels" does.
    r"(?:(?:[(&/:,]|[ \t]+(?:[(&/:,—–-]|\d|#|(?:of|in|with|at|on|for|from|here|is|was|were|are|that|behind|when|where|"
    r"why|and|or|I|we|you|it|this|the)\b))[^?]{0,100})?)[:.)]{0,2}:?[ \t]*",
    patterns.I,
)
"""A title that names a fault."""
_LONGEST_TITLE = 260
"""Characters of a title that may name a fault."""
_BEHIND = patterns.compile(r"\s*(?P<rest>[^\s#>|*-][^\n]{8,600})")
"""The line behind a title."""
_NO_FAULT = patterns.compile(
    # What is mended, supposed, denied or asked, and a paragraph that goes on elsewhere.
    r"\b(?:fix\w*|mend\w*|test\w*|resol\w+|solution|handl\w+|implement\w*|propos\w+|suggest\w+|possible|"
    r"potential\w*|likely|perhaps|maybe|hypothe\w+|not an?|no|isn['’]t|steps?|tracker|template|yet)\b",
    patterns.I,
)
_NO_SENTENCE = patterns.compile(
    r"(?:\d+[.)]|```|!?\[[^\]]*\]\(\S*\)\W*$)|"
    r"(?:it|this|that|these|those|they|he|she|you|your|i|my|we|our|if|see|asks)\b",
    patterns.I,
)
"""How begins what is no sentence of its own, or speaks of the agent, of the user, or of what stands elsewhere."""
_MEANT = (
    r"(?:works|worked|behaves|behaved|is|are|was|were|does) (?:exactly |just )?(?:as|what) (?:it (?:should|was meant)|"
    r"intended|designed|expected|documented)|by design|on purpose|(?:\b(?:is|are|was|were)|['’]s|[—–,:(-]) "
    r"(?:(?:the|an?|actually|just) )?(?:expected|intended|intentional|deliberate|desired)(?: behaviou?r| collateral)?"
)
_NO_CAUSE = patterns.compile(
    rf"(?:{_MEANT})\W*(?:[.;!)—–]|\z|, (?:and )?not\b)|"
    r"^\W*(?:the )?(?:ci (?:`[^`]+` |\w+ )?|(?:this|that|last|previous|earlier|first|second|latest|current) (?:\w+ )?"
    r"(?:(?:re-?)?run|attempt|job|build|invocation)s? )(?:\w+ed|was|were|had|did|hit|left|ran|got|went|took)\b",
    patterns.I,
)
"""What says of what is seen that it is meant so, or why one run went as it did: neither is a fault of the code."""
_STOP = patterns.compile(r"[.!](?:\*{0,2}[)\"'”]?(?:\s|$))")
_SHORT, _BOTH = 60, 420
"""Characters of a sentence that the next one is needed for, and of one with the next where that goes on to say how."""
_ELSEWHERE = patterns.compile(
    r"\W*(?:(?:the|this|that|a|my|quick|proposed) )?(?:\w+ )?(?:fix(?:es|ed)?|solution|workaround|option|example|note|"
    r"changed?|added|this (?:is|was) (?:now|fixed)|now)\b",
    patterns.I,
)
"""How begins a sentence that leaves the cause for what was done, or for something else."""
_IDLE = patterns.compile(
    # What goes wrong between an agent and its tools, what refers to elsewhere, and what announces.
    r"\b(?:edit|read|write) tool\b|\bold_string\b|\bindentation\b|\bwhitespace\b|\btabs? (?:vs|and|versus)\b|"
    r"\b(?:here|these|those|this|with|that|and|to|of)\W*$|"
    r"^(?:(?:in|at) )?(?:lines? \d|here\b|as follows|clear\b|confirmed\b|fixed\b|simple\b)|"
    r"^(?:in|at) (?:another|a different|the other|some other)\b|"
    # What is known of a design is no cause that was found.
    r"\b(?:fundamental|known|inherent|documented) limitations?\b|"
    r"^(?:let me|looking|i'll|i will|i need|now)\b|"
    # What the agent itself did is its own work, and not done.
    r"\b(?:now|already|again) (?:pass(?:es)?|works?|builds?|succeeds?)\b|"
    r"^i\b|\bmy (?:own |earlier |last |first )?(?:\w+ )?(?:edit|change|test|script|patch|fix|regex|command)s?\b",
    patterns.I,
)
_QUOTED_CODE = patterns.compile(r"`([^`\n]{2,80})`")
_NAME = patterns.compile(r"[A-Za-z_][\w-]{2,}(?:\.\w{1,5}\b)?")
_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_BREAKS = (". ", "\n", "! ", ": ", "? ")


def key_of(description: str) -> str:
    """16 hex digits that are equal for descriptions that differ in form only."""
    said = canonical(description) or description.strip().lower()
    return digest_of(said)


def names_in(cause: str) -> set[str]:
    """The names that stand in a cause as code."""
    return {name for quoted in _QUOTED_CODE.findall(cause) for name in _NAME.findall(quoted)}


def causes_in(text: str) -> list[Cause]:
    """The causes that an agent says aloud it found."""
    text = text[:8_000]
    fenced = [code.span() for code in _FENCED.finditer(text)] if "```" in text else []
    found = list(islice(_announced(text, fenced), MOST))
    found += _titled(text, [*fenced, *((each.start, each.end) for each in found)])
    # A guess that the same text takes back is no cause, nor is what is meant to be so.
    return [each for each in found if not (_OTHERWISE.search(text, each.end) or _NO_CAUSE.search(each.text))][:MOST]


def _announced(text: str, fenced: Sequence[tuple[int, int]]) -> Iterator[Cause]:
    """Causes in sentences that say so themselves, outside of what is `fenced`."""
    behind = 0
    for cue in _CUE.finditer(text):
        at = cue.start()
        if at < behind or any(start <= at < end for start, end in fenced):
            continue
        if (cause := _cause(text, _sentence_at(text, at))) is not None:
            behind = cause.end
            yield cause


def _titled(text: str, taken: list[tuple[int, int]]) -> Iterator[Cause]:
    """Causes behind titles that name a fault, outside of what is `taken`."""
    for title in TITLE.finditer(text) if "#" in text or "**" in text else ():
        label = title["heading"] or title["bold"]
        if len(label) > _LONGEST_TITLE or not _FAULT.fullmatch(label):
            continue
        behind = _BEHIND.match(text, title.end())
        if behind and not any(start < behind.end() and title.start() < end for start, end in taken):
            for cause in _labelled(text, label, *behind.span("rest")):
                taken.append((cause.start, cause.end))
                yield cause


def _labelled(text: str, label: str, start: int, end: int) -> list[Cause]:
    """The sentence behind a label that names a fault; a short one with the next."""
    if _NO_FAULT.search(label) or _NO_SENTENCE.match(text, start, end):
        return []
    start, end = _explained(text, start, end)
    words = " ".join(text[start:end].replace("**", "").split()).rstrip(".!")
    cut = words[-1:] in (":", "?", ",") or not _SHORTEST <= len(words) <= _BOTH or _IDLE.search(words)
    return [] if cut or not says_what_was_wrong(words) else [Cause(words, start, end)]


def _explained(text: str, start: int, end: int) -> tuple[int, int]:
    """The first sentence; a short one with the next, which explains it, and any with a next one that goes on to say
    how."""
    stops = [*(stop.start() for stop in _STOP.finditer(text, start, end)), end, end]
    more = text[stops[0] : stops[1]].rstrip(" .!*")
    said = more.lstrip(" .!*)\"'”")
    alone = _OTHERWISE.match(more) or not says_what_was_wrong(said)
    if not alone and stops[0] - start >= _SHORT:
        leaves = _ELSEWHERE.match(said) or _IDLE.search(said) or guesses(said) or said[-1:] in (":", "?", ",")
        alone = len(said) < _SHORTEST or stops[1] - start > _BOTH or leaves
    return start, stops[0] if alone else stops[1]


def _sentence_at(text: str, at: int) -> int:
    """Where the sentence begins that holds this place; only so far back as a sentence's head may reach."""
    near = max(0, at - 60)
    return max(near, *(text.rfind(mark, near, at) + len(mark) for mark in _BREAKS if mark in text[near:at]), 0)


def _cause(text: str, start: int) -> Cause | None:
    match = _FOUND.match(text, start)
    if match is None:
        return None
    at = match.start("rest")
    line = text.find("\n", at, at + 2 * _LONGEST)
    at, end = _explained(text, at, min(len(text), at + 2 * _LONGEST) if line < 0 else line)
    rest = text[at:end]
    words = " ".join(rest.replace("**", "").split()).strip("*—–- ").rstrip(".!")
    # What it is follows on the next line, or is asked.
    asks = text[end : end + 1] == "?" or rest.rstrip(" *")[-1:] in ("?", ":", "|", "—", "–", "-")
    if asks or not _SHORTEST <= len(words) <= _BOTH or _IDLE.search(words) or not says_what_was_wrong(words):
        return None
    return Cause(words, at, end)


class Hypotheses:
    """The hypotheses that are open in one task."""

    def __init__(self) -> None:
        self._open: dict[str, Hypothesis] = {}

    @property
    def open(self) -> tuple[Hypothesis, ...]:
        return tuple(self._open.values())

    def clear(self) -> None:
        self._open.clear()

    def move(self, key: str, text: str, status: Status, confidence: float | None, said_by: Provenance) -> Hypothesis:
        """The hypothesis after another word on it. Confirmed and rejected ones are open no more."""
        known = self._open.pop(key, None)
        if known is None:
            moved = Hypothesis(key, text, status, 0.5 if confidence is None else confidence, said_by)
        else:
            sure = known.confidence if confidence is None else max(known.confidence, confidence)
            if status == "rejected":
                sure = min(known.confidence, 0.1 if confidence is None else confidence)
            status = known.status if status == "proposed" else status
            moved = known._replace(status=status, confidence=sure, mentions=known.mentions + 1)
        if moved.status == "rejected" or (moved.status == "confirmed" and moved.confidence >= CONFIRMED):
            return moved
        self._open[key] = moved
        if len(self._open) > OPEN:
            del self._open[min(self._open, key=lambda each: self._open[each].confidence)]
        return moved
