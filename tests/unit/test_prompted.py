"""What a prompt asks memory: itself, or what the session has just said; never a chore."""

from __future__ import annotations

from memctl.api.assist.prompts import asks_by_itself, files_in_play, query_of
from memctl.projections.working_memory import ActiveFile, WorkingMemory

SESSION = WorkingMemory(
    stream="session/claude-code/s1",
    last_answer="The totals are rounded twice, once in the cart and once at checkout. Shall I round in the cart only?",
    files=(
        ActiveFile("src/cart.py", "edited"),
        ActiveFile("src/read.py", "read"),
        ActiveFile("docs/plan.md", "created"),
    ),
)


def test_a_prompt_that_says_what_it_is_about_asks_by_itself() -> None:
    prompt = "Why does the checkout round the totals of vouchers?"
    assert asks_by_itself(prompt)
    assert query_of(prompt, SESSION) == prompt


def test_a_short_prompt_asks_with_what_was_just_said_and_the_files_at_hand() -> None:
    asked = query_of("yes, do it", SESSION)
    assert "rounded twice" in asked
    assert "src/cart.py" in asked
    assert "src/read.py" not in asked
    assert query_of("yes, do it", None) == query_of("yes", WorkingMemory(stream="s")) == ""


def test_a_chore_of_version_control_asks_nothing() -> None:
    assert query_of("commit and push", SESSION) == query_of("then commit this", SESSION) == ""


def test_files_in_play_are_those_named_and_those_changed_last() -> None:
    assert files_in_play("see lib/tax.py", SESSION) == ("lib/tax.py", "docs/plan.md", "src/cart.py")
