"""How long property tests look: the same few examples each time, or many new ones under `make soak`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])

FACTOR = int(os.environ.get("MEMCTL_TEST_SOAK", "0"))
"""0: the examples of every day. N: N times as many, drawn anew."""


def examples(count: int) -> settings:
    """So many examples, or their multiple in a soak."""
    return settings(max_examples=count * max(FACTOR, 1), derandomize=not FACTOR, database=None)


def seeded(variable: str, takes: str) -> Callable[[Test], Test]:
    """Give a test its `seed`: those that a variable names (seed,seed), as failures tell them, or as many new ones as
    a soak asks for. Without either the test is skipped, for one seed takes that long."""
    given = [int(each) for each in os.environ.get(variable, "").split(",") if each]
    seeds = given or [time.time_ns() + turn for turn in range(max(FACTOR, 1))]
    # Ids by number, the same in every process that collects the test.
    drawn = pytest.mark.parametrize("seed", seeds, ids=list(map(str, range(len(seeds)))))
    skipped = pytest.mark.skipif(not (FACTOR or given), reason=f"{takes} each: tried by `make soak`, or by {variable}")
    return lambda test: skipped(drawn(test))
