"""Late events are folded from a remembered point on, and what comes out is what folding the whole stream gives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec
import pytest
from histories import example
from hypothesis import given, settings
from hypothesis import strategies as st
from session_events import SECOND, START, Session, event, histories, hooks_of

from memctl.domain.events.event import Event, Micros, NewEvent, Payload, Position
from memctl.domain.events.facts import Fact, PlaceSeen
from memctl.domain.events.observations import (
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionEnded,
    SessionStarted,
    event_id_of,
)
from memctl.domain.events.recalls import MemoryRecalled, RecalledMemory
from memctl.domain.events.statements import (
    DecisionMade,
    HypothesisProposed,
    SessionSummarized,
    TaskCompleted,
    TaskStarted,
)
from memctl.projections import stream_state
from memctl.projections.stream_state import Delta, RowOf, StreamState, fold_stream


class Worker:
    """What a worker and its tables hold of one stream."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self._known: list[Event] = []
        self._state: StreamState | None = None
        self.facts: dict[UUID, Fact] = {}
        self.rows: dict[RowOf, Any] = {}
        self.rewound = self.anew = 0

    def take(self, came: Sequence[Event]) -> None:
        fresh = [
            msgspec.structs.replace(event, position=Position(len(self._known) + n)) for n, event in enumerate(came, 1)
        ]
        self._known += fresh
        delta = self._state.extend(fresh) if self._state is not None else None
        if delta is None and self._state is not None and (back := self._state.goes_back_to) is not None:
            delta = self._state.rewind([event for event in self._known if event.position > back])
            self.rewound += delta is not None
        if delta is None:
            self._state, delta = fold_stream(self.stream, self._known)
            self.anew += 1
            self.facts.clear()
            self.rows.clear()
        self._write(delta)
        assert self._state is not None
        self._state.remember(Position(len(self._known)))

    def _write(self, delta: Delta) -> None:
        assert not delta.facts.keys() & set(delta.retracted)
        self.facts.update(delta.facts)
        for id in delta.retracted:
            del self.facts[id]
        for of, row in delta.rows.items():
            self.rows[of] = row
            if row is None:
                del self.rows[of]

    def check(self) -> None:
        """What stands is what the stream gives as a whole, to the byte: equal structs may differ as JSON."""
        _, whole = fold_stream(self.stream, self._known)
        assert as_json(self.facts) == as_json(whole.facts)
        assert as_json(self.rows) == as_json({of: row for of, row in whole.rows.items() if row is not None})


def as_json(found: Mapping[Any, Any]) -> dict[Any, bytes]:
    return {key: msgspec.json.encode(value) for key, value in found.items()}


@pytest.fixture
def points_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_state, "POINT_EVERY", 1)
    monkeypatch.setattr(stream_state, "POINT_SHARE", 1_000_000)


def in_batches(events: Sequence[Event], luck: random.Random, most: int) -> Iterator[Sequence[Event]]:
    at = 0
    while at < len(events):
        size = luck.randint(1, most)
        yield events[at : at + size]
        at += size


@st.composite
def stated(draw: st.DrawFn) -> list[Event]:
    """Statements about a session's work, from wherever: before it, between its events, at the same moment as others."""
    kinds: list[Payload] = [
        TaskStarted(description="Fix the flaky login test"),
        TaskStarted(description="Write the changelog", task_type="docs"),
        TaskCompleted(outcome="partial"),
        HypothesisProposed(text="The cache is stale because of the clock", confidence=0.9),
        DecisionMade(text="Wait for the clock", rationale="it drifts"),
        SessionSummarized(summary="The test waits.", tags=("tests",)),
        MemoryRecalled(hook="UserPromptSubmit"),
    ]
    told = draw(st.lists(st.tuples(st.sampled_from(kinds), st.integers(-3, 12), st.booleans()), max_size=4))
    return [
        msgspec.structs.replace(
            event(payload, f"command:{number}", START + at * SECOND, 100 + number, "user"),
            location="/work/other" if elsewhere else "/work/shop",
        )
        for number, (payload, at, elsewhere) in enumerate(told)
    ]


@settings(max_examples=80, deadline=None)
@given(histories(), stated(), st.randoms(use_true_random=False), st.integers(1, 4))
def test_late_events_change_what_a_fold_of_everything_would(
    events: list[Event], statements: list[Event], luck: Any, most: int
) -> None:
    events = [*events, *statements]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_state, "POINT_EVERY", 1)
        patch.setattr(stream_state, "POINT_SHARE", 1_000_000)
        if luck.random() < 0.7:  # nearly in order: late ones are a few places late
            events = sorted(events, key=lambda e: e.occurred_at + luck.randint(0, 4_000_000))
        else:
            luck.shuffle(events)
        worker = Worker(events[0].stream)
        for batch in in_batches(events, luck, most):
            worker.take(batch)
            worker.check()


