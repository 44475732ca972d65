"""Claims that people state in passing: preferences, rules and facts of a project, who they are, corrections.

Rules in English and Korean over single sentences. Precision before recall: what is quoted, pasted, asked, or meant for
the one task at hand is no claim. A rule says which words must stand where; nothing is guessed from topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

import msgspec

from memctl.domain.events.facts import InsightKind
from memctl.domain.knowledge.graduation import DENIED, ONE_ANSWER
from memctl.domain.language.claim_rules import RULES, ClaimRule
from memctl.domain.language.prompts import words_in
from memctl.domain.support import patterns
from memctl.domain.support.text import canonical

_LONGEST, _SHORTEST = 240, 12
"""Characters of a sentence that claims something: a longer one is a paragraph, a shorter one says too little."""

_TRIMMED = 2_000
"""Characters that may be cut off the ends of a sentence: each cut looks at what is left."""


class Claim(msgspec.Struct, frozen=True):
    """A claim in somebody's words: `text[start:end]` is the quote.

    `canonical` is equal for the same claim and begins with `not ` where it denies; `subject` is equal for claims that
    can contradict each other, and begins with `one/` where only one answer is possible. `polarity` is +1 for do, -1 for
    do not, 0 where neither is meant. `confidence` is the rule's, 0 to 1.
    """

    kind: InsightKind
    text: str
    canonical: str
    subject: str
    confidence: float
    polarity: int
    rule: str
    everywhere: bool
    start: int
    end: int


# Questions of which only one answer is possible: the values rule each other out.
_ONE_ANSWER = (
    ("package manager", ("npm", "pnpm", "yarn", "bun")),
    ("python package manager", ("pip", "uv", "poetry", "pipenv", "conda")),
    ("indentation", ("tabs", "spaces")),
    ("quotes", ("single quotes", "double quotes")),
    ("test runner", ("jest", "vitest", "mocha")),
    ("python test runner", ("pytest", "unittest")),
    ("linter", ("eslint", "biome")),
    ("merge strategy", ("squash", "rebase", "merge commits")),
)
_WHOLLY = (
    r"(?:for (?:everything|all|installs|installing|dependencies|packages|tests|testing|linting)\b.*"
    r"|(?:instead of|rather than|over|(?:and )?(?:not|never)) .+)"
)
_WHOLLY_SO = patterns.compile(rf"(?: {_WHOLLY})?")
_USING = patterns.compile(r"^(?:use|using|uses|prefer|run|to use)\s+")
_LANGUAGES = {
    "english": "english", "영어": "english", "korean": "korean", "한국어": "korean", "한글": "korean",
    "japanese": "japanese", "일본어": "japanese", "german": "german", "french": "french", "spanish": "spanish",
    "chinese": "chinese",
}  # fmt: skip
_LANGUAGE = patterns.compile(r"^(?:answer|reply|respond|speak|talk|write)\b.* in (\w+)$|^(한국어|한글|영어|일본어)로")

_QUOTED = patterns.compile(r"\"[^\"]+\"|“[^”]+”|「[^」]+」|«[^»]+»|(?<!\w)'[^'\n]+'(?!\w)|‘[^’\n]+’(?!\w)")
_SENTENCE_WITHIN = patterns.compile(r"[.!?。]\s+\S")
_HEAD = patterns.compile(
    r"[\s\-*•(\[\"'“‘]*(?:\d+[.)]\s+)?"
    r"(?:(?:(?:아|음|네|응|그리고|그럼|그러면|근데|그런데|그래서|또|또한|참고로|추가로|단|제발|부탁인데)[\s,]+){1,3})?"
)
_HANGUL = patterns.compile(r"[가-힣]")
_SENTENCE = patterns.compile(r"[^.!?\n;。]+(?:[.!?]+[^\s)\"'”’.!?;。][^.!?\n;。]*)*[.!?。]*")
_ASKS = patterns.compile(
    r"""(?:why|what|how|when|where|who|which|is|are|was|were|do(?!\s+not)|does|did|can|could|would|should|shall|will|have|has
        |isn'?t|aren'?t|don'?t\s+(?:we|you|i)|can'?t|won'?t|any\s+idea|wondering|maybe|perhaps|if|unless|although|i\s+(?:think|guess|wonder|feel))\b""",
    patterns.I | patterns.X,
)
_ASKS_AT_END = patterns.compile(
    r"\?\s*$|(?:까요|나요|니|까|죠|는지|건가요?)\s*[?]?\s*$|,?\s(?:right|no|correct|ok|okay)\s*[?.]*$",
    patterns.I,
)
_FILLER = patterns.compile(r"(?:(?:yes|no|nope|ok|okay|and|but|also|so|well|btw|actually)[\s,:;-]+)+", patterns.I)
# Words that tie a sentence to the one task at hand.
_ONE_OFF = patterns.compile(
    r"""\b(?:this\s+(?:time|file|function|test|branch|pr|commit|change|task|step|case|one|session|bug|error|issue|line|method|class|plan)
        |for\s+now|right\s+now|just\s+(?:this|now|once)|(?:un)?til\s+\w+|yet|today|tomorrow|here|above|below|the\s+following
        |these|those|that\s+(?:file|function|test|branch|pr|commit|change|one)|line\s+\d+|first\s+(?:release|step|version)
        |step\s+\d|phase\s+\d|the\s+(?:above|last|latest|previous|next|current|first|second|other|same)\b)\b
        |(?:이번|지금|일단|방금|이거|이것|그거|여기|위에|아래)""",
    patterns.I | patterns.X,
)
_PRONOUN = patterns.compile(
    r"(?:it|this|that|them|those|these|they|he|she)\b(?!\s+\w+ing\b)|(?:이거|이것|그거|그것|이걸|그걸|저거)", patterns.I
)
_WORD_BEFORE = patterns.compile(r"(\w+)\s+")

