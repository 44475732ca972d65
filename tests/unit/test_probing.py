"""What is looked for after forgetting is found wherever it stands: in any case, and across the ends of blocks."""

from __future__ import annotations

import pytest

from memctl.domain.events.feedback import MemoryRated
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.language.notes import MemoryNoted
from memctl.workers.erasure import erasure_check as probing


@pytest.mark.parametrize("said", ["ZQ7VKX19", "zq7vkx19", "ÉCOLE-straße7", "école-STRASSE7", "비밀번호987"])
def test_a_word_is_found_in_any_case(said: str) -> None:
    assert probing.look_for([said.lower()])(iter([b"before ", said.encode(), b" after"])) == {said.lower()}


@pytest.mark.parametrize("before", [0, 5, 8, 300])
def test_a_word_across_the_end_of_a_block_is_found(monkeypatch: pytest.MonkeyPatch, before: int) -> None:
    word = b"zq7vkx19"
    end = probing.BLOCK - before
    content = b"." * end + word + b"." * probing.BLOCK
    pieces = [content[at : at + probing.BLOCK] for at in range(0, len(content), probing.BLOCK)]
    assert probing.look_for(["zq7vkx19", "nothing"])(iter(pieces)) == {"zq7vkx19"}


def test_nothing_is_found_where_nothing_is_looked_for() -> None:
    assert probing.look_for([])(iter([b"anything"])) == set()


def test_words_with_digits_are_looked_for_before_others_and_what_was_asked_for_first_of_all() -> None:
    payload = PromptSubmitted(line="1", text="remember the zq7vkx19 harbour service of port 8080, short one")
    assert probing.words_of([payload], "the Harbour service")[:3] == ("harbour", "service", "zq7vkx19")


def test_what_looks_like_a_name_of_memctls_is_looked_for_where_somebody_says_it() -> None:
    token = "0123456789abcdef"
    assert token in probing.words_of([MemoryNoted(text=f"the token of the harbour is {token}")])
    words = probing.words_of([MemoryRated(memory=token, value=0.5, why=f"it is {token[::-1]}")])
    assert (token in words, token[::-1] in words) == (False, True)


def test_of_a_word_longer_than_any_the_beginning_is_looked_for() -> None:
    assert probing.words_of([MemoryNoted(text="0123456789abcdef" * 4)]) == (("0123456789abcdef" * 4)[:40],)
