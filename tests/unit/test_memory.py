"""What is worth remembering, and the texts that stand for it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import Turn
from memctl.domain.knowledge.memory import (
    GIST,
    LEAD,
    LEAST_IMPORTANCE,
    SPEAKS_FOR_ITSELF,
    bug_importance,
    day_of,
    first_sentences,
    is_steering,
    key_sentences,
    knowledge_importance,
    lead_of,
    search_text,
    turn_importance,
    worth_keeping,
)
from memctl.projections.memories import of_turn


@pytest.mark.parametrize(
    "prompt", ["", "y", "Yes please!", "push it now", "#2", "/compact keep the plan", "계속해줘", "👍"]
)
def test_prompts_that_only_steer(prompt: str) -> None:
    assert is_steering(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "fix the login bug",
        "why?!? it fails",
        "/usr/bin is missing from PATH",
        "로그인 버그 고쳐줘",
        "push to the staging remote",
    ],
)
def test_prompts_that_say_something(prompt: str) -> None:
    assert not is_steering(prompt)


def test_short_or_unimportant_candidates_are_dropped_and_hangul_counts_double() -> None:
    assert worth_keeping("use pnpm now!", 0.2)
    assert not worth_keeping("use pnpm now!", 0.19)
    assert not worth_keeping("too short", 0.9)
    assert worth_keeping("주석을 달아", 0.5)


def test_what_an_agent_says_at_length_is_kept_though_the_prompt_says_nothing() -> None:
    def turn(answer: str) -> Turn:
        return Turn(
            id=uuid4(), stream="s", occurred_at=Micros(0), location="", evidence=(), prompt="yes", answer=answer
        )  # fmt: skip

    assert turn_importance(turn("Done.")) == 0.0
    assert turn_importance(turn("Both strategies make the branch at enable time now. " * 8)) >= LEAST_IMPORTANCE
    why = "The upload failed because `retry` was never passed on."
    assert turn_importance(turn(f"Committed. {why}")) >= LEAST_IMPORTANCE, "it says why, however short"
    assert turn_importance(turn("Let me look why `retry` fails.")) == 0.0, "it only says what comes next"
    assert turn_importance(replace(turn("Committed."), reasons=(why,))) >= LEAST_IMPORTANCE


def test_a_known_way_out_weighs_more_than_many_occurrences() -> None:
    assert bug_importance(1, None) < bug_importance(1000, None) < bug_importance(1, 0.9) <= 1.0


def test_the_users_preferences_weigh_most() -> None:
    assert knowledge_importance("preference", 1.0, True) == 0.95
    assert knowledge_importance("fact", 0.5, False) == 0.55


def test_sentences_are_kept_whole_while_they_fit() -> None:
    assert first_sentences("Fix it. Then push.\nAnd more", 18) == "Fix it. Then push."
    assert first_sentences("Version 2.3.2 failed. Why?", 40) == "Version 2.3.2 failed. Why?"
    assert first_sentences("", 10) == ""


def test_an_answer_is_told_by_what_it_says_and_not_by_how_it_begins() -> None:
    answer = "Done! Here's a summary:\n\n## Changes\n```go\nx := 1\n```\n| a | b |\n- **Fixed** the retry loop."
    assert key_sentences(answer, 200) == "Fixed the retry loop."
    assert key_sentences("Done!", 200) == "Done!"


@given(st.text(max_size=2000))
def test_a_gist_is_one_line_within_its_limit(text: str) -> None:
    gist = first_sentences(text, GIST)
    assert len(gist) <= GIST
    assert "\n" not in gist


def test_days_are_written_as_people_search_for_them() -> None:
    assert day_of(1_769_083_200_000_000) == "2026-01-22 January"
    assert day_of(-(10**18)) == ""
    assert search_text("a", " ", "b ") == "a\nb"


@given(st.text(max_size=400), st.text(max_size=400))
def test_only_a_short_prompt_is_led_in_by_the_one_before_it(before: str, prompt: str) -> None:
    lead = lead_of(before, prompt)
    assert len(lead) <= LEAD
    assert lead == "" or len(prompt) < SPEAKS_FOR_ITSELF


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("commit", "The cache is dropped at each release."),
        ("Yes, please add it.", "The cache is dropped at each release."),
        ("커밋해줘", "The cache is dropped at each release."),
        ("why so slow?", "why so slow?"),
        ("[[ ## user_query ## ]]\nDrop the cache at each release", "Drop the cache at each release"),
        ("Drop the cache at each release, please", "Drop the cache at each release, please"),
        ("Implement the following plan:\n\n# Plan: Drop caches\n\n## Context\n\nThey age.", "Drop caches"),
        ("Implement the following plan: # Plan: Drop caches ## Context They age.", "Drop caches"),
    ],
)
def test_a_turn_is_called_by_what_says_something(prompt: str, title: str) -> None:
    turn = Turn(
        id=uuid4(), stream="s", occurred_at=Micros(0), location="", evidence=(), prompt=prompt,
        answer="The cache is dropped at each release. It was kept before.",
    )  # fmt: skip
    assert of_turn(turn).title == title


@given(st.text(min_size=1, max_size=900), st.text(max_size=900), st.text(max_size=LEAD))
def test_what_is_embedded_of_a_turn_fits_and_keeps_its_lead(prompt: str, answer: str, before: str) -> None:
    turn = Turn(
        id=uuid4(), stream="s", occurred_at=Micros(0), location="", evidence=(), prompt=prompt, answer=answer,
        lead=lead_of(before, "and now?"),
    )  # fmt: skip
    gist = of_turn(turn).gist
    assert len(gist) <= GIST
    assert turn.lead in gist
    assert turn.lead not in of_turn(turn).text or turn.lead in f"{prompt}\n→ {answer}"


def test_the_last_of_several_answers_is_kept_and_earlier_ones_as_far_as_there_is_room() -> None:
    turn = Turn(
        id=uuid4(), stream="s1", occurred_at=Micros(0), location="", prompt="Why is it slow?",
        answer="The trace ended too.", earlier=("It asks once for each product. " * 90,),
    )  # fmt: skip
    said = of_turn(turn).text
    assert said.endswith("The trace ended too.")
    assert "It asks once" in said
    assert len(said) <= 1_120
    replaced = of_turn(replace(turn, answer="So it is now asked once. " * 90)).text
    assert "It asks once" not in replaced
