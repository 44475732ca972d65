"""What is kept of texts that come again is bounded in characters, not in number alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from text_functions import TextFunction, text_functions

from memctl.domain.support.remembered import FEW, LONGEST, LONGEST_OF_FEW, remembered
from memctl.domain.support.text import tokens

GUARDED = "_word_tokens(word)"
"""`tokens` asks it for short words alone, without a call for each word of a text."""

KEEPING = [
    replace(each, function=each.keeping)
    for functions in text_functions().values()
    for each in functions
    if each.keeping is not each.function and each.name != GUARDED
]


def test_answers_are_kept_for_short_texts_and_few_for_longer_ones() -> None:
    asked = []

    @remembered(8)
    def size(text: str, *, twice: bool = False) -> int:
        asked.append(text)
        return len(text) * (1 + twice)

    short, long = "a" * LONGEST, "a" * (LONGEST_OF_FEW + 1)
    assert [size(short), size(short), size(short, twice=True)] == [LONGEST, LONGEST, 2 * LONGEST]
    assert [size(long), size(long)] == [LONGEST_OF_FEW + 1] * 2
    assert list(map(len, asked)) == [LONGEST, LONGEST, LONGEST_OF_FEW + 1, LONGEST_OF_FEW + 1]
    asked.clear()
    middling = [str(number) + "a" * LONGEST for number in range(FEW + 1)]
    for each in (*middling, *middling[-FEW:], middling[0]):
        size(each)
    assert len(asked) == FEW + 2


@pytest.mark.parametrize("function", [*KEEPING, tokens], ids=lambda each: getattr(each, "name", "tokens"))
def test_long_texts_are_not_held_in_memory(function: TextFunction | Callable[[str], object]) -> None:
    with suppress(LookupError):  # no name of a file
        function("what is made at the first call")
    tracemalloc.start()
    try:
        for number in range(12):
            with suppress(LookupError):
                function(f"{number}" + "a" * 500_000)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_500_000, f"{held} bytes are held of twelve texts of half a megabyte"
