"""Stage 1 is a function of the set of a stream's events: drawn and real ones, in any order and in any batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import published
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_events import STREAM, event, facts_of, histories, hooks_of

from memctl.api.reading.evidence import field_text
from memctl.domain.events.event import Event
from memctl.domain.events.facts import Episode, Fact, Identified, KnowledgeHeld, Span, Turn, quote_hash
from memctl.domain.events.observations import capped
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.projections import stream_state


def final(facts: Sequence[Fact]) -> dict[Any, Fact]:
    """The last version of each fact, by its id or as the k-th of its type."""
    counts: Counter[type[Fact]] = Counter()
    found: dict[Any, Fact] = {}
    for fact in facts:
        if isinstance(fact, Identified):
            found[fact.id] = fact
        else:
            counts[type(fact)] += 1
            found[type(fact), counts[type(fact)]] = fact
    return found


def fed(events: Sequence[Event], cuts: Sequence[int], stream: str = STREAM) -> dict[Any, Fact]:
    """The facts after feeding the events in these batches, deriving anew whenever that is asked for."""
    state = StreamFacts(stream)
    told: list[Fact] = []
    borders = sorted({0, len(events), *(cut % (len(events) + 1) for cut in cuts)})
    for start, end in pairwise(borders):
        if not state.extend(events[start:end]):
            state, told = derive(stream, events[:end]), []
        told += state.drain()
    return final(told)


@settings(max_examples=120, deadline=None)
@given(histories(), st.randoms(use_true_random=False), st.lists(st.integers(0, 20), max_size=6))
def test_facts_are_a_function_of_the_set_of_events(events: list[Event], random: Any, cuts: list[int]) -> None:
    facts = facts_of(events)
    whole = final(facts)
    assert len(whole) == len(facts), "each id once"
    moments = [fact.occurred_at for fact in facts if not isinstance(fact, (Turn, KnowledgeHeld, Episode))]
    assert moments == sorted(moments)
    shuffled = [*events, *random.choices(events, k=3)]
    random.shuffle(shuffled)
    assert final(facts_of(shuffled)) == whole
    assert fed(shuffled, cuts) == whole
    assert fed(events, range(len(events))) == whole


def check_steps(stream: str, events: list[Event]) -> None:
    """A fold in steps is the fold at once."""
    passed: list[Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_state, "STEP", 3)
        state, delta = stream_state.fold_stream(stream, events, passed.extend)
    once, whole = stream_state.fold_stream(stream, events)
    assert (delta.rows, delta.facts, state.events) == (whole.rows, whole.facts, once.events)
    assert {each.event_id for each in passed} <= {each.event_id for each in events}


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_fold_in_steps_is_the_fold_at_once(events: list[Event]) -> None:
    check_steps(STREAM, events)


@pytest.fixture(scope="module")
def real_sessions() -> dict[str, list[Event]]:
    if not published.SESSIONS.exists():
        pytest.skip(published.lacking(published.SESSIONS))
    with published.sessions() as folder:
        return _read(folder)


def _read(folder: Path) -> dict[str, list[Event]]:
    from transcript_files import format_of, parse_file

    streams: dict[str, list[Event]] = {}
    seen = set()
    # A few of each project, smaller ones: the whole takes long on a busy machine.
    for path in [path for path in sorted(folder.rglob("*.jsonl")) if path.stat().st_size < 250_000][::4]:
        format = format_of(path)
        if format is None:
            continue
        for parsed in parse_file(path, format):
            for new in parsed.events:
                if new.dedupe_key in seen:
                    continue
                seen.add(new.dedupe_key)
                payload = new.payload
                if isinstance(text := getattr(payload, "text", None), str):
                    payload = msgspec.structs.replace(payload, text=capped(text)[0])
                told = event(payload, new.dedupe_key, new.occurred_at, len(seen), new.actor)
                streams.setdefault(new.stream, []).append(msgspec.structs.replace(told, stream=new.stream))
    return streams


def test_real_sessions_keep_the_laws(real_sessions: dict[str, list[Event]]) -> None:
    assert len(real_sessions) > 10
    for stream, events in real_sessions.items():
        facts = derive(stream, events).drain()
        whole = final(facts)
        assert len(whole) == len(facts)
        assert final(derive(stream, events[::-1]).drain()) == whole
        assert fed(events, range(0, len(events), 7), stream) == whole
        check_steps(stream, events)
        with_hooks = [*hooks_of(events), *events]
        assert set(final(derive(stream, with_hooks).drain())) == set(whole)


def test_spans_of_real_sessions_quote_their_events(real_sessions: dict[str, list[Event]]) -> None:
    checked = 0
    for stream, events in real_sessions.items():
        told = {each.delivery_id: each.payload for each in events}
        spans: list[Span] = [
            span for fact in derive(stream, events).drain() for span in fact.evidence if span.quote_hash
        ]
        for span in spans:
            text = field_text(told[span.event], span.field)
            assert text is not None
            assert quote_hash(text[span.start : span.end]) == span.quote_hash
        checked += len(spans)
    assert checked > 200
