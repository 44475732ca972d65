"""The passages of a conversation that answer a question: few sentences, of the turns that are about it.

A decision is seldom taken where the subject is first named: it is settled turns later, corrected by the user, and
repeated at the end. A session goes on to other subjects too. So a turn counts for how much of the question it holds,
and hands that on to the turns around it, most to those that follow. A sentence is worth showing for the words that it
shares with the question and with other turns that count, more so where the subject is last spoken of, or if it names
things. What adds little to the best of them is left out.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from memctl.domain.knowledge.memory import plain_sentences
from memctl.domain.support.bounded import clipped
from memctl.domain.support.mentions import names_in
from memctl.domain.support.text import tokens

MOST_TURNS, MOST_SENTENCES, LONGEST_SENTENCE = 24, 240, 320
"""Turns of a conversation that are looked at, sentences of them, and characters of a sentence."""

SHORTEST_SENTENCE, FENCE = 3, "```"
"""Words of a sentence that says something by itself, and what it does not hold."""

ASKED_FOR, AT_END, A_QUESTION = 1.5, 2.0, 0.3
"""What the worth of a sentence is multiplied by: of its words in the question; of the last answer that is about
the question; of questions, and of what only leads over to a list."""

NAMES, MOST_NAMES = 0.1, 3
"""What each name in a sentence adds to its worth, and how many count."""

_ENDS = (".", "!", "?", "。", ":", ";", ",", "…", ")")

REPEATS = 0.7
"""The share of its worth that a user's sentence loses which only asks the same."""

FORWARD, AWAY, BACK, ABOUT = 0.97, 0.6, 0.5, 0.15
"""The share of what a turn counts for that the next one has of it, where it goes on with the subject and where it does
not, and the one before; and from which share of the best turn on one is about the question by itself."""

GOES_ON = 0.15
"""The share of a turn's words that were said of the subject before, for it to go on with that."""

ENOUGH, SHOWN = 0.45, 0.6
"""The share of the best sentence's worth below which others are left out; and what words are worth that are shown."""


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


def passages(turns: Sequence[Exchange], query: str, most: int, prompts: str = "user") -> dict[int, str]:
    """The sentences of these turns that answer, by the number of the turn that holds them, each with who said it; at
    most `most` characters. `prompts`: whose these turns' prompts are."""
    skipped = max(len(turns) - MOST_TURNS, 0)
    turns = turns[skipped:]
    asked = frozenset(tokens(query[:4_000]))
    held, last = relevance(turns, asked)
    sentences = list(_sentences(turns, asked, last))[-MOST_SENTENCES:]
    within: defaultdict[str, float] = defaultdict(float)
    for turn, words in _words_by_side(sentences):
        for word in words:
            within[word] += held[turn]
    worth = {word: math.log1p(count) * (ASKED_FOR if word in asked else 1.0) for word, count in within.items()}
    chosen: list[_Sentence] = []
    left, least = most, 0.0
    while sentences:
        best = max(sentences, key=lambda each: (_worth(each, worth) * held[each.turn], each.place))
        value = _worth(best, worth) * held[best.turn]
        least = least or value * ENOUGH
        if value <= 0 or value < least:
            break
        sentences.remove(best)
        cost = len(best.text) + len(" agent: ;")
        if cost > left:
            continue
        left -= cost
        chosen.append(best)
        for word in best.words:
            worth[word] *= SHOWN
    chosen.sort(key=lambda each: each.place)
    return {skipped + turn: _spoken(said, prompts) for turn, said in groupby(chosen, key=lambda each: each.turn)}


def relevance(turns: Sequence[Exchange], asked: frozenset[str]) -> tuple[list[float], int]:
    """How much each turn counts for a question, 0 to 1, and which is the last one that is about it by itself."""
    words = [frozenset(tokens(f"{turn.prompt} {turn.answer}")) for turn in turns]
    shared = [len(asked & each) for each in words]
    most = max(shared, default=0)
    if not most:
        return [1.0] * len(turns), len(turns) - 1
    held = [count / most for count in shared]
    last = max(number for number, share in enumerate(held) if share >= ABOUT)
    subject: set[str] = set()
    for number, own in enumerate(words):
        goes_on = len(own & subject) >= GOES_ON * len(own)
        held[number] = max(held[number], (FORWARD if goes_on else AWAY) * held[number - 1] if number else 0.0)
        if held[number] >= BACK:
            subject |= own
    for number in range(len(held) - 2, -1, -1):
        held[number] = max(held[number], BACK * held[number + 1])
    return held, last


def passage_of(text: str, query: str, most: int, prompts: str = "user") -> str:
    """The part of a memory's text that meets a question: the text itself where it is short. `prompts`: as above."""
    if len(text) <= most:
        return text
    exchange = exchange_of(text)
    found = passages([exchange], query, most, prompts).get(0, "")
    # A claim or a document has one voice: nobody need be named.
    return (found if exchange.answer else found.removeprefix(f"{prompts}: ")) or clipped(text, most)


def likeness(one: Iterable[str], other: Iterable[str], rarity: dict[str, float]) -> float:
    """How much alike two texts are by their words, 0 to 1: the cosine of their words, each weighted by its rarity."""
    first, second = frozenset(one), frozenset(other)
    shared = sum(rarity.get(word, 0.0) ** 2 for word in first & second)
    whole = math.sqrt(_mass(first, rarity) * _mass(second, rarity))
    return shared / whole if whole > 0 else 0.0


def _mass(words: frozenset[str], rarity: dict[str, float]) -> float:
    return math.fsum(rarity.get(word, 0.0) ** 2 for word in words)


def _sentences(turns: Sequence[Exchange], asked: frozenset[str], last: int) -> Iterator[_Sentence]:
    place = 0
    for number, turn in enumerate(turns):
        for by_user, text in ((True, turn.prompt), (False, turn.answer)):
            for sentence in plain_sentences(text):
                words = frozenset(tokens(sentence))
                if len(words) < SHORTEST_SENTENCE or FENCE in sentence:
                    continue
                factor = AT_END if number == last and not by_user else 1.0
                factor *= A_QUESTION if sentence.rstrip("\"')").endswith(("?", ":")) else 1.0
                if by_user and turn.answer:
                    factor *= 1 - REPEATS * len(words & asked) / len(words)
                factor *= 1 + NAMES * min(len(names_in(sentence)), MOST_NAMES)
                place += 1
                yield _Sentence(place, number, by_user, clipped(sentence, LONGEST_SENTENCE), words, factor)


def _words_by_side(sentences: Sequence[_Sentence]) -> Iterator[tuple[int, frozenset[str]]]:
    """The turn and the words of each side of each exchange."""
    by_side: dict[tuple[int, bool], set[str]] = {}
    for each in sentences:
        by_side.setdefault((each.turn, each.by_user), set()).update(each.words)
    for (turn, _), words in by_side.items():
        yield turn, frozenset(words)


def _worth(sentence: _Sentence, worth: dict[str, float]) -> float:
    dense = float((len(sentence.words) + 6) ** 0.7)
    return sentence.factor * math.fsum(worth[word] for word in sentence.words) / dense


def _spoken(said: Iterable[_Sentence], prompts: str) -> str:
    pieces: list[str] = []
    speaker: bool | None = None
    for each in said:
        if each.by_user != speaker:
            pieces.append(f"{prompts}:" if each.by_user else "agent:")
            speaker = each.by_user
        # What stood on a line of its own, as the points of a list do, may end in no full stop.
        pieces.append(each.text if each.text.endswith(_ENDS) else f"{each.text};")
    return " ".join(pieces).rstrip(";")
