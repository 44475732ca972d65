"""Whether what was found bears on what was asked, as a chance: by how well it fits, by how far it leads, by what kind
of memory it is, and by whether it is about the files that the work is at.

A score says how much of a question a memory holds. Questions differ in how much of them any memory can hold, so a low
score that nothing else comes near says more than a middling one that five others share. Kinds differ in how often a
memory of theirs that fits turns out to be needed. The coefficients are data (`calibration.json`), with a digest of the
labelled questions that they were fitted on; `make calibrate` makes them again.
"""

import math
from pathlib import Path
from typing import Literal

import msgspec

from memctl.domain.knowledge.memory import FormerKind, MemoryKind

FILE = Path(__file__).with_suffix(".json")

LIKELY, SURE = 0.5, 0.98
"""From these chances on something is said, or called an answer; and is called sure where it is confirmed besides."""

LEAST, MOST = 0.01, 0.995
"""Scores are taken to lie within these: logarithms of less, or of more, say nothing."""

MOST_IN_PLAY = 3
"""Files in play above which more of them say no more."""

Sort = Literal["said", "unanswered", "document", "claim", "lesson", "error", "thing"]
"""Kinds of memory that are likely alike: what was said and done, what nobody answered, what was written down, what is
verified, what was learnt, errors, and things that were named."""

_SORTS: dict[MemoryKind | FormerKind, Sort] = {
    "turn": "said",
    "episode": "said",
    "document": "document",
    "commit": "document",
    "knowledge": "claim",
    "strategy": "lesson",
    "reflection": "lesson",
    "bug_pattern": "error",
}


class Coefficients(msgspec.Struct, frozen=True):
    """Of a logistic regression over `features`, and (`answer`, `by_odds`) of one over the odds by which answers are
    ordered (`answering`). `fitted_on` is the digest of the labels."""

    intercept: float
    by_score: float
    by_lead: float
    by_files: float
    by_sort: dict[Sort, float]
    answer: float
    by_odds: float
    fitted_on: str


COEFFICIENTS = msgspec.json.decode(FILE.read_bytes(), type=Coefficients)


def sort_of(kind: MemoryKind | FormerKind, *, answered: bool = True) -> Sort:
    """What a memory of that kind is judged as; a prompt that nobody answered is a sort of its own."""
    return _SORTS.get(kind, "thing") if answered else "unanswered"


def features(score: float, rival: float) -> tuple[float, float]:
    """The logit of a score, and the logarithm of how many times it is that of the best rival."""
    within = min(max(score, LEAST), MOST)
    return math.log(within / (1 - within)), math.log(max(score, LEAST) / max(rival, LEAST))


def parts(score: float, rival: float, sort: Sort = "said", in_play: int = 0) -> dict[str, float]:
    """What each feature adds to the logarithm of the odds."""
    by_score, by_lead = features(score, rival)
    c = COEFFICIENTS
    return {
        "all": c.intercept,
        "score": c.by_score * by_score,
        "lead": c.by_lead * by_lead,
        "files": c.by_files * min(in_play, MOST_IN_PLAY),
        "sort": c.by_sort.get(sort, 0.0),
    }


def chance(score: float, rival: float, sort: Sort = "said", in_play: int = 0) -> float:
    """0 to 1: how likely what has this score bears on the question, where the best of anything else has `rival`."""
    return logistic(math.fsum(parts(score, rival, sort, in_play).values()))


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-max(min(x, 40.0), -40.0)))
