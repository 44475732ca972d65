"""Open threads: what a session's last words and list of steps leave undone, promised or unanswered. Rules, no guesses.

Only the work that a session ends with is looked at: what came before it, its user went on from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from memctl.domain.support import patterns
from memctl.domain.support.bounded import one_line

ThreadKind = Literal["step", "error", "said", "promised", "asked", "unfinished"]

MOST = 6
"""Threads that are taken from one piece of work."""

TEXT = 200
_SHORTEST = 12


class Thread(msgspec.Struct, frozen=True):
    """Something left open: a step of the plan, an error that stayed, what the agent said is left, what it was about to
    do, what it asked and nobody answered, or the work itself, with why."""

    kind: ThreadKind
    text: str


_SAID = patterns.compile(
    r"""\bstill\ (?:need(?:s|ed)?|ha(?:ve|s))\ to\b
    |\b(?:remains|still\ needs|left)\ to\ be\ \w+ed\b
    |\b(?:have|has)\ ?n[o']t\ (?:yet\ )?been\ (?:done|implemented|fixed|tested|migrated|updated)\b(?!\ before)
    |\bnot\ (?:yet\ )?(?:implemented|done|fixed|tested|migrated)\ yet\b
    |\bI\ (?:have\ ?n[o']t|did\ ?n[o']t|have\ not|did\ not)\ (?:yet\ )?(?:push|commit|run|test|deploy|merge|verif)
    |\b(?:was|were|are|is)\ not\ (?:yet\ )?(?:run|tested|pushed|committed|deployed|merged|published|verified)\b
    |\bremains?\ (?:open|unstaged|uncommitted|unpushed|unresolved|untested|unfixed|broken|failing)\b
    |^[ \t*_-]*(?:TODO|FIXME)\b[ \t*_]*:
    |아직[^\n.]{0,40}(?:않았|못했|남아)|남아\ ?있(?:습니다|어요|다)
    """,
    patterns.I | patterns.M | patterns.X,
)
_PROMISES = patterns.compile(
    r"(?:(?:ok(?:ay)?|good|great|perfect|now|next|then|so|first)[,.! ]+)*"
    r"(?:let me (?!know)|i(?:'ll| will)(?: now| next)? |now i(?:'ll| will| need to) |next,? i(?:'ll| will) )\w",
    patterns.I,
)
_ASKS = patterns.compile(
    r"\b(?:(?:do you |would you like|want) (?:want )?me to|would you (?:like|prefer|rather)|(?:should|shall) (?:i|we)|"
    r"d(?:o|id) you want|go ahead\?|which (?:one|option|of)|how (?:would you like|do you want|should (?:i|we)))\b|"
    r"(?:할까요|하시겠|드릴까요|원하시)",
    patterns.I,
)
_GOES_ON = patterns.compile(
    r"^(?:(?:still|now|just|currently|so|and|then|i(?:['’]m| am)|we(?:['’]re| are))[ ,]+)*"
    r"(?:(?:waiting|holding) (?:on|for|until)\b|awaiting\b|standing by\b)|"
    r"\b(?:i(?:['’]ll| will)|will) (?:then )?(?:report|check back|follow up|continue|resume|pick|let you know|review|"
    r"merge|fold|update|finish)\b.* (?:once|when|as soon as|after|until)\b|"
    r"\b(?:once|when|as soon as|after) .*, (?:i|we)(?:['’]ll| will) (?:then )?(?:report|check back|follow up|continue|"
    r"resume|pick|let you know|review|merge|fold|update|finish)\b|"
    r"\b(?:is|are) (?:now |still |currently )?(?:running|in progress|under ?way|in flight)"
    r"(?: now| in ci)? ?(?:[.!…:;(]|$)|"
    r"\b(?:agent|task|job|review|run|build|rewrite)s? .*\brunning in (?:the )?background\b|"
    r"\b(?:dispatched|delegated|handed (?:\w+ )?(?:off|over)) (?:\w+ ){0,4}?"
    r"to (?:\w+ ){0,2}?(?:sub-?agent|agent|worker)s?\b|"
    r"기다리(?:고|는)|대기 ?중|진행 ?중",
    patterns.I,
)
"""What says that the work goes on somewhere, or waits."""
_SERVES = patterns.compile(r"\b(?:server|daemon|site|app|container|service|api)s?\b|\bfix(?:es|ed)?\b", patterns.I)
"""What runs for good, and what waiting mends."""
_LAST_SENTENCES, _LONGEST_END = 2, 400
"""Sentences at the end of an answer, and characters of them, that say how far the work is."""
_HINTS = (
    "still ", "todo", "left", "not ", "n't ", "fixme", "남아", "아직",
)  # fmt: skip
"""One of these is in every text, in lower case, that says what is left to somebody. (What "remains unstaged" alone is
mostly meant to.)"""

_CODE = patterns.compile(r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)", patterns.S | patterns.M)
_MARKS = patterns.compile(r"\*\*|__|^[ \t]*(?:#{1,6}|>|[-*•]|\d{1,2}[.)])[ \t]+", patterns.M)
_SENTENCES = patterns.compile(r"[^.!?\n]+(?:[.!?][^.!?\s][^.!?\n]*)*[.!?]*")


def threads_of(
    answer: str,
    plan: Sequence[tuple[str, str]],
    errors: Mapping[str, str],
    *,
    worked_after: bool,
    outcome: str,
    why: str,
) -> tuple[Thread, ...]:
    """What is left open of the work that a session ended with.

    `answer` are the agent's last words, `plan` its steps as (status, text), `errors` the messages of errors that were
    not resolved, by signature. `worked_after`: tools were used after the last words, which then promise nothing.
    """
    # Of work that ended well, the step that was being done is done.
    done = ("completed", "in_progress") if outcome == "success" else ("completed",)
    found = [Thread("step", text) for status, text in plan if status not in done]
    if outcome in ("failure", "partial"):
        found += [Thread("error", message) for message in list(errors.values())[-2:]]
    said = _CODE.sub("", answer) if "```" in answer or "~~~" in answer else answer
    lowered = said.lower()
    if any(hint in lowered for hint in _HINTS):
        found += [Thread("said", text) for text in _left_in(said)]
    if not worked_after and (under_way := goes_on(said)):
        found.append(Thread("promised", under_way))
    last = _last_sentence(said)
    if last.endswith("?"):
        if _ASKS.search(last):
            found.append(Thread("asked", last))
    elif not worked_after and _PROMISES.match(last) and len(said) < 600:
        found.append(Thread("promised", last))
    if not found and outcome in ("failure", "partial"):
        found.append(Thread("unfinished", why))
    return _each_once(found)


def goes_on(answer: str) -> str:
    """The last of an agent's words that says that the work goes on or waits; empty where none does."""
    said = _CODE.sub("", answer) if "```" in answer or "~~~" in answer else answer
    last = _MARKS.sub("", said.rstrip()[-_LONGEST_END:])
    for sentence in reversed(
        [" ".join(each.split()) for each in _SENTENCES.findall(last) if each.strip()][-_LAST_SENTENCES:]
    ):
        if not sentence.endswith("?") and _GOES_ON.search(sentence) and not _SERVES.search(sentence):
            return sentence
    return ""


def _left_in(said: str) -> list[str]:
    """The sentences that say what is left."""
    found: list[str] = []
    for match in _SAID.finditer(said):
        marks = ((said.rfind(mark, 0, match.start() + 1), len(mark)) for mark in ("\n", ". ", "! ", "? "))
        sentence = _SENTENCES.match(said, max((at + size for at, size in marks if at >= 0), default=0))
        if sentence is not None and sentence.end() >= match.end() and not sentence[0].rstrip().endswith(("?", ":")):
            found.append(sentence[0])
    return found


def _last_sentence(said: str) -> str:
    lines = [line for line in said.rstrip().split("\n") if line.strip()]
    if not lines:
        return ""
    sentences = _SENTENCES.findall(_MARKS.sub("", lines[-1]))
    return " ".join(sentences[-1].split()) if sentences else ""


def _each_once(found: Iterable[Thread]) -> tuple[Thread, ...]:
    kept: dict[str, Thread] = {}
    for thread in found:
        text = one_line(_MARKS.sub("", thread.text).strip(" *_"), TEXT)
        if len(text) >= _SHORTEST:
            kept.setdefault(text.lower(), Thread(thread.kind, text))
    return tuple(kept.values())[:MOST]
