"""What the viewer's pages call things and figures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.viewer.render import alike, environment, much, place


def standing(origin: str, *, sources: int = 1, missing: tuple[str, ...] = (), warrant: str = "") -> str:
    item = SimpleNamespace(origin=origin, sources=["s"] * sources, missing=list(missing), warrant=warrant)
    macro = getattr(environment().get_template("macros.html").module, "standing")  # noqa: B009
    return " ".join(str(macro(item)).split())


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            standing("said by you", missing=("2 more sessions or a person's yes",)),
            "You said it once; it needs 2 more sessions or your yes",
        ),
        (
            standing("said by you", sources=2, missing=("1 more session or a person's yes",)),
            "You said it in 2 sessions; it needs 1 more session or your yes",
        ),
        (standing("said by you", warrant="said by the user"), "said by you"),
        (standing("shown by the work", warrant="seen in 4 sessions"), "shown by the work · seen in 4 sessions"),
        (
            standing("written by an agent", missing=("a person's yes: it is written by an agent",)),
            "written by an agent · needs a person's yes",
        ),
    ],
)
def test_how_a_claim_stands_is_said_once_and_to_whom_it_is_shown(shown: str, words: str) -> None:
    assert shown.replace("&#39;", "'") == words


@given(st.integers(0, 10**13))
def test_a_large_number_has_three_digits_and_all_of_them_on_hovering(number: int) -> None:
    shown = str(much(number))
    assert f"{number:,}" in shown
    assert "e+" not in shown.replace("title", "") or number >= 10**12


@pytest.mark.parametrize(
    ("rank", "word"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (22, "22nd"), (113, "113th")]
)
def test_a_rank_is_an_ordinal(rank: int, word: str) -> None:
    assert place(rank) == word


def test_sessions_are_alike_by_what_they_are_called() -> None:
    one, other, third = (SimpleNamespace(title=title, first_prompt="go") for title in ("Redesign", "Redesign", ""))
    assert alike(one, [one, other, third])  # type: ignore[arg-type]
    assert not alike(third, [one, other, third])  # type: ignore[arg-type]
