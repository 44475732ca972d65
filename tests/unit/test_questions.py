"""A question is declared once, under a path and a scope of its own."""

from __future__ import annotations

import pytest

from memctl.api.reading.questions import question, questions


def another() -> None:
    """Another one."""


def test_two_functions_do_not_answer_at_one_path() -> None:
    path = questions()[0].path
    with pytest.raises(ValueError, match="answers there already"):
        question(path, "x")(another)


def test_a_question_that_no_scope_opens_is_refused() -> None:
    with pytest.raises(ValueError, match="open to everyone"):
        question("/another", "x", scopes=())(another)


def test_a_question_that_says_nothing_of_itself_is_refused() -> None:
    def silent() -> None: ...

    with pytest.raises(ValueError, match="write a docstring for silent"):
        question("/silent", "x")(silent)
