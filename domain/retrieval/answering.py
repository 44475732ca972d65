"""How well memories answer what somebody asks: which of the question's words each holds, and its session besides.

A score compares a question with a memory as a whole. Who asks wants the sentences that answer, and asks about what one
session did, not about one turn of it. So a memory counts for more where few sentences hold much of the question, where
other parts of its session hold the rest, and where these were found for it too. Words are weighed by how few of the
memories found hold them; a word that none holds weighs most, for then nothing here is about it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice, takewhile
from typing import NamedTuple

from memctl.domain.knowledge.memory import sentences
from memctl.domain.retrieval.calibration import COEFFICIENTS, features, logistic
from memctl.domain.support.bounded import clipped
from memctl.domain.support.certainty import Class
from memctl.domain.support.text import BM25_B, BM25_K1, tokens

LOOKED_AT, MOST_SENTENCES, LONGEST_SENTENCE = 12_000, 400, 360
"""Characters of a text in which its passage is looked for, sentences of it, and characters of one of them."""

POOL = 50
"""Memories that words are weighed by, at least: where fewer were found, a word may still be common."""

AGAIN = 0.3
"""What the words of a passage's first sentence count once more, so that it begins where it answers."""

QUESTION = 0.6
"""What a passage counts that begins with a question: who asks knows it."""

ASKED_SIDE = 0.7
"""What a passage counts of what was asked, beside one of what was answered: who asks knows the question."""

FIT, COVER, MASS = 3.0, 2.0, 0.5
"""By how much the logarithm of the odds grows with the share of the question that a passage holds, with the share that
its session holds, and with the scores of the other parts of that session."""

FEW, AMONG, SHARE = 5, 0.65, 0.25
"""Results among which an answer is looked for; the chance that it is among them from which on something is known; and
the share of the best one's chance from which on another may be it."""

SAID_BEFORE = 0.3
"""By how much a part stands lower for each of its session that stands before it: other sessions have a say too."""

FADING, MOST_PARTS, CROWDING = 0.5, 4, 10.0
"""Each further part of a session counts so many times the one before it, so many parts count, and more of them stand
behind what other sessions say."""

KEPT = 3
"""Sessions that stand first by what answers, where more than an answer is asked for."""

MARGIN, BEHIND = 2.0, 0.01
"""How much better a part that settles nothing has to be to stand before the best of its session that does, and by how
much it stays behind that one otherwise."""


AS_MUCH = 0.5
"""Of the words of a question that one holds which nobody answered, what an answer has to hold to stand before it."""


Said = tuple[tuple[str, frozenset[str]], ...]
"""The sentences of a text, each with its words."""


class Part(NamedTuple):
    """A memory that was found: what it is a part of, its place among others (0 to 1), and what its sides say: what was
    asked, and what was answered."""

    id: str
    session: str
    order: float
    sides: tuple[Said, ...]
    settles: bool = True
    """Not an answer that asks back, nor an error without a cause."""
    unanswered: bool = False
    """It is what somebody asked, and nobody answered."""


class Fitting(NamedTuple):
    """A part with how well it answers: `fit` and `cover` are the shares (0 to 1) of the question that its best passage
    and its session hold, `mass` what else of its session was found, `odds` the logarithm by which parts are ordered."""

    id: str
    fit: float
    cover: float
    mass: float
    odds: float


class Passage(NamedTuple):
    """Sentences that stand together, how much of the question's weight they hold, and on which side they stand."""

    text: str
    held: float
    side: int = 0


def weights(query: str, texts: Iterable[frozenset[str]]) -> dict[str, float]:
    """Of each word of a question, how much it says which of these texts is meant."""
    asked = frozenset(tokens(query))
    counts: Counter[str] = Counter()
    number = 0
    for words in texts:
        counts.update(words & asked)
        number += 1
    number = max(number, POOL)
    return {word: math.log(1 + (number - counts[word] + 0.5) / (counts[word] + 0.5)) for word in asked}


def said_in(text: str) -> Said:
    """What a text says, as far as it is looked at."""
    within = islice(sentences(text[:LOOKED_AT]), MOST_SENTENCES)
    return tuple((clipped(sentence, LONGEST_SENTENCE), frozenset(tokens(sentence))) for sentence in within)


