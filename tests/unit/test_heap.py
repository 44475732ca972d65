"""Freed memory goes back to the system."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from memctl.infra.heap import return_freed_memory


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back by themselves, or cannot")
def test_what_lies_free_between_what_lives_on_is_given_back() -> None:
    # Larger than what Python keeps pools for, and smaller than what gets a mapping of its own.
    blocks = [bytes(4_000) for _ in range(25_000)]
    lives_on = blocks[::100]
    blocks.clear()
    before = resident_mb()
    return_freed_memory()
    assert before - resident_mb() > 70
    assert len(lives_on) == 250
