"""Hypotheses, as somebody records them. What an agent merely supposes is not read: most of it is musing.

One that is confirmed at 0.9 or more becomes a decision, one that is rejected leaves.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from memctl.domain.support.provenance import Provenance
from memctl.domain.support.text import canonical, digest_of

Status = Literal["proposed", "supported", "confirmed", "rejected"]

CONFIRMED = 0.9
"""From this confidence on, a confirmed hypothesis becomes a decision."""

OPEN = 8
"""Hypotheses that are held at once; the one least believed, then the oldest, goes first."""


class Hypothesis(NamedTuple):
    """One hypothesis as it stands: `key` is equal for the same description, `confidence` 0 to 1."""

    key: str
    text: str
    status: Status
    confidence: float
    said_by: Provenance
    mentions: int = 1
    """How often it was mentioned."""


def key_of(description: str) -> str:
    """16 hex digits that are equal for descriptions that differ in form only."""
    said = canonical(description) or description.strip().lower()
    return digest_of(said)


class Hypotheses:
    """The hypotheses that are open in one task."""

    def __init__(self) -> None:
        self._open: dict[str, Hypothesis] = {}

    @property
    def open(self) -> tuple[Hypothesis, ...]:
        return tuple(self._open.values())

    def clear(self) -> None:
        self._open.clear()

    def move(self, key: str, text: str, status: Status, confidence: float | None, said_by: Provenance) -> Hypothesis:
        """The hypothesis after another word on it. Confirmed and rejected ones are open no more."""
        known = self._open.pop(key, None)
        if known is None:
            moved = Hypothesis(key, text, status, 0.5 if confidence is None else confidence, said_by)
        else:
            sure = known.confidence if confidence is None else max(known.confidence, confidence)
            if status == "rejected":
                sure = min(known.confidence, 0.1 if confidence is None else confidence)
            status = known.status if status == "proposed" else status
            moved = known._replace(status=status, confidence=sure, mentions=known.mentions + 1)
        if moved.status == "rejected" or (moved.status == "confirmed" and moved.confidence >= CONFIRMED):
            return moved
        self._open[key] = moved
        if len(self._open) > OPEN:
            del self._open[min(self._open, key=lambda each: self._open[each].confidence)]
        return moved