def passage(sides: Sequence[Said], weight: Mapping[str, float], most: int, room: int = 0) -> Passage:
    """The sentences of a text that stand together and hold most of a question; at most `most` characters, and what
    stands behind and before them as far as there is `room` for more.

    Of a text with sides, a question and its answer, the last one counts in full.
    """
    found = [_of_side(side, weight, most, max(most, room))._replace(side=number) for number, side in enumerate(sides)]
    found[:-1] = [each._replace(held=each.held * ASKED_SIDE) for each in found[:-1]]
    return max(reversed(found), key=lambda each: each.held, default=Passage("", 0.0))


def lines(text: str, weight: Mapping[str, float], room: int, nearest: str = "") -> str:
    """The lines of a list that hold of a question what no other of them holds, in their order, and what stands before
    as far as there is room: each says something by itself, wherever the next one stands. The line that ends in what is
    `nearest` in meaning is one of them."""
    found = {at: (line, frozenset(tokens(line))) for at, line in enumerate(text[:LOOKED_AT].splitlines())}
    chosen: dict[int, str] = {}
    held: set[str] = set()
    if nearest and (at := next((at for at, (line, _) in found.items() if line.endswith(nearest)), None)) is not None:
        chosen[at], held = clipped(found[at][0], room), held | found[at][1]
        room -= len(found[at][0]) + 1
    while left := {at: words - held for at, (_, words) in found.items() if at not in chosen}:
        best = max(left, key=lambda at: (_held(left[at], weight) + AGAIN * _held(found[at][1], weight), -at))
        if not _held(left[best], weight):
            break
        held |= left[best]
        if not chosen or len(found[best][0]) < room:
            chosen[best] = clipped(found[best][0], room)
            room -= len(found[best][0]) + 1
    for at, (line, _) in found.items() if chosen else ():
        if at not in chosen and len(line) < room:
            chosen[at] = line
            room -= len(line) + 1
    return "\n".join(chosen[at] for at in sorted(chosen))


def _of_side(said: Said, weight: Mapping[str, float], most: int, whole: int) -> Passage:
    best, begin, end = 0.0, 0, 0
    for first, (sentence, words) in enumerate(said):
        own = _held(words, weight)
        if not own:
            continue
        last, room = first, most
        held: set[str] = set()
        while last < len(said) and (last == first or len(said[last][0]) < room):
            room -= len(said[last][0]) + 1
            held |= said[last][1]
            last += 1
        worth = (_held(held, weight) + AGAIN * own) * (QUESTION if sentence.endswith("?") else 1.0)
        if worth > best:
            best, begin, end = worth, first, last
    if not best:
        return Passage("", 0.0)
    for room, on in ((most, 0), (whole, 1), (whole, 0)):
        while (end < len(said) if on else begin > 0) and _length(said[begin - 1 + on : end + on]) <= room:
            begin, end = begin - 1 + on, end + on
    return Passage(clipped(" ".join(sentence for sentence, _ in said[begin:end]), whole), best)


def _length(said: Said) -> int:
    return sum(len(sentence) + 1 for sentence, _ in said)


def _held(words: Set[str], weight: Mapping[str, float]) -> float:
    return math.fsum(weight[word] for word in weight.keys() & words)


