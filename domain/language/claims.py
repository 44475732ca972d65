"""Claims in a user's words: sentences that are meant to last longer than the task at hand, kept as they were typed.

A linear model says how likely a sentence is meant to last. Its features are cues (a word of scope, of a practice, of
the task at hand, of trouble), where they stand, and the sentence's form. The cues' words, in several languages, and the
weights are data (`claims.json`); `make calibrate` fits the weights on labelled sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from memctl.domain.events.facts import InsightKind
from memctl.domain.knowledge.graduation import DENIED, MEANT, ONE_ANSWER
from memctl.domain.language.prompts import words_in
from memctl.domain.shell.programs import words_of
from memctl.domain.support import patterns
from memctl.domain.support.text import canonical, composed

FILE = Path(__file__).with_suffix(".json")

PERHAPS, UNSAID = 0.4, 0.55
"""From the first chance on a sentence is kept. Below `graduation.MEANT` it waits until other sessions say it as well;
so does one that does not say that it is meant to last, which is taken to be no likelier than the second."""

_SAYS_SO = frozenset(("scope", "place", "tongue", "choice", "self", "wish"))
"""Cues by which a sentence says that it is meant to last: always, in this project, in English, pnpm, I am, I prefer. So
does what "we" do, but not what we should do: that is work."""

_LONGEST, _SHORTEST, _MOST_WORDS = 240, 12, 32
"""Characters and words of a sentence that states something: longer ones are paragraphs, shorter ones say too little."""

_TRIMMED = 2_000
"""Characters that may be cut off the ends of a sentence: each cut looks at what is left."""


class Claim(msgspec.Struct, frozen=True):
    """A sentence that is meant to last, verbatim: `text[start:end]` is the quote.

    `canonical` is equal for claims that differ in form only and begins with `not ` where they deny; `subject` is
    equal for claims that can contradict each other, and begins with `one/` where only one answer is possible.
    `polarity` is +1 for do, -1 for do not. `confidence` is how likely it is meant to last, 0 to 1.
    """

    kind: InsightKind
    text: str
    canonical: str
    subject: str
    confidence: float
    polarity: int
    everywhere: bool
    start: int
    end: int
    rule: str = "statement"


class Model(msgspec.Struct, frozen=True):
    """The words of each cue, the weight of each feature, and the digest of the labels that they were fitted on."""

    cues: dict[str, tuple[str, ...]]
    weights: dict[str, float] = {}
    fitted_on: str = ""


MODEL = msgspec.json.decode(FILE.read_bytes(), type=Model)

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
_WHOLLY_SO = patterns.compile(
    r"(?: (?:for (?:everything|all|installs|installing|dependencies|packages|tests|testing|linting)\b.*"
    r"|(?:instead of|rather than|over|(?:and )?(?:not|never)) .+))?"
)
_USING = patterns.compile(r"^(?:use|using|uses|prefer|run|to use)\s+")
_LANGUAGES = {
    "english": "english", "영어": "english", "korean": "korean", "한국어": "korean", "한글": "korean",
    "japanese": "japanese", "일본어": "japanese", "german": "german", "deutsch": "german", "french": "french",
    "spanish": "spanish", "español": "spanish", "castellano": "spanish", "chinese": "chinese",
}  # fmt: skip
_LANGUAGE = patterns.compile(
    r"(?:^|\b)(?:answers?|reply|respond|speak|talk|antworten?|antworte|responde)\b.* (?:in|auf|en) (\w+)|"
    r"^(?:답변?은?|대답은?|설명은?)?\s*(한국어|한글|영어|일본어)로\b"
)

_QUOTED = patterns.compile(r"\"[^\"]+\"|“[^”]+”|「[^」]+」|«[^»]+»|(?<!\w)'[^'\n]+'(?!\w)|‘[^’\n]+’(?!\w)")
_SENTENCE_WITHIN = patterns.compile(r"[.!?。]\s+\S")
_HEAD = patterns.compile(
    r"[\s\-*•(\[\"'“‘]*(?:\d+[.)]\s+)?"
    r"(?:(?:(?:아|음|네|응|그리고|그럼|그러면|근데|그런데|그래서|또|또한|참고로|추가로|단|제발|부탁인데)[\s,]+){1,3})?"
)
_HANGUL = patterns.compile(r"[가-힣]")
_SENTENCE = patterns.compile(r"[^.!?\n;。]+(?:[.!?]+[^\s)\"'”’.!?;。][^.!?\n;。]*)*[.!?。]*")
_ASKS = patterns.compile(
    r"""(?:why|what|how|when(?:\s+(?:does|do|did|is|will))|where|who|which|is|are|was|were|do(?!\s+not)|does|did|can|could
        |would|should|shall|will|have\s+(?:you|we|i|they)|has|isn'?t|aren'?t|don'?t\s+(?:we|you|i)|can'?t|won'?t|warum|wie|wo|was|kannst|por\s+qu[eé]
        |pourquoi|comment)\b|¿""",
    patterns.I | patterns.X,
)
_ASKS_AT_END = patterns.compile(
    r"\?\s*$|(?:까요|나요|니까|까|죠|는지|건가요?)\s*[?]?\s*$|,?\s(?:right|no|correct|ok|okay)\s*[?.]*$",
    patterns.I,
)
_ENDS_OPEN = patterns.compile(r"(?:[:,(…]|\.\.|\b(?:and|or|but|because|so|the|a|to|of|with|for|in|do))\s*$", patterns.I)
_TAIL = 12
"""Characters at the end of a sentence, before its marks, in which a question's last words and open ends stand."""