_OTHER = patterns.compile(
    r"\b(?:other|different|some|those|these|such) (?:places?|files?|parts?|cases?|ones|spots?)\b|\belsewhere\b|"
    r"다른 (?:곳|데|파일)",
    patterns.I,
)
"""Places that are other than one which only the surroundings name."""

_SECOND_THOUGHT = patterns.compile(
    r"(?:[,;]|\s[-–—])\s*(?:(?:and|but|so)\s+)?(?:this|that|they|these|those)\b(?!\s+\w+s\b)", patterns.I
)
_OF_US = patterns.compile(
    r"(?:[,;(]\s*|\s(?:[-–—]|but|because|since)\s+)(?:(?:and|but|so|because|since|as)\s+)?"
    r"(?=we\s+(?:do\s*n'?t|do\s+not|never|always|no\s+longer|explicitly|only\s+use)\b)",
    patterns.I,
)
"""Where, in the middle of a sentence, a reason begins that a team gives for what it wants: it holds beyond the wish."""

_CONSEQUENCE = patterns.compile(
    r"[,;]?\s+so\s+(?:i|we|that|please|you|let)\b|,\s+(?:especially|right|ok)\b", patterns.I
)
_TAIL = 12
"""Characters at the end of a sentence, before its marks, in which a question's last words and open ends stand."""
_ENDS_OPEN = patterns.compile(r"(?:[:,(]|\b(?:and|or|but|because|so|the|a|to|of|with|for|in))\s*$", patterns.I)


