"""The table of `make bench`: what held, what was missed, and what was not measured."""

from __future__ import annotations

from typing import Any

from bench.__main__ import TARGETS, table


def replay(events: int, seconds: float, peak: float) -> dict[str, Any]:
    costs = {"CPU of memctl, µs an event": 60.0, "CPU of Postgres, µs an event": 40.0}
    return {"events": events, "replay (s)": seconds, "peak MB, memctl": peak, **costs}


def row(figures: dict[str, Any], what: str) -> str:
    (found,) = [line for line in table(figures) if line.startswith(f"| {what}")]
    return found


def test_a_target_is_held_or_missed_in_its_own_sense() -> None:
    peer = "against eventsourcing"
    name = "append, one event a commit, 100 B"
    assert row({"engine": {peer: {name: {"ratio": 3.1}}}}, name) == f"| {name}, to the peer | 3.1 | ≥ 3 | held |"
    assert "**missed**" in row({"engine": {peer: {name: {"ratio": 2.9}}}}, name)
    assert "held" in row({"engine": {"lag": {"p99 (ms)": 250}}}, "lag")
    assert "**missed**" in row({"engine": {"lag": {"p99 (ms)": 251}}}, "lag")


def test_a_replay_is_told_by_the_largest_and_its_memory_against_the_smallest() -> None:
    figures = {"engine": {"replay": {"b": replay(100_000, 7.0, 150.0), "a": replay(10_000, 1.0, 100.0)}}}
    assert row(figures, "replay, seconds a million events").split("|")[2].strip() == "70"
    assert row(figures, "replay, CPU").split("|")[2].strip() == "100"
    assert row(figures, "replay, memory").split("|")[2].strip() == "1.5"


def test_what_was_not_measured_is_told_and_never_held() -> None:
    lines = list(table({}))
    assert len(lines) == 2 + len(TARGETS)
    assert all("not measured" in line and "held" not in line for line in lines[2:])
