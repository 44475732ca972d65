"""The table of `make bench`: what held, what was missed, and what was not measured."""

from __future__ import annotations

from typing import Any

from bench.__main__ import TARGETS, table


def replay(events: int, seconds: float, peak: float) -> dict[str, Any]:
    costs = {"CPU of memctl, µs an event": 60.0, "CPU of Postgres, µs an event": 40.0}
    disk = {"raw MB": events * 4.3e-3, "disk MB": {"all of it / raw transcripts": 0.6}}
    return {"events": events, "replay (s)": seconds, "peak MB, memctl": peak, **costs, **disk}


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


OF_A_MILLION = ("replay of 1,000,000 events", "its memory", "disk")


def test_a_replay_is_told_by_the_largest_and_its_memory_against_the_smallest() -> None:
    figures = {"engine": {"replay": {"b": replay(999_870, 70.0, 150.0), "a": replay(99_987, 6.0, 100.0)}}}
    assert [row(figures, what).split("|")[2].strip() for what in OF_A_MILLION] == ["70", "1.5", "0.6"]
    assert row(figures, "replay, CPU").split("|")[2].strip() == "100"


def test_what_fewer_events_take_is_not_told_as_that_of_a_million() -> None:
    figures = {"engine": {"replay": {"b": replay(99_987, 7.0, 150.0), "a": replay(10_000, 1.0, 100.0)}}}
    assert all("not measured" in row(figures, what) for what in OF_A_MILLION)
    assert row(figures, "replay, CPU").split("|")[2].strip() == "100"


def test_memory_is_not_held_against_that_of_another_million() -> None:
    figures = {"engine": {"replay": {"only": replay(1_000_000, 70.0, 150.0)}}}
    assert "not measured" in row(figures, "its memory")


def test_the_apis_memory_is_told_of_one_that_has_its_embedder() -> None:
    figures = {"search": {"API (MB)": 95}, "hooks": {"recall": {"resident: api (MB)": 122}}}
    assert row(figures, "API with its embedder").split("|")[2].strip() == "122"


def test_recall_is_told_of_memctl_and_against_the_best_peer() -> None:
    systems = {"memctl": {"hit@1": 0.75}, "one": {"hit@1": 0.6}, "other": {"hit@1": 0.3}}
    figures = {"recall": {"turns": systems}}
    assert "| 0.75 | ≥ 0.76 | **missed** |" in row(figures, "turns of conversations, hit@1 ")
    assert "| 1.25 | ≥ 1 | held |" in row(figures, "the same, to the best peer")


def test_what_was_not_measured_is_told_and_never_held() -> None:
    lines = list(table({}))
    assert len(lines) == 2 + len(TARGETS)
    assert all("not measured" in line and "held" not in line for line in lines[2:])