@pytest.mark.usefixtures("points_everywhere")
def test_a_late_prompt_takes_back_what_was_told_of_the_turn_it_ends() -> None:
    session = Session()
    # Told by a hook from the start: what a hook tells first beside a transcript has the stream told anew.
    session.tell(PromptSubmitted(text="Fix the flaky login test in auth.py"), "user", hook="first")
    session.tell(ResponseReceived(text="I look at it."), hook="look")
    late = session.tell(PromptSubmitted(text="No, write a changelog for the release instead"), "user", hook="late")
    session.tell(ResponseReceived(text="I prefer tabs. The changelog is written."), hook="answer")
    first, second, _, answer = session.events
    worker = Worker(first.stream)
    for told in (first, second, answer, late):
        worker.take([told])
        worker.check()
    assert (worker.rewound, worker.anew) == (1, 1)


@pytest.mark.usefixtures("points_everywhere")
def test_what_was_recalled_stands_when_what_told_it_again_is_taken_back() -> None:
    """A prompt of a hook goes on with the work, until its transcript says that nobody wrote it."""
    session = Session()
    session.tell(PromptSubmitted(text="Fix the flaky login test in auth.py"), "user")
    memories = (RecalledMemory("a"), RecalledMemory("b"))
    recalled = MemoryRecalled(hook="UserPromptSubmit", memories=memories)
    session.events.append(event(recalled, "recalled:1", START + SECOND // 2, 2))
    session.tell(SessionEnded(reason="exit"), "system", hook="end")
    session.tell(PromptSubmitted(text="and the docs of it"), "user", hook="more")
    session.tell(PromptSubmitted(text="and the docs of it", meta=True), "user", after=-0.5)
    worker = Worker(session.events[0].stream)
    for told in session.events:
        worker.take([told])
        worker.check()
    assert worker.rewound == 1


def stored(events: Sequence[NewEvent]) -> list[Event]:
    """Events as the log hands them over."""
    return [
        Event(
            position=Position(number),
            event_id=event_id_of(1, new.dedupe_key),
            space_id=1,
            stream=new.stream,
            type="",
            occurred_at=new.occurred_at,
            recorded_at=Micros(0),
            actor=new.actor,
            location=new.location,
            session_id="",
            dedupe_key=new.dedupe_key,
            payload=new.payload,
        )
        for number, new in enumerate(events, 1)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("points_everywhere")
def test_a_transcript_that_follows_its_hooks_is_folded_from_a_point_on(seed: int) -> None:
    events = stored(example())
    hooks = {told.position - 1_000: msgspec.structs.replace(told, stream=events[0].stream) for told in hooks_of(events)}
    luck = random.Random(seed)
    worker = Worker(events[0].stream)
    at = 0
    for batch in in_batches(events, luck, 8):
        for part in ([hooks[n] for n in range(at, at + len(batch)) if n in hooks], batch):
            worker.take(part)
            worker.check()
        at += len(batch)
    assert worker.rewound > worker.anew


@pytest.mark.usefixtures("points_everywhere")
def test_a_decision_that_is_stated_by_itself_stands_in_its_episode_at_once() -> None:
    started = event(TaskStarted(description="Fix the flaky login test"), "command:1", START, 1)
    decided = event(DecisionMade(text="Wait for the clock", rationale="it drifts"), "command:2", START + 1, 2)
    worker = Worker(started.stream)
    for told in (started, decided):
        worker.take([told])
        worker.check()


@pytest.mark.usefixtures("points_everywhere")
def test_where_a_session_is_hangs_on_no_batch_when_it_leaves_where_its_task_began() -> None:
    asked = event(PromptSubmitted(line="a", text="Fix the flaky login test"), "a", START, 1)
    ended = msgspec.structs.replace(event(SessionEnded(via="hook"), "hook:1", START + 1, 2), location="/work/shop/api")
    worker = Worker(asked.stream)
    for told in (asked, ended):
        worker.take([told])
        worker.check()


def titled(ordinal: int, title: str, block: int = 0, *, confined: bool = False) -> Event:
    """A title as clients write it again and again: without a time."""
    notice = NoticeReceived(kind="title", text=title, line=f"#{ordinal}", block=block, confined=confined)
    told = event(notice, f"title-{ordinal}-{block}", 0, 1_000 + 2 * ordinal + block)
    return msgspec.structs.replace(told, location="")


def test_a_title_without_a_time_is_folded_in_whenever_it_comes() -> None:
    session = Session()
    for text in ("Fix the flaky login test in auth.py", "Then write the changelog"):
        session.user(text)
        session.says("Done.")
    worker = Worker(session.events[0].stream)
    for ordinal, told in enumerate(session.events, 1):
        worker.take([told])
        worker.take([titled(ordinal, f"Login, told {ordinal} times")])
        worker.check()
    assert (worker.rewound, worker.anew) == (0, 1)
    assert worker.rows["sessions", worker.stream].title == "Login, told 4 times"


@pytest.mark.parametrize(
    "dated",
    [NoticeReceived(kind="title", text="Login"), SessionStarted(source="resume", title="Login")],
    ids=["told", "that it was started with again"],
)
def test_a_title_with_a_time_stands_against_those_without(dated: Observation) -> None:
    session = Session()
    said = session.user("Fix the flaky login test in auth.py")
    named = session.tell(dated)
    worker = Worker(said.stream)
    for told in (said, titled(2, "First"), named, titled(3, "Last")):
        worker.take([told])
        worker.check()
    assert worker.rows["sessions", worker.stream].title == "Login"


def test_of_titles_without_a_time_the_later_block_of_a_line_counts_though_it_comes_first() -> None:
    session = Session()
    said = session.user("Fix the flaky login test in auth.py")
    worker = Worker(said.stream)
    for told in (said, titled(2, "Later", 1), titled(2, "Earlier", 0)):
        worker.take([told])
        worker.check()
    assert worker.rows["sessions", worker.stream].title == "Later"


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("payload", [PromptSubmitted(line="k", text="go on"), ResponseReceived(line="k", text="Done.")])
def test_what_a_limited_key_adds_is_folded_alike_in_one_piece_and_in_many(payload: Observation, late: bool) -> None:
    session = Session()
    for text in ("Fix the flaky login test in auth.py", "Then write the changelog"):
        session.user(text)
        session.says("I did so.")
    own = [msgspec.structs.replace(each, location="/work/shop") for each in session.events]
    at = own[0].occurred_at + 1 if late else own[-1].occurred_at + 1
    keyed = event(msgspec.structs.replace(payload, confined=True), "keyed", at, 1_000)
    worker = Worker(own[0].stream)
    for each in (*own, msgspec.structs.replace(keyed, location="/work/shop")):
        worker.take([each])
        worker.check()


def test_what_a_limited_key_states_in_a_session_without_times_leaves_it_where_it_was() -> None:
    session = Session()
    timed = session.user("Fix the flaky login test")
    said = msgspec.structs.replace(timed, location="/work/shop", occurred_at=Micros(0))
    stated = event(DecisionMade(text="We keep it in one file", confined=True), "keyed", timed.occurred_at, 1_000)
    worker = Worker(said.stream)
    worker.take([said, msgspec.structs.replace(stated, stream=said.stream, location="/work/shop")])
    worker.check()
    assert worker.rows["sessions", worker.stream].location == "/work/shop"  # not at `key:/work/shop`


def test_a_title_that_is_told_under_a_limited_key_takes_nothing_back_of_what_was_told_before() -> None:
    session = Session()
    said = msgspec.structs.replace(session.user("Fix the flaky login test in auth.py"), location="/work/shop")
    worker = Worker(said.stream)
    for told in (said, titled(2, "Login", confined=True)):
        worker.take([told])
        worker.check()
    assert [fact.confined for fact in worker.facts.values() if isinstance(fact, PlaceSeen)] == [False]


@pytest.mark.parametrize(("first", "then"), [("#x", "#7"), ("#7", "#07"), ("#1", "#" + "1" * 5_000)])
def test_lines_that_are_named_as_no_client_names_them_are_folded_alike_in_any_batches(first: str, then: str) -> None:
    asked, answered = (
        event(PromptSubmitted(text=text, line=line), f"told-{line}", at, 10 + len(line))
        for text, line, at in (("Fix the flaky login test", first, START), ("Then write the changelog", then, 0))
    )
    worker = Worker(asked.stream)
    for told in (asked, answered):
        worker.take([told])
        worker.check()
    assert worker.rows["sessions", worker.stream].prompts == 2
