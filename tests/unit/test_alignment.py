"""Where quotes are found, and where they are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.support.alignment import NEAR, align

TEXT = (
    "First we looked.\nThe  release workflow creates tags with `GITHUB_TOKEN`, which triggers nothing.\nThen we left."
)


@pytest.mark.parametrize(
    ("quote", "how"),
    [
        ("release workflow creates tags", "exact"),
        ("the release workflow CREATES tags", "normalised"),
        ("we looked. The release", "normalised"),
        ("The release workflow creates the tags with `GITHUB_TOKEN`, which triggers nothing", "fuzzy"),
    ],
)
def test_a_quote_is_found_exactly_but_for_form_or_nearly(quote: str, how: str) -> None:
    found = align(quote, TEXT)
    assert found is not None
    assert found.how == how
    assert "release" in TEXT[found.start : found.end]


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("", TEXT),
        ("  \n", TEXT),
        ("the publish workflow never ran on that day", TEXT),
        ("creates tags with GITLAB", TEXT),
        ("tag", "tug"),
        ("a much longer quote than the whole text that it is said to stand in", "much longer quote"),
        ("x", ""),
    ],
)
def test_what_does_not_stand_there_is_found_nowhere(quote: str, text: str) -> None:
    assert align(quote, text) is None


def test_the_place_is_that_of_the_text_as_it_is_written() -> None:
    text = "　ＰＮＰＭ　is  ﬁne, we said"
    found = align("pnpm is fine", text)
    assert found is not None
    assert text[found.start : found.end] == "ＰＮＰＭ　is  ﬁne"


WORDS = st.text(alphabet=st.sampled_from("ab cdé한글.\n’ß"), max_size=60)


@given(WORDS, WORDS, WORDS)
def test_a_part_of_a_text_is_always_found_in_it(before: str, quote: str, after: str) -> None:
    text = before + quote + after
    found = align(quote, text)
    if quote.strip():
        assert found is not None
        assert text[found.start : found.end] == quote
    else:
        assert found is None


@given(WORDS, WORDS)
def test_a_place_lies_in_the_text_and_is_as_alike_as_it_says(quote: str, text: str) -> None:
    found = align(quote, text)
    if found is not None:
        assert 0 <= found.start < found.end <= len(text)
        assert NEAR <= found.score <= 1
