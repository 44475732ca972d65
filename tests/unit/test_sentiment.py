"""Moods that plain words show, and those that they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.language.mood import averaged, label_of, mood_of


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("perfect, thank you so much!", "positive"),
        ("Thanks! Now push it.", "positive"),
        ("great job on the parser", "positive"),
        ("고마워, 이제 커밋해줘", "positive"),
        ("완벽해요", "positive"),
        ("you deleted my tests again", "negative"),
        ("That's not what I asked for.", "negative"),
        ("this is still not working", "negative"),
        ("why did you remove the cache?", "negative"),
        ("ugh", "negative"),
        ("왜 자꾸 같은 실수를 해", "negative"),
        ("그게 아니라 아래쪽 버튼", "negative"),
    ],
)
def test_praise_and_blame_are_moods(words: str, label: str) -> None:
    mood = mood_of(words)
    assert mood is not None
    assert label_of(mood.score) == label
    assert words[mood.start : mood.end].strip()


@pytest.mark.parametrize(
    "words",
    [
        "add a page that says thanks to the user",
        "it would be great if the list was sorted",
        "great idea, but use tabs",
        "use tabs here",
        "why do you use a map here?",
        "the error is 'this is wrong'",
        "> that's not what I asked\nwhat does this comment mean",
        "fix the wrong total in the cart",
        "정렬을 추가해줘",
        "the build failed:\n" + "thanks a lot\n" * 80,
    ],
)
def test_work_without_feeling_is_none(words: str) -> None:
    assert mood_of(words) is None


@given(st.text(max_size=300))
def test_a_mood_is_a_span_of_the_words_and_a_score_on_the_scale(words: str) -> None:
    mood = mood_of(words)
    if mood is not None:
        assert -1 <= mood.score <= 1
        assert 0 <= mood.start < mood.end <= len(words)


def test_feelings_average_towards_the_latest() -> None:
    assert averaged([]) == 0
    assert averaged([0.9, 0.9, -0.9]) < averaged([-0.9, 0.9, 0.9])
    assert label_of(averaged([0.9, 0.9])) == "positive"
