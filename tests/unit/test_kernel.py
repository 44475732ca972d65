"""The projection kernel: subscriptions from annotations, and an order in which every row is ready when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import msgspec
import pytest

from memctl.domain.events.event import Micros
from memctl.domain.events.facts import FACT_TYPES, Identified, Prompted, ToolUsed, Turn
from memctl.domain.events.observations import NoticeReceived
from memctl.projections import kernel
from memctl.projections.kernel import Changed, Recorded, projection, projections


class Count(msgspec.Struct, frozen=True):
    n: int = 0


class Echo(msgspec.Struct, frozen=True):
    n: int = 0


@pytest.fixture(autouse=True)
def _register() -> Iterator[None]:
    projections()
    before = dict(kernel._register)
    yield
    kernel._register.clear()
    kernel._register.update(before)


def test_the_annotation_is_the_subscription() -> None:
    @projection(row=Count, key=lambda item: "all")
    def counts(row: Count | None, item: Prompted | Turn | Recorded[NoticeReceived] | Changed[Echo]) -> Count | None:
        return row

    made = kernel._register["counts"]
    assert made.facts == {Prompted, Turn}
    assert made.recorded == {NoticeReceived}
    assert made.upstream == {Echo}


def test_a_single_class_is_a_subscription_too() -> None:
    @projection(row=Count, key=lambda item: "all", stage=1)
    def counts(row: Count | None, item: Prompted) -> Count | None:
        return row

    assert kernel._register["counts"].facts == {Prompted}


def test_a_fold_of_stage_one_may_take_all_facts_of_a_row_at_once() -> None:
    @projection(row=Count, key=lambda item: "all", stage=1)
    def counts(row: Count | None, items: Sequence[Prompted | Turn]) -> Count:
        return Count((row.n if row is not None else 0) + len(items))

    made = kernel._register["counts"]
    assert made.facts == {Prompted, Turn}
    prompt = Prompted(id=UUID(int=1), stream="s", occurred_at=Micros(1), text="", kind="opening")
    assert made.folded(Count(1), [prompt, prompt]) == Count(3)
    with pytest.raises(ValueError, match="one input at a time"):

        @projection(row=Echo, key=lambda item: "all")
        def echoes(row: Echo | None, items: Sequence[Prompted]) -> Echo | None:
            return row


def test_a_fold_of_stage_two_may_take_the_key_of_its_row_and_nothing_else_beside() -> None:
    @projection(row=Count, key=lambda item: ("one", "three"))
    def counts(row: Count | None, item: Changed[Echo], key: str) -> Count | None:
        return Count(len(key))

    change = Changed("any", Echo())
    assert [counts(None, change, key) for key in counts.keys(change)] == [Count(3), Count(5)]

    with pytest.raises(ValueError, match="takes a row, an input"):

        @projection(row=Echo, key=lambda item: "all")
        def of_streams(row: Echo | None, item: Prompted, stream: str) -> Echo | None:
            return row

    with pytest.raises(ValueError, match="takes a row, an input"):

        @projection(row=Echo, key=lambda item: "all", stage=1)
        def of_keys(row: Echo | None, item: Prompted, key: str) -> Echo | None:
            return row


def test_what_is_no_input_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="cannot subscribe"):

        @projection(row=Count, key=lambda item: "all")
        def counts(row: Count | None, item: int) -> Count | None:
            return row


def test_stage_one_folds_nothing_but_facts() -> None:
    with pytest.raises(ValueError, match="facts of one stream"):

        @projection(row=Count, key=lambda item: "all", stage=1)
        def counts(row: Count | None, item: Prompted | Changed[Echo]) -> Count | None:
            return row


def test_stage_two_folds_no_fact_without_an_id() -> None:
    with pytest.raises(TypeError, match="ToolUsed has none"):

        @projection(row=Count, key=lambda item: "all")
        def counts(row: Count | None, item: Prompted | ToolUsed) -> Count | None:
            return row


def test_an_id_is_given_to_what_stage_two_folds_or_others_name_and_to_no_other_fact() -> None:
    identified = {cls for cls in FACT_TYPES.values() if issubclass(cls, Identified)}
    assert identified == {Prompted, *(fact for p in projections(2) for fact in p.facts)}


def test_a_name_is_taken_once() -> None:
    def counts(row: Count | None, item: Prompted) -> Count | None:
        return row

    projection(row=Count, key=lambda item: "all")(counts)
    with pytest.raises(ValueError, match="twice"):
        projection(row=Echo, key=lambda item: "all")(counts)


def test_upstream_comes_before_downstream_whatever_the_names() -> None:
    @projection(row=Echo, key=lambda item: "all")
    def a_last(row: Echo | None, item: Changed[Count]) -> Echo | None:
        return row

    @projection(row=Count, key=lambda item: "all")
    def z_first(row: Count | None, item: Prompted) -> Count | None:
        return row

    order = [p.name for p in projections(2)]
    assert order.index("z_first") < order.index("a_last")


def test_a_circle_is_refused() -> None:
    @projection(row=Echo, key=lambda item: "all")
    def one(row: Echo | None, item: Changed[Count]) -> Echo | None:
        return row

    @projection(row=Count, key=lambda item: "all")
    def two(row: Count | None, item: Changed[Echo]) -> Count | None:
        return row

    with pytest.raises(ValueError, match="circle"):
        projections()


def test_reading_rows_that_nobody_makes_is_refused() -> None:
    @projection(row=Echo, key=lambda item: "all")
    def one(row: Echo | None, item: Changed[Count]) -> Echo | None:
        return row

    with pytest.raises(ValueError, match="no projection makes"):
        projections()


@pytest.mark.parametrize(
    ("given", "keys"), [(None, ()), ("a", ("a",)), (["a", "b", "a"], ("a", "b")), (iter("ab"), ("a", "b"))]
)
def test_a_key_may_be_none_one_or_several(given: object, keys: tuple[str, ...]) -> None:
    @projection(row=Count, key=lambda item: item)
    def counts(row: Count | None, item: Prompted) -> Count | None:
        return row

    assert kernel._register["counts"].keys(given) == keys


def test_the_read_models_of_this_memctl_are_discovered() -> None:
    assert {p.name for p in projections()} >= {
        "sessions", "working_memory", "tasks", "episodes", "insights", "candidates", "verified_knowledge",
        "bug_patterns", "memories", "vector_points",
    }  # fmt: skip
    for p in projections():
        assert p.doc, p.name
