"""What a user says, sentence by sentence, in a form that is the same for the same words."""

from __future__ import annotations

import hashlib
from string import ascii_letters, digits

from memctl.domain.language.prompts import words_in
from memctl.domain.support import patterns
from memctl.domain.support.near_duplicates import denies
from memctl.domain.support.text import Blanked

LONGEST_SAID, LEAST_SAID, MOST_SENTENCES = 1_500, 4, 12
"""Characters of a prompt that is somebody's own words; words of a sentence; sentences of a prompt."""

LONGEST_KEY = 160
"""Characters of a sentence's key; of a longer one, a digest stands for the rest."""

_BREAK = patterns.compile(r"[.!?。？！]+(?:\s+|\z)|\n+|,\s+(?:and|then)\s+")
_PLAN = patterns.compile(r"\s*(?:Implement the following plan|# )")
_RULE = patterns.compile(
    r"\b(?:always|never|must|mustn'?t|don'?t|do not|should(?:n'?t| not)?|make sure|ensure|remember|instead|prefer|only|"
    r"avoid|use|without)\b|항상|절대|반드시|말고|대신|하지 ?마|꼭",
    patterns.I,
)
_IN_WORDS = Blanked(but=f"{digits}{ascii_letters}'/._+-", first="가", last="힣")


def keyed_sentences(prompt: str) -> tuple[tuple[str, str], ...]:
    """The sentences of a prompt, each with its key: the words it has, in order of the alphabet, and whether it denies.

    Pasted plans and long prompts are somebody else's words, or a program's; they have none.
    """
    if len(prompt) > LONGEST_SAID or _PLAN.match(prompt):
        return ()
    found: dict[str, str] = {}
    for sentence in _BREAK.split(prompt)[:MOST_SENTENCES]:
        words = [word.strip("'/._+-").lower() for word in sentence.translate(_IN_WORDS).split() if "/" not in word]
        kept = sorted({word for word in words if word})
        if len(kept) >= LEAST_SAID and len(words_in(sentence)) >= 2:
            found.setdefault(_key(" ".join(("not", *kept) if denies(sentence) else kept)), sentence.strip())
    return tuple(found.items())


def is_rule(sentence: str) -> bool:
    """Whether a sentence says how things are to be done. What asks for work, and no more, is a routine when it is said
    again: there was nothing for memory to say."""
    return _RULE.search(sentence) is not None


def _key(words: str) -> str:
    if len(words) <= LONGEST_KEY:
        return words
    return f"{words[: LONGEST_KEY - 20]}~{hashlib.sha256(words.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
