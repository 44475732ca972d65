"""What a measure gives back, and how it says that it lacks its data."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """One number of a measure. `target` is None where it is only told; `of` is how many cases it is about."""

    name: str
    value: float
    of: int
    target: float | None = None
    at_most: bool = False
    """Whether the target is a ceiling."""

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.value <= self.target if self.at_most else self.value >= self.target


class Missing(Exception):
    """A measure's data is not there; the message says which."""


def share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
