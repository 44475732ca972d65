"""What came later of the same things, and stands before what it followed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.retrieval.later import Named, later, newest_first


def named(id: str, at: int, *names: str) -> Named:
    return Named(id, frozenset(names), at)


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


@given(st.permutations("abcdef"), st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("abcdef")))
def test_each_result_stays_once(ids: list[str], followed: dict[str, str]) -> None:
    assert sorted(newest_first(ids, followed)) == sorted(ids)
