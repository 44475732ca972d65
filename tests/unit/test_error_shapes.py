"""Every shape finds at its hints what a search of the whole text would find."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from soak import examples

from memctl.domain.failures import blocks as error_blocks
from memctl.domain.failures import shapes as error_shapes
from memctl.domain.failures.shapes import FoundError, Shape
from memctl.domain.failures.tool_errors import SHAPES
from memctl.domain.support import patterns

Patterns = list[patterns.Pattern[str]]


def everywhere(pattern: patterns.Pattern[str], text: str, _hints: object = ()) -> Iterator[patterns.Match[str]]:
    return pattern.finditer(text)


def searched(shape: Shape, text: str) -> list[FoundError]:
    """What the shape finds where its patterns are tried at every place of the text."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (error_shapes, error_blocks):
            patch.setattr(module, "at_hints", everywhere)
        return list(shape.find(text))


def patterns_of(shape: Shape) -> Patterns:
    """The patterns that the shape tries."""
    found: Patterns = []

    def note(pattern: patterns.Pattern[str], _text: str, _hints: object = ()) -> Iterator[patterns.Match[str]]:
        found.append(pattern)
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        for module in (error_shapes, error_blocks):
            patch.setattr(module, "at_hints", note)
        list(shape.find("panicked at "))
    return found


CHARACTERS = string.ascii_letters + string.digits + string.punctuation + " \t\n›❯✖✗✘❌×✓⚠!━│┌└➤•—╰é한"
JOINTS = st.sampled_from(["\n", "\n\n", " ", "", "\n  ", "\t", ": ", "[lint:go] ", "web | ", "\r", "x"])


@st.composite
def outputs(draw: st.DrawFn, shape: Shape) -> str:
    """What may match: matches of the shape's own patterns, whole or with a piece torn out, and its hints, in a row."""
    match = st.sampled_from(patterns_of(shape) or [patterns.compile("x")]).flatmap(
        lambda pattern: st.from_regex(re.compile(pattern.pattern, re.MULTILINE), alphabet=CHARACTERS)
    )
    pieces: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        piece = draw(st.one_of(match, match, st.sampled_from(shape.hints), st.text(CHARACTERS, max_size=12)))
        if piece and draw(st.booleans()):
            start = draw(st.integers(0, len(piece) - 1))
            piece = piece[:start] + piece[start + draw(st.integers(0, 3)) :]
        pieces += [piece, draw(JOINTS)]
    text = "".join(pieces)
    # Without a hint nothing is looked for.
    return text if any(hint in text for hint in shape.hints) else f"{text}\n{shape.hints[0]}"


AT_HINTS = [(i, shape) for i, shape in enumerate(SHAPES) if patterns_of(shape)]


@pytest.mark.parametrize("shape", [shape for _, shape in AT_HINTS], ids=[f"{i} {shape.name}" for i, shape in AT_HINTS])
def test_a_shape_finds_at_its_hints_what_a_whole_search_finds(shape: Shape) -> None:
    found = 0

    @settings(examples(8), deadline=None, suppress_health_check=list(HealthCheck))
    @given(outputs(shape))
    def compare(text: str) -> None:
        nonlocal found
        expected = searched(shape, text)
        assert list(shape.find(text)) == expected
        assert {shown.weight for shown in expected} <= {shape.weight}
        found += len(expected)

    compare()
    assert found, "no example was a match, so nothing was compared"
