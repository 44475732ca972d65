"""More claims on one subject than are kept: which ones stay does not depend on the order in which they came."""

from __future__ import annotations

import random

import pytest

from memctl.projections.verified_knowledge import CLAIMS, VerifiedClaim, VerifiedKnowledge, _settled

HOME = ("package manager", "/home/dana/ledger", False)


def claim(number: int) -> VerifiedClaim:
    return VerifiedClaim(
        id=f"{number:04d}", kind="preference", text=f"always use tool {number}", canonical=f"use tool {number}",
        polarity=1 if number % 3 else -1, proved=bool(number % 2), said_by="user_typed", confidence=0.8, warrant="said",
        sessions=1, valid_from=900 + number, last_seen=1000 + number,
    )  # fmt: skip


def folded(order: list[int]) -> VerifiedKnowledge:
    kept: list[VerifiedClaim] = []
    for number in order:
        kept = [*_settled(HOME, [*kept, claim(number)]).claims]
    return _settled(HOME, kept)


@pytest.mark.parametrize("seed", range(5))
def test_which_claims_are_kept_does_not_depend_on_their_order(seed: int) -> None:
    numbers = list(range(CLAIMS + 8))
    expected = folded(numbers)
    random.Random(seed).shuffle(numbers)
    assert folded(numbers) == expected
    assert len(expected.claims) == CLAIMS
    assert expected.first_seen == min(c.valid_from for c in expected.claims)
