"""Literal strings are found as `in` finds them, and shapes of lines as a search of the whole text would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.failures.shapes import at_hints
from memctl.domain.failures.tool_errors import SHAPES
from memctl.domain.support import patterns
from memctl.domain.support.literals import Literals, mentions

WORDS = ("error: ", "rror", "✗", "a.b", "\n  at ", "$(", "오류", "\ud800", "")
TEXTS = st.lists(st.sampled_from((*WORDS, "x", "\n", "aXb", "é", "error", ": ")), max_size=12).map("".join)


@given(text=TEXTS)
def test_literals_are_found_as_one_in_after_the_other_finds_them(text: str) -> None:
    words = [word for word in WORDS if word]
    assert Literals(words).within(text) == {word for word in words if word in text}
    assert mentions(text, words) == any(word in text for word in words)


LINES = st.lists(st.sampled_from(("ab: c", "b: ", "[x] err y", "err", "  at f", "a", "b", "", "é ab: d")), max_size=8)


@given(lines=LINES, ends=st.booleans())
def test_a_pattern_whose_matches_have_a_hint_on_their_first_line_is_found_at_the_hints(
    lines: list[str], ends: bool
) -> None:
    text, compiled = "\n".join(lines) + "\n" * ends, patterns.compile(r"^.*: (?P<msg>.*)$", patterns.M)
    assert [m.span() for m in at_hints(compiled, text, (": ", "nowhere"))] == [
        m.span() for m in compiled.finditer(text)
    ]


def test_every_shape_has_hints_to_look_for() -> None:
    assert all(shape.hints and all(shape.hints) for shape in SHAPES)