def claims_in(text: str, *, lasting: bool = False) -> list[Claim]:
    """Claims stated in a message, in order, each once; with `lasting` only those that say so in words of their own
    (always, never, from now on), as of what is said against one use of a tool.

    Nothing is read out of quotations, questions, or what is tied to the task at hand. Only a user's own word
    (`typed.own_word`) is given to it, and what is noted: an agent's promises are not the user's wishes.
    """
    found: list[Claim] = []
    known: set[str] = set()
    for start, end in _sentences(own_prose(text)):
        claim = _claim(text[start:end], start, lasting)
        if (
            claim is None
            and (clause := _OF_US.search(text, start, end))
            and not _is_question(text[start:end], asked=True)
        ):
            claim = _claim(text[clause.end() : end], clause.end(), lasting)
        if claim is not None and claim.canonical not in known:
            known.add(claim.canonical)
            found.append(claim)
    return found


_MOSTLY = 0.5
"""Share of a claim's content words that its quote has to hold."""

_OWN = patterns.compile(r"[^\W\d_]*[A-Z0-9_]\w*|\w+(?:[./:@-]\w+)+")
"""Names and numbers, as they stand in a claim."""


def says_no_more(text: str, quoted: str) -> bool:
    """Whether a claim rests on a quote: most of its words stand there, and every name and number but the first word."""
    given = quoted.casefold()
    said, held = words_in(text), words_in(quoted)
    if said and len(said & held) < _MOSTLY * len(said):
        return False
    names = [match[0] for match in _OWN.finditer(text) if match.start()]
    return all(name.casefold() in given for name in names)


_DENIES = patterns.compile(r"(?:please\s+)?(?:never|don'?t|do\s+not|avoid|stop)\s+(?:ever\s+)?|절대로?\s+", patterns.I)


def stated(text: str, kind: InsightKind | Literal[""] = "") -> Claim:
    """The claim that a note makes: the whole text of it, read as the rules read a sentence where one of them does.

    Without a kind, the rule's, else a fact.
    """
    words = " ".join(text.split())
    read = claims_in(words)
    if len(read) == 1 and read[0].end - read[0].start >= len(words) * 0.8:
        claim = read[0]
        return msgspec.structs.replace(claim, kind=kind or claim.kind, text=words, start=0, end=len(text))
    denied = _DENIES.match(words)
    polarity = -1 if denied else 1
    said = canonical(words[denied.end() :] if denied else words) or words.lower()
    subject, said = _subject(said, polarity)
    return Claim(
        kind=kind or "fact",
        text=words,
        canonical=f"{DENIED}{said}" if denied else said,
        subject=subject,
        confidence=0.9,
        polarity=polarity,
        rule="note",
        everywhere=False,
        start=0,
        end=len(text),
    )


def _points_away(what: str) -> bool:
    """Whether something is claimed of what only the surroundings name: a pronoun among the first three words."""
    at = 0
    for _ in range(3):
        if _PRONOUN.match(what, at):
            return True
        word = _WORD_BEFORE.match(what, at)
        if word is None or word[1].lower() in ("to", "for", "in", "with"):
            return False
        at = word.end()
    return False


def own_prose(text: str) -> str:
    """The text with blanks for what it quotes: a line that is in quotes, and sentences that are, are somebody else's; a
    word in quotes belongs to its sentence."""
    return _QUOTED.sub(lambda quote: " " * len(quote[0]) if _is_quotation(quote) else quote[0], text)


_NAMED_BY = 4
"""Words in quotes that name something; more are a sentence, which somebody else said."""