def fitting(parts: Sequence[Part], weight: Mapping[str, float], most: int) -> list[Fitting]:
    """The parts in the order in which they answer a question, best first."""
    words = {part.id: words_of(part) for part in parts}
    whole = math.fsum(weight.values()) or 1.0
    by_session: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        by_session[part.session].append(part)
    found: dict[str, Fitting] = {}
    for part in parts:
        beside = by_session[part.session]
        others = sorted((each.order for each in beside if each.id != part.id), reverse=True)[:MOST_PARTS]
        mass = min(sum(order * FADING**number for number, order in enumerate(others, 1)), 1.0)
        fit = passage(part.sides, weight, most).held / ((1 + AGAIN) * whole)
        cover = _held(frozenset().union(*(words[each.id] for each in beside)), weight) / whole
        odds = features(part.order, 1.0)[0] + FIT * fit + COVER * cover + MASS * mass
        found[part.id] = Fitting(part.id, fit, cover, mass, odds)
    for beside in by_session.values():
        best = max((found[each.id].odds for each in beside if each.settles), default=-math.inf)
        for part in beside:
            if not part.settles and best <= found[part.id].odds < best + MARGIN:
                found[part.id] = found[part.id]._replace(odds=best - BEHIND)
    found |= _behind_answers(parts, found, {id: _held(said, weight) for id, said in words.items()})
    places: dict[str, float] = {}
    for beside in by_session.values():
        of_one = sorted((found[each.id] for each in beside), key=lambda each: (-each.odds, each.id))
        places |= {
            each.id: each.odds - SAID_BEFORE * number - CROWDING * (number >= MOST_PARTS)
            for number, each in enumerate(of_one)
        }
    return sorted(found.values(), key=lambda each: (-places[each.id], each.id))


def _behind_answers(
    parts: Sequence[Part], found: Mapping[str, Fitting], held: Mapping[str, float]
) -> dict[str, Fitting]:
    """The questions that nobody answered, right behind the best answer to the same words: who asks again knows them."""
    moved: dict[str, Fitting] = {}
    for part in parts:
        if part.unanswered:
            answers = (
                found[each.id].odds
                for each in parts
                if each.settles and not each.unanswered and 0 < held[each.id] >= AS_MUCH * held[part.id]
            )
            best = max(answers, default=math.inf)
            if best <= found[part.id].odds:
                moved[part.id] = found[part.id]._replace(odds=best - BEHIND)
    return moved


def by_words(query: str, sessions: Mapping[str, Sequence[str]]) -> list[str]:
    """Those sessions that hold words of a query, by BM25 over all the words of each, best first.

    A session says in many parts what it is about. No part of it may be near to a long request."""
    counts = {session: Counter(words) for session, words in sessions.items()}
    asked = frozenset(tokens(query))
    holding = Counter(word for words in counts.values() for word in asked & words.keys())
    average = sum(words.total() for words in counts.values()) / max(len(counts), 1)
    scores: dict[str, float] = {}
    for session, words in counts.items():
        norm = BM25_K1 * (1 - BM25_B + BM25_B * words.total() / max(average, 1.0))
        scores[session] = math.fsum(
            math.log(1 + (len(counts) - holding[word] + 0.5) / (holding[word] + 0.5))
            * (words[word] * (BM25_K1 + 1) / (words[word] + norm))
            for word in asked & words.keys()
        )
    return sorted((each for each in scores if scores[each] > 0), key=lambda each: (-scores[each], each))


def beside_the_first(sessions: Mapping[str, str], by_words: Sequence[str]) -> list[str]:
    """Results in their order, each with its session; behind those of the first `KEPT` sessions stands the best of each
    that holds words of the query, by how well it holds them."""
    first = {sessions[id]: id for id in reversed(list(sessions))}
    kept = list(dict.fromkeys(sessions.values()))[:KEPT]
    ahead = takewhile(lambda id: sessions[id] in kept, sessions)
    return list(dict.fromkeys((*ahead, *(first[each] for each in by_words if each in first), *sessions)))


def chance(odds: float) -> float:
    """How likely a part answers, 0 to 1, by the logarithm it is ordered by."""
    return logistic(COEFFICIENTS.answer + COEFFICIENTS.by_odds * odds)


def classes(chances: Sequence[float], before: Sequence[Class]) -> list[Class]:
    """How far to trust that results answer, by the chance of each, best first.

    Of several parts that fit a little, one may well be it: what counts is whether the answer is among the first few.
    What was high before its passages were read stays so, nothing else is.
    """
    if math.fsum(chances[:FEW]) < AMONG:
        return ["none"] * len(chances)
    least = max(chances[:FEW]) * SHARE
    return [
        "none" if each < least else "high" if was == "high" else "suggested"
        for each, was in zip(chances, before, strict=True)
    ]


def words_of(part: Part) -> frozenset[str]:
    """The words of a part, by which questions are compared with it."""
    return frozenset().union(*(words for said in part.sides for _, words in said))
