"""Bounded collections, averages and solutions come out the same whatever the order of arrival."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.failures.solutions import Attempt, CodeChange, Detail, alike, solutions_of
from memctl.domain.support.bounded import BYTES_PER_CHARACTER, Seen, clipped, names, newest, one_line, seen
from memctl.domain.support.outcomes import KeptOutcome, moving_average, with_outcome

sightings = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 20)), max_size=30)


@given(sightings, st.randoms())
def test_names_seen_do_not_depend_on_the_order_of_seeing(
    seen_at: list[tuple[str, int]], shuffler: random.Random
) -> None:
    def kept(order: list[tuple[str, int]]) -> tuple[Seen, ...]:
        found: tuple[Seen, ...] = ()
        for name, at in order:
            found = seen(found, name, at, 4)
        return found

    other = list(seen_at)
    shuffler.shuffle(other)
    assert kept(seen_at) == kept(other)
    assert len(kept(seen_at)) <= 4
    latest = {name: max(at for n, at in seen_at if n == name) for name, _ in seen_at}
    assert {k.name: k.at for k in kept(seen_at)}.items() <= latest.items()


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=80), st.randoms())
def test_a_moving_average_does_not_depend_on_the_order_of_arrival(
    outcomes: list[tuple[int, bool]], shuffler: random.Random
) -> None:
    facts = [KeptOutcome(at, str(i), float(good)) for i, (at, good) in enumerate(outcomes)]

    def average(order: list[KeptOutcome]) -> float:
        kept: tuple[KeptOutcome, ...] = ()
        for fact in order:
            kept = with_outcome(kept, fact)
        assert len(kept) <= 32
        return moving_average(kept)

    other = list(facts)
    shuffler.shuffle(other)
    assert average(facts) == average(other)


def test_an_average_starts_at_a_half_and_follows_the_latest_outcomes() -> None:
    good, bad = KeptOutcome(1, "a", 1.0), KeptOutcome(2, "b", 0.0)
    assert moving_average(()) == 0.5
    assert moving_average((good,)) == 0.65
    assert moving_average((good, bad)) == pytest.approx(0.455)
    assert moving_average((bad, good)) == moving_average((good, bad))


@given(st.text(max_size=400), st.integers(-3, 60))
def test_a_clipped_text_costs_no_more_than_its_limit(text: str, limit: int) -> None:
    short = clipped(text, limit)
    assert len(short) <= max(limit, 0)
    assert len(msgspec.json.encode(short)) - 2 <= BYTES_PER_CHARACTER * max(limit, 0)
    assert short == text or short.endswith("…") or limit < 2


def test_a_text_is_cut_between_words_and_folded_onto_one_line() -> None:
    assert clipped("short enough", 12) == "short enough"
    assert clipped("the quick brown fox jumps", 22) == "the quick brown fox…"
    assert one_line("  two\n\n  lines\t", 40) == "two lines"


def test_an_item_that_comes_again_replaces_itself() -> None:
    kept = newest(newest((), KeptOutcome(1, "a", 0.0), 2), KeptOutcome(1, "a", 1.0), 2)
    assert kept == (KeptOutcome(1, "a", 1.0),)


def test_attempts_of_one_kind_are_one_solution_and_refuted_ones_count_against_it() -> None:
    attempts = (
        Attempt(3, "c", "Ran go mod tidy to fix go.sum", ("go.sum",)),
        Attempt(1, "a", "Added the missing nil check in parse()", ("src/parse.go",)),
        Attempt(2, "b", "Added a missing nil check in parse()", ("src/parse.go",)),
    )
    details = (
        Detail(2, "b", "parse() got nil for empty input", (CodeChange("src/parse.go", "", "if x == nil"),), "go test"),
    )
    found = solutions_of(attempts, details, (Seen("c", 4),), ("go files",))
    assert [(s.uses, s.successes, s.success_rate) for s in found] == [(2, 2, 0.755), (1, 0, 0.35)]
    assert found[0].description == "parse() got nil for empty input"
    assert found[0].conditions == ("`go test` failed", "go files")
    assert found[0].first_used == 1
    assert found[0].last_used == 2


def test_a_solution_is_shown_by_the_attempt_that_lasted() -> None:
    attempts = (Attempt(1, "a", "pin the version", ("x.toml",)), Attempt(2, "b", "pin the versions", ("x.toml",)))
    (solution,) = solutions_of(attempts, (), (Seen("b", 3),), ())
    assert solution.approach == "pin the version"
    assert names((Seen("b", 3),)) == ("b",)


def test_different_approaches_to_different_files_are_different_solutions() -> None:
    assert not alike(Attempt(1, "a", "upgrade the compiler", ("a",)), Attempt(2, "b", "mock the clock", ("b",)))
    assert alike(Attempt(1, "a", "", ("x/a.go",)), Attempt(2, "b", "", ("y/a.go",)))
    assert alike(Attempt(1, "a", ""), Attempt(2, "b", ""))
