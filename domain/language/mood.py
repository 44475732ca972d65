"""How a user feels towards the agent, read from what they say to it: by rule, English and Korean.

Only plain praise, thanks, blame and annoyance count. A correction without feeling ("use tabs here") is no mood.
Labels come with a score of -1 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from memctl.domain.support import patterns

Label = Literal["positive", "neutral", "negative"]

_LONGEST = 400
"""Characters of a message whose mood can be judged: longer ones are specifications or pasted texts."""

_WITHIN = 200
"""Characters at the beginning of a message in which a mood is looked for."""

_TIERS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (-0.9, (
        r"\b(?:wtf|what the (?:hell|fuck)|fuck\w*|bullshit)\b",
        r"\b(?:you(?:'re| are)|this is) (?:so |just |completely )?(?:useless|terrible|garbage|stupid|awful|horrible)\b",
        r"짜증|답답하|엉망|쓸모 ?없|미치겠|뭐 ?하는 거야",
    )),
    (-0.7, (
        r"\bi(?:'m| am) (?:getting )?(?:very |so |really )?(?:frustrated|annoyed|disappointed|upset)\b",
        r"\b(?:so|very|really) (?:frustrating|annoying|disappointing)\b",
        r"\bstop (?:doing|making|adding|guessing|changing|ignoring|lying)\b|\bhow many times\b",
        r"\bi(?:'ve| have)? (?:already )?(?:told|asked) you (?:\w+ ){0,3}(?:already|before|times|not to)\b",
        r"\byou (?:keep|always|never) (?:\w+ing|forget|ignore|break|listen|do that)\b|\b(?:ugh|argh)+\b",
        r"왜 ?자꾸|몇 ?번을? ?말|하지 ?말라고|말했잖|했잖아|실망",
    )),
    (-0.5, (
        r"^\W*(?:no+[,.! ]+)?(?:that(?:'s| is|s)|this is|it(?:'s| is)) (?:just |completely |totally |still )?"
        r"(?:wrong|incorrect|broken|not (?:right|correct|what i (?:asked|wanted|meant|said)))\b",
        r"\bnot what i (?:asked|wanted|meant|said)\b",
        r"\byou (?:broke|deleted|destroyed|ruined|messed up|misunderstood|ignored|forgot)\b",
        r"\byou didn'?t (?:listen|read|follow|do what)\b",
        r"\bwhy (?:did|would|are|do) you (?:\w+ ){0,2}(?:delet|remov|chang|break|ignor|revert|commit|push)\w*",
        r"(?:완전히? )?(?:틀렸|잘못 ?했|잘못 ?됐)|그게 아니(?:라|고|야)|왜 (?:지웠|삭제|바꿨|건드)",
    )),
    (-0.3, (
        r"^\W*(?:but |hmm+\W+|no+\W+)?(?:this |that |it )?(?:is |'s )?still (?:an? (?:issue|error|problem|bug)|not\b|"
        r"doesn|does not|fail|broken|wrong|the same (?:error|problem|issue))",
        r"^\W*(?:uh ?oh|hmm+,? no)\b|\bit (?:just )?(?:happened|failed|broke|crashed) again\b",
        r"^\W*(?:this|that|it) (?:still )?(?:does ?n[o']?t|did ?n[o']?t) (?:work|help|fix)",
        r"아직도 안|여전히 안|또 ?(?:안|실패|에러|오류)|안 ?(?:되네|돼요|됩니다|되는데)",
    )),
    (0.9, (
        r"\b(?:this|that|you|it)(?:'s| is|'re| are) (?:absolutely |so |really |just )?(?:amazing|awesome|fantastic|"
        r"brilliant|incredible|wonderful|the best)\b|\bi love (?:it|this|that)\b",
        r"\b(?:amazing|fantastic|brilliant|outstanding|incredible) (?:work|job)\b",
        r"최고(?:야|다|예요|입니다|네)|정말 대단",
    )),
    (0.7, (
        r"^\W*(?:(?:ok(?:ay)?|yes|wow)[,.! ]+)?(?:amazing|awesome|excellent|fantastic|wonderful|brilliant|perfect|"
        r"love it|well done|(?:great|good|nice|excellent) (?:job|work|stuff|catch|find))(?=\W|$)",
        r"\bthank(?:s| you) (?:so much|very much|a lot)\b|\bmany thanks\b",
        r"\b(?:it|that|this|everything) (?:now )?works (?:great|perfectly|well|like a charm)\b",
        r"완벽|훌륭|(?:정말|너무) 고마|대단(?:해|하)|잘 ?했(?:어|네|다)",
    )),
    (0.4, (
        r"^\W*(?:(?:ok(?:ay)?|yes|great)[,.! ]+)?(?:thanks|thank you|thx|tysm|great|very nice|looks (?:great|good)|"
        r"that (?:did it|fixed it|worked)|it works|works (?:now|great|perfectly)|lgtm)"
        r"(?=\s*(?:[!.,:;👍🎉🙏❤-]|$| (?:for|that|this|now|and)\b))",
        r"👍|🎉|🙏|❤|고마워|고맙|감사합|감사해|좋네|좋다|잘 ?(?:된다|되네|됩니다|돼요)",
    )),
)  # fmt: skip
"""Scores, and what shows them: the first tier that matches decides."""

_RULES = tuple((score, patterns.compile("|".join(words), patterns.I)) for score, words in _TIERS)
_SIGNS = (
    "thank", "thx", "tysm", "great", "nice", "good", "love", "perfect", "awesome", "amazing", "excellent",
    "fantastic", "wonderful", "brilliant", "well done", "works", "worked", "fixed it", "did it", "lgtm",
    "wrong", "incorrect", "broken", "still", "not what", "why d", "why w", "why are", "stop", "you b", "you d",
    "you r", "you m", "you i", "you f", "you keep", "you al", "you never", "told you", "asked you",
    "many times", "ugh", "argh", "wtf", "the hell", "fuck", "bullshit", "useless", "terrible", "garbage",
    "stupid", "awful", "horrible", "frustrat", "annoy", "disappoint", "upset", "outstanding", "incredible",
    "uh oh", "uhoh", "hmm", "again", "not right", "not correct", "t work", "t help", "t fix",
)  # fmt: skip
"""One of these stands in every English message with a mood: looked for before the patterns."""

_QUOTED = patterns.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^\s*[>|$].*$|\"[^\"\n]{3,}\"|“[^”\n]*”", patterns.S | patterns.M
)
_ASKED = patterns.compile(
    r"(?:should|could|would|can|does|is|are|do|may|might)\b[^.!?]*\?|\bif\b|\bunless\b|\bmake sure\b",
    patterns.I,
)
_IMPERSONAL = patterns.compile(
    r"\b(?:great|good|nice|perfect)\ (?:if|to\ have|idea|question|point|example|way|place)\b", patterns.I
)


ALPHA = 0.3
"""Weight of the newest feeling in the moving average."""


def averaged(scores: Iterable[float]) -> float:
    """Where feelings have led to, -1 to 1: the moving average of scores, oldest first, from 0 on."""
    average = 0.0
    for score in scores:
        average += ALPHA * (score - average)
    return round(average, 4) + 0.0


class Mood(NamedTuple):
    """How a message sounds, -1 to 1, and the span of the words that say so."""

    score: float
    start: int
    end: int


def mood_of(words: str) -> Mood | None:
    """The mood of a user's message; None where it shows none."""
    if len(words) > _LONGEST:
        return None
    words = words[:_WITHIN]
    lowered = words.lower()
    if words.isascii() and not any(sign in lowered for sign in _SIGNS):
        return None
    text = _QUOTED.sub(lambda found: " " * len(found[0]), words)
    for score, pattern in _RULES:
        found = pattern.search(text)
        if found is None:
            continue
        start, end = _sentence(text, found.start(), found.end())
        if score > 0 and (_IMPERSONAL.match(text, found.start()) or _ASKED.match(text, start)):
            continue
        return Mood(score, start, end)
    return None


def label_of(score: float) -> Label:
    """Positive from 0.2 on, negative from -0.2 on."""
    return "positive" if score >= 0.2 else "negative" if score <= -0.2 else "neutral"


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentence around a place, at most 200 characters."""
    first = max(text.rfind(mark, 0, start) for mark in (". ", "! ", "? ", "\n")) + 1
    stops = [at for mark in (". ", "! ", "? ", "\n") if (at := text.find(mark, end)) >= 0]
    last = min(min(stops, default=len(text) - 1) + 1, len(text))
    while first < start and text[first].isspace():
        first += 1
    return first, min(len(text[:last].rstrip()), first + 200)
