"""How alike an error and a bug pattern are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.failures.matching import MATCHES_ABOVE, Match, Shape, file_types_of, frameworks_of, held_in, match

TYPE_ERROR = Shape(
    signature="aa",
    error_types=("TypeError",),
    template="unsupported operand type(s) for +: <str> and <str>",
    frames=("src/pricing.py:12 in total",),
    file_types=("python",),
    frameworks=("pytest",),
)


def test_an_equal_signature_is_certain() -> None:
    found = match(Shape(signature="aa"), TYPE_ERROR)
    assert (found.score, found.aspects) == (1.0, ("signature",))


def test_only_the_same_error_is_taken_as_sure_and_a_faint_likeness_is_never_brought_up_unasked() -> None:
    classes = [Match(score, ("message",)).class_ for score in (0.51, 0.74, 0.75, 1.0)]
    assert classes == ["none", "none", "suggested", "suggested"]
    assert match(Shape(signature="aa"), TYPE_ERROR).class_ == "high"


def test_the_same_error_from_another_place_matches_and_says_in_what() -> None:
    query = Shape(
        signature="bb", error_types=("builtins.TypeError",), template=TYPE_ERROR.template, file_types=("python",)
    )
    found = match(query, TYPE_ERROR)
    assert found.score == 1.0
    assert found.aspects == ("error type", "message", "file types")


def test_the_same_line_moved_by_an_edit_is_the_same_stack() -> None:
    query = Shape(error_types=("TypeError",), frames=("src/pricing.py:99 in total",))
    assert match(query, TYPE_ERROR).aspects == ("error type", "stack")
    assert match(query, TYPE_ERROR).score > MATCHES_ABOVE


@pytest.mark.parametrize(
    "query",
    [
        Shape(),
        Shape(error_types=("TypeError",)),
        Shape(file_types=("python",), frameworks=("pytest",)),
        Shape(error_types=("ValueError",), template="invalid literal for int() with base <num>: <str>"),
        Shape(error_types=("TypeError",), template="cannot read properties of undefined (reading <str>)"),
        Shape(error_types=("KeyError",), template="unsupported format character", file_types=("python",)),
    ],
)
def test_one_aspect_alone_or_another_message_is_no_match(query: Shape) -> None:
    assert match(query, TYPE_ERROR).score <= MATCHES_ABOVE


def test_a_message_of_placeholders_says_little() -> None:
    a = Shape(template="exit <num>")
    assert match(a, Shape(template="exit <num>")).score <= MATCHES_ABOVE


def test_messages_that_share_only_placeholders_are_not_alike() -> None:
    a = Shape(template="open <path>: no such file or directory")
    b = Shape(template="<path>:<num>:<num>: undefined name <str>")
    assert match(a, b).aspects == ()


shapes = st.builds(
    Shape,
    error_types=st.lists(st.sampled_from(["TypeError", "KeyError"]), max_size=2).map(tuple),
    template=st.sampled_from(["", "<num>", "cannot open <path>", "cannot read <path>", "연결할 수 없습니다"]),
    frames=st.lists(st.sampled_from(["a.py:1", "b.py:2 in f"]), max_size=2).map(tuple),
    file_types=st.lists(st.sampled_from(["go", "python"]), max_size=2).map(tuple),
)


@given(shapes, shapes)
def test_likeness_is_between_0_and_1_and_mutual(a: Shape, b: Shape) -> None:
    assert 0.0 <= match(a, b).score <= 1.0
    assert match(a, b).score == match(b, a).score


def test_tools_and_languages_show_in_commands_and_names() -> None:
    assert frameworks_of("cd web && ./gradlew test | npx tsc --noEmit") == ("gradle", "npm", "tsc")
    assert frameworks_of("cat notes-about-go.md", ["pkg/parse_test.go", "web/vite.config.ts"]) == (
        "go toolchain",
        "vite",
    )
    assert file_types_of(["src/a.py:12 in f", "B.TSX", "Makefile", ""]) == ("python", "typescript")


def test_a_text_holds_the_messages_that_stand_in_it_whole() -> None:
    known = {"auth": "need auth to publish <n> packages to <url>", "bare": "unexpected error"}
    known |= {"part": "need auth to publish", "few": "publish <n> packages to <url>"}
    assert held_in("It says:\n> need auth to publish 7 packages to https://a.example/\nwhy?", known) == {"auth", "part"}
    assert held_in("do we need author tools? unexpected error", known) == set()
