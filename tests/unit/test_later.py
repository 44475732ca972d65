"""What came later of the same things, and stands before what it followed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.search.engine import _followed
from memctl.domain.language.prompts import words_in
from memctl.domain.retrieval.later import NamedMemory, later, newest_first
from memctl.domain.support.certainty import Class
from memctl.projections.memories import CORRECTED
from memctl.projections.memory_rows import Memory, Source


def named(id: str, at: int, *names: str) -> NamedMemory:
    return NamedMemory(id, frozenset(names), at)


def test_what_names_the_same_things_later_follows() -> None:
    found = [
        named("batches", 1, "remediation.ts", "batch_size", "offset"),
        named("one-by-one", 9, "remediation.ts", "batch_size", "offset", "run_one"),
        named("halfway", 5, "remediation.ts", "batch_size", "offset"),
        named("other", 10, "remediation.ts", "report", "score"),
    ]
    assert later(found) == {"batches": "one-by-one", "halfway": "one-by-one"}
    assert newest_first([each.id for each in found], later(found)) == ["one-by-one", "batches", "halfway", "other"]


def test_one_common_name_is_no_subject() -> None:
    assert later([named("a", 1, "readme.md"), named("b", 2, "readme.md"), named("c", 3, "cart.py")]) == {}


def test_what_was_corrected_twice_stands_behind_both_corrections() -> None:
    assert newest_first("axbc", {"a": "b", "b": "c"}) == ["c", "b", "a", "x"]
    assert newest_first("ab", {"a": "b", "b": "a"}) == ["b", "a"]


def turn(id: str, at: int, before: str = "", outcome: str = "") -> Memory:
    return Memory(
        id=id, kind="turn", bucket="EPISODIC", title="", gist="", text="Round it.\n→ Done.", search_text="",
        location="/work/shop", locations=("/work/shop",), sessions=("s",), importance=0.5, confidence=0.5,
        status="record", occurred_at=at, first_at=at, last_at=at, source=Source("facts", id), before=before,
        outcome=outcome,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("withdrawn", "later", "behind"),
    [
        ("suggested", "suggested", True),
        ("suggested", "high", True),
        ("none", "suggested", True),
        ("none", "none", False),
        ("high", "none", False),
    ],
)
def test_an_answer_that_the_user_corrected_stands_behind_the_one_that_replaced_it(
    withdrawn: Class, later: Class, behind: bool
) -> None:
    rows = {row.id: row for row in (turn("a", 1, outcome=CORRECTED), turn("b", 2, "a"), turn("c", 3, "b"))}
    followed = _followed(rows, {"a": withdrawn, "b": later, "c": "none"})
    assert followed == ({"a": "b"} if behind else {})
    assert newest_first(rows, followed) == (["b", "a", "c"] if behind else ["a", "b", "c"])
    assert _followed(rows, {"a": withdrawn, "c": later}) == {}, "what was not found replaces nothing"


@given(st.permutations("abcdef"), st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")))
def test_each_result_stays_once(ids: list[str], followed: dict[str, str]) -> None:
    assert sorted(newest_first(ids, followed)) == sorted(ids)


HOUR = 3_600_000_000


def said(id: str, text: str, at: int, project: str = "shop") -> NamedMemory:
    return NamedMemory(id, frozenset(), at, project, text, frozenset(words_in(text)))


@pytest.mark.parametrize(
    ("before", "after", "hours", "project", "replaced"),
    [
        ("Use Redis for the price queue.", "Actually use Valkey for the price queue.", 2, "shop", True),
        ("Use Redis for the price queue.", "Use Valkey for the price queue instead.", 2, "shop", True),
        ("Cache the price queue in Redis.", "revert the price queue cache", 2, "shop", True),
        ("Set MAX_RETRIES to 3.", "MAX_RETRIES=5", 2, "shop", True),
        ("Set MAX_RETRIES to 3.", "MAX_RETRIES=3", 2, "shop", False),
        ("Set MAX_RETRIES to 3.", "MAX_RETRIES=5", 2, "bank", False),
        ("Use Redis for the price queue.", "Actually, which colours does the footer have?", 2, "shop", False),
        ("Use Redis for the price queue.", "Actually use Valkey for the price queue.", 30, "shop", False),
        ("Use Redis for the price queue.", "Document the price queue.", 2, "shop", False),
    ],
)
def test_what_is_taken_back_the_same_day_comes_second(
    before: str, after: str, hours: int, project: str, replaced: bool
) -> None:
    found = [said("old", before, HOUR), said("new", after, (1 + hours) * HOUR, project)]
    followed = later(found)
    assert followed == ({"old": "new"} if replaced else {})
    assert newest_first(["old", "new"], followed) == (["new", "old"] if replaced else ["old", "new"])
