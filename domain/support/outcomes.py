"""Outcomes kept in a row, and the running averages over them.

An average that moved with each arrival would depend on the order of arrival. So a row keeps its newest outcomes by
`(at, id)` and the average is computed over those, oldest first.
"""

import msgspec

from memctl.domain.support.bounded import newest

KEPT = 32
"""Outcomes that a row keeps."""

ALPHA = 0.3
"""Weight of the latest outcome."""

PRIOR = 0.5
"""Where an average starts."""


class KeptOutcome(msgspec.Struct, frozen=True, array_like=True):
    """One outcome: when (microseconds), of what (fact or event id), and 0 for failure to 1 for success."""

    at: int
    id: str
    value: float


def with_outcome(kept: tuple[KeptOutcome, ...], outcome: KeptOutcome) -> tuple[KeptOutcome, ...]:
    """The newest 32 outcomes, newest first."""
    return newest(kept, outcome, KEPT)


def moving_average(kept: tuple[KeptOutcome, ...]) -> float:
    """Exponential moving average over outcomes in order of time: a ← 0.3·value + 0.7·a, from 0.5 on. In 0 to 1."""
    average = PRIOR
    for outcome in sorted(kept, key=lambda k: (k.at, k.id)):
        average = ALPHA * outcome.value + (1 - ALPHA) * average
    return round(average, 4)
