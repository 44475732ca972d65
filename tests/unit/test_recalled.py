"""What was recalled, and how the work went in which it was told: what moves, and that holding back is a fair draw."""

from __future__ import annotations

from typing import Any

import pytest
from unit.test_learning import WORK, judged, of, read

from memctl.domain.derive import derive
from memctl.domain.event import Event, NewEvent
from memctl.domain.facts import MemoryFollowed, TaskClosed
from memctl.domain.recalled import MemoryRecalled, RecalledMemory, held_back
from memctl.domain.statements import TaskCompleted
from memctl.projections.regard import regard
from memctl.projections.stage1 import fold_stream


def recall(*memories: str, withheld: bool = False) -> NewEvent:
    told = tuple(RecalledMemory(id) for id in memories)
    return of(MemoryRecalled(hook="UserPromptSubmit", memories=told, withheld=withheld), 2)


def followed(*events: NewEvent) -> dict[str, MemoryFollowed]:
    facts = derive(WORK[0].stream, read(*events)).drain()
    return {fact.memory: fact for fact in facts if isinstance(fact, MemoryFollowed)}


def closing(events: list[Event]) -> TaskClosed:
    return next(fact for fact in derive(events[0].stream, events).drain() if isinstance(fact, TaskClosed))


def test_what_was_told_is_followed_by_how_the_work_went() -> None:
    events = (WORK[0], recall("a", "b"), *WORK[1:])
    assert {memory: fact.outcome for memory, fact in followed(*events).items()} == {"a": "success", "b": "success"}
    assert closing(read(*events)).recalled == "told"


def test_a_judges_later_word_moves_what_was_told() -> None:
    assert followed(WORK[0], recall("a"), *WORK[1:], judged("failure"))["a"].outcome == "failure"


def test_what_was_held_back_is_followed_by_nothing_and_the_task_says_so() -> None:
    events = (WORK[0], recall("a", withheld=True), *WORK[1:])
    assert followed(*events) == {}
    assert closing(read(*events)).recalled == "withheld"
    assert closing(read(*WORK)).recalled == "none"


@pytest.mark.parametrize(("outcome", "reliability"), [("success", 0.65), ("partial", 0.5), ("failure", 0.35)])
def test_reliability_moves_by_what_followed_and_usefulness_by_ratings_alone(outcome: Any, reliability: float) -> None:
    done = of(TaskCompleted(outcome=outcome), 50, "user")
    row = regard(None, followed(WORK[0], recall("a"), WORK[1], done)["a"])
    assert (row.recalls, row.reliability, row.usefulness) == (1, reliability, 0.5)


def test_tasks_are_counted_by_whether_memory_was_told() -> None:
    def counts(*events: NewEvent) -> tuple[int, ...]:
        _, delta = fold_stream(WORK[0].stream, read(*events))
        rows = [row for (name, _), row in delta.rows.items() if name == "stats"]
        names = ("tasks_told_succeeded", "tasks_untold_succeeded", "tasks_withheld_succeeded")
        return tuple(sum(getattr(row, name) for row in rows) for name in names)

    assert counts(WORK[0], recall("a"), *WORK[1:]) == (1, 0, 0)
    assert counts(*WORK) == (0, 1, 0)
    assert counts(WORK[0], recall("a", withheld=True), *WORK[1:]) == (0, 0, 1)


def test_a_share_of_prompts_is_held_back_and_each_always_alike() -> None:
    drawn = [held_back("s1", f"prompt {n}", 0.2) for n in range(2_000)]
    assert 300 < sum(drawn) < 500
    assert drawn == [held_back("s1", f"prompt {n}", 0.2) for n in range(2_000)]
    assert not any(held_back("s1", f"prompt {n}", 0.0) for n in range(100))
    assert all(held_back("s1", f"prompt {n}", 1.0) for n in range(100))
