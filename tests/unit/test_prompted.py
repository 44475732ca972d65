"""What a prompt asks memory: itself, or what the session has just said; never a chore."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from memctl.api.assist.conversations import (
    Conversation,
    answer_of,
    by_subject,
    chances_of,
    latest_first,
    with_answer,
)
from memctl.api.assist.earlier_work import is_meant as is_meant_work
from memctl.api.assist.earlier_work import voted
from memctl.api.assist.prompts import (
    LONGEST,
    LOOKED_FOR,
    _meant,
    _of_one,
    asks_by_itself,
    ends,
    files_in_play,
    is_meant,
    query_of,
    volunteered,
)
from memctl.api.reading.views import Found, SourceRow
from memctl.domain.retrieval.answering import weights
from memctl.domain.support.text import tokens
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


# --- whose words are given ---


@pytest.mark.parametrize("end", ["We use yarn. (said by liv of the team)", "We use yarn for packages, and more of it…"])
def test_of_knowledge_beside_which_others_said_something_the_first_line_is_given(end: str) -> None:
    known = replace(found("one", f"We use pnpm.\n{end}"), kind="knowledge", passage="We use yarn")
    assert _of_one(known) == "We use pnpm."


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


def conversation(chance: float, lead: float, class_: str = "suggested", score: float = 0.6) -> Conversation:
    turns = (turn("one", "Rename it.\n→ Done."),)
    return Conversation("one", score, class_, "one", 1, turns, (), 12.0, lead, chance)


def test_a_conversation_is_meant_that_likely_answers_or_holds_what_no_other_does() -> None:
    assert is_meant("Where is the cart?", conversation(0.5, 0.5))
    assert is_meant("Where is the cart?", conversation(0.2, 1.2))
    assert not is_meant("Where is the cart?", conversation(0.2, 1.0)), "another subject holds as much"
    assert not is_meant("Where is the cart?", conversation(0.1, 9.0)), "it hardly answers"
    assert not is_meant("Where is the cart?", conversation(0.2, 9.0, score=0.1)), "few words lead anywhere"


def test_a_weak_conversation_has_to_lead_by_more() -> None:
    assert is_meant("Where is the cart?", conversation(0.2, 2.0, "none"))
    assert not is_meant("Where is the cart?", conversation(0.9, 1.0, "none"))
    assert not is_meant("Where is the cart?", conversation(0.2, 1.3, "none"))


def test_of_two_that_may_be_meant_the_likelier_is_given() -> None:
    first, likelier, unlikely = conversation(0.4, 1.2), conversation(0.6, 0.9), conversation(0.1, 1.0)
    assert _meant("Where is the cart?", [first, likelier, unlikely]) == [likelier]
    assert _meant("Where is the cart?", [unlikely]) == []


def test_how_likely_a_turn_answers_grows_with_what_it_and_its_session_hold() -> None:
    rows = {
        "a": turn("a", "The vouchers?\n→ The totals of vouchers are rounded in the cart."),
        "b": turn("b", "The door?\n→ The door is painted green."),
    }
    both = [found(id, row.text) for id, row in rows.items()]
    weight = weights("Where are totals of vouchers rounded?", [frozenset(tokens(each.text)) for each in both])
    chances = chances_of(both, rows, weight)
    assert chances["a"] > 0.5 > chances["b"]
    assert chances_of(both, {}, weight) == {}, "what was forgotten meanwhile answers nothing"


# --- which earlier work is meant ---

TAB, HOOK = "/work/shop/src/VoucherTab.tsx", "/work/shop/src/useShop.ts"
WISH = {"hide": 3.0, "voucher": 2.0, "tab": 2.0, "label": 3.0}


def test_sessions_vote_for_the_files_that_their_work_changed() -> None:
    every = [
        turn("one", "Hide the label of the voucher tab.\n→ Done.", HOOK),
        turn("two", "Paint the tab.\n→ Painted.", TAB),
        turn("three", "Sort vouchers in the tab.\n→ Sorted.", TAB, HOOK),
    ]
    votes = voted(every, WISH)
    assert [path for path, _, _ in votes.values()] == [HOOK, TAB]
    assert [sessions for _, _, sessions in votes.values()] == [2, 2]
    again = voted([*every[1:], turn("four", "The label of the voucher tab is too long.\n→ Cut.", TAB)], WISH)
    assert next(iter(again.values()))[0] == TAB, "three sessions say so, and its name does"


def test_work_is_meant_whose_text_or_files_hold_enough_of_a_prompt() -> None:
    work = replace(turn("one", "Sort the tab.\n→ Sorted.", TAB), title="Sort the tab.")
    assert is_meant_work(work, work.files, WISH, begun=False)
    assert not is_meant_work(work, work.files, WISH, begun=True), "who is at work is past it"
    held = replace(work, text="Hide the label of the voucher tab.\n→ Done.")
    assert is_meant_work(held, held.files, WISH, begun=True)
    other = turn("two", "Hide the label.\n→ Done.", "/work/shop/src/door.ts")
    assert not is_meant_work(other, other.files, WISH, begun=False), "neither title nor file is about it"


def test_a_prompt_that_spells_out_a_files_name_means_the_work_that_was_for_it() -> None:
    wish = {"resum": 2.0, **{f"w{number}": 4.0 for number in range(5)}}
    work = replace(turn("one", "Fix it.\n→ Done.", "/work/shop/resume.go"), title="a bug of `shop resume`")
    assert is_meant_work(work, work.files, wish, begun=False)
    assert not is_meant_work(replace(work, title="Fix it."), work.files, wish, begun=False)


def test_who_names_an_issue_means_the_work_that_was_done_for_it() -> None:
    done = turn("one", "See https://code.example/ada/shop/issues/7668 first.\n→ It ships without its modules.")
    asked = "That is not in the release, says https://code.example/ada/shop/issues/7668#issuecomment-4"
    assert is_meant(asked, replace(conversation(0.05, 0.5, "none"), turns=(done,)))
    assert not is_meant(asked, conversation(0.9, 3, "high"))


def test_a_long_prompt_asks_by_both_its_ends() -> None:
    pasted = f"It fails here: {'log line ' * 2_000} So which port does the dev server use?"
    asked = query_of(pasted, None)
    assert len(asked) <= LONGEST
    assert asked.startswith("It fails here")
    assert ends(asked, LOOKED_FOR).endswith("So which port does the dev server use?")


def test_the_turn_that_answers_is_said_beside_what_the_talk_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memctl.api.assist.conversations.events_of", lambda *_: {})
    nobody: Any = None
    answers = turn(
        "a", "Why two?\n→ The totals of vouchers are rounded in the cart, so the checkout rounds them twice."
    )
    asks = turn("b", "Does the checkout round the totals of vouchers in the cart twice?\n→ I will read the tests.")
    came_to = answer_of([turn("c", "And the door?\n→ The door of the shop is painted green, as agreed.")], "door")
    weight = weights(
        "Why are totals of vouchers rounded twice?", [frozenset(tokens(each.text)) for each in (answers, asks)]
    )
    talk = Conversation("a", 0.6, "high", "a", 2, (answers, came_to[0].turn), came_to)
    said = with_answer(nobody, talk, weight)
    assert [each.turn.id for each in said] == ["a", "c"]
    assert said[0].text.startswith("agent: The totals of vouchers are rounded in the cart")
    only_asked = replace(talk, turns=(asks,))
    assert with_answer(nobody, only_asked, weight) == came_to, "it was only asked there"
    assert with_answer(nobody, replace(only_asked, best=answers), weight) == said, "it was answered in a copy"
    assert with_answer(nobody, replace(talk, says=said), weight) == said


def test_an_error_is_given_only_to_a_prompt_that_shows_it() -> None:
    error: Any = replace(found("e", "Cannot find module"), kind="bug_pattern", source=SourceRow("bug_patterns", "a1"))
    nobody: Any = None
    assert volunteered(nobody, error, {"a1"})
    assert not volunteered(nobody, error, {"b2"})


def test_a_conversation_names_the_files_of_the_project_that_it_edited_last_first() -> None:
    made = Conversation(
        "a", 0.6, "high", "a", 2,
        (turn("a", "Add it.", "/work/shop/a.py"), turn("b", "And that.", "/work/shop/b.py", "/home/ada/plan.md")),
    )  # fmt: skip
    assert made.built("") == ("b.py", "a.py")


def test_where_nobody_answered_nothing_is_said() -> None:
    assert answer_of([turn("a", "What is two and two?")], "What is two and two?") == ()


def test_what_was_built_for_a_question_stands_first_and_other_work_of_the_session_is_left_out() -> None:
    turns = (
        turn("a", "Build the voucher panel.\n→ The panel lists vouchers.", "/work/shop/app.ts",
             "/work/shop/VoucherPanel.ts"),
        *(turn(f"o{number}", "Bump it.\n→ Bumped.", f"/work/shop/{number}.lock") for number in range(30)),
    )  # fmt: skip
    made = Conversation("a", 0.6, "high", "a", 2, turns)
    assert made.built("Where is the voucher panel?")[:2] == ("VoucherPanel.ts", "app.ts")
    assert "29.lock" not in made.built("Where is the voucher panel?")


AT_FIRST = ("Retry how often?\n→ Retries stop after five attempts, and the pause doubles each time.",)


def later(id: str, at: int, *texts: str, score: float = 0.6) -> Conversation:
    turns = tuple(turn(f"{id}{number}", text) for number, text in enumerate(texts))
    return Conversation(id, score, "none", id, at, turns, answer_of(turns, "How often do we retry?"))


def test_of_two_conversations_that_answer_alike_the_later_one_stands_first() -> None:
    first = later("one", 1, *AT_FIRST)
    amended = later("two", 2, "The retries?\n→ Retries stop after seven attempts now, and the pause doubles each time.")
    others = [
        later(f"x{n}", 3 + n, f"Paint door {n}.\n→ Door number {n} is painted green, as agreed.") for n in range(4)
    ]
    assert latest_first([first], [amended, *others]) == [amended, first]
    assert latest_first([others[0]], [first, amended]) == [others[0]]


def test_what_only_ends_alike_does_not_stand_first() -> None:
    first = replace(later("one", 1, *AT_FIRST), held=20.0)
    amended = later("two", 2, "The retries?\n→ Retries stop after seven attempts now, and the pause doubles each time.")
    others = [later(f"x{n}", 3 + n, f"Paint door {n}.\n→ Door number {n} is green, as agreed.") for n in range(4)]
    assert latest_first([first], [replace(amended, held=10.0), *others])[0].id == "two"
    assert latest_first([first], [replace(amended, held=2.0), *others]) == [first]


def test_who_says_the_same_once_more_is_no_rival() -> None:
    first, again = later("one", 1, *AT_FIRST, score=0.4), later("two", 2, *AT_FIRST, score=0.38)
    other = later("x", 3, "Paint the door.\n→ The door is painted green, as agreed.", score=0.38)
    assert [each.class_ for each in by_subject([first, again])] == ["suggested", "suggested"]
    assert [each.class_ for each in by_subject([first, other])] == ["none", "none"]


def test_what_a_conversation_holds_is_compared_with_those_of_other_subjects() -> None:
    first, again = later("one", 1, *AT_FIRST), later("two", 2, *AT_FIRST)
    other = later("x", 3, "Paint the door.\n→ The door is painted green, as agreed.")
    held = [replace(each, held=held) for each, held in zip((first, again, other), (12.0, 12.0, 4.0), strict=True)]
    assert [each.lead for each in by_subject(held)] == [3.0, 3.0, 4 / 12]
