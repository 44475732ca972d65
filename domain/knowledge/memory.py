"""Memories: buckets, what is worth keeping, how important it is, and the texts that are shown and indexed.

What becomes a memory is decided in this order: by length, then bucket, then importance; all pure.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from memctl.domain.events.event import derived_text
from memctl.domain.events.facts import Episode, InsightKind, Turn
from memctl.domain.failures.explanations import reasons_in
from memctl.domain.knowledge.graduation import length_of
from memctl.domain.support import patterns
from memctl.domain.support.bounded import clipped, one_line
from memctl.domain.support.location import project_name
from memctl.domain.support.remembered import remembered
from memctl.domain.support.text import tokens

Bucket = Literal["PROFILE", "PREFERENCE", "EPISODIC", "SEMANTIC", "FACT"]
MemoryKind = Literal[
    "turn",
    "episode",
    "document",
    "commit",
    "bug_pattern",
    "knowledge",
    "strategy",
    "project",
    "reflection",
]
FormerKind = Literal["code_rule", "entity", "relation", "sentiment"]
"""Kinds that the rows of a memctl of before may have, until they are rebuilt: they are read, and never made."""

Status = Literal["record", "verified", "conflicted"]

SHORTEST = 10
"""Characters (a Hangul syllable counts twice) below which a candidate is dropped."""

LEAST_IMPORTANCE = 0.2
TITLE, GIST, TEXT, SEARCH = 120, 480, 2000, 9000
"""Characters of a memory's title, of the chunk that is embedded, of what is shown, and of what is indexed."""

SAYS_MUCH = 400
"""Characters from which on an answer is worth keeping whatever it answers: to "yes" an agent says what it did."""

_BUCKETS: dict[InsightKind, Bucket] = {
    "profile": "PROFILE",
    "expertise": "PROFILE",
    "preference": "PREFERENCE",
    "pattern": "SEMANTIC",
    "fact": "FACT",
}

