"""More claims on one subject than are kept: which ones stay does not depend on the order in which they came."""

from __future__ import annotations

import random

import msgspec
import pytest

from memctl.domain.support.provenance import Provenance
from memctl.projections.kernel import Changed
from memctl.projections.memories import memories
from memctl.projections.verified_knowledge import CLAIMS, VerifiedClaim, VerifiedKnowledge, _settled

HOME = ("package manager", "/home/dana/ledger", False)


def claim(number: int) -> VerifiedClaim:
    return VerifiedClaim(
        id=f"{number:04d}", kind="preference", text=f"always use tool {number}", canonical=f"use tool {number}",
        polarity=1 if number % 3 else -1, proved=bool(number % 2), said_by=Provenance.USER_TYPED, confidence=0.8,
        warrant="said", sessions=1, valid_from=900 + number, last_seen=1000 + number,
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


def test_what_others_say_of_a_subject_is_not_shown_as_the_users() -> None:
    mine = msgspec.structs.replace(claim(1), text="use pnpm", canonical="pnpm", polarity=1, proved=False)
    hers = msgspec.structs.replace(
        mine, id="hers", kind="fact", text="use pnpm for all that eve likes", said_by=Provenance.MEMBER, member="eve"
    )
    row = _settled(HOME, [mine, hers])
    assert not any(each.superseded_by for each in row.claims)
    made = memories(None, Changed(row.id, row))
    assert made is not None
    assert made.gist == "use pnpm"
    assert made.text.splitlines() == ["use pnpm", "use pnpm for all that eve likes (said by eve of the team)"]
