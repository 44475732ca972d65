"""What earlier conversations came to, around what was found in them: for a prompt, not one turn but its outcome.

The turn that is most like a prompt is mostly the one in which the subject was first named. What the work needs stands
turns later: the user's corrections, and what was settled. Of two conversations about one subject the later one holds.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from posixpath import basename, splitext
from typing import NamedTuple

import msgspec
from msgspec import structs
from psycopg import sql

from memctl.api.reading import models
from memctl.api.reading.evidence import events_of
from memctl.api.reading.feedback import regards
from memctl.api.reading.pages import Condition, Where, page, several
from memctl.api.reading.reader import Reader
from memctl.api.reading.views import Found
from memctl.api.search.engine import ANSWER, part_of
from memctl.domain.events.observations import ResponseReceived
from memctl.domain.knowledge.acting import commands_somebody
from memctl.domain.knowledge.memory import plain_sentences
from memctl.domain.knowledge.orders import unobeyed
from memctl.domain.language.prompt_origin import typed_of
from memctl.domain.retrieval import answering
from memctl.domain.retrieval.answering import passage, said_in, weights
from memctl.domain.retrieval.calibration import LIKELY, chance
from memctl.domain.retrieval.passages import Exchange, exchange_of, likeness, passages, relevance
from memctl.domain.support.mentions import path_within
from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import tokens
from memctl.projections.memory_rows import Memory

BEFORE, AFTER = 1, 22
"""Turns of a session that are looked at, before and after those that were found."""

COPIED = 80
"""Characters of an exchange from which on two sessions do not share it by chance."""

MOSTLY = 0.65
"""The share of the turn that is most about a question, from which on what a turn changed was for it."""

AROUND_US = 12 * 3_600_000_000
"""How far from a turn others of its conversation are looked for."""

PASSAGE, ANSWERS = 500, 0.5
"""Characters of what the turn says that holds most of a question, and the share of that which its answer holds."""

WHOLE = 16_000
"""Characters of all that a turn answered that are looked through, from its end."""

MOST_CONVERSATIONS, MOST_LOADED = 6, 100
"""Conversations that are looked at for one question, and turns that are read of each."""

SAME_SUBJECT, ALSO_HELD, SAYS = 0.15, 0.25, 700
"""From this likeness of what they say on two conversations are about one subject, and the later one is said first where
it holds this share of what the other holds of a question: what every answer ends with makes none alike. Of sde-bench's
six amended decisions the least like had .193, and of 171 other pairs the most alike .111. And the characters of what
one says."""


class Said(NamedTuple):
    """The sentences of one turn that answer a question."""

    turn: Memory
    text: str


class Conversation(msgspec.Struct, frozen=True):
    """A stretch of a session that bears on a question. `id` is the memory by which it was found, `turns` are all its
    turns that are looked at, oldest first; `at` (microseconds) is when the last of them was; `says` is what answers,
    oldest first, empty where nothing came of what was asked; `held` is how much of the question one answered turn of it
    holds, each word by how few of all found hold it, and `lead` how many times what any of another subject holds;
    `chance` is how likely it answers, as `ask` works that out."""

    id: str
    score: float
    class_: str
    session: str
    at: int
    turns: tuple[Memory, ...]
    says: tuple[Said, ...] = ()
    held: float = 0.0
    lead: float = 0.0
    chance: float = 0.0
    best: Memory | None = None
    """What was found of it that holds most of a question, be it of a copy."""

    def built(self, query: str) -> tuple[str, ...]:
        """The files that it changed in turns about a question, first those whose names the question's words are in."""
        asked = frozenset(tokens(query[:4_000]))
        held, _ = relevance([exchange_of(turn.text) for turn in self.turns], asked)
        about = [turn for turn, share in zip(self.turns, held, strict=True) if share >= MOSTLY]
        edited = (path_within(turn.location, path) for turn in reversed(about) for path in turn.files)
        return tuple(sorted(dict.fromkeys(filter(None, edited)), key=lambda path: -named_alike(path, asked)))


def answer_of(turns: Sequence[Memory], query: str) -> tuple[Said, ...]:
    """The sentences of these turns that answer a question. Empty where nobody answered."""
    exchanges = [_volunteered(turn) for turn in turns]
    if len(exchanges) == 1 and not exchanges[0].answer:
        return ()
    return tuple(Said(turns[number], text) for number, text in passages(exchanges, query, SAYS).items())


def weights_of(query: str, found: Sequence[Found]) -> dict[str, float]:
    """Of each word of a question, how much it says which of the results is meant."""
    return weights(query[:4_000], [frozenset(tokens(each.text)) for each in found])