def _is_quotation(quote: patterns.Match[str]) -> bool:
    whole = quote.string
    before, after = whole[: quote.start()].rpartition("\n")[2], whole[quote.end() :].partition("\n")[0]
    alone = not before.strip(" \t-*•>(") and not after.strip(" \t.,!)")
    return alone or len(quote[0].split()) > _NAMED_BY or _SENTENCE_WITHIN.search(quote[0]) is not None


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of sentences, list marks and brackets left out."""
    for match in _SENTENCE.finditer(text):
        start, end = match.span()
        if end - start > _LONGEST + _TRIMMED:
            continue
        head = _HEAD.match(text, start, end)
        start = head.end() if head and head.end() < end else start
        if text[start - 1 : start] == "." and not text[start - 2 : start - 1].strip():
            start -= 1  # the dot of a dot file
        while end > start and (text[end - 1].isspace() or _dangles(text[start:end])):
            end -= 1
        if _weight(text[start:end]) >= _SHORTEST and end - start <= _LONGEST:
            yield start, end


def _dangles(sentence: str) -> bool:
    """Whether its last character closes what was opened before the sentence."""
    opener = {")": "(", "]": "[", "”": "“", "’": "‘"}.get(sentence[-1])
    if opener is not None:
        return sentence.count(opener) < sentence.count(sentence[-1])
    return sentence[-1] in "\"'" and sentence.count(sentence[-1]) % 2 == 1


def _weight(text: str) -> int:
    """Length, with a syllable of Hangul counted twice."""
    return len(text) if text.isascii() else len(text) + len(_HANGUL.findall(text))


def _is_question(sentence: str, *, asked: bool = False) -> bool:
    """Whether a sentence (without blanks around) asks, doubts or supposes; with `asked`, by its end alone."""
    if not asked and _ASKS.match(sentence):
        return True
    last = len(sentence.rstrip("?.").rstrip())
    return _ASKS_AT_END.search(sentence, max(last - _TAIL, 0)) is not None


@cache
def _rules() -> Callable[[str], set[int]]:
    """Which of the rules may hold of a sentence: one look at it instead of one for each."""
    return patterns.occurring([rule.pattern for rule in RULES])


def _claim(sentence: str, start: int, lasting: bool) -> Claim | None:
    if _is_question(sentence) or _ENDS_OPEN.search(sentence, max(len(sentence) - _TAIL, 0)):
        return None
    for index in sorted(_rules()(sentence)):
        rule = RULES[index]
        match = rule.pattern.match(sentence)
        if match is None or (lasting and not rule.lasting):
            continue
        what = match["what"].lstrip(" \t`'\"").rstrip(" \t.!`'\"")
        if _ONE_OFF.search(sentence) or _points_away(what) or _OTHER.search(what) or not 2 <= len(what) <= 200:
            return None
        thought = _SECOND_THOUGHT.search(sentence, match.start("what") + 8)
        if cut := thought or _CONSEQUENCE.search(sentence, match.start("what") + 8):
            # What follows speaks of the whole situation, and means nothing without it.
            return _claim(sentence[: cut.start()].rstrip(" ,;-"), start, lasting)
        if match.groupdict().get("skip"):
            return _made(rule, match["what"], what, start + match.start("what"))
        filler = _FILLER.match(sentence)
        skipped = filler.end() if filler else 0
        if rule.answers and not _subject(canonical(what), rule.polarity)[0].startswith(ONE_ANSWER):
            return None
        return _made(rule, sentence[skipped:], what, start + skipped)
    return None


def _made(rule: ClaimRule, sentence: str, what: str, start: int) -> Claim | None:
    said = canonical(what)
    if not said:
        return None
    subject, said = _subject(said, rule.polarity)
    return Claim(
        kind=rule.kind,
        text=" ".join(sentence.split()),
        canonical=f"{DENIED}{said}" if rule.polarity < 0 else said,
        subject=subject,
        confidence=rule.confidence,
        polarity=rule.polarity,
        rule=rule.name,
        everywhere=rule.everywhere,
        start=start,
        end=start + len(sentence),
    )


def _subject(said: str, polarity: int) -> tuple[str, str]:
    """Subject of what was said, and its canonical form: the bare answer where it answers a question of one answer."""
    bare = _USING.sub("", said)
    language = _LANGUAGE.match(said)
    name = _LANGUAGES.get(language[1] or language[2]) if language else None
    if name is not None:
        return f"{ONE_ANSWER}language of answers", name
    for question, answers in _ONE_ANSWER:
        for answer in answers:
            if polarity and bare.startswith(answer) and _WHOLLY_SO.fullmatch(bare, len(answer)):
                return f"{ONE_ANSWER}{question}", answer
    return bare, said
