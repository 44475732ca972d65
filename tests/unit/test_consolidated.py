"""What is recorded of memories among each other, and taken back."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from annotated_types import Ge
from events import NOON, as_read

from memctl.domain.events.command import BadCommand
from memctl.domain.events.event import Event, Micros, NewEvent, Payload
from memctl.domain.events.file_checks import Look, changed_after
from memctl.domain.knowledge.consolidation import (
    ALWAYS,
    MOST_MERGED,
    STREAM,
    ConsolidationUndone,
    Member,
    MemoriesMerged,
    MemoryPruned,
    MemorySuperseded,
    Side,
    UndoConsolidation,
    relation_of,
    too_many,
)
from memctl.infra.readmodels.processor_work import PAUSES
from memctl.infra.settings_model import Processors
from memctl.projections.consolidated import KEPT, Consolidated, Logged, consolidated, consolidation_log
from memctl.projections.kernel import Changed, Recorded
from memctl.workers.processors.consolidator import (
    ConsolidationPlan,
    ConsolidationStep,
    with_all_they_took_in,
)

A, B, C = Member("a", "1"), Member("b", "2"), Member("c", "3")


def said(payload: Payload, at: int = 0) -> Event:
    key = f"{type(payload).__name__}-{at}"
    new = NewEvent(stream=STREAM, payload=payload, occurred_at=Micros(NOON + at), dedupe_key=key, actor="memctl")
    return as_read(new, 1)


def log_of(*events: Event) -> dict[str, Logged]:
    rows: dict[str, Logged] = {}
    for event in events:
        told = event.payload
        key = str(told.change if isinstance(told, ConsolidationUndone) else event.delivery_id)
        rows[key] = consolidation_log(rows.get(key), Recorded(event, told))  # type: ignore[arg-type]
    return rows


def of(*events: Event) -> Consolidated:
    row: Consolidated | None = None
    for key, logged in log_of(*events).items():
        if logged.change is not None:
            row = consolidated(row, Changed(key, logged))
    assert row is not None
    return row


def test_a_merge_tells_its_keeper_from_what_was_merged() -> None:
    row = of(said(MemoriesMerged(keeper=A, merged=(B, C), alike=0.9)))
    (change,) = row.standing
    assert [change.role_of(id) for id in "abc"] == ["keeper", "merged", "merged"]


def test_what_was_taken_back_stands_no_more_whatever_came_first() -> None:
    merge, prune = said(MemoriesMerged(keeper=A, merged=(B,)), 1), said(MemoryPruned(memory="b", last_at=NOON), 2)
    undo = said(ConsolidationUndone(change=merge.delivery_id, memories=("a", "b")), 3)
    for order in itertools.permutations((merge, prune, undo)):
        assert [change.kind for change in of(*order).standing] == ["pruned"]


def test_the_log_tells_a_change_and_that_it_was_taken_back() -> None:
    change = said(MemorySuperseded(memory=B, by=A, why="other numbers"), 1)
    undo = said(ConsolidationUndone(change=change.delivery_id, memories=("a", "b"), why="both hold"), 2)
    rows = log_of(change, undo)
    assert rows == log_of(undo, change)
    [row] = rows.values()
    assert row.change is not None
    assert (row.change.why, row.undone_at, row.undone_why) == ("other numbers", NOON + 2, "both hold")


def test_what_was_taken_back_stays_so_however_much_is_taken_back_after_it() -> None:
    merges = [said(MemoriesMerged(keeper=A, merged=(B,)), at) for at in range(40)]
    undos = [
        said(ConsolidationUndone(change=merge.delivery_id, memories=("a", "b")), 100 - at)
        for at, merge in enumerate(merges)
    ]  # the newest change is taken back first
    for order in ((*merges, *undos), (*undos[::-1], *merges)):
        assert len(of(*order).changes) == KEPT
        assert of(*order).standing == ()


def test_undoing_names_all_that_the_change_spoke_of() -> None:
    merge = said(MemoriesMerged(keeper=A, merged=(B, C)))
    undone = UndoConsolidation(change=str(merge.delivery_id)).decide([merge])
    assert undone == ConsolidationUndone(change=merge.delivery_id, memories=("a", "b", "c"))
    with pytest.raises(BadCommand, match="no change of consolidation"):
        UndoConsolidation(change="x").decide([said(undone)])


def side(id: str, text: str, *, kind: str = "knowledge", location: str = "/w", at: int = 0) -> Side:
    return Side(id=id, kind=kind, location=location, text=text, last_at=at)


def test_only_what_agrees_in_numbers_and_negations_is_the_same() -> None:
    one = side("a", "Use pnpm for installing")
    assert relation_of(one, side("b", "Use pnpm for installing."), 0.95) == "same"
    assert relation_of(one, side("b", "Use pnpm for installing."), 0.8) is None
    assert relation_of(one, side("b", "Never use pnpm for installing"), 0.8) == "contrary"
    assert relation_of(side("a", "Go is 1.22"), side("b", "Go is 1.23", at=1), 0.9) == "newer"
    assert relation_of(side("a", "Go is 1.22", kind="turn"), side("b", "Go is 1.23", kind="turn"), 0.9) is None


def test_claims_about_two_things_are_neither_newer_nor_contrary_however_alike_they_sound() -> None:
    web = side("a", "The web server of the shop listens on port 8080")
    admin = side("b", "The admin server of the shop listens on port 9090", at=1)
    moved = side("c", "The web server of the shop listens on port 9090", at=1)
    assert relation_of(web, admin, 0.7) is None
    assert relation_of(web, moved, 0.7) == "newer"
    assert relation_of(web, side("b", "The admin server of the shop never listens on port 8080"), 0.7) is None
    assert relation_of(web, side("b", "The web server of the shop never listens on port 8080"), 0.7) == "contrary"
    assert relation_of(side("a", "Use pnpm here"), side("b", "Do not use pnpm here"), 0.7) == "contrary"


def test_of_two_that_took_each_others_place_the_last_word_counts_in_any_order() -> None:
    first, second = (
        said(MemorySuperseded(memory=A, by=B), 1),
        said(MemorySuperseded(memory=B, by=A), 2),
    )
    for order in ((first, second), (second, first)):
        row = of(*order)
        assert (row.successor_of("a", "1"), row.successor_of("b", "2")) == ("", "a")
    undone = of(first, second, said(ConsolidationUndone(change=second.delivery_id, memories=("a", "b")), 3))
    assert (undone.successor_of("a", "1"), undone.successor_of("b", "2")) == ("b", "")


def test_what_lost_its_place_stays_so_when_it_takes_that_of_a_third() -> None:
    """Three claims that differ in a number: a round tells all its changes of one moment, in no order."""
    for one, other in ((1, 2), (2, 1)):
        row = of(said(MemorySuperseded(memory=B, by=A), one), said(MemorySuperseded(memory=C, by=B), other))
        assert row.successor_of("b", "2") == "a"


def test_what_was_merged_before_goes_along_whole_or_waits() -> None:
    taken = {f"k{n}": [Member(f"k{n}-{m}", "") for m in range(6)] for n in range(4)}
    taken["large"] = [Member(f"l{m}", "") for m in range(MOST_MERGED)]
    found = with_all_they_took_in([Member(id, "") for id in ("large", *taken, "single")], lambda id: taken.get(id, []))
    assert [(other.memory, len(before)) for other, before in found] == [("k0", 6), ("k1", 6), ("single", 0)]
    assert sum(1 + len(before) for _, before in found) <= MOST_MERGED


def test_what_is_of_two_places_or_kinds_or_an_episode_is_never_the_same() -> None:
    one = side("a", "Use pnpm")
    assert relation_of(one, side("b", "Use pnpm", location="/v"), 1.0) is None
    assert relation_of(one, side("b", "Use pnpm", kind="turn"), 1.0) is None
    episode = side("a", "Use pnpm", kind="episode")
    assert relation_of(episode, side("b", "Use pnpm", kind="episode"), 1.0) is None


def test_a_round_that_changes_a_large_share_is_too_much() -> None:
    assert not too_many(ALWAYS, 20)
    assert too_many(ALWAYS + 1, 20)
    assert not too_many(99, 1000)
    assert too_many(101, 1000)


@pytest.mark.parametrize(("text", "held"), [("1", []), ("2", [ALWAYS + 1])])
def test_copies_are_no_large_share_of_a_place_whatever_their_number(text: str, held: list[int]) -> None:
    step = ConsolidationStep(
        payload=MemoriesMerged(keeper=A, merged=tuple(Member(f"copy {n}", text) for n in range(ALWAYS + 1))),
        location="/w", place="w", sources=(), about=(), titles=(),
    )  # fmt: skip
    plan = ConsolidationPlan(memories={"w": 20}, changes=(step,))
    assert [each.changed for each in plan.held] == held
    assert plan.changed == ALWAYS + 1


def look(at: int, blob: str) -> Look:
    return Look(at, str(at), blob)


def test_a_file_has_changed_when_it_is_not_what_it_was_when_something_was_learnt_of_it() -> None:
    first, second, third = look(10, "1a"), look(20, "2b"), look(30, "1a")
    assert changed_after((), 5) is None
    assert changed_after((first,), 5) is None
    assert changed_after((second, first), 5) == 20
    assert changed_after((second, first), 15) == 20
    assert changed_after((second, first), 25) is None
    assert changed_after((third, second, first), 15) is None
    assert changed_after((third, second, first), 25) == 30


def test_a_file_that_is_gone_has_changed() -> None:
    assert changed_after((look(10, ""),), 5) == 10
    assert changed_after((look(20, ""), look(10, "1a")), 15) == 20
    assert changed_after((look(20, ""), look(10, "1a")), 25) is None, "it was gone already"


def test_a_round_that_fails_each_time_is_given_up_before_it_is_another_round() -> None:
    (least,) = (each for each in Processors.model_fields["consolidate_hours"].metadata if isinstance(each, Ge))
    assert sum(PAUSES, timedelta(0)) < timedelta(hours=least.ge)
