"""What a model is shown of a session, and what is recorded as the grounds of its answer: the same events."""

from __future__ import annotations

from uuid import uuid4

import pytest
from events import NOON, as_read, observed, prompt
from hypothesis import given
from hypothesis import strategies as st

from memctl.domain.events.event import Event
from memctl.domain.events.observations import PromptSubmitted
from memctl.domain.events.processor_events import PROCESSORS, ProcessorFailed
from memctl.workers.processors.language_model import HEAD, TAIL, Extractor, Subject, material_of
from memctl.workers.processors.runner import MOST_SOURCES, outcome

WHOLE = Subject(id="s", stream="s", location="", began=NOON, ended=NOON + 10**12)


def session(words: list[str]) -> list[Event]:
    return [as_read(prompt(n, f"{n}: {text}"), n) for n, text in enumerate(words)]


def test_of_a_long_session_its_beginning_and_its_end_are_shown_and_cited_and_nothing_else() -> None:
    events = session(["x" * 100] * 2_000)
    material = material_of(WHOLE, events)
    said = [event.payload.text for event in material.events]  # type: ignore[attr-defined]
    assert material.events[0] == events[0]
    assert material.events[-1] == events[-1]
    assert [line.removeprefix("USER: ") for line in material.text.splitlines() if line.startswith("USER")] == said
    assert HEAD + TAIL - 300 < len(material.text) < HEAD + TAIL + 100


@given(st.lists(st.integers(1, 9_000), max_size=12))
def test_what_is_shown_is_bounded_and_in_order_however_much_is_said(lengths: list[int]) -> None:
    events = session(["x" * length for length in lengths])
    material = material_of(WHOLE, events)
    assert len(material.text) <= HEAD + TAIL + 20
    assert list(material.events) == [event for event in events if event in material.events]
    assert bool(material.events) == bool(events)


def test_the_shortest_lines_there_are_are_of_no_more_events_than_an_outcome_may_name() -> None:
    told = [observed(PromptSubmitted(line=str(n), text="x"), at=n) for n in range(2 * MOST_SOURCES)]
    assert len(material_of(WHOLE, [as_read(e, n) for n, e in enumerate(told)]).events) < MOST_SOURCES


def test_an_outcome_names_all_that_it_rests_on_or_is_none() -> None:
    failed = ProcessorFailed(processor="extractor", subject="s", kind="timeout")
    ids = [uuid4() for _ in range(MOST_SOURCES + 1)]
    made = outcome(Extractor(), NOON, failed, stream=PROCESSORS, about=("s",), sources=ids[1:])
    assert made.sources == tuple(ids[1:])
    with pytest.raises(ValueError, match="rests on"):
        outcome(Extractor(), NOON, failed, stream=PROCESSORS, about=("s",), sources=ids)


@pytest.mark.parametrize(
    ("typed", "quoted", "found"),
    [
        ("never use quartz for dates. thanks", "use quartz for dates", "never use quartz for dates"),
        ("we use uv here, not pip", "pip", ""),
        ("fix this\n\nIssue: dates\nalways use quartz for dates", "always use quartz for dates", ""),
    ],
)
def test_a_part_of_what_a_user_typed_is_quoted_as_the_sentence_that_it_is_of(
    typed: str, quoted: str, found: str
) -> None:
    material = material_of(WHOLE, [as_read(observed(PromptSubmitted(line="1", text=typed), at=1), 1)])
    words, span = material.said(quoted, "user")
    assert words.rstrip(".") == (found if quoted != "pip" else typed)
    assert (span is not None) == bool(words)
