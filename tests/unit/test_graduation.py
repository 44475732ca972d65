"""Which claims graduate, what the others are missing, and which side of a conflict stands."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from memctl.domain.knowledge.graduation import (
    INFERRED,
    PROVED,
    TOOL_SAID,
    USER_SAID,
    ClaimSupport,
    Side,
    checks_of,
    contradict,
    missing_of,
    strengthened,
    superseded,
    tier_of,
    warrant_of,
)

INFERENCE = ClaimSupport(kind="fact", text="The tests run with pytest", tier=INFERRED, sessions=1, has_quote=True)


def but(**changes: object) -> ClaimSupport:
    return msgspec.structs.replace(INFERENCE, **changes)


@pytest.mark.parametrize(
    ("claim", "warrant"),
    [
        (but(tier=USER_SAID), "said by the user"),
        (but(tier=PROVED, sessions=2), "seen in 2 sessions, proved by a run that passed"),
        (but(tier=TOOL_SAID, sessions=2), "seen in 2 sessions"),
        (but(sessions=3), "seen in 3 sessions"),
        (but(kind="pattern", sessions=3), "seen in 3 sessions"),
        (but(kind="pattern", sessions=8, denials=2), "seen in 8 sessions"),
        (but(confirmed=True), "confirmed by a person"),
        (but(judged=0.8), "judged true at 0.80"),
    ],
)
def test_each_warrant_lets_a_claim_pass(claim: ClaimSupport, warrant: str) -> None:
    assert warrant_of(claim) == warrant
    assert missing_of(claim) == ()


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        (INFERENCE, "2 more sessions,"),
        (but(tier=PROVED), "1 more session,"),
        (but(tier=TOOL_SAID, kind="pattern"), "2 more sessions,"),
        (but(kind="pattern", sessions=2), "1 more session,"),
        (but(sessions=7, denials=2), "1 more session,"),
        (but(judged=0.79), "2 more sessions,"),
    ],
)
def test_without_a_warrant_it_says_what_would_do(claim: ClaimSupport, more: str) -> None:
    (missing,) = missing_of(claim)
    assert "the user says so" in missing
    assert more in missing


@pytest.mark.parametrize(
    ("claim", "failed"),
    [
        (but(tier=USER_SAID, has_quote=False), "evidence"),
        (but(tier=USER_SAID, text="use it"), "length"),
        (but(tier=USER_SAID, text="[Request interrupted by user]"), "noise"),
        (but(tier=USER_SAID, rejected=True), "standing"),
    ],
)
def test_a_failed_check_keeps_even_the_users_word_out(claim: ClaimSupport, failed: str) -> None:
    assert [c.name for c in checks_of(claim) if not c.passed] == [failed]
    assert len(missing_of(claim)) == 1


def test_five_syllables_of_hangul_are_as_long_as_ten_letters() -> None:
    assert missing_of(but(tier=USER_SAID, text="주석을 달아")) == ()
    assert missing_of(but(tier=USER_SAID, text="주석")) != ()


def test_confidence_grows_with_sessions_and_never_reaches_certainty() -> None:
    grown = [strengthened(0.7, n) for n in (0, 1, 2, 3, 32)]
    assert grown == sorted(grown)
    assert grown[:3] == [0.7, 0.7, 0.76]
    assert grown[-1] == 0.99
    assert strengthened(1.0, 5) == 1.0


def test_the_user_outranks_a_run_a_tool_and_a_model() -> None:
    assert tier_of("user") > PROVED > tier_of("tool") > tier_of("agent")


def side(key: str, canonical: str, polarity: int, tier: int = USER_SAID, last_seen: int = 1) -> Side:
    return Side(key=key, canonical=canonical, polarity=polarity, tier=tier, last_seen=last_seen)


def test_do_and_do_not_contradict_and_so_do_two_answers_to_one_question() -> None:
    manager = "one/package manager"
    npm, pnpm, not_npm = side("a", "npm", 1), side("b", "pnpm", 1), side("c", "not npm", -1)
    assert contradict(manager, npm, pnpm)
    assert contradict(manager, npm, not_npm)
    assert not contradict(manager, pnpm, not_npm)
    assert contradict("comments", side("a", "add comments", 1), side("b", "not add comments", -1))
    assert not contradict("comments", side("a", "add comments", 1), side("b", "write comments", 1))


def test_the_higher_tier_then_the_newer_stands_in_any_order() -> None:
    sides = [
        side("old", "npm", 1, last_seen=1),
        side("new", "pnpm", 1, last_seen=2),
        side("guess", "yarn", 1, tier=INFERRED, last_seen=3),
    ]
    for order in permutations(sides):
        assert superseded("one/package manager", list(order)) == {"old": "new", "guess": "new"}