_FILLER = patterns.compile(
    r"(?:(?:yes|no|nope|ok|okay|great|thanks|perfect|and|but|also|so|well|btw|actually)[\s,:;-]+)+", patterns.I
)
_LEAD = patterns.compile(
    r"(?:(?:please|pls|plz|always|in (?:this|the|our) (?:repo(?:sitory)?|project|codebase|team)|remember|note|"
    r"from now on|going forward|in (?:the )?future|next time|as a rule|in general|generally|"
    r"(?:you|we|i) (?:should|must|need to|have to)|we|i(?: (?:really|strongly|mostly|usually|generally))? prefer|"
    r"immer|ab jetzt|bitte|siempre|por favor|앞으로(?:는|도)?|항상|언제나|무조건|반드시)[\s,:!-]+)+",
    patterns.I,
)
"""Words before what a statement is about."""
_DENIES = patterns.compile(
    r"(?:please\s+)?(?:never|don'?t|do\s+not|avoid|stop|no longer|nie(?:mals)?|nunca|jamás|no uses)\s+(?:ever\s+)?|"
    r"(?:i|we)\s+(?:no\s+longer|(?:really\s+)?(?:hate|dislike)(?:\s+(?:it\s+)?when\s+you)?)\s+|"
    r"(?:절대로?|다시는)\s+",
    patterns.I,
)
_DENIED_BEHIND = patterns.compile(r"(?:하)?지\s*(?:마|말)[가-힣 ]{0,8}[.!]?$")

_POLITE = patterns.compile(r"[\s,]+(?:please|pls|plz|bitte|por favor)[.!]*$", patterns.I)

_WORD = patterns.compile(r"[^\W_](?:[\w'./@#+-]*\w)?")
_PARTS = patterns.compile(r"[,;:(–—]|\s-\s")
"""What parts clauses."""
_JOINS = words_of("and but so because since as bc und aber weil y pero porque et mais que e")
_SKIPPED = words_of(
    "please pls plz and but so also then well actually just bitte por favor y e et und aber repo project codebase"
)
"""Words before a clause's first word that says something."""
_SUBJECTS = words_of("it this that they he she i the a an my der die das es el la los las le les o")
_CODE = patterns.compile(r"`|://|\w/\w|[a-z][A-Z]|\d|\w[._]\w")

_AT_HEAD = frozenset(("ban", "request", "scope", "must", "we", "wish", "self"))
"""Cues that say more where a clause begins with them."""
_LEADS_IN = frozenset(("assent", "place"))
_ONLY_AT_HEAD = frozenset(("request",))
_ONLY_FIRST = frozenset(("joiner", "if"))
_FEW = 2
"""Words of a sentence that says little by itself."""


