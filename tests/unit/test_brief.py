"""A session in a few lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.language.brief import LONGEST, Figures, TaskOutcome, summary

FIXED = TaskOutcome(description="Fix the rounding of discounts", outcome="success")
LOST = TaskOutcome(description="Speed up the export", outcome="failure", why="the last error was not resolved")


def test_a_session_is_told_by_its_tasks_what_was_changed_and_its_last_words() -> None:
    text = summary(
        [FIXED, LOST], Figures(files=2, added=10, removed=3, errors=3, resolved=1, test_runs=2), "All\ndone."
    )
    assert text == (
        "Fix the rounding of discounts (success); Speed up the export (failure: the last error was not resolved). "
        '2 files changed (+10 −3), 3 errors, 1 of them resolved, tests ran 2×. It ended with: "All done."'
    )


def test_of_many_tasks_the_first_and_the_last_are_told() -> None:
    text = summary([TaskOutcome(description=f"task {n}") for n in range(9)], Figures(), "")
    assert text.startswith("task 0 (how it ended is not known); 5 more; task 6 ")
    assert "task 8" in text
    assert "task 3" not in text


def test_a_session_in_which_nothing_happened_has_nothing_to_tell() -> None:
    assert summary([], Figures(), "") == ""


works = st.lists(
    st.builds(TaskOutcome, description=st.text(max_size=400), outcome=st.text(max_size=9), why=st.text(max_size=400))
)
figures = st.builds(
    Figures, files=st.integers(0), errors=st.integers(0), resolved=st.integers(0), test_runs=st.integers(0)
)


@given(works, figures, st.text(max_size=3_000))
def test_it_is_one_line_and_never_too_long(work: list[TaskOutcome], counted: Figures, words: str) -> None:
    text = summary(work, counted, words)
    assert len(text) <= LONGEST
    assert "\n" not in text
