"""What a session leaves open, read out of its last words and its list of steps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.open_threads import MOST, TEXT, Thread, threads_of
from memctl.domain.session.outcome_rules import Signs, verdict_of


def left(answer: str = "", plan: tuple[tuple[str, str], ...] = (), **more: object) -> list[tuple[str, str]]:
    given = {"worked_after": False, "outcome": "unknown", "why": "", "errors": {}, **more}
    return [(each.kind, each.text) for each in threads_of(answer, plan, **given)]  # type: ignore[arg-type]


def test_steps_that_were_not_done_are_left() -> None:
    plan = (("completed", "Write the parser"), ("in_progress", "Wire it into the CLI"), ("pending", "Document it all"))
    assert left(plan=plan) == [("step", "Wire it into the CLI"), ("step", "Document it all")]


def test_of_work_that_ended_well_the_step_that_was_being_done_is_done() -> None:
    plan = (("in_progress", "Run tests and commit"), ("pending", "Document the flag"))
    assert left(plan=plan, outcome="success") == [("step", "Document the flag")]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("All green. I haven't pushed; do so when ready.", [("said", "I haven't pushed; do so when ready.")]),
        ("Both pass. Integration tests were not run.", [("said", "Integration tests were not run.")]),
        ("The schema still needs to be migrated.", [("said", "The schema still needs to be migrated.")]),
        ("Fixed. Want me to open a pull request?", [("asked", "Want me to open a pull request?")]),
        ("Now let me run the integration tests.", [("promised", "Now let me run the integration tests.")]),
        ("마이그레이션은 아직 실행하지 않았습니다.", [("said", "마이그레이션은 아직 실행하지 않았습니다.")]),
    ],
)  # fmt: skip
def test_the_last_words_say_what_is_left(answer: str, found: list[tuple[str, str]]) -> None:
    assert left(answer) == found


@pytest.mark.parametrize(
    "last",
    [
        "Waiting on completion.",
        "I'm waiting for the two reviews.",
        "I'll report back when the agents finish.",
        "Once the build is through, I'll merge it.",
        "The migration is still running.",
        "The job is still running (12 min so far).",
        "The deploy is in progress: step 3 of 5.",
        "The build is still running in CI.",
        "Handed it off to a subagent.",
        "에이전트의 결과를 기다리고 있습니다.",
    ],
)
def test_work_that_goes_on_or_waits_is_left_and_is_no_success(last: str) -> None:
    answer = f"The rewrite is dispatched, built on the frozen list. {last}"
    assert left(answer, outcome="success") == [("promised", last)]
    assert verdict_of(Signs(answer=answer), closed=False).outcome == "unknown"


@pytest.mark.parametrize(
    "last",
    [
        "Waiting for the element fixes the test.",
        "The dev server is still running on port 3000.",
        "The nightly job is still running on cron at 03:00, all tests pass.",
        "The pagination is currently running on cursor tokens and all tests pass.",
        "The migration is in progress bars now.",
        "After the release, I'll be on holiday.",
        "It holds the lock now:\n```sh\n# waiting for the lock\n```",
        "When it was waiting, the lock was held; it is released now.",
        "Once the secrets are there, you can run it again.",
        "All four agents are done.",
    ],
)
def test_what_is_done_goes_on_in_no_words(last: str) -> None:
    answer = f"The cart rounds by the cent. {last}"
    assert left(answer, outcome="success") == []
    assert verdict_of(Signs(answer=answer), closed=False).outcome == "success"


@pytest.mark.parametrize(
    "answer",
    [
        "All tests pass and the work is committed.",
        "Is there anything else I can help you with?",
        "The remaining tests pass as well.",
        "Let me know if you would like another name.",
        "Fixed: the flag was not implemented before.\n\n```\nTODO: nothing\n```\n",
        "The next step of the algorithm multiplies both sides.",
        "This has not changed since last year.",
    ],
)
def test_words_that_leave_nothing_open_say_nothing(answer: str) -> None:
    assert left(answer) == []


def test_a_promise_that_was_kept_is_none() -> None:
    assert left("Now let me run the integration tests.", worked_after=True) == []


def test_work_that_failed_leaves_its_errors_or_itself() -> None:
    errors = {"s": "TypeError: unsupported operand"}
    assert left(errors=errors, outcome="failure") == [("error", "TypeError: unsupported operand")]
    assert left(errors=errors, outcome="success") == []
    interrupted = left(outcome="partial", why="the user interrupted the work")
    assert interrupted == [("unfinished", "the user interrupted the work")]


@given(st.text(max_size=400), st.lists(st.tuples(st.sampled_from(["pending", "completed"]), st.text(max_size=300))))
def test_threads_are_few_short_and_told_once(answer: str, plan: list[tuple[str, str]]) -> None:
    found: tuple[Thread, ...] = threads_of(answer, plan, {}, worked_after=False, outcome="unknown", why="")
    assert len(found) <= MOST
    assert all(len(each.text) <= TEXT for each in found)
    assert len({each.text.lower() for each in found}) == len(found)