@cache
def _words_of_cues() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]], tuple[tuple[str, str], ...], int]:
    """The cues by phrase, by the sorted letters of long words (for slips of the hand), and of words in Hangul; and the
    words of the longest phrase."""
    phrases: dict[str, set[str]] = {}
    slips: dict[str, set[str]] = {}
    hangul: list[tuple[str, str]] = []
    for cue, words in MODEL.cues.items():
        for word in words:
            if _HANGUL.search(word):
                hangul.append((word, cue))
                continue
            phrases.setdefault(word.replace("'", ""), set()).add(cue)
            if " " not in word and len(word) >= _LONG:
                slips.setdefault("".join(sorted(word)), set()).add(cue)
    longest = max(phrase.count(" ") for phrase in phrases) + 1
    frozen = [{word: frozenset(cues) for word, cues in each.items()} for each in (phrases, slips)]
    return frozen[0], frozen[1], tuple(hangul), longest


_LONG = 5
"""Letters of a word that is known by them in any order."""


_SEEN = 1_000
"""Characters of a note that the model sees; a message's sentences are shorter."""


def features(sentence: str) -> dict[str, float]:
    """What the model sees of a sentence."""
    lowered = composed(sentence[:_SEEN]).lower().replace("’", "'")
    found = list(_WORD.finditer(lowered))
    words = [match[0].replace("'", "") for match in found]
    cues, at = _cues_in(lowered, words)
    seen = dict.fromkeys(cues, 1.0)
    if "the" in seen:
        seen["the"] = float(min(sum("the" in each for each in at), 3))
    for clause, head in enumerate(_heads(lowered, found, words, at)):
        seen.update((f"{'first' if not clause else 'then'} {cue}", 1.0) for cue in at[head] & _AT_HEAD)
        if "ban" in at[head] and any("request" in each for each in at[head + 1 : head + 3]):
            seen["ban request"] = 1.0
    if words:
        seen |= _ends_of(words, at)
    signs = {
        "short": len(words) <= _FEW and lowered.isascii(),
        "code": _CODE.search(sentence) is not None,
        "choice": _split(sentence)[2].startswith(ONE_ANSWER),
        "all": True,
    }
    return seen | {name: 1.0 for name, there in signs.items() if there}


def _cues_in(lowered: str, words: list[str]) -> tuple[set[str], list[set[str]]]:
    """The cues that count wherever they stand, and those of each word of a sentence."""
    phrases, slips, hangul, longest = _words_of_cues()
    at: list[set[str]] = [set() for _ in words]
    for index, word in enumerate(words):
        for number in range(1, min(longest, len(words) - index) + 1):
            at[index] |= phrases.get(" ".join(words[index : index + number]), frozenset())
        if not at[index] and len(word) >= _LONG:
            at[index] |= slips.get("".join(sorted(word)), frozenset())
    cues = {cue for each in at for cue in each if cue not in _ONLY_AT_HEAD and cue not in _ONLY_FIRST}
    if not lowered.isascii():
        there = [(word, cue) for word, cue in hangul if word in lowered]
        cues |= {cue for _, cue in there}
        for index, word in enumerate(words):
            at[index].update(cue for begins, cue in there if word.startswith(begins))
    return cues, at


def _ends_of(words: list[str], at: list[set[str]]) -> dict[str, float]:
    """What the first and the last words of a sentence say."""
    seen = {f"starts {cue}": 1.0 for cue in at[0] & _ONLY_FIRST}
    if "pronoun" in at[0]:
        seen["starts pronoun"] = 1.0
    if any("pronoun" in each for each in at[-2:]):
        seen["ends pronoun"] = 1.0
    if words[0] in _SUBJECTS:
        seen["starts subject"] = 1.0
    return seen


def _heads(lowered: str, found: list[patterns.Match[str]], words: list[str], at: list[set[str]]) -> list[int]:
    """Where the clauses begin, words that lead in left out."""
    heads: list[int] = []
    for index in range(len(words)):
        if heads and index <= heads[-1]:
            continue
        gap = lowered[found[index - 1].end() : found[index].start()] if index else ","
        if index and not _PARTS.search(gap) and words[index - 1] not in _JOINS:
            continue
        head = index
        while head < len(words) - 1 and (not at[head].isdisjoint(_LEADS_IN) or words[head] in _SKIPPED):
            head += 1
        heads.append(head)
    return heads