# Prompts that steer without saying anything: assent, continuation, thanks, and the chores of version control.
_STEERING_WORDS = """
    y n q k yes yep yeah yup no nope ok okay sure right correct exactly great nice cool good perfect done fine stop wait
    thanks thank thx ty please pls plz hi hello hey now then again and also just it that this all them the so you u i
    go ahead continue proceed next keep going on carry resume retry try do look looks sounds lgtm up for me my your
    clear exit quit compact option a b c d
    네 예 응 어 ㅇㅇ ㅇㅋ 오케이 좋아 좋아요 그래 그래요 계속 계속해 계속해줘 진행 진행해 진행해줘 해줘 해주세요
    부탁해 부탁해요 고마워 고마워요 감사 감사합니다 아니 아니요 다음 다시 이제
"""
_CHORE_WORDS = "push pull commit merge rebase pr changes branch main ship 커밋 커밋해 커밋해줘 푸시 푸시해 푸시해줘"
_STEERING = frozenset(f"{_STEERING_WORDS} {_CHORE_WORDS}".split())
_STEERING_STEMS = frozenset(tokens(f"{_STEERING_WORDS} {_CHORE_WORDS}"))
_CHORES = frozenset(_CHORE_WORDS.split())
_WORDS = patterns.compile(r"[^\W_]+")
_SLASH_COMMAND = patterns.compile(r"/[a-z][\w:-]*(?:\s|$)")
_REASONED = patterns.compile(
    r"\b(?:because|instead|decided?|decision|rather than|root cause|"
    r"the (?:issue|problem|reason) (?:is|was)|turns out|trade-?offs?|why)\b|왜냐하면|때문|대신|결정|원인|이유",
    patterns.I,
)
_SHORT_FORM = r"(?i:\b(?:e\.g|i\.e|cf|vs|approx|incl)\.[ \t])"
_SENTENCE = patterns.compile(
    rf"(?:{_SHORT_FORM}|(?s:.))(?:{_SHORT_FORM}|[^.!?。\n]|[.!?。]+[^\s.!?。])*(?:[.!?。]+|\n|\Z)"
)
"""From anything up to a full stop with a blank or nothing behind it that ends no short form ("i.e."), to the end of the
line, or to the end."""
# What an answer may hold beside sentences, and the sentences that say nothing.
_FENCE = patterns.compile(r"^[ \t]*(?:```|~~~).*?(?:^[ \t]*(?:```|~~~)[^\n]*$|\Z)", patterns.S | patterns.M)
_TABLE_ROW = patterns.compile(r"^[ \t]*\|.*$|^[ \t]*[-=|: ]{4,}$", patterns.M)
_MARKS = patterns.compile(r"^[ \t]*(?:#{1,6}|>|[-*•]|\d+[.)])[ \t]+|\*\*|__", patterns.M)
_PLEASANTRY = patterns.compile(
    r"""(?:
        (?:all\ )?done|perfect|great|excellent|good(?:\ (?:question|point|catch|idea))?|sure|yes|ok(?:ay)?
        |you'?re\ (?:absolutely\ )?right|here(?:'s|\ is|\ are)\b.*|now\ let\ me\b.*|let\ me\b.*
        |i(?:'ll|\ will)\b.*|summary|changes(?:\ made)?|what\ (?:i\ did|changed)
    )[\s.!:,]*""",
    patterns.I | patterns.X,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def memory_id(kind: MemoryKind, source_key: str) -> str:
    """Id of the memory that is made of that source row or fact."""
    return derived_text(f"memory:{kind}:{source_key}")


def bucket_of(kind: InsightKind) -> Bucket:
    """Bucket of a claim of that type. (Turns and episodes are EPISODIC, a bug pattern is a FACT.)"""
    return _BUCKETS[kind]


def is_steering(prompt: str) -> bool:
    """Whether a prompt says nothing worth remembering: assent, thanks, "continue", "push", a slash command."""
    text = prompt.strip()
    if len(text) >= 80:
        return False
    if _SLASH_COMMAND.match(text):
        return True
    return all(word in _STEERING or word.isdigit() for word in _WORDS.findall(text.lower()))


def is_chore(prompt: str) -> bool:
    """Whether a short prompt is about a chore of version control, whatever was said before it."""
    return not _CHORES.isdisjoint(_WORDS.findall(prompt[:240].lower()))


def distinctive(prompt: str) -> frozenset[str]:
    """The words that a prompt has beside assent, thanks, and the chores of version control."""
    return frozenset(tokens(prompt[:4_000])) - _STEERING_STEMS


def worth_keeping(text: str, importance: float) -> bool:
    """The write pipeline's two doors: long enough, and important enough."""
    return length_of(text) >= SHORTEST and importance >= LEAST_IMPORTANCE


def turn_importance(turn: Turn) -> float:
    """0 to 1: what was asked, what was changed, whether reasons were given."""
    length = length_of(turn.prompt)
    bare = is_steering(turn.prompt) or length < SHORTEST
    why = bool(turn.reasons or (bare and reasons_in(turn.answer, SAYS_MUCH)))
    if bare and len(turn.answer) < SAYS_MUCH and not why:
        return 0.0
    score = 0.3
    score += 0.1 if turn.files else 0.0
    score += 0.1 if len(turn.answer) >= SAYS_MUCH else 0.0
    score += 0.1 if why or _REASONED.search(turn.prompt) or _REASONED.search(turn.answer) else 0.0
    score += 0.05 if "?" in turn.prompt and turn.answer else 0.0
    if length < 25 and len(turn.answer) < 80 and not why:
        score -= 0.15
    return round(min(score, 1.0), 4)


def episode_importance(episode: Episode) -> float:
    """0 to 1: known outcome, errors met and solved, changes, decisions, complexity, what the user felt."""
    if is_steering(episode.description) and not episode.files and not episode.resolved:
        return 0.0
    score = 0.35
    score += 0.1 if episode.outcome in ("success", "failure") else 0.0
    score += 0.15 if episode.resolved else 0.05 if episode.signatures else 0.0
    score += 0.1 if episode.files else 0.0
    score += 0.1 if episode.decisions or episode.pivots else 0.0
    score += 0.1 * min(max(episode.complexity, 0.0), 1.0)
    score += 0.1 if episode.feedback != "neutral" else 0.0
    if not episode.steps and not episode.files:
        score -= 0.1
    return round(min(score, 1.0), 4)


DOCUMENT_IMPORTANCE = COMMIT_IMPORTANCE = 0.5
"""Of a section of a document: somebody wrote it down to be read again."""


def bug_importance(occurrences: int, best_rate: float | None) -> float:
    """0 to 1: how often it came, and whether a way out is known that lasted (its success rate, None without one)."""
    score = 0.35 + min(max(occurrences, 1) - 1, 10) * 0.02
    if best_rate is not None:
        score += 0.15 + 0.3 * best_rate
    return round(min(score, 1.0), 4)


def strategy_importance(confidence: float, sessions: int) -> float:
    """0 to 1: how sure a lesson is, and how many sessions taught it."""
    return round(min(0.35 + 0.3 * confidence + 0.02 * min(sessions, 10), 1.0), 4)


def knowledge_importance(kind: InsightKind, confidence: float, user_said: bool) -> float:
    """0 to 1: what the user said of themselves and of how to work weighs most."""
    score = {"preference": 0.6, "profile": 0.55, "expertise": 0.5, "pattern": 0.5, "fact": 0.45}[kind]
    score += 0.15 if user_said else 0.0
    return round(min(score + 0.2 * min(max(confidence, 0.0), 1.0), 1.0), 4)


_SENTENCES_WITHIN = 4
"""First sentences are looked for in so many times the characters they may have."""


LEAD, SPEAKS_FOR_ITSELF = 160, 240
"""Characters: of a prompt that the next one is led in by, and of one that needs no lead."""


def lead_of(before: str, prompt: str) -> str:
    """How the prompt before a short one begins, on one line; nothing for one that speaks for itself."""
    return one_line(before, LEAD) if len(prompt) < SPEAKS_FOR_ITSELF else ""


def first_sentences(text: str, limit: int) -> str:
    """Whole sentences from the start of the text while they fit in `limit` characters, on one line."""
    found = ""
    for match in _SENTENCE.finditer(text[: limit * _SENTENCES_WITHIN].strip()):
        sentence = " ".join(match.group().split())
        if not sentence:
            continue
        if found and len(found) + 1 + len(sentence) > limit:
            break
        found = f"{found} {sentence}" if found else sentence
        if len(found) >= limit:
            break
    return one_line(found, limit)


def key_sentences(answer: str, limit: int) -> str:
    """The first sentences of an answer that say something: without code, tables, marks of Markdown and pleasantries.

    Falls back on the first sentences of all where nothing else is left.
    """
    said, length = [], 0
    for sentence in plain_sentences(answer[: limit * 10]):
        said.append(sentence)
        length += len(sentence) + 1
        if length > limit * _SENTENCES_WITHIN:
            break
    return first_sentences("\n".join(said), limit) or first_sentences(answer, limit)


def plain_sentences(text: str) -> Iterator[str]:
    """The sentences of a text that say something, without code, tables, marks of Markdown and pleasantries."""
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("", text)
    for match in _SENTENCE.finditer(_MARKS.sub("", _TABLE_ROW.sub("", text))):
        sentence = match.group().strip()
        if not _PLEASANTRY.fullmatch(sentence):
            yield sentence


def sentences(text: str) -> Iterator[str]:
    """The sentences, lines of code and rows of tables of a text, each on one line without marks of Markdown."""
    for match in _SENTENCE.finditer(_MARKS.sub("", text)):
        sentence = " ".join(match.group().replace("|", " ").split())
        if any(map(str.isalnum, sentence)):
            yield sentence


def day_of(micros: int) -> str:
    """The day of a moment in UTC, as people search for it: `2026-01-22 January`. Empty where it is out of range."""
    return _day(micros // 86_400_000_000)


@remembered(1024)
def _day(days: int) -> str:
    try:
        day = _EPOCH + timedelta(days=days)
    except OverflowError:
        return ""
    return f"{day:%Y-%m-%d} {day:%B}"


def search_text(*parts: str) -> str:
    """The parts that say something, a line each, cut to what is indexed."""
    return clipped("\n".join(p.strip() for p in parts if p.strip()), SEARCH)


def place_of(location: str) -> str:
    """The project's name as a word to search by; empty for no location."""
    return project_name(location) if location else ""
