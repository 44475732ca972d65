"""Which claims graduate, what the others are missing, and which side of a conflict stands."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest

from memctl.domain.knowledge.graduation import (
    ClaimSide,
    ClaimSupport,
    checks_of,
    contradict,
    missing_of,
    strengthened,
    superseded,
    warrant_of,
)
from memctl.domain.support.provenance import RIGHTS, Provenance, trust_of

TYPED, TOOL, AGENT = Provenance.USER_TYPED, Provenance.TOOL, Provenance.AGENT
SHOWN = ClaimSupport(kind="pattern", text="The tests run with pytest", said_by=TOOL, sessions=1, has_quote=True)


def but(**changes: object) -> ClaimSupport:
    return msgspec.structs.replace(SHOWN, **changes)


@pytest.mark.parametrize(
    ("claim", "warrant"),
    [
        (but(said_by=TYPED), "said by the user"),
        (but(kind="fact", proved=True, sessions=2), "seen in 2 sessions, proved by a run that passed"),
        (but(kind="fact", sessions=2), "seen in 2 sessions"),
        (but(sessions=3), "seen in 3 sessions"),
        (but(kind="pattern", sessions=3), "seen in 3 sessions"),
        (but(kind="pattern", sessions=8, denials=2), "seen in 8 sessions"),
        (but(confirmed=True), "confirmed by a person"),
        (but(said_by=AGENT, confirmed=True), "confirmed by a person"),
        (but(said_by=Provenance.IMPORT, confirmed=True), "confirmed by a person"),
    ],
)
def test_each_warrant_lets_a_claim_pass(claim: ClaimSupport, warrant: str) -> None:
    assert warrant_of(claim) == warrant
    assert missing_of(claim) == ()


@pytest.mark.parametrize(
    ("claim", "more"),
    [
        (SHOWN, "2 more sessions or"),
        (but(kind="fact", proved=True), "1 more session or"),
        (but(kind="pattern", sessions=2), "1 more session or"),
        (but(sessions=7, denials=2), "1 more session or"),
    ],
)
def test_without_a_warrant_it_says_what_would_do(claim: ClaimSupport, more: str) -> None:
    (missing,) = missing_of(claim)
    assert "a person's yes" in missing
    assert more in missing


@pytest.mark.parametrize(
    ("claim", "failed"),
    [
        (but(said_by=TYPED, has_quote=False), "evidence"),
        (but(said_by=TYPED, text="use it"), "length"),
        (but(said_by=TYPED, text="[Request interrupted by user]"), "noise"),
        (but(said_by=TYPED, rejected=True), "standing"),
    ],
)
def test_a_failed_check_keeps_even_the_users_word_out(claim: ClaimSupport, failed: str) -> None:
    assert [c.name for c in checks_of(claim) if not c.passed] == [failed]
    assert len(missing_of(claim)) == 1


def test_five_syllables_of_hangul_are_as_long_as_ten_letters() -> None:
    assert missing_of(but(said_by=TYPED, text="주석을 달아")) == ()
    assert missing_of(but(said_by=TYPED, text="주석")) != ()


def test_confidence_grows_with_sessions_and_never_reaches_certainty() -> None:
    grown = [strengthened(0.7, n) for n in (0, 1, 2, 3, 32)]
    assert grown == sorted(grown)
    assert grown[:3] == [0.7, 0.7, 0.76]
    assert grown[-1] == 0.99
    assert strengthened(1.0, 5) == 1.0


@pytest.mark.parametrize("said_by", [each for each in Provenance if RIGHTS[each].level < 3])
def test_no_number_of_sessions_lifts_what_only_a_person_may(said_by: Provenance) -> None:
    claim = but(said_by=said_by, sessions=32, kind="fact")
    assert warrant_of(claim) == ""
    assert "a person's yes" in missing_of(claim)[0]


def test_the_user_outranks_a_run_a_tool_and_a_model() -> None:
    assert trust_of(TYPED) > trust_of(TOOL, proved=True) > trust_of(TOOL) > trust_of(AGENT)


def side(key: str, canonical: str, polarity: int, trust: int = RIGHTS[TYPED].trust, last_seen: int = 1) -> ClaimSide:
    return ClaimSide(key=key, canonical=canonical, polarity=polarity, trust=trust, last_seen=last_seen)


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
        side("guess", "yarn", 1, trust=RIGHTS[AGENT].trust, last_seen=3),
    ]
    for order in permutations(sides):
        assert superseded("one/package manager", list(order)) == {"old": "new", "guess": "new"}
