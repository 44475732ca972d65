"""What a conversation came to: which of its sentences are shown."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval.passages import MOST_TURNS, Exchange, exchange_of, likeness, passage_of, passages

MERGE = (
    Exchange(
        "The contact list keeps growing duplicates after every sync run.",
        "Equality on the raw email is too strict. Shall I look at the tests first? I will read dedupe.py now.",
    ),
    Exchange(
        "Key duplicates on the lowercased email plus the calendar day.",
        "Understood. Records with the same lowercased email on one calendar day are duplicates.",
    ),
    Exchange(
        "When two records collide keep the newer one.",
        "Settled: duplicates share the lowercased email and the calendar day, and the newer of two records is kept.",
    ),
)


def shown_of(turns: Sequence[Exchange], query: str, most: int) -> str:
    return " ".join(passages(turns, query, most).values())


def test_what_was_settled_is_shown_before_what_was_only_looked_at() -> None:
    shown = shown_of(MERGE, "sync makes duplicate contacts", 320)
    assert "Settled: duplicates share the lowercased email" in shown
    assert "Shall I look at the tests first?" not in shown
    assert "I will read dedupe.py" not in shown


def test_each_sentence_stands_beside_who_said_it_in_order() -> None:
    turns = [
        Exchange("And how much?", "A voucher is worth its face value, printed in euros."),
        Exchange("A voucher of that value shall expire after ninety days.", "Done."),
    ]
    assert passages(turns, "voucher", 600) == {
        0: "agent: A voucher is worth its face value, printed in euros.",
        1: "user: A voucher of that value shall expire after ninety days.",
    }


def test_what_the_user_asked_in_the_same_words_is_left_out() -> None:
    turns = [Exchange("The checkout rounds voucher totals twice.", "Round them once, in the cart, to whole cents.")]
    shown = passages(turns, "Why does the checkout round voucher totals twice?", 600)
    assert shown == {0: "agent: Round them once, in the cart, to whole cents."}


def test_a_session_that_goes_on_to_something_else_is_quoted_where_it_was_about_the_question() -> None:
    other = [
        Exchange(
            f"Now the invoice footer {n}.", f"The invoice footer {n} shows the tax number and the bank account now."
        )
        for n in range(12)
    ]
    shown = shown_of([*MERGE, *other], "sync makes duplicate contacts", 320)
    assert "newer of two records" in shown
    assert "footer" not in shown


def test_a_short_text_is_its_own_passage_and_a_long_one_is_cut_where_it_meets_the_question() -> None:
    assert passage_of("Use Decimal.", "money", 100) == "Use Decimal."
    long = (
        "How do totals work?\n→ " + "Nothing of note stands in this sentence here. " * 40 + "Totals are Decimal always."
    )
    assert "Totals are Decimal always." in passage_of(long, "are totals decimal", 200)


def test_code_and_tables_are_no_sentences() -> None:
    answer = "The limit is seven attempts now.\n```python\nlimit = 8  # attempts of the limit\n```\n| a | b |\n"
    shown = shown_of([Exchange("What is the limit of attempts?", answer)], "limit of attempts", 300)
    assert shown.count("limit") <= 2


def test_of_many_turns_the_number_is_that_of_the_turn_itself() -> None:
    others = [
        Exchange(f"Paint door {number}.", f"Door number {number} is painted.") for number in range(2 * MOST_TURNS)
    ]
    assert list(passages([*others, *MERGE], "sync makes duplicate contacts", 320))[-1] == len(others) + 2


def test_a_sentence_ends_behind_no_short_form_and_a_long_one_within_no_word() -> None:
    said = shown_of(
        [Exchange("Why?", "The hook ran in a subshell, i.e. The vouchers were lost.")], "vouchers lost", 600
    )
    assert said == "agent: The hook ran in a subshell, i.e. The vouchers were lost."
    listed = "- Vouchers are lost in the hook\n- Vouchers are lost in the queue"
    assert shown_of([Exchange("Why?", listed)], "vouchers lost", 600) == (
        "agent: Vouchers are lost in the hook; Vouchers are lost in the queue"
    )
    answer = "The vouchers are lost where " + " ".join(f"regression{number}" for number in range(60))
    assert shown_of([Exchange("Why?", answer)], "vouchers lost", 600).endswith("regression22…")


@given(st.lists(st.tuples(st.text(max_size=200), st.text(max_size=400)), max_size=6), st.text(max_size=80))
def test_a_passage_never_exceeds_its_room_and_holds_only_what_was_said(
    turns: list[tuple[str, str]], query: str
) -> None:
    exchanges = [Exchange(prompt, answer) for prompt, answer in turns]
    shown = shown_of(exchanges, query, 300)
    assert len(shown) <= 300
    assert shown == shown_of(exchanges, query, 300)


@given(st.text(max_size=300), st.text(max_size=300))
def test_the_two_sides_of_a_turn_are_told_apart_as_they_were_put_together(prompt: str, answer: str) -> None:
    kept = prompt.replace("\n→ ", "")
    assert exchange_of(f"{kept}\n→ {answer}") == Exchange(kept, answer) or "\n→ " in f"{kept}\n→ "[: len(kept) + 2]


def test_likeness_counts_rare_words_more_and_is_of_both_alike() -> None:
    rarity = {"merge": 2.0, "email": 2.0, "sync": 0.1}
    assert likeness(["merge", "sync"], ["merge", "email"], rarity) == likeness(
        ["merge", "email"], ["merge", "sync"], rarity
    )
    assert likeness(["merge"], ["merge"], rarity) == 1.0
    assert likeness(["sync", "merge"], ["sync", "email"], rarity) < 0.01
    assert likeness([], ["merge"], rarity) == 0.0


def test_a_prompt_that_nobody_typed_is_not_worded_as_the_users() -> None:
    text = "Totals are Decimal in the ledger. " + "Other things matter less. " * 20 + "\n→ Totals are Decimal now."
    assert "user: Totals" in passage_of(text, "are totals decimal", 200)
    shown = passage_of(text, "are totals decimal", 200, "pasted")
    assert "pasted: Totals" in shown
    assert "user:" not in shown
