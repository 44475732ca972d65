"""Who reads in sections, up to marks that stand apart by space, reads each event once, and none too early."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.event import Position
from memctl.infra.log.reach import Reach, Section, as_json, least, next_section, reach_of

SPACES = (1, 2, 3)


@st.composite
def reaches(draw: st.DrawFn) -> Reach:
    position = draw(st.integers(0, 30))
    lag = draw(st.dictionaries(st.sampled_from(SPACES), st.integers(0, 29)))
    return Reach(Position(position), {space: Position(at) for space, at in lag.items() if at < position})


def read_of(section: Section, log: dict[int, int], end: int) -> list[tuple[int, int]]:
    return [(at, space) for at, space in log.items() if section.after < at <= end and section.holds(space)]


@given(
    st.lists(st.sampled_from(SPACES), min_size=30, max_size=30),
    st.lists(st.tuples(reaches(), st.lists(st.integers(1, 30), max_size=6)), max_size=8),
)
def test_each_event_is_read_once_in_the_order_of_its_space_and_never_beyond_its_mark(
    spaces: list[int], turns: list[tuple[Reach, list[int]]]
) -> None:
    log = dict(enumerate(spaces, start=1))
    marks, read = Reach(Position(0)), Reach(Position(0))
    found: list[tuple[int, int]] = []
    for more, batches in turns:
        # No mark goes back.
        position = max(marks.position, more.position)
        held = {space: max(marks.of(space), more.of(space)) for space in SPACES}
        marks = Reach(position, {space: at for space, at in held.items() if at < position})
        for size in [*batches, *([30] * 60)]:
            if (section := next_section(read, marks)) is None:
                break
            assert section.after < section.upto
            end = Position(min(section.after + size, section.upto))
            found += read_of(section, log, end)
            before, read = read, section.reached(read, end)
            assert read.covers(before)
            assert read != before
            assert marks.covers(read)
            assert all(at < read.position for at in read.held.values())
            assert sorted(found) == sorted((at, space) for at, space in log.items() if at <= read.of(space))
        else:
            pytest.fail("it does not come to an end")
        assert all(read.of(space) == marks.of(space) for space in SPACES)
    assert len(found) == len(set(found))
    for space in SPACES:
        of_space = [at for at, of in found if of == space]
        assert of_space == sorted(of_space)


@given(st.lists(reaches(), min_size=1, max_size=4))
def test_the_least_of_several_is_covered_by_each_and_by_space_is_one_of_them(several: list[Reach]) -> None:
    found = least(several)
    assert all(each.covers(found) for each in several)
    for space in SPACES:
        assert found.of(space) == min(each.of(space) for each in several)
    assert found.lowest == min(each.lowest for each in several)


@given(reaches())
def test_a_reach_is_kept_as_it_is(reach: Reach) -> None:
    assert reach_of(reach.position, as_json(reach.held).encode()) == reach


def test_a_section_names_its_spaces_as_sql_and_as_a_question() -> None:
    assert (Section(Position(1), Position(2)).where, Section(Position(1), Position(2)).params) == ("", [])
    one = Section(Position(1), Position(2), 7)
    assert (one.where, one.params, one.holds(7), one.holds(8)) == (" AND space_id = %s", [7], True, False)
    others = Section(Position(1), Position(2), None, (7,))
    assert (others.where, others.params, others.holds(7), others.holds(8)) == (
        " AND space_id <> ALL(%s)", [[7]], False, True,
    )  # fmt: skip
