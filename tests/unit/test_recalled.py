"""What was recalled, and how the work went in which it was told: what moves, and that holding back is a fair draw."""

from __future__ import annotations

from itertools import permutations
from typing import Any
from uuid import UUID

import msgspec
import pytest
from events import prompt
from unit.test_learning import WORK, judged, of, read

from memctl.domain.events.event import NewEvent
from memctl.domain.events.facts import MemoriesFollowed, TaskClosed
from memctl.domain.events.observations import PromptSubmitted, SessionEnded, event_id_of
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory, held_back
from memctl.domain.events.statements import TaskCompleted
from memctl.domain.session.stream_facts import derive
from memctl.projections.memory_feedback import memory_feedback
from memctl.projections.stream_state import fold_stream


def recall(*memories: str, withheld: bool = False, at: int = 2, asked_by: UUID | None = None) -> NewEvent:
    told = tuple(RecalledMemory(id) for id in memories)
    hook = "UserPromptSubmit" if asked_by or at else "SessionStart"
    return of(MemoryRecalled(hook=hook, memories=told, withheld=withheld, asked_by=asked_by), at)


def followed(*events: NewEvent) -> list[MemoriesFollowed]:
    facts = derive(events[0].stream, read(*events)).drain()
    return [fact for fact in facts if isinstance(fact, MemoriesFollowed)]


def closings(*events: NewEvent) -> list[str]:
    facts = derive(events[0].stream, read(*events)).drain()
    return [fact.recalled for fact in facts if isinstance(fact, TaskClosed)]


def test_what_was_told_is_followed_by_how_the_work_went() -> None:
    events = (WORK[0], recall("a", "b"), *WORK[1:])
    (fact,) = followed(*events)
    assert (fact.memories, fact.outcome) == (("a", "b"), "success")
    assert closings(*events) == ["told"]


def test_a_judges_later_word_moves_what_was_told() -> None:
    (fact,) = followed(WORK[0], recall("a"), *WORK[1:], judged("failure"))
    assert fact.outcome == "failure"


def test_what_was_held_back_is_followed_by_nothing_and_the_task_says_so() -> None:
    events = (WORK[0], recall("a", withheld=True), *WORK[1:])
    assert followed(*events) == []
    assert closings(*events) == ["withheld"]
    assert closings(*WORK) == ["none"]


def test_open_work_is_followed_once_the_session_ends_and_the_same_fact_says_how_it_went_on() -> None:
    ended = of(SessionEnded(reason="exit", line="z"), 50)
    assert followed(WORK[0], recall("a"), WORK[1]) == []
    (left,) = followed(WORK[0], recall("a"), WORK[1], ended)
    assert (left.memories, left.occurred_at) == (("a",), WORK[0].occurred_at)
    done = of(TaskCompleted(outcome="failure"), 60, "user")
    assert {(f.id, f.occurred_at) for f in followed(WORK[0], recall("a"), WORK[1], ended, done)} == {
        (left.id, left.occurred_at)
    }
    assert followed(WORK[0], recall("a"), WORK[1], ended, done)[-1].outcome == "failure"


def test_what_a_session_begins_with_belongs_to_its_first_task() -> None:
    events = (recall("a", at=0), *WORK)
    assert [fact.memories for fact in followed(*events)] == [("a",)]
    assert closings(*events) == ["told"]
    held = recall("b", withheld=True)
    assert closings(recall("a", at=0), WORK[0], held, *WORK[1:]) == ["withheld"]


def test_what_was_told_belongs_to_the_prompt_that_asked_for_it_wherever_clocks_put_them() -> None:
    """The transcript raises its prompt's time above that of the hook, and of what was recalled in between."""
    payload = WORK[2].payload
    assert isinstance(payload, PromptSubmitted)
    asked = of(msgspec.structs.replace(payload, via="hook", line=""), 90, "user")
    told = recall("a", at=91, asked_by=event_id_of(1, asked.dedupe_key))
    done = of(TaskCompleted(outcome="success"), 150, "user")
    for order in permutations((*WORK, asked, told, done)):
        (fact,) = followed(*order)
        assert fact.occurred_at == WORK[2].occurred_at
        assert closings(*order) == ["none", "told"]
    late = recall("a", at=140, asked_by=event_id_of(1, asked.dedupe_key))
    third = prompt(3, "now implement the import of ledgers from spreadsheets", at=130)
    assert closings(*WORK, asked, late, third) == ["none", "told"]


@pytest.mark.parametrize(("outcome", "reliability"), [("success", 0.65), ("partial", 0.5), ("failure", 0.35)])
def test_reliability_moves_by_what_followed_and_usefulness_by_ratings_alone(outcome: Any, reliability: float) -> None:
    done = of(TaskCompleted(outcome=outcome), 50, "user")
    (fact,) = followed(WORK[0], recall("a"), WORK[1], done)
    row = memory_feedback(None, fact)
    assert (row.recalls, row.reliability, row.usefulness) == (1, reliability, 0.5)


def test_an_episode_says_whether_memory_was_told_and_what_ended_it() -> None:
    def ended(*events: NewEvent) -> list[tuple[str, str]]:
        _, delta = fold_stream(WORK[0].stream, read(*events))
        rows = [row for (name, _), row in delta.rows.items() if name == "episodes"]
        return [(row.recalled, row.ended_by) for row in sorted(rows, key=lambda row: row.started_at)]

    assert ended(WORK[0], recall("a"), *WORK[1:])[0] == ("told", "next_prompt")
    assert ended(*WORK)[0] == ("none", "next_prompt")
    assert ended(WORK[0], recall("a", withheld=True), *WORK[1:])[0] == ("withheld", "next_prompt")
    assert ended(WORK[0], WORK[1]) == [("none", "")]
    assert ended(WORK[0], WORK[1], of(SessionEnded(reason="exit", line="z"), 50)) == [("none", "session_end")]
    assert ended(WORK[0], WORK[1], prompt(9, "thanks, perfect", at=60)) == [("none", "verdict")]


def test_a_share_of_prompts_is_held_back_and_each_always_alike() -> None:
    drawn = [held_back("s1", f"prompt {n}", 0.2) for n in range(2_000)]
    assert 300 < sum(drawn) < 500
    assert drawn == [held_back("s1", f"prompt {n}", 0.2) for n in range(2_000)]
    assert not any(held_back("s1", f"prompt {n}", 0.0) for n in range(100))
    assert all(held_back("s1", f"prompt {n}", 1.0) for n in range(100))
