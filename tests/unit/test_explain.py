"""What a quote is shown in."""

from __future__ import annotations

from events import as_read, observed
from hypothesis import given
from hypothesis import strategies as st

from memctl.api.queries.explain import AROUND, surroundings
from memctl.api.reading.evidence import evidence_of
from memctl.domain.events.facts import Span, quote
from memctl.domain.events.observations import PromptSubmitted


@given(st.lists(st.text("ab한 \n", max_size=200), min_size=3, max_size=3))
def test_a_quotes_surroundings_are_whole_words_and_say_where_they_are_cut(parts: list[str]) -> None:
    first, quote, last = parts
    before, after = surroundings("".join(parts), len(first), len(first) + len(quote))
    for shown, whole, kept in ((before, first, first.endswith), (after, last, last.startswith)):
        assert len(shown) <= AROUND + 1
        assert kept(shown.strip("…"))
        assert (shown == whole) == (len(whole) <= AROUND)


def test_a_quotes_surroundings_do_not_begin_or_end_in_a_word() -> None:
    words = "posh-git " * 40
    before, after = surroundings(f"{words}quote {words}", len(words), len(words) + 5)
    assert before.startswith("… posh-git")
    assert after.endswith("posh-git …")


def test_an_event_that_shows_something_as_a_whole_still_holds_and_an_erased_one_does_not() -> None:
    event = as_read(observed(PromptSubmitted(line="l1", text="run the tests"), session="s1", at=0), 1)
    spans = [
        Span(event.event_id),
        quote(event.event_id, "run the tests", 0, 3),
        Span(event.event_id, 0, 3, quote_hash="x"),
    ]
    told = [(each.quote, each.holds) for each in evidence_of(spans, {event.event_id: event})]
    assert told == [("", True), ("run", True), ("run", False)]
    assert [(each.quote, each.holds) for each in evidence_of(spans, {})] == [("", False)] * 3
