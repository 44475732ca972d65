"""What a prompt asks memory: itself, or what the session has just said; never a chore."""

from __future__ import annotations

from datetime import UTC, datetime

from memctl.api.assist.conversations import Conversation
from memctl.api.assist.prompts import anchored, asks_by_itself, bears, files_in_play, query_of
from memctl.api.reading.views import Found, SourceRow
from memctl.projections.memory_rows import Memory, Source
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


# --- which conversation is meant ---


def turn(id: str, text: str, *files: str) -> Memory:
    return Memory(
        id=id, kind="turn", bucket="EPISODIC", title="", gist="", text=text, search_text=text, location="/work/shop",
        locations=("/work/shop",), sessions=(id,), importance=0.5, confidence=0.5, status="record", occurred_at=1,
        first_at=1, last_at=1, source=Source("facts", id), files=files,
    )  # fmt: skip


def found(id: str, text: str) -> Found:
    return Found(
        id=id, text=text, title="", score=0.6, class_="suggested", bucket="EPISODIC", kind="turn", project="shop",
        occurred_at=datetime(2026, 1, 2, tzinfo=UTC), evidence=[], why="", source=SourceRow("facts", id),
    )  # fmt: skip


def conversation(id: str, text: str, *files: str, class_: str = "suggested") -> Conversation:
    return Conversation(id, 0.6, class_, id, 1, (turn(id, text, *files),))


def test_a_name_that_many_conversations_hold_says_of_none_that_it_is_meant() -> None:
    every = [conversation(id, f"cart_total is in {id}_table.") for id in ("one", "two", "three")]
    wanted = frozenset({"cart_total", "two_table"})
    assert anchored(wanted, every, [found(each.id, each.turns[0].text) for each in every]) == {
        "one": 0,
        "two": 1,
        "three": 0,
    }


def test_the_words_of_a_prompt_alone_mean_no_conversation() -> None:
    assert not bears("high", 0, 2, (), False)
    assert bears("suggested", 1, 2, (), False), "it holds a rare name"
    assert bears("suggested", 0, 2, ("cart/total.py",), False), "it worked on a file at hand"
    assert bears("suggested", 0, 2, (), True), "the prompt describes at length what it hardly names"


def test_where_words_are_not_enough_several_rare_names_are() -> None:
    assert not bears("none", 1, 2, (), True)
    assert not bears("none", 0, 2, ("a/b.py", "a/c.py"), True)
    assert bears("none", 2, 2, (), False)
    assert not bears("none", 2, 3.5, (), False), "of a prompt that names dozens of things two are few"


def test_a_conversation_names_the_files_of_the_project_that_it_edited_last_first() -> None:
    made = Conversation(
        "a", 0.6, "high", "a", 2,
        (turn("a", "Add it.", "/work/shop/a.py"), turn("b", "And that.", "/work/shop/b.py", "/home/ada/plan.md")),
    )  # fmt: skip
    assert made.edited == ("b.py", "a.py")


def test_a_conversation_that_came_to_nothing_says_nothing() -> None:
    assert conversation("a", "What is two and two?").came_to("What is two and two?", 500) == ""
