"""Where a quote stands in a text: exactly, or but for form (case, white space, Unicode spelling), or nearly.

A claim that aligns nowhere rests on nothing. Whoever quotes is never asked where: the aligner finds it.
"""

import unicodedata
from typing import Literal, NamedTuple

NEAR = 0.9
"""Similarity from which a passage is taken for the quote (Indel similarity: 1 - edits / lengths)."""

SHORTEST_NEAR = 12
"""Characters of a quote below which a near match says nothing."""

LONGEST_NEAR = 2_000
"""Characters of a quote up to which near matches are looked for."""

How = Literal["exact", "normalised", "fuzzy"]


class Alignment(NamedTuple):
    """Characters `start` to `end` of the text, how they were found, and how alike they are (0 to 1)."""

    start: int
    end: int
    how: How
    score: float


def align(quote: str, text: str) -> Alignment | None:
    """Where the quote stands in the text; None where nothing there is like it. The first of equally good places."""
    if not quote.strip():
        return None
    at = text.find(quote)
    if at >= 0:
        return Alignment(at, at + len(quote), "exact", 1.0)
    wanted, _ = _normal(quote)
    plain, places = _normal(text)
    if not wanted:
        return None
    at = plain.find(wanted)
    if at >= 0:
        return Alignment(places[at], places[at + len(wanted) - 1] + 1, "normalised", 1.0)
    if not SHORTEST_NEAR <= len(wanted) <= LONGEST_NEAR:
        return None
    return _near(wanted, plain, places)


def _near(wanted: str, plain: str, places: list[int]) -> Alignment | None:
    from rapidfuzz import fuzz

    found = fuzz.partial_ratio_alignment(wanted, plain, score_cutoff=NEAR * 100)
    # A text that is shorter than the quote would be looked for in it instead: it holds no such quote.
    if found is None or found.dest_end <= found.dest_start or len(plain) < len(wanted) * NEAR:
        return None
    start, end = found.dest_start, found.dest_end
    score = fuzz.ratio(wanted, plain[start:end]) / 100
    if score < NEAR:
        return None
    return Alignment(places[start], places[end - 1] + 1, "fuzzy", round(score, 4))


def _normal(text: str) -> tuple[str, list[int]]:
    """The text without differences of form, and for each of its characters the place it came from."""
    characters: list[str] = []
    places: list[int] = []
    for at, character in enumerate(text):
        for each in unicodedata.normalize("NFKD", character).casefold():
            if each.isspace():
                if not characters or characters[-1] == " ":
                    continue
                each = " "
            characters.append({"’": "'", "‘": "'", "“": '"', "”": '"'}.get(each, each))
            places.append(at)
    if characters and characters[-1] == " ":
        characters.pop()
        places.pop()
    return "".join(characters), places
