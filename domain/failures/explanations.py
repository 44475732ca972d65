"""Which of an agent's sentences explain an error, and not only announce what comes next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from memctl.domain.events.facts import ErrorOccurred
from memctl.domain.failures.solutions import names_within
from memctl.domain.support import patterns
from memctl.domain.support.remembered import remembered

LONGEST, MOST = 1_400, 6
"""Characters and sentences of an explanation."""


class Explained(NamedTuple):
    """What the agent said, and after how many uses of tools. A thought is believed less."""

    at: int
    text: str
    thought: bool


def explanation_of(
    error: ErrorOccurred,
    said: Sequence[Explained],
    beside: Sequence[ErrorOccurred] = (),
    *,
    named: bool = False,
) -> str:
    """The agent's sentences that explain, best those about this error.

    Of an error that came up `beside` others, only sentences that name what the others do not hold: the rest may be of
    those. With `named` only such that name something of the error at all.
    """
    about = names_of(error).difference(*map(names_of, beside))
    found = _about(error, said, about, named=named or bool(beside))
    kept: dict[str, None] = {}
    for sentence in found:
        if sum(map(len, kept)) + len(sentence) > LONGEST or len(kept) == MOST:
            break
        kept[sentence] = None
    return " ".join(kept)


def _about(error: ErrorOccurred, said: Sequence[Explained], about: AbstractSet[str], *, named: bool) -> list[str]:
    """The sentences that explain and name something of `about`; else, unless one has to be `named`, those that link.
    What was said goes before what was thought, of which only what names something counts."""
    for thought in (False, True):
        found = [s for each in said if each.thought == thought for s in _explaining(each.text) if _adds(s, error)]
        wanted = (about & names_of(error, own=True) or about) if thought else about
        linked = [] if thought or named else list(filter(links, found))
        if found := [s for s in found if _names_any(s, wanted)] or linked:
            return found
    return []


def _names_any(sentence: str, names: AbstractSet[str]) -> bool:
    return not names.isdisjoint(names_within(sentence))


@remembered(256, longest=16_384)
def _explaining(text: str) -> tuple[str, ...]:
    """Those sentences of a text that explain something."""
    return tuple(s for s in sentences(text) if _explains(s) and not _says_nothing(s))


def _says_nothing(sentence: str) -> bool:
    """Whether a sentence only announces, asks, guesses or rejoices."""
    return (
        len(sentence) < _SHORTEST
        or sentence.endswith("?")
        or _ANNOUNCES.match(sentence) is not None
        or _GUESSES.search(sentence) is not None
    )


def _adds(sentence: str, error: ErrorOccurred) -> bool:
    """Whether a sentence says more than that the error came up."""
    return error.message not in sentence or _explains(sentence.replace(error.message, ""))


def cause_in(explanation: str) -> str:
    """The sentence of an explanation that names the cause: the last that links it by a word, for the first guess is
    often mended; else the first. Empty where there is none."""
    found = sentences(explanation)
    found = [each for each in found if not _NEXT_STEP.match(each)]
    return next((each for each in reversed(found) if links(each)), found[0] if found else "")


def links(sentence: str) -> bool:
    """Whether a sentence says by a word of its own that one thing comes of another."""
    return _LINKS.search(sentence) is not None and _NEXT_STEP.match(sentence) is None


_LINKS = patterns.compile(
    r"\b(?:because|due to|caus(?:es|ed by|ing)|as a result|stems? from|comes? from|"
    r"since (?:the (?!last|previous|first|start)|it|we|i|there|that|this|they|`)|"
    r"(?:cause|reason|culprit) (?:is|was)|the (?:actual |real |main |underlying )?(?:issue|problem|bug)"
    r"(?: here)? (?:is|was)(?! (?:in|with|at|on)\b)|root cause|that'?s why|this is why|turns out|turned out)\b|"
    r"\b(?:cause|reason|culprit|issue|problem|bug): |때문|원인은|문제는|이유는|없어서",
    patterns.I,
)


def _explains(sentence: str) -> bool:
    return links(sentence) or _EXPLAINS.search(sentence) is not None


def names_of(error: ErrorOccurred, *, own: bool = False) -> frozenset[str]:
    """The names that an error's message, types, frames and files hold, without everybody's words; of the message those
    alone that are its `own`: what it quotes, and what is written like a symbol."""
    message = " ".join(found[0] for found in _OPERAND.finditer(error.message)) if own else error.message
    files = (file.rpartition("/")[2] for file in error.files)
    return names_within(" ".join((message, *error.error_types, *error.frames, *files)))


_OPERAND = patterns.compile(r"[\"'`‘][^\"'`’\n]+[\"'`’]|\w*(?:[a-z][A-Z]|\w[._]\w)\w*")
_SHORTEST = 16
"""Characters below which a sentence explains nothing ("I see it now!"); ten of Hangul are a sentence."""

_FENCED = patterns.compile(r"```.*?(?:```|\Z)", patterns.S)
_OPENERS = r"(?:(?:now|next|first|then|good|great|ok(?:ay)?|perfect|alright)[,.!]? +)*"
_ANNOUNCES = patterns.compile(
    _OPENERS + r"(?:(?:let me|let's|i'll|i will|i'm going to|i(?:'m| am) (?:now )?)(?: also| now| first| just)* *"
    r"(?:run|rerun|re-run|check|checking|verify|look|see|read|reading|test|continue|view|examine|find|search)\b|"
    # What says no more than that it will be mended.
    r"(?:let me|let's|i'll|i will|(?:i |we )?need to)(?: also| now)* (?:fix|address|handle|update|resolve|correct)"
    r"(?: `[^`]*`| (?:\w+ (?:lint|linter|linting|type|error|issue|warning)s?|"
    r"it|this|that|them|these|those|both|all|the|of|remaining|last|lint|linter|linting|format|formatting|type|"
    r"build|compile|tests?|files?|issues?|errors?|failures?|problems?|warnings?|two|three|few|other|now|too)\b)*[.:!]*$)|"
    r"(?:now|next|then)[,.!]? +(?:run|rerun|re-run|check|verify|test)\b|"
    r"(?:i see|i found|found) (?:the|it|an?) ?(?:issue|problem|bug)?[.!]$",
    patterns.I,
)
_NEXT_STEP = patterns.compile(
    rf"{_OPENERS}(?:so )?(?:let me|let's|i'll|i will|i(?:'m| am) (?:(?:now|also|just) )*(?:going to|\w+ing))\b",
    patterns.I,
)
_GUESSES = patterns.compile(r"\b(?:maybe|perhaps|let me try)\b", patterns.I)
_EXPLAINS = patterns.compile(
    r"\b"
    r"(?:the (?:actual |real |root |underlying |main )?(?:issue|problem|cause|bug|error|failure|fix|solution)s?\b"
    r"(?: here| now)? (?:is|are|was|were|comes?|came|happens?|occurs?|seems|lies)|"
    r"which means|so that|(?:fails?|failed|failing|broke|breaks) (?:as|when)|(?:needs?|has|have) to (?:be|use|have|"
    r"call|match)|should (?:be|use|have|call)|instead of|"
    r"doesn'?t (?:exist|match|have|support|include|implement|handle)|isn'?t (?:set|used|defined|exported|"
    r"available|needed)|"
    r"(?:is|was|were|are) (?:missing|undefined|unused|outdated|stale|wrong|incorrect|not (?:set|used|defined|"
    r"exported)))\b|"
    r"해야 (?:합니다|한다)|누락",
    patterns.I,
)  # fmt: skip
_GAP = patterns.compile(r"(?P<mark>[.!?。:])\s+|\n\s*")
_LABEL = patterns.compile(
    r"\W*(?:the )?(?:actual |real |root |main |underlying )?(?:cause|reason|culprit|issue|problem|bug)(?: here)?\z",
    patterns.I,
)
"""What a cause stands behind, with a colon between: it is of one sentence with it."""
_BEGINS_SENTENCE = patterns.compile(r"[A-Z`\"'(*\d가-힣-]")
_QUOTES = "\"'"


def sentences(text: str) -> list[str]:
    """The sentences of a text, code blocks left out, each on one line and at most 400 characters."""
    text = _FENCED.sub(" ", text) if "```" in text else text
    found = (" ".join(part.split()).strip("*-# ") for part in _parts(text))
    return [part[:400] for part in found if len(part) > 12]


def _parts(text: str) -> Iterator[str]:
    """What stands between line breaks, and between the end of a sentence and what looks like another's beginning."""
    start = 0
    for gap in _GAP.finditer(text):
        end, mark = gap.end(), gap["mark"]
        after = text[end : end + 1]
        label = mark == ":" and (after in tuple(_QUOTES) or _LABEL.match(text, start, gap.start()) is not None)
        ends = mark and not label and _BEGINS_SENTENCE.match(after)
        if ends or "\n" in gap[0]:
            yield text[start : gap.start() + len(mark or "")]
            start = end
    yield text[start:]