def held_by(text: str, weight: Mapping[str, float]) -> float:
    """How much of a question a text holds, by what each of its words weighs."""
    return math.fsum(map(weight.__getitem__, weight.keys() & tokens(text)))


def chances_of(found: Sequence[Found], rows: Mapping[str, Memory], weight: Mapping[str, float]) -> dict[str, float]:
    """How likely each of what was found answers, as it is worked out for who asks: by its words, and its session's."""
    parts = [part_of(rows[each.id], each.score) for each in found if each.id in rows]
    return {each.id: answering.chance(each.odds) for each in answering.fitting(parts, weight, ANSWER)}


def with_answer(reader: Reader, each: Conversation, weight: Mapping[str, float]) -> tuple[Said, ...]:
    """What a conversation came to, with the sentences that answer, out of all that was answered in the turn that is
    most about the question, where it was answered there and not only asked: who asks again wants those, and not what
    was talked of later."""
    turns = each.turns if each.best is None or each.best in each.turns else (each.best, *each.turns)
    sides = [tuple(map(said_in, filter(None, exchange_of(turn.text)))) for turn in turns]
    turn = turns[max((round(passage(said, weight, PASSAGE).held, 2), number) for number, said in enumerate(sides))[1]]
    answer = unobeyed(whole_answer(reader, turn)) if each.says else ""
    if not answer or held_by(answer, weight) < ANSWERS * held_by(turn.text, weight):
        return each.says
    before = "".join(one.text.partition("agent: ")[0] for one in each.says if one.turn.text == turn.text)
    said = Said(turn, f"{before}agent: {passage([said_in(answer)], weight, PASSAGE).text}")
    others = (one for one in each.says if one.turn.text != turn.text)
    return tuple(sorted((*others, said), key=lambda one: (one.turn.occurred_at, one.turn.id)))


def whole_answer(reader: Reader, turn: Memory) -> str:
    """All that was answered in a turn: its memory holds the end of that."""
    events = events_of(reader, turn.evidence)
    said = [events[span.event].payload for span in turn.evidence if span.event in events]
    whole = "\n\n".join(dict.fromkeys(one.text for one in said if isinstance(one, ResponseReceived)))
    return whole[-WHOLE:] or exchange_of(turn.text).answer


def named_alike(path: str, asked: frozenset[str]) -> int:
    """How many of a question's words the name of a file is made of."""
    return len(asked.intersection(tokens(splitext(basename(path))[0])))


def _volunteered(turn: Memory) -> Exchange:
    """What may be given of it unasked: what the user typed, and no sentence that might be obeyed; of the agent's words
    none that orders anything."""
    exchange = exchange_of(turn.text)
    # A row holds the beginning of a long prompt, and says whether any of the whole was typed.
    pasted = turn.said_by is Provenance.USER_PASTED
    typed = "" if pasted else typed_of(exchange.prompt).strip()
    if commands_somebody(typed):
        typed = " ".join(each for each in plain_sentences(typed) if not commands_somebody(each))
    return Exchange(typed, unobeyed(exchange.answer))


def conversations(reader: Reader, found: Sequence[Found], query: str) -> list[Conversation]:
    """The conversations that search results stand in, those that were found best first; each session once."""
    weight = weights_of(query, found)
    by_session: dict[str, list[Memory]] = {}
    rows = {each.id: each for each in found}
    memories = several(reader, models.memories, [each.id for each in found])
    for each in found:
        row = memories.get(each.id)
        if row is not None and row.sessions and row.kind in ("turn", "episode"):
            by_session.setdefault(row.sessions[0], []).append(row)
    chances = chances_of(found, memories, weight)
    made: list[Conversation] = []
    shared: list[frozenset[tuple[str, str]]] = []
    """What was answered in each of them, and to whom, by which copies are known: a member's copy is no owner's."""
    answering: list[Memory] = []
    """Of each the turn that holds most of the question."""
    for session, hits in list(by_session.items())[:MOST_CONVERSATIONS]:
        best, every = rows[hits[0].id], _turns_about(reader, session, hits)
        turns = _around(every, hits)
        answered = {row.id: held_by(row.text, weight) for row in hits if exchange_of(row.text).answer}
        most = max(hits, key=lambda row: answered.get(row.id, 0.0))
        held, at, says = answered.get(most.id, 0.0), turns[-1].occurred_at, answer_of(turns, query)
        likely = max(chances[row.id] for row in hits)
        said = Conversation(best.id, best.score, best.class_, session, at, turns, says, held, chance=likely)
        long = (turn for turn in every if len(turn.text) >= COPIED and exchange_of(turn.text).answer)
        texts = frozenset((turn.member, turn.text) for turn in long)
        copied = next((number for number, each in enumerate(shared) if not each.isdisjoint(texts)), None)
        if copied is None:
            made.append(said)
            shared.append(texts)
            answering.append(most)
            continue
        # A fork or a copy of a session says the same once more, and what ends first says it as it was then. Where they
        # were merged, each turn is found in one of them.
        first = made[copied]
        last = said if said.at > first.at else first
        if held > first.held:
            answering[copied] = most
        made[copied] = structs.replace(
            last,
            id=first.id,
            score=first.score,
            class_=first.class_,
            held=max(first.held, held),
            chance=max(first.chance, likely),
        )
        shared[copied] |= texts
    return by_subject([structs.replace(each, best=most) for each, most in zip(made, answering, strict=True)])


