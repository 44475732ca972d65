"""Whether what was found bears on what was asked, as a chance: by how well it fits, and by how far it leads.

A score says how much of a question a memory holds. Questions differ in how much of them any memory can hold, so a low
score that nothing else comes near says more than a middling one that five others share. The coefficients are data
(`speaking.json`), with a digest of the labelled questions that they were fitted on; `make calibrate` makes them again.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

FILE = Path(__file__).with_suffix(".json")

LIKELY = 0.5
"""From this chance on something is said, or called an answer."""

LEAST, MOST = 0.01, 0.995
"""Scores are taken to lie within these: logarithms of less, or of more, say nothing."""


class Coefficients(msgspec.Struct, frozen=True):
    """Of a logistic regression over `features`. `fitted_on` is the digest of the labels."""

    intercept: float
    by_score: float
    by_lead: float
    fitted_on: str


COEFFICIENTS = msgspec.json.decode(FILE.read_bytes(), type=Coefficients)


def features(score: float, rival: float) -> tuple[float, float]:
    """The logit of a score, and the logarithm of how many times it is that of the best rival."""
    within = min(max(score, LEAST), MOST)
    return math.log(within / (1 - within)), math.log(max(score, LEAST) / max(rival, LEAST))


def chance(score: float, rival: float) -> float:
    """0 to 1: how likely what has this score bears on the question, where the best of anything else has `rival`."""
    by_score, by_lead = features(score, rival)
    return logistic(COEFFICIENTS.intercept + COEFFICIENTS.by_score * by_score + COEFFICIENTS.by_lead * by_lead)


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-max(min(x, 40.0), -40.0)))
