"""Who said what, as texts of conversations tell it."""

from __future__ import annotations

import pytest

from memctl.domain.language.speakers import said_by_named, speaker_of

TALK = {
    "1": "Ada: I sold the piano.", "2": "Bo Lind: To whom?", "3": "Ada: To Bo's sister.",
    "4": "Bo Lind: She plays well.", "5": "Ada: She does.", "6": "Bo Lind: I'd like to hear her.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "speaker"),
    [
        ("Ada: I sold it", "Ada"),
        ("Bo Lind: when?", "Bo Lind"),
        ("Inês: olá", "Inês"),
        ("하나: 안녕", "하나"),
        ("it says: no", "it says"),
        ("https://example.org", ""),
        ("12:30: lunch", ""),
        ("a much longer sentence with a colon: so", ""),
        ("Ada:", ""),
        ("", ""),
    ],
)
def test_who_speaks_stands_before_the_first_colon(text: str, speaker: str) -> None:
    assert speaker_of(text) == speaker


def test_a_question_that_names_one_of_those_who_speak_asks_what_that_one_said() -> None:
    found = said_by_named("What did ada's friend sell?", TALK)
    assert {id for id, said in found.items() if said} == {"1", "3", "5"}
    assert {id for id, said in found.items() if not said} == {"2", "4", "6"}
    assert said_by_named("What would Bo Lind like to hear?", TALK)["6"]


@pytest.mark.parametrize("query", ["What did Ada and Bo Lind talk about?", "Who plays the piano?", "Adam's piano", ""])
def test_a_question_that_names_both_or_nobody_asks_what_anybody_said(query: str) -> None:
    assert said_by_named(query, TALK) == {}


def test_prompts_with_a_word_and_a_colon_are_no_conversation() -> None:
    prompts = {
        "1": "Error: it is gone",
        "2": "Fix: look again",
        "3": "run the tests",
        "4": "why is it slow?",
        "5": "push",
    }
    assert said_by_named("What about the error?", prompts) == {}
    labels = {f"{place}": f"{label}: done" for place, label in enumerate(("Error", "Fix", "Note", "Bug"))}
    assert said_by_named("What about the error?", labels) == {}
    assert said_by_named("What did Ada say?", {"1": "Ada: one", "2": "Ada: two", "3": "Ada: three"}) == {}