def chance(sentence: str, weights: Mapping[str, float] = MODEL.weights) -> float:
    """How likely a sentence is meant to last beyond the task at hand, 0 to 1; 0 of a question, and of an open end."""
    if vetoed(sentence):
        return 0.0
    seen = features(sentence)
    if _reports(sentence, seen):
        return 0.0
    odds = math.fsum(weights.get(name, 0.0) * value for name, value in sorted(seen.items()))
    likely = round(1 / (1 + math.exp(-max(min(odds, 40.0), -40.0))), 4)
    ours = "first we" in seen and "must" not in seen
    return likely if ours or not _SAYS_SO.isdisjoint(seen) else min(likely, UNSAID)


_GOES_WRONG = patterns.compile(
    r"\b(?:fails?|failed|failing|breaks|broken|broke|crash(?:es|ed|ing)?|hangs|freezes|errors? out|throws)\b|"
    r"\b(?:can(?:not|['’]?t)|could(?: not|n['’]?t)) (?:be )?"
    r"(?:find|found|open|load|read|resolve|connect|start|build)\w*\b|"
    r"\b(?:is|are|was|were)(?: not|n['’]t) (?:found|shown|displayed|working|recogni[sz]ed)\b|"
    r"\b(?:do(?:es)?|did)(?: not|n['’]?t) (?:work|show|start|run|load|appear|render|respond|open|build|compile)\b|"
    r"\b(?:shows?|prints?|displays?|returns?|gives?) (?:no|nothing|an error)\b|"
    r"\b(?:no longer|stopped) (?:work|show|start|run|load|appear|render|print|respond)\w*\b|"
    r"\bsince (?:i|we|my|our|the) (?:last |latest )?(?:chang|updat|upgrad|mov|merg|renam|commit|release)\w*\b|"
    r"실패|안 ?(?:돼요|되네|됩니다|나와|열려)",
    patterns.I,
)
"""What says that something does not go as it should."""
_WARNS = patterns.compile(r"\b(?:or|else|otherwise|unless|without|needs?|requires?)\b", patterns.I)
"""What says when it would."""
_RULES = frozenset(
    ("tongue", "choice",
     *(f"{at} {cue}" for at in ("first", "then") for cue in ("scope", "ban", "must", "we", "wish", "self")))
)  # fmt: skip
"""What says, where a clause begins or by its words, how things are to be done."""


def _reports(sentence: str, seen: Mapping[str, float]) -> bool:
    """Whether a sentence says that something goes wrong, and in no clause what is to hold: it is of the task at
    hand, however often it is said."""
    return _RULES.isdisjoint(seen) and _GOES_WRONG.search(sentence) is not None and not _WARNS.search(sentence)


def vetoed(sentence: str) -> bool:
    """Whether a sentence states nothing: it asks, ends open, or goes on and on."""
    open_end = _ENDS_OPEN.search(sentence, max(len(sentence) - _TAIL, 0)) is not None
    return open_end or is_question(sentence) or len(sentence.split()) > _MOST_WORDS


def claims_in(text: str, *, lasting: bool = False) -> list[Claim]:
    """The claims of a message, in order, each once. With `lasting` only those that say so in words of their own
    (always, never, from now on), as is asked of what is said against one use of a tool.

    Nothing is read out of quotations and questions. The caller gives only a user's own word
    (`prompt_origin.own_word`).
    """
    found: dict[str, Claim] = {}
    for start, end in sentences(own_prose(text)):
        sentence = text[start:end]
        likely = chance(sentence)
        if likely < PERHAPS or (lasting and (likely < MEANT or "scope" not in features(sentence))):
            continue
        filler = _FILLER.match(sentence)
        start += filler.end() if filler and filler.end() < len(sentence) else 0
        claim = _made(text[start:end], "", likely, start)
        if claim is not None:
            found.setdefault(claim.canonical, claim)
    return list(found.values())


_MOSTLY = 0.5
"""Share of a claim's content words that its quote has to hold."""

_OWN = patterns.compile(r"[^\W\d_]*[A-Z0-9_]\w*|\w+(?:[./:@-]\w+)+")
"""Names and numbers, as they stand in a claim."""


def rests_on_quote(text: str, quoted: str) -> bool:
    """Whether a claim rests on a quote: most of its words stand there, and every name and number but the first word."""
    given = quoted.casefold()
    said, held = words_in(text), words_in(quoted)
    if said and len(said & held) < _MOSTLY * len(said):
        return False
    names = [match[0] for match in _OWN.finditer(text) if match.start()]
    return all(name.casefold() in given for name in names)


