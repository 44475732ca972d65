"""Texts that say nearly the same are found by their index, and what only looks the same is told apart."""

from __future__ import annotations

import numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from memctl.domain.support.near_duplicates import (
    COMPARED,
    bands,
    denies,
    features,
    likely_pairs,
    likeness,
    numbers,
    turns,
)

NOTE = (
    "The cart keeps its prices in cents: whoever shows one divides by a hundred and rounds half to even, as the ledger"
    " does, and never stores what was rounded"
)


def pairs(*texts: str, group: str = "turn") -> set[tuple[int, int]]:
    return set(likely_pairs(numpy.stack([bands(group, features(text)) for text in texts])))


def test_texts_that_differ_in_a_word_meet_and_others_do_not() -> None:
    other = "Deploy the documentation by hand when the pipeline is down, from the branch that was released last"
    assert pairs(NOTE, other, NOTE.replace("whoever", "anybody who")) == {(0, 2)}
    assert likeness(features(NOTE), features(NOTE.replace("whoever", "anybody who"))) > 0.8
    assert likeness(features(NOTE), features(other)) < 0.1


def test_texts_of_two_groups_never_meet() -> None:
    found = numpy.stack([bands("turn", features(NOTE)), bands("knowledge", features(NOTE))])
    assert set(likely_pairs(found)) == set()


def test_a_text_that_comes_again_and_again_costs_no_more_than_the_bucket_holds() -> None:
    found = numpy.stack([bands("turn", features(NOTE))] * 500)
    assert len(list(likely_pairs(found))) <= 500 * COMPARED


@settings(max_examples=30, deadline=None)
@given(words=st.lists(st.sampled_from(NOTE.split()), min_size=12, max_size=40), at=st.integers(0, 11))
def test_what_is_alike_by_85_meets(words: list[str], at: int) -> None:
    changed = [*words[:at], *words[at + 1 :]]
    one, other = features(" ".join(words)), features(" ".join(changed))
    if likeness(one, other) > 0.85:
        assert pairs(" ".join(words), " ".join(changed)) == {(0, 1)}


def test_what_differs_in_a_number_or_a_negation_is_told_apart() -> None:
    assert numbers("Go 1.22 on port 8080.") != numbers("Go 1.23 on port 8080.")
    assert numbers("It ends at 5.") == numbers("It ends at 5")
    assert denies("Never push to main")
    assert not denies("Push to main")
    assert denies("npm은 쓰지 않는다")
    assert not denies("npm을 쓴다")
    assert turns("do this before that") != turns("do this after that")


def test_texts_without_words_are_like_nothing() -> None:
    assert features("... !!") == frozenset()
    assert likeness(frozenset(), frozenset()) == 0.0
    assert list(likely_pairs(numpy.empty((0, 20), dtype=numpy.uint64))) == []
