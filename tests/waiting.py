"""Waiting for what other processes and threads bring about."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

PATIENCE_S = 120.0
"""So long that only what never comes is missed, however busy the machine is."""


def until(holds: Callable[[], object], what: str = "what was waited for") -> None:
    """Look again and again until `holds()` is true. Fails where it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come about within {PATIENCE_S:g} s"
        time.sleep(0.01)


def waits_for_a_lock(connection: psycopg.Connection[Any], name: str) -> bool:
    """Whether a connection of that name waits for somebody else's lock."""
    waiting = "SELECT FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    return connection.execute(waiting, [name]).fetchone() is not None


def seconds(act: Callable[[], object]) -> float:
    """How long it takes. What is asserted of it is a lower bound, or waited for by `until`: a busy machine is slow."""
    began = time.monotonic()
    act()
    return time.monotonic() - began
