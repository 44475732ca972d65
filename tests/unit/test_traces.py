"""Traces tell what became of an event, and nothing of what it said."""

from __future__ import annotations

from uuid import UUID, uuid5

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.event import event_types
from memctl.workers.processors.traces import LATE_S, Appended, Look, Timeline, is_traced, spans_of

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")
from opentelemetry.sdk.resources import Resource

RESOURCE = Resource({"service.name": "memctl"})
BASE = UUID("7d444840-9dc0-11d1-b245-5ffdce74fad2")
MS = 1_000_000
"""Nanoseconds."""


def appended(name: str = "a", *, occurred: int = 1_000, recorded: int = 1_012, **more: object) -> Appended:
    """An event; times in milliseconds."""
    event = Appended(
        7, uuid5(BASE, name), "prompt.submitted", "session/claude-code/s1", "user", occurred * 1_000, recorded * 1_000
    )
    return event._replace(**more)


def test_an_event_is_a_span_over_its_delivery_and_what_it_waited_for() -> None:
    spans = spans_of(appended(), [1_020 * MS, 1_050 * MS, 1_080 * MS], RESOURCE)
    whole, delivery, *steps = spans
    assert (whole.start_time, whole.end_time) == (1_000 * MS, 1_080 * MS)
    assert (delivery.name, delivery.start_time, delivery.end_time) == ("delivery", 1_000 * MS, 1_012 * MS)
    assert [(s.name, s.start_time, s.end_time) for s in steps] == [
        ("readable", 1_012 * MS, 1_020 * MS),
        ("stage 1", 1_020 * MS, 1_050 * MS),
        ("stage 2", 1_050 * MS, 1_080 * MS),
    ]
    assert whole.parent is None
    assert {s.parent.span_id for s in spans[1:] if s.parent} == {whole.context.span_id}
    assert {s.context.trace_id for s in spans} == {appended().event_id.int}
    assert len({s.context.span_id for s in spans}) == 5


@pytest.mark.parametrize("occurred", [0, 1_000_000 - int(LATE_S * 1_000) - 1, 1_000_001])
def test_what_was_read_from_a_file_or_tells_of_the_future_begins_with_its_append(occurred: int) -> None:
    spans = spans_of(appended(occurred=occurred, recorded=1_000_000), [1_000_000 * MS] * 3, RESOURCE)
    assert {(span.start_time, span.end_time) for span in spans} == {(1_000_000 * MS, 1_000_000 * MS)}


def test_a_chain_of_causes_is_one_trace_where_it_has_a_correlation() -> None:
    told = uuid5(BASE, "all of it")
    first = spans_of(appended("first", correlation_id=told), [2_000 * MS] * 3, RESOURCE)[0]
    cause = uuid5(BASE, "first")
    second = spans_of(appended("second", causation_id=cause, correlation_id=told), [2_000 * MS] * 3, RESOURCE)[0]
    assert second.parent is not None
    assert (second.parent.trace_id, second.parent.span_id) == (first.context.trace_id, first.context.span_id)
    # Without one, it is that of the event which caused it.
    alone = spans_of(appended("first"), [2_000 * MS] * 3, RESOURCE)[0]
    third = spans_of(appended("third", causation_id=cause), [2_000 * MS] * 3, RESOURCE)[0]
    assert third.parent is not None
    assert (third.parent.trace_id, third.parent.span_id) == (alone.context.trace_id, alone.context.span_id)


def test_what_an_event_rests_on_is_linked() -> None:
    correlated, alone = appended("first", correlation_id=uuid5(BASE, "all of it")), appended("second")
    rested_on = [spans_of(each, [2_000 * MS] * 3, RESOURCE)[0].context for each in (correlated, alone)]
    cites = appended(
        "third",
        sources=[correlated.event_id, alone.event_id],
        traces_of_sources=[correlated.correlation_id, alone.event_id],
    )
    span = spans_of(cites, [2_000 * MS] * 3, RESOURCE)[0]
    assert [link.context for link in span.links] == rested_on


def test_spans_hold_nothing_that_a_payload_may_hold() -> None:
    """The type has no field for it; so what is read of the log has none."""
    said = {f.name for entry in event_types().values() for f in msgspec.structs.fields(entry.payload)}
    assert not said & {*Appended._fields} - {"actor"}
    assert "payload" not in Appended._fields
    assert "location" not in Appended._fields


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30))
def test_a_position_was_passed_when_a_look_first_found_it_so(steps: list[tuple[int, int, int]]) -> None:
    timeline, looks, at = Timeline(), [], [0, 0, 0]
    for time, moves in enumerate(steps):
        at[0] += moves[0]
        at[1] = min(at[1] + moves[1], at[0])
        at[2] = min(at[2] + moves[2], at[1])
        looks.append(Look(time, (at[0], at[1], at[2])))
        timeline.add(looks[-1])
    for position in range(at[0] + 2):
        seen = [next((x.at for x in looks if x.positions[step] >= position), None) for step in range(3)]
        assert timeline.passed(position) == (None if None in seen else tuple(seen))
    timeline.forget(at[2])
    assert timeline.passed(at[2] + 1) is None


def test_what_stage_2_comes_to_late_was_readable_when_it_was_and_not_when_the_last_was_told() -> None:
    timeline = Timeline()
    told = 0
    for at, folded, known in ((1, 0, 0), (2, 60, 0), (3, 100, 50), (4, 100, 100)):
        timeline.forget(told)
        timeline.add(Look(at, (100, folded, known)))
        told = known
    assert timeline.passed(60) == (1, 2, 4)
    assert timeline.passed(100) == (1, 3, 4)


def test_whole_sessions_are_traced_or_not() -> None:
    streams = [f"session/claude-code/{n}" for n in range(4_000)]
    assert 0.08 < sum(is_traced(stream, 0.1) for stream in streams) / len(streams) < 0.12
    assert all(is_traced(stream, 0.5) for stream in streams if is_traced(stream, 0.1))
    assert all(is_traced(stream, 1.0) for stream in streams)
    assert not any(is_traced(stream, 0.0) for stream in streams)
