"""Scoring: a worked example, bounds that hold for every input, classes, and what a query asks for."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval import ranking as scoring
from memctl.domain.retrieval.intent import understand
from memctl.domain.retrieval.ranking import (
    PROFILES,
    Candidate,
    Known,
    RankingFeatures,
    Scored,
    decide,
    relevance,
    score,
    word_strength,
)

shares = st.floats(0, 1)
candidates = st.builds(
    Candidate,
    id=st.uuids().map(str),
    near=st.none() | st.floats(-20, 40),
    words=st.floats(0, 20),
    matched=shares,
    fuzzy=shares,
)
standings = st.builds(
    RankingFeatures,
    age_days=st.floats(0, 40_000),
    importance=shares,
    confidence=shares,
    confirmed=st.booleans(),
    conflicted=st.booleans(),
    uses=st.integers(0, 10_000),
    usefulness=shares,
    recalled=st.integers(0, 10_000),
    reliability=shares,
    preferred=st.booleans(),
    in_period=st.none() | st.booleans(),
    by_named=st.none() | st.booleans(),
)
known = st.builds(Known, candidates, standings)
NOW = datetime(2026, 8, 19, 15, 0, tzinfo=UTC)  # a Wednesday


def found(value: float, *, id: str = "a", confirmed: bool = True) -> Scored:
    return Scored(Known(Candidate(id), RankingFeatures(age_days=0, confirmed=confirmed)), value, value, {})


def ranked(given: list[Known], name: str = "bounded", limit: int = 10) -> list[Scored]:
    return score(given, PROFILES[name], lambda a, b: 0.0, limit)


# --- profiles ---


def test_reasoningbank_gives_its_worked_example() -> None:
    n = scoring.REASONINGBANK
    example = n.similarity * 0.87 + n.freshness * 0.72 + n.proof * 1.0 - n.redundancy * 0.10
    assert example == pytest.approx(0.864, abs=0.001)


def test_reasoningbank_counts_each_piece_of_work_in_which_a_memory_was_told_as_a_use() -> None:
    parts = [
        PROFILES["reasoningbank"].parts(
            Known(Candidate("a"), RankingFeatures(age_days=1, confidence=0.8, recalled=recalls)), 0.0
        )
        for recalls in (0, 10, 25)
    ]
    assert [each["proof"] for each in parts] == pytest.approx([0.0, 0.16, 0.2]), "0.8 · √(10 / 10), then the bound"


def test_bad_ends_of_the_work_it_was_told_in_lower_what_nobody_spoke_of_and_good_ones_lift_nothing() -> None:
    def proof(**said: float) -> float:
        standing = msgspec.structs.replace(RankingFeatures(age_days=1), **said)
        return PROFILES["bounded"].parts(Known(Candidate("a"), standing), 0.0)["proof"]

    thrice = 0.5 * 0.7**3
    assert proof(recalled=3, reliability=thrice) == pytest.approx(0.967, abs=0.0005)
    assert proof(recalled=9, reliability=0.97) == proof() == 1.0
    assert proof(recalled=3, reliability=thrice, uses=1, usefulness=0.65) == pytest.approx(1.015), (
        "a rating goes before it"
    )
    assert proof(recalled=3, reliability=thrice, confirmed=True, confidence=1.0) == pytest.approx(1.05)


def test_reasoningbank_takes_less_of_what_is_like_what_was_chosen() -> None:
    three = [
        Known(Candidate(id, near=7.0 - n / 10, words=1.0), RankingFeatures(age_days=1)) for n, id in enumerate("abc")
    ]
    twins = score(three, PROFILES["reasoningbank"], lambda a, b: float({a, b} == {"a", "b"}), 3)
    assert twins[0].id == "a"
    assert twins[[each.id for each in twins].index("b")].parts["redundancy"] == pytest.approx(-0.10)
    alone = score(three, PROFILES["reasoningbank"], lambda a, b: 0.0, 3)
    assert [each.id for each in alone] == ["a", "b", "c"]


def test_generative_halves_its_recency_each_day() -> None:
    fresh, old = (
        PROFILES["generative"].parts(Known(Candidate("a"), RankingFeatures(age_days=age)), 0.0) for age in (0, 1)
    )
    assert fresh["recency"] == pytest.approx(0.3)
    assert old["recency"] == pytest.approx(0.15)


def test_social_takes_the_weighted_mean_of_the_sources_that_found_it() -> None:
    both = Candidate("a", near=5.0, words=1.0)
    parts = PROFILES["social"].parts(Known(both, RankingFeatures(age_days=0)), 0.0)
    mean = (0.5 * scoring.semantic(both) + 0.3 * scoring.lexical(both)) / 0.8
    assert parts["relevance"] == pytest.approx(0.5 * mean)


@pytest.mark.parametrize("name", PROFILES)
@given(given=st.lists(known, max_size=8, unique_by=lambda k: k.candidate.id))
def test_scores_lie_between_0_and_1_and_come_best_first(name: str, given: list[Known]) -> None:
    results = ranked(given, name)
    assert all(0 <= each.score <= 1 and 0 <= each.order <= 1 for each in results)
    if not PROFILES[name].diverse:
        orders = [each.order for each in results]
        assert orders == sorted(orders, reverse=True)


@given(known)
def test_recency_and_proof_move_relevance_only_within_their_bounds(each: Known) -> None:
    parts = PROFILES["bounded"].parts(each, 0.0)
    before = parts["relevance"] * parts["speaker"]
    chance = min(before * parts["recency"], 1.0)
    if 1e-9 < before < 1 - 1e-9:
        odds = chance / (1 - chance) * (1 - before) / before
        assert 0.39 <= odds <= 1.96
    assert 0.95 <= parts["proof"] <= 1.05


@given(candidates, st.floats(0, 40_000), st.floats(0, 40_000))
def test_of_two_that_are_equal_but_for_their_age_the_newer_is_never_behind(each: Candidate, a: float, b: float) -> None:
    newer, older = (
        math.prod(PROFILES["bounded"].parts(Known(each, RankingFeatures(age_days=age)), 0.0).values())
        for age in sorted((a, b))
    )
    assert newer >= older - 1e-12


@given(candidates, st.floats(0, 40_000), st.floats(0, 40_000))
def test_how_sure_an_answer_is_does_not_hang_on_its_age(each: Candidate, a: float, b: float) -> None:
    told = [ranked([Known(each, RankingFeatures(age_days=age, confirmed=True))]) for age in (a, b)]
    assert [found.score for found in told[0]] == [found.score for found in told[1]]
    assert decide(told[0]) == decide(told[1])


@given(candidates)
def test_what_another_said_than_the_one_named_is_less_likely_the_answer_and_as_sure_where_it_is_certain(
    each: Candidate,
) -> None:
    theirs, others, nobodys = (
        PROFILES["bounded"].parts(Known(each, RankingFeatures(age_days=30, by_named=by_named)), 0.0)
        for by_named in (True, False, None)
    )
    assert theirs == nobodys
    assert others["relevance"] == theirs["relevance"]
    assert 0.35 <= others["speaker"] <= theirs["speaker"] == 1.0
    assert others["speaker"] == 1.0 or others["relevance"] < 1.0
    assert others["speaker"] < 1.0 or others["relevance"] > 0.99


def test_what_is_certain_comes_first_at_any_age() -> None:
    old = Known(Candidate("old", matched=1.0), RankingFeatures(age_days=4_000))
    new = Known(Candidate("new", near=6.0, words=1.5), RankingFeatures(age_days=0))
    assert [each.id for each in ranked([new, old])] == ["old", "new"]


def test_the_same_words_half_a_year_later_are_still_an_answer() -> None:
    told = ranked([Known(Candidate("a", near=6.0, words=1.5), RankingFeatures(age_days=180))])
    assert decide(told) == ["suggested"]


@given(st.lists(known, max_size=8, unique_by=lambda k: k.candidate.id), st.randoms())
def test_the_order_of_candidates_changes_nothing(given: list[Known], random: Random) -> None:
    shuffled = list(given)
    random.shuffle(shuffled)
    assert [each.id for each in ranked(shuffled)] == [each.id for each in ranked(given)]


# --- relevance ---


@given(candidates, st.floats(0, 5))
def test_more_of_the_words_never_makes_a_memory_less_relevant(candidate: Candidate, more: float) -> None:
    richer = Candidate("b", near=candidate.near, words=candidate.words + more, matched=candidate.matched)
    assert relevance(richer) >= relevance(candidate)


def test_the_same_error_is_certain() -> None:
    assert relevance(Candidate("a", matched=1.0)) == 1.0


def test_the_nearest_of_what_has_nothing_to_do_with_the_query_is_not_shown() -> None:
    assert ranked([Known(Candidate("a", near=0.5), RankingFeatures(age_days=0))]) == []


def test_what_people_said_of_a_memory_moves_it_and_relevance_stays_in_charge() -> None:
    alike = Candidate("", near=4.0, words=0.8)
    better = msgspec.structs.replace(alike, id="better", words=1.2)
    standings = {
        "pinned": RankingFeatures(age_days=1, pinned=True),
        "liked": RankingFeatures(age_days=1, uses=3, usefulness=0.8),
        "plain": RankingFeatures(age_days=1),
        "disliked": RankingFeatures(age_days=1, confirmed=True, confidence=1.0, uses=3, usefulness=0.2),
    }
    given = [Known(msgspec.structs.replace(alike, id=id), each) for id, each in standings.items()]
    assert [each.id for each in ranked(given)] == list(standings)
    disliked = Known(better, RankingFeatures(age_days=1, uses=3, usefulness=0.0))
    assert ranked([given[0], disliked])[0].id == "better"


def test_strength_of_words_is_comparable_between_small_and_large_indexes() -> None:
    # One word, held once by one document of average length, has the weight 1 and the greatest IDF there is.
    middle, large = (word_strength(idf, 1, n) for idf, n in ((6.5022, 1_000), (11.1068, 100_000)))
    assert middle == pytest.approx(1.0, abs=0.01)
    assert large == pytest.approx(1.0, abs=0.01)
    # Held by the three documents of eight that came of one thing that was said.
    assert word_strength(math.log((8 - 3 + 0.5) / 3.5 + 1), 1, 8) > 0.7


@given(st.floats(-10, 100), st.integers(0, 50), st.integers(0, 10**7))
def test_strength_of_words_is_never_negative_and_never_fails(bm25: float, words: int, documents: int) -> None:
    assert word_strength(bm25, words, documents) >= 0


# --- ranks ---


def test_of_two_findings_by_one_source_the_better_rank_stands() -> None:
    candidate = Candidate("a").seen("dense", 3, 0.8).seen("dense", 1, 0.9).seen("dense", 2, 0.85)
    assert (candidate.ranks, candidate.scores) == ({"dense": 1}, {"dense": 0.9})


# --- classes ---


def apart(one: str, other: str) -> bool:
    return one == other


def test_a_high_answer_is_confirmed_and_more_than_likely() -> None:
    first, second = found(0.95), found(0.80, id="b")
    assert decide([first, second], apart) == ["high", "suggested"]
    assert decide([found(0.95, confirmed=False), second], apart) == ["suggested", "suggested"]
    assert decide([found(0.7), found(0.1, id="b")], apart) == ["suggested", "none"]
    assert decide([], apart) == []


def test_the_surest_answer_is_high_also_where_a_newer_one_stands_before_it() -> None:
    newer = msgspec.structs.replace(found(0.42, id="b", confirmed=False), order=0.83)
    older = msgspec.structs.replace(found(0.95), order=0.82)
    assert decide([newer, older], apart) == ["none", "high"]


def test_scores_that_are_no_chances_are_compared_with_one_threshold() -> None:
    assert decide([found(0.99), found(0.74)]) == ["suggested", "none"]


# --- understanding ---


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("TypeError: 'NoneType' object is not iterable", "DEBUG"),
        ("테스트가 실패하는 이유", "DEBUG"),
        ("which code style do I prefer", "PREFERENCE"),
        ("내 이름", "PROFILE"),
        ("what did we decide about the queue", "RECALL"),
        ("어제 뭐 했지", "RECALL"),
        ("how does the outbox work", "KNOWLEDGE"),
        ("rounding of invoices", "GENERAL"),
    ],
)
def test_rules_tell_what_a_query_asks_for(query: str, intent: str) -> None:
    assert understand(query, NOW).intent == intent


@pytest.mark.parametrize(
    ("query", "since", "before"),
    [
        ("yesterday", "2026-08-18", "2026-08-19"),
        ("어제 고친 것", "2026-08-18", "2026-08-19"),
        ("what broke last week", "2026-08-10", "2026-08-17"),
        ("지난주", "2026-08-10", "2026-08-17"),
        ("last friday", "2026-08-14", "2026-08-15"),
        ("last wednesday", "2026-08-12", "2026-08-13"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in december 2024", "2024-12-01", "2025-01-01"),
        ("5월에 배포", "2026-05-01", "2026-06-01"),
        ("three weeks ago", "2026-07-26", "2026-08-02"),
        ("on 2026-02-28", "2026-02-28", "2026-03-01"),
        ("작년", "2025-01-01", "2026-01-01"),
    ],
)
def test_words_that_tell_a_time_become_a_period(query: str, since: str, before: str) -> None:
    period = understand(query, NOW).period
    assert period is not None
    told = [datetime.fromtimestamp(at / 1e6, UTC).date().isoformat() for at in (period.since, period.before)]
    assert told == [since, before]


@pytest.mark.parametrize(
    "query", ["2026-02-30 rollout", "may I ask", "the march of progress", "version 1.2.3", "오일 교환"]
)
def test_what_only_looks_like_a_time_is_none(query: str) -> None:
    assert understand(query, NOW).period is None


def test_yesterday_is_that_of_the_caller() -> None:
    seoul = timezone(timedelta(hours=9))
    period = understand("yesterday", datetime(2026, 8, 20, 1, 0, tzinfo=seoul)).period
    assert period is not None
    assert datetime.fromtimestamp(period.since / 1e6, UTC) == datetime(2026, 8, 18, 15, 0, tzinfo=UTC)


def test_the_words_of_the_time_are_left_out_of_what_is_searched_for() -> None:
    assert understand("what broke last week in CI", NOW).content == "what broke in CI"


@given(st.text(max_size=200))
def test_any_text_is_understood(text: str) -> None:
    understood = understand(text, NOW)
    assert understood.period is None or understood.period.since < understood.period.before
