"""How long property tests look: the same few examples each time, or many new ones under `make soak`."""

from __future__ import annotations

import os

from hypothesis import settings

FACTOR = int(os.environ.get("MEMCTL_TEST_SOAK", "0"))
"""0: the examples of every day. N: N times as many, drawn anew."""


def examples(count: int) -> settings:
    """So many examples, or their multiple in a soak."""
    return settings(max_examples=count * max(FACTOR, 1), derandomize=not FACTOR, database=None)
