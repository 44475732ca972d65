"""The passages of a conversation that say what it came to: the sentences that its turns keep coming back to.

A decision is seldom taken where the subject is first named: it is settled turns later, corrected by the user, and
repeated at the end. So a sentence is worth showing for the words that it shares with other turns and with the question,
more so if the user said it or it stands at the end, and less so for words that are shown already.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memctl.domain.knowledge.memory import plain_sentences
from memctl.domain.support.bounded import clipped
from memctl.domain.support.text import tokens

MOST_TURNS, MOST_SENTENCES, LONGEST_SENTENCE = 24, 240, 320
"""Turns of a conversation that are looked at, sentences of them, and characters of a sentence."""

SHORTEST_SENTENCE = 3
"""Words of a sentence that says something by itself."""

ASKED_FOR, BY_USER, AT_END, A_QUESTION = 2.5, 1.4, 1.6, 0.3
"""What the worth of a sentence is multiplied by: of its words in the question; of the user's sentences; of those of the
last answer; of questions."""


class Exchange(NamedTuple):
    """What the user said, and what the agent answered."""

    prompt: str
    answer: str


class _Sentence(NamedTuple):
    place: int
    turn: int
    by_user: bool
    text: str
    words: frozenset[str]
    factor: float


def exchange_of(text: str) -> Exchange:
    """The two sides of a turn's memory."""
    prompt, _, answer = text.partition("\n→ ")
    return Exchange(prompt, answer)


def passages(turns: Sequence[Exchange], query: str, most: int) -> str:
    """The sentences that say what these turns came to, in order, each with who said it; at most `most` characters."""
    turns = turns[-MOST_TURNS:]
    asked = frozenset(tokens(query[:4_000]))
    sentences = list(_sentences(turns))[-MOST_SENTENCES:]
    within = Counter(word for words in _words_by_turn(sentences) for word in words)
    worth = {word: math.log1p(count) * (ASKED_FOR if word in asked else 1.0) for word, count in within.items()}
    chosen: list[_Sentence] = []
    left = most
    while sentences:
        best = max(sentences, key=lambda each: (_worth(each, worth), each.place))
        if _worth(best, worth) <= 0:
            break
        sentences.remove(best)
        cost = len(best.text) + len(" agent: ")
        if cost > left:
            continue
        left -= cost
        chosen.append(best)
        for word in best.words:
            worth[word] *= 0.2
    return _in_order(chosen)


def passage_of(text: str, query: str, most: int) -> str:
    """The part of a memory's text that meets a question: the text itself where it is short."""
    if len(text) <= most:
        return text
    exchange = exchange_of(text)
    found = passages([exchange], query, most)
    # A claim or a document has one voice: nobody need be named.
    return (found if exchange.answer else found.removeprefix("user: ")) or clipped(text, most)


def likeness(one: Iterable[str], other: Iterable[str], rarity: dict[str, float]) -> float:
    """How much alike two texts are by their words, 0 to 1: the cosine of their words, each weighted by its rarity."""
    first, second = frozenset(one), frozenset(other)
    shared = sum(rarity.get(word, 0.0) ** 2 for word in first & second)
    whole = math.sqrt(_mass(first, rarity) * _mass(second, rarity))
    return shared / whole if whole > 0 else 0.0


def _mass(words: frozenset[str], rarity: dict[str, float]) -> float:
    return math.fsum(rarity.get(word, 0.0) ** 2 for word in words)


def _sentences(turns: Sequence[Exchange]) -> Iterator[_Sentence]:
    last, place = len(turns) - 1, 0
    for number, turn in enumerate(turns):
        near_end = 0.7 + 0.3 * (number / last if last else 1.0)
        for by_user, text in ((True, turn.prompt), (False, turn.answer)):
            for sentence in plain_sentences(text):
                words = frozenset(tokens(sentence))
                if len(words) < SHORTEST_SENTENCE:
                    continue
                factor = near_end * (BY_USER if by_user else AT_END if number == last else 1.0)
                factor *= A_QUESTION if sentence.rstrip("\"')").endswith("?") else 1.0
                place += 1
                yield _Sentence(place, number, by_user, sentence[:LONGEST_SENTENCE], words, factor)


def _words_by_turn(sentences: Sequence[_Sentence]) -> Iterable[frozenset[str]]:
    by_side: dict[tuple[int, bool], set[str]] = {}
    for each in sentences:
        by_side.setdefault((each.turn, each.by_user), set()).update(each.words)
    return [frozenset(words) for words in by_side.values()]


def _worth(sentence: _Sentence, worth: dict[str, float]) -> float:
    dense = float((len(sentence.words) + 6) ** 0.7)
    return sentence.factor * math.fsum(worth[word] for word in sentence.words) / dense


def _in_order(chosen: Sequence[_Sentence]) -> str:
    pieces: list[str] = []
    speaker: bool | None = None
    for each in sorted(chosen, key=lambda each: each.place):
        if each.by_user != speaker:
            pieces.append("user:" if each.by_user else "agent:")
            speaker = each.by_user
        pieces.append(each.text)
    return " ".join(pieces)
