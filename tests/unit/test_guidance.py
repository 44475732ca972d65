"""Guidance for a task from what became of tasks like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval.guidance import MOST_LINES, KnownBug, Precedent, Taught, course, synthesised

WON = Precedent(memory="w", outcome="success", approach="split the module", tips=("run the linter",), complexity=0.2)
LOST = Precedent(memory="l", outcome="failure", approach="patch it", gotchas=("the cache is stale",), complexity=0.9)
BUG = KnownBug(memory="b", score=0.8, solution="pin the version", causes=("two copies of a library",))


def test_a_success_gives_the_approach_and_a_failure_what_to_avoid() -> None:
    found = synthesised([WON, LOST], [BUG], avoid=["eval"], rejected=["mocks"])
    assert found.suggested_approach == "split the module"
    assert found.things_to_try == ["run the linter"]
    assert found.things_to_avoid == ["the cache is stale", "eval", "mocks"]
    assert found.expected_challenges == ["two copies of a library"]
    assert found.confidence == pytest.approx(0.5 + 0.2 + 0.3 * 0.8)
    assert found.sources == ["w", "l", "b"]


def test_without_a_success_the_known_bugs_way_out_is_the_approach() -> None:
    assert synthesised([LOST], [BUG]).suggested_approach == "pin the version"


def test_nothing_known_is_told_with_little_confidence() -> None:
    found = synthesised([], [], avoid=["eval"])
    assert (found.suggested_approach, found.things_to_avoid, found.sources) == ("", ["eval"], [])
    assert found.confidence == pytest.approx(0.2)


def test_hot_files_make_a_task_complex() -> None:
    touching = Precedent(memory="t", outcome="success", approach="", complexity=0.1, files=("src/core.py", "x.py"))
    calm, hot = synthesised([touching], []), synthesised([touching], [], hot_files=["src/core.py"])
    assert (calm.estimated_complexity, hot.estimated_complexity) == ("low", "high")
    assert "src/core.py" in hot.expected_challenges[0]


precedents = st.builds(
    Precedent,
    memory=st.text(max_size=4),
    outcome=st.sampled_from(["success", "failure", "unknown"]),
    approach=st.text(max_size=5),
    tips=st.lists(st.text(max_size=5), max_size=9).map(tuple),
    gotchas=st.lists(st.text(max_size=5), max_size=9).map(tuple),
    complexity=st.floats(0, 1),
)


@given(st.lists(precedents, max_size=6), st.lists(st.text(max_size=5), max_size=20))
def test_advice_stays_short_and_names_nothing_twice(like: list[Precedent], avoid: list[str]) -> None:
    found = synthesised(like, [], avoid=avoid, rejected=avoid)
    assert 0 <= found.confidence <= 1
    assert len(found.things_to_try) <= MOST_LINES
    assert len(found.things_to_avoid) <= 2 * MOST_LINES + 3
    assert len(set(found.things_to_try)) == len(found.things_to_try)
    assert all(found.things_to_try)


def test_strategies_say_what_to_try_and_what_to_avoid_and_are_among_the_sources() -> None:
    made = synthesised(
        [],
        [],
        strategies=[
            Taught(memory="s1", content="`bun run build` mends a stale build."),
            Taught(memory="s2", content="`rtk bun run test` fails here.", from_failure=True),
        ],
    )
    assert made.things_to_try == ["`bun run build` mends a stale build."]
    assert made.things_to_avoid == ["`rtk bun run test` fails here."]
    assert made.sources == ["s1", "s2"]


# --- what to do about an error ---


def test_this_very_error_is_answered_by_what_resolved_it() -> None:
    told = course([KnownBug(memory="b", score=1.0, solution="pin it", held=0.5)])
    assert (told.strategy, told.approach, told.source, told.confidence) == ("follow_past_success", "pin it", "b", 0.5)


def test_an_error_like_known_ones_is_answered_by_their_way_out() -> None:
    unsolved = KnownBug(memory="u", score=0.9, solution="")
    told = course([unsolved, BUG])
    assert (told.strategy, told.approach, told.source) == ("use_known_pattern", "pin the version", "b")
    assert told.confidence == pytest.approx(0.8)


def test_what_was_tried_in_this_session_is_not_told_again() -> None:
    told = course([KnownBug(memory="b", score=1.0, solution="pin it"), BUG], met_here=True, tried="pin it")
    assert (told.strategy, told.approach) == ("try_different_approach", "pin the version")
    assert "pin it" in told.reason
    assert course([], met_here=True, tried="pin it").approach == ""


def test_without_a_way_out_there_is_nothing_to_do_but_to_look() -> None:
    unknown, unsolved = course([]), course([KnownBug(memory="u", score=1.0, solution="")])
    assert {unknown.strategy, unsolved.strategy} == {"explore"}
    assert unknown.reason != unsolved.reason
