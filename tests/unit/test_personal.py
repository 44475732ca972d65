"""What a member says of themselves, and what only has such words in it."""

from __future__ import annotations

import pytest

from memctl.domain.knowledge.personal import is_personal


@pytest.mark.parametrize(
    "text",
    [
        "I like short commit messages.", "i like short commit messages.", "I'm slow to read maps.", "Ask me first.",
        "Use my own editor.", "So i'm slow to read maps.", "In reviews i like long comments.", "I Always use vim.",
        "MY EDITOR IS VIM.", "I'D RATHER USE VIM.", "The slow laptop is mine.",
        "In the morning I write tests.", "I, for one, prefer tabs.", "I of course use tabs.", "I to this day use vim.",
        "The build breaks when i run make.", "나는 짧은 메시지를 좋아한다.",
    ],
)  # fmt: skip
def test_who_speaks_of_themselves_says_so(text: str) -> None:
    assert is_personal(text)


@pytest.mark.parametrize(
    "text",
    [
        "Always use non-blocking I/O in the door.", "Name loop variables i and j.", "Use pnpm, i.e. never npm, here.",
        "Keep the ledger in Phase I of the release.", "Never commit to the my-app branch.", "Mock I/O in tests.",
        "Use i as the index of loops.", "PHASE I IS OVER.", "Class I errors stop the build.",
    ],
)  # fmt: skip
def test_a_letter_or_a_name_is_nobody(text: str) -> None:
    assert not is_personal(text)


def test_a_profile_is_of_a_person_in_whatever_words() -> None:
    assert is_personal("Knows Rust well.", "profile")
