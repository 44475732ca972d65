"""What an edit did to code, by the lines that changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.code.edits import (
    VARIANTS,
    Block,
    annotated,
    blocks_of_lines,
    blocks_of_texts,
    filled,
    language_of,
    replacements_in,
    transformation_of,
)


def replaced(old: str, new: str) -> tuple[str, str] | None:
    found = replacements_in(blocks_of_texts(old, new))
    return found[0].literal if found else None


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("m := map[string]interface{}{", "m := map[string]any{", ("interface{}", "any")),
        ("exec.Command(x)", "exec.CommandContext(ctx, x)", ("exec.Command(", "exec.CommandContext(ctx,")),
        ("env := NewOldEnv(t)", "env := NewEnv(t)", ("NewOldEnv", "NewEnv")),
        ("get(mock as any, reply)", "get(mock, reply)", ("as any", "")),
        ('if a.Name == "codex" {', "if a.Name == agentCodex {", ('"codex"', "agentCodex")),
        ("out := redact.RedactBytes(b)", "out := redact.Bytes(b)", ("RedactBytes", "Bytes")),
    ],
)  # fmt: skip
def test_a_fragment_that_gave_way_to_another_is_a_replacement(old: str, new: str, rule: tuple[str, str]) -> None:
    assert replaced(old, new) == rule


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return a + b", "raise ValueError(b)"),
        ("// the old words", "// the new words"),
        ("} else {", "default:"),
        ("retries = 4", "retries = 5"),
        ('print("hello there")', 'print("good morning")'),
        ("call(fmt.Sprintf(x))", "call(false, fmt.Sprintf(x))"),
        ("build(repo, head, nil)", "build(head, nil), nil"),
        ("total := sum(items)", "total = sum(items)"),
    ],
    ids=["line", "comment", "keywords", "number", "text", "argument added", "brackets", "operator"],
)
def test_what_says_nothing_of_a_rule_is_none(old: str, new: str) -> None:
    assert replaced(old, new) is None


def test_names_that_both_sides_have_become_variables() -> None:
    (found,) = replacements_in(
        [Block(('ref := "refs/heads/"+branch',), ("ref := plumbing.NewBranchReferenceName(branch)",))]
    )
    assert (found.before, found.after) == ('"refs/heads/"+$1', "plumbing.NewBranchReferenceName($1)")
    assert found.variables == ("branch",)


@pytest.mark.parametrize(
    ("old", "new", "language", "variant"),
    [
        ('if a.Name == "codex" {', "if a.Name == agentCodex {", "go", "literal to constant"),
        ("out := redact.RedactBytes(b)", "out := redact.Bytes(b)", "go", "prefix dropped"),
        ("func loadAll() {", "func LoadAll() {", "go", "exported"),
        ("x = get_user(1)", "x = getUser(1)", "python", "case changed"),
        ("m := map[string]interface{}{", "m := map[string]any{", "go", "newer idiom"),
        ("const s = load() as any;", "const s = load() as State;", "typescript", "any to type"),
    ],
)
def test_a_replacement_may_be_a_transformation(old: str, new: str, language: str, variant: str) -> None:
    (found,) = replacements_in(blocks_of_texts(old, new))
    made = transformation_of(found, language)
    assert made is not None
    assert (made.variant, made.category) == (variant, VARIANTS[variant].category)


def test_another_word_is_no_rename() -> None:
    (found,) = replacements_in(blocks_of_texts("for line in lines:", "for entry in lines:"))
    assert transformation_of(found, "python") is None


def test_a_signature_that_got_types_and_nothing_else_was_annotated() -> None:
    typed = annotated(blocks_of_texts("def total(items, tax=0):", "def total(items: list[int], tax: int = 0) -> int:"))
    assert typed is not None
    assert typed.category == "type_hints"
    assert annotated(blocks_of_texts("def total(items):", "def total(items: list, tax: int):")) is None


def test_blocks_are_the_runs_of_removed_and_added_lines() -> None:
    lines = (" a", "-b", "-c", "+d", " e", "+f", "-g", "+h")
    assert blocks_of_lines(lines) == [Block(("b", "c"), ("d",)), Block((), ("f",)), Block(("g",), ("h",))]


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.go", "go"), ("x.test.tsx", "typescript"), ("README.md", ""), ("Makefile", ""), ("", "")],
)
def test_the_language_is_told_by_the_name(path: str, language: str) -> None:
    assert language_of(path) == language


LINES = st.text(alphabet="ab cd.=:()\"'$1\n\t{}[]한", max_size=60)


@given(LINES, LINES)
def test_any_two_texts_can_be_compared_and_a_replacement_fits_its_lines(old: str, new: str) -> None:
    for found in replacements_in(blocks_of_texts(old, new)):
        before, after = found.literal
        assert before != after
        assert before in found.line[0]
        assert after in found.line[1]
        assert filled(found.before, found.variables) == before


@given(st.lists(LINES, max_size=6), st.lists(LINES, max_size=6))
def test_blocks_of_texts_put_together_with_what_stayed_give_the_texts(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    found = blocks_of_texts(before, after)
    assert len(found) <= 1
    if not found:
        assert before == after
    else:
        assert "\n".join(found[0].removed) in before
        assert "\n".join(found[0].added) in after