def stated(text: str, kind: InsightKind | Literal[""] = "") -> Claim:
    """The claim that a note makes: the whole text of it."""
    words = " ".join(text.split())
    made = _made(words, kind, 0.9, 0)
    if made is None:
        made = Claim(kind or "fact", words, words.lower(), words.lower(), 0.9, 1, False, 0, 0)
    return msgspec.structs.replace(made, text=words, rule="note", start=0, end=len(text))


def own_prose(text: str) -> str:
    """The text with blanks for what it quotes: a line that is in quotes, and sentences that are, are somebody else's; a
    word in quotes belongs to its sentence."""
    return _QUOTED.sub(lambda quote: " " * len(quote[0]) if _is_quotation(quote) else quote[0], text)


_NAMED_BY = 4
"""Words in quotes that name something; more are a sentence, which somebody else said."""

_BESIDE = 80
"""Characters of its line before and behind a quotation that are looked at: a line may hold thousands of them."""


def _is_quotation(quote: patterns.Match[str]) -> bool:
    whole, start, end = quote.string, quote.start(), quote.end()
    before = whole[max(start - _BESIDE, 0) : start].rpartition("\n")[2]
    after = whole[end : end + _BESIDE].partition("\n")[0]
    alone = not before.strip(" \t-*•>(") and not after.strip(" \t.,!)")
    return alone or len(quote[0].split()) > _NAMED_BY or _SENTENCE_WITHIN.search(quote[0]) is not None


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Spans of sentences, list marks and brackets left out."""
    for match in _SENTENCE.finditer(text):
        start, end = match.span()
        if not _SHORTEST <= 2 * (end - start + 1) <= 2 * (_LONGEST + _TRIMMED + 1):
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


def is_question(sentence: str) -> bool:
    """Whether a sentence (without blanks around) asks."""
    if _ASKS.match(sentence):
        return True
    last = len(sentence.rstrip("?.").rstrip())
    return _ASKS_AT_END.search(sentence, max(last - _TAIL, 0)) is not None


_PROFILE = patterns.compile(r"(?:i'?m|i am) an?\b|ich bin\b|soy\b|저는 |나는 ", patterns.I)


def _split(sentence: str) -> tuple[int, str, str]:
    """Polarity, canonical form and subject of what a sentence says."""
    lead = _LEAD.match(sentence)
    rest = sentence[lead.end() :] if lead else sentence
    denied = _DENIES.match(rest)
    behind = _DENIED_BEHIND.search(rest)
    rest = _POLITE.sub("", rest[denied.end() if denied else 0 : behind.start() if behind else len(rest)])
    polarity = -1 if denied or behind else 1
    subject, said = _subject(canonical(rest) or canonical(sentence), polarity)
    return polarity, f"{DENIED}{said}" if polarity < 0 else said, subject


def _made(sentence: str, kind: InsightKind | Literal[""], confidence: float, start: int) -> Claim | None:
    polarity, said, subject = _split(sentence)
    if not subject:
        return None
    profile = _PROFILE.match(sentence) is not None
    if not kind:
        seen = features(sentence)
        ours = "we" in seen or "place" in seen or ("state" in seen and "scope" not in seen)
        kind = "profile" if profile else "fact" if ours and "wish" not in seen else "preference"
    return Claim(
        kind=kind,
        text=" ".join(sentence.split()),
        canonical=said,
        subject=subject,
        confidence=confidence,
        polarity=polarity,
        everywhere=profile or subject == f"{ONE_ANSWER}language of answers",
        start=start,
        end=start + len(sentence),
    )


def _subject(said: str, polarity: int) -> tuple[str, str]:
    """Subject of what was said, and its canonical form: the bare answer where it answers a question of one answer."""
    bare = _USING.sub("", said)
    language = _LANGUAGE.search(said)
    name = _LANGUAGES.get(language[1] or language[2]) if language else None
    if name is not None:
        return f"{ONE_ANSWER}language of answers", name
    for question, answers in _ONE_ANSWER:
        for answer in answers:
            if polarity and bare.startswith(answer) and _WHOLLY_SO.fullmatch(bare, len(answer)):
                return f"{ONE_ANSWER}{question}", answer
    return bare, said