def by_subject(every: Sequence[Conversation]) -> list[Conversation]:
    """The same, each judged beside those of other subjects only: who says the same once more is no rival."""
    alike = _likenesses(every)
    judged: list[Conversation] = []
    for each in every:
        rival = max((other.score for other in every if alike[each.id, other.id] < SAME_SUBJECT), default=0.0)
        if each.class_ == "none" and chance(each.score, rival, "said" if each.says else "unanswered") >= LIKELY:
            each = structs.replace(each, class_="suggested")
        held = max((other.held for other in every if alike[each.id, other.id] < SAME_SUBJECT), default=0.0)
        judged.append(structs.replace(each, lead=each.held / max(held, 1.0)))
    return judged


def _likenesses(every: Sequence[Conversation]) -> dict[tuple[str, str], float]:
    """How much alike what every two of them say is."""
    held = {each.id: frozenset(word for turn in each.turns for word in tokens(turn.text)) for each in every}
    counts = Counter(word for words in held.values() for word in words)
    rarity = {word: math.log((1 + len(every)) / count) for word, count in counts.items()}
    said = {each.id: frozenset(word for one in each.says for word in tokens(one.text)) for each in every}
    return {
        (one, other): 1.0 if one == other else likeness(said[one], said[other], rarity)
        for one, other in product(said, repeat=2)
    }


def latest_first(kept: Sequence[Conversation], others: Sequence[Conversation]) -> list[Conversation]:
    """Those that are kept, each behind what came later of the same subject, also among the others."""
    every = [*kept, *others]
    alike = _likenesses(every)
    ordered: list[Conversation] = []
    for each in kept:
        later = [
            other
            for other in every
            if other.at > each.at and other.held >= ALSO_HELD * each.held and alike[each.id, other.id] >= SAME_SUBJECT
        ]
        for one in (*sorted(later, key=lambda other: -other.at), each):
            if one not in ordered:
                ordered.append(one)
    return ordered


def amended_first(reader: Reader, found: Sequence[Found], query: str) -> list[Found]:
    """Search results in their order, but of one subject what came later first."""
    kept = conversations(reader, found, query)
    ordered = [each.id for each in latest_first(kept, ())]
    places = [number for number, each in enumerate(found) if each.id in ordered]
    by_id = {each.id: each for each in found}
    result = list(found)
    for place, id in zip(places, ordered, strict=True):
        result[place] = by_id[id]
    return result


def _turns_about(reader: Reader, session: str, hits: Sequence[Memory]) -> list[Memory]:
    """The turns of a session near in time to what was found in it, oldest first."""
    p, first = models.memories, min(hits, key=lambda row: row.first_at)
    since = min(row.first_at for row in hits) - AROUND_US
    until = max(row.occurred_at for row in hits) + AROUND_US
    of_session = Condition(sql.SQL("row->'sessions' @> to_jsonb(%s::text)"), (session,))
    around = Where(p).equal("location", first.location).equal("kind", "turn").between("occurred_at", since, until)
    rows, _ = page(reader, p, "occurred_at", around.also(of_session), limit=MOST_LOADED)
    # What a person rejected is said no more, in whatever it stands.
    said = regards(reader, [keyed.key for keyed in rows])
    standing = (keyed.row for keyed in rows if keyed.key not in said or not said[keyed.key].rejected)
    return sorted(standing, key=lambda row: (row.occurred_at, row.id))


def _around(turns: Sequence[Memory], hits: Sequence[Memory]) -> tuple[Memory, ...]:
    """Of the turns of a session those around what was found best: it may go on for hundreds."""
    places = {row.id: number for number, row in enumerate(turns)}
    found = next((places[row.id] for row in hits if row.id in places), 0)
    begin, end = max(found - BEFORE, 0), found + AFTER + 1
    return tuple(turns[begin:end]) or tuple(hits[:1])
