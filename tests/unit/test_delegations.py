"""A subagent's task, from the call that hands it over to the subagent's start."""

from __future__ import annotations

import pickle

from memctl.api.assist.before_tool import MOST_SESSIONS, MOST_TASKS, Delegations


def asks(tasks: Delegations, session: str, prompt: str, kind: str = "Explore") -> None:
    tasks.asked(session, {"tool_input": {"prompt": prompt, "subagent_type": kind}})


def test_a_subagent_gets_the_oldest_task_of_its_kind_once() -> None:
    tasks = Delegations()
    asks(tasks, "s", "find the cart", "Plan")
    asks(tasks, "s", "find the tests")
    asks(tasks, "s", "find the totals")
    assert [tasks.started("s", "Explore") for _ in range(2)] == ["find the tests", "find the totals"]
    assert tasks.started("s", "Explore") == "find the cart", "of another kind, where none of its own waits"
    assert tasks.started("s", "Explore") == ""
    assert tasks.started("other", "Explore") == ""


def test_what_hands_over_no_task_is_passed_over() -> None:
    tasks = Delegations()
    tasks.asked("s", {"tool_input": {"prompt": ["no text"]}})
    tasks.asked("s", {"tool_input": "no object"})
    tasks.asked("", {"tool_input": {"prompt": "of no session"}})
    assert tasks.started("s", "") == tasks.started("", "") == ""


def test_tasks_that_never_start_are_bounded() -> None:
    tasks = Delegations()
    for number in range(MOST_TASKS + 3):
        asks(tasks, "s", f"task {number}")
    assert tasks.started("s", "Explore") == "task 3"
    for number in range(MOST_SESSIONS):
        asks(tasks, f"s{number}", "task")
    assert tasks.started("s", "Explore") == ""


def test_whoever_has_a_key_fills_no_memory_with_the_names_of_kinds() -> None:
    tasks, kind = Delegations(), "k" * 1_000_000
    asks(tasks, "s", "Find the ledger.", kind)
    assert len(pickle.dumps(tasks._waiting)) < 10_000
    assert tasks.started("s", kind) == "Find the ledger."
