"""Laws over histories drawn at random (`fates`): what lives on, however events arrive, is what a rebuild gives.

Stage 1 and stage 2 are run here as the workers run them, without their tables: `faults/test_order.py` has the tables.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import fates
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import examples
from unit.test_projection_laws import STAGE_1, STAGE_2, MiniKernel, Tables, assert_clean, struct

from memctl.domain.events.event import Event
from memctl.domain.events.event_order import preferred
from memctl.domain.events.facts import Episode, Identified, KnowledgeHeld, MemoriesFollowed, TaskOpened, Turn, fact_id
from memctl.domain.events.skipping import left_out
from memctl.domain.session.stream_facts import StreamFacts
from memctl.projections import stream_state
from memctl.projections.kernel import ROW_LIMIT, Projection, Recorded, folded_as_recorded
from memctl.projections.stream_state import RowOf, StreamState, fold_stream

RECORDED = folded_as_recorded()

OF_THE_OPEN_TASK = (TaskOpened, Turn, KnowledgeHeld, Episode, MemoriesFollowed)


class Engine:
    """Both stages, batch by batch: facts and rows of each stream, and the rows of stage 2."""

    def __init__(self) -> None:
        self.facts: dict[str, dict[UUID, Identified]] = defaultdict(dict)
        self.rows: dict[tuple[str, RowOf], Any] = {}
        self.ways: Counter[str] = Counter()
        self._events: dict[str, list[Event]] = defaultdict(list)
        self._states: dict[str, StreamState] = {}
        self._recorded: dict[UUID, list[Event]] = defaultdict(list)
        self._items: dict[UUID, Any] = {}
        self._stage2 = MiniKernel()

    @property
    def tables(self) -> Tables:
        return self._stage2.tables

    def batch(self, events: Sequence[Event]) -> None:
        changes: dict[UUID, Any] = {}
        fresh: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if event.stream.startswith("session/"):
                fresh[event.stream].append(event)
            if type(event.payload) in RECORDED:
                versions = self._recorded[event.delivery_id]
                versions.append(event)
                counts = preferred(versions)
                changes[event.delivery_id] = Recorded(counts, counts.payload)
        for stream, came in fresh.items():
            changes.update(self._stream(stream, came))
        gone = [self._items.pop(id) for id in changes if id in self._items]
        came_in = {id: item for id, item in changes.items() if item is not None}
        self._items.update(came_in)
        self._stage2.change(gone, list(came_in.values()))

    def _stream(self, stream: str, came: list[Event]) -> dict[UUID, Identified | None]:
        """What a batch changes in a stream's facts; its rows are changed here."""
        known, facts = self._events[stream], self.facts[stream]
        known += came
        state, delta, way = self._states.get(stream), None, "anew"
        if state is not None and not left_out(came):
            delta, way = state.extend(came), "extended"
            if delta is None and (back := state.goes_back_to) is not None:
                delta, way = state.rewind([event for event in known if event.position > back]), "rewound"
        if state is None or delta is None:
            state, delta = fold_stream(stream, known)
            way, gone = "anew", facts.keys() - delta.facts.keys()
            self.rows = {of: row for of, row in self.rows.items() if of[0] != stream}
        else:
            gone = set(delta.retracted)
        self.ways[way] += 1
        self._states.pop(stream, None)
        if not left_out(known):
            self._states[stream] = state
            state.remember(known[-1].position)
        changed: dict[UUID, Identified | None] = {id: f for id, f in delta.facts.items() if facts.get(id) != f}
        changed.update(dict.fromkeys(gone))
        for id in gone:
            del facts[id]
        facts.update(delta.facts)
        for of, row in delta.rows.items():
            self.rows[stream, of] = row
            if row is None:
                del self.rows[stream, of]
        return changed

    def check(self, stream: str) -> None:
        """What stands of a stream now, in the middle of everything, is what its events so far give."""
        _, whole = fold_stream(stream, self._events[stream])
        assert as_json(self.facts[stream]) == as_json(whole.facts)
        rows = {of: row for (at, of), row in self.rows.items() if at == stream}
        assert as_json(rows) == as_json({of: row for of, row in whole.rows.items() if row is not None})

    def known(self) -> fates.Known:
        """What people can speak of."""
        tables = self.tables
        return fates.Known(
            claims=list(tables["insights"]),
            memories=list(tables["memories"]),
            locations=list(tables["locations"]),
        )


def rebuilt(events: Sequence[Event]) -> Engine:
    engine = Engine()
    engine.batch(events)
    return engine


def as_json(found: Mapping[Any, Any]) -> dict[Any, bytes]:
    return {key: msgspec.json.encode(value) for key, value in found.items()}


def history(luck: random.Random, most: int) -> list[Any]:
    """Sessions, and what is said of what a rebuild makes of them."""
    told = fates.sessions(luck, luck.randint(1, 4), luck.choice((6, most)))
    words = fates.words(luck, rebuilt(fates.Log().append(told)).known(), luck.randint(0, 30))
    whole = [*told, *words]
    if luck.random() < 0.15:
        luck.shuffle(whole)
    fate = luck.random()
    whole += fates.versions(luck, whole) if fate < 0.5 else ()
    return [*whole, *(fates.leavings(luck, whole) if fate < 0.35 else ())]


def lived(luck: random.Random, came: Sequence[Any]) -> tuple[Engine, list[Event]]:
    """What batch after batch makes of events as they arrive, and the events as the log has them."""
    log, engine, most, at = fates.Log(), Engine(), luck.choice((1, 4, 15, 200)), 0
    while at < len(came):
        size = luck.randint(1, most)
        if fresh := log.append(came[at : at + size]):
            engine.batch(fresh)
            if fresh[-1].stream.startswith("session/") and luck.random() < 0.5:
                engine.check(fresh[-1].stream)
        at += size
    return engine, log.events


@pytest.mark.usefixtures("points_everywhere")
@settings(examples(25), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_arrives_however_the_rows_are_those_of_a_rebuild(seed: int) -> None:
    luck = random.Random(seed)
    came = fates.arriving(luck, history(luck, 30))
    live, log = lived(luck, came)
    whole = rebuilt(log[::-1])  # a rebuild reads facts in no order
    assert {s: as_json(f) for s, f in live.facts.items()} == {s: as_json(f) for s, f in whole.facts.items()}
    assert as_json(live.rows) == as_json(whole.rows)
    assert live.tables == whole.tables
    elsewhere = rebuilt(fates.Log().append(luck.sample(came, len(came))))
    assert {s: as_json(f) for s, f in elsewhere.facts.items()} == {s: as_json(f) for s, f in whole.facts.items()}
    assert as_json(elsewhere.rows) == as_json(whole.rows)
    assert elsewhere.tables == whole.tables
    for (_, (name, _)), row in whole.rows.items():
        assert_clean(row, name)
    for name, rows in whole.tables.items():
        for row in rows.values():
            assert_clean(row, name)
            assert len(msgspec.json.encode(row)) < ROW_LIMIT


@settings(examples(6), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_of_two_who_say_the_same_under_one_key_it_does_not_matter_who_came_first(seed: int) -> None:
    luck = random.Random(seed)
    told = history(luck, 25)
    others = ("user", "agent", "tool")
    again = [msgspec.structs.replace(event, actor=luck.choice(others)) for event in told if luck.random() < 0.7]
    one, other = (rebuilt(fates.Log().append(came)) for came in ([*told, *again], [*again, *told]))
    assert {s: as_json(f) for s, f in one.facts.items()} == {s: as_json(f) for s, f in other.facts.items()}
    assert as_json(one.rows) == as_json(other.rows)
    assert one.tables == other.tables


@pytest.fixture(scope="module")
def points_everywhere() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_state, "POINT_EVERY", 3)
        patch.setattr(stream_state, "POINT_SHARE", 1_000_000)
        yield


@pytest.mark.parametrize("p", STAGE_1, ids=lambda p: p.name)
def test_no_two_streams_share_a_row(p: Projection[Any]) -> None:
    """Not even where the id of one session goes on as the location of another does."""
    luck = random.Random(1)
    fact = struct(min(p.facts, key=lambda cls: cls.__name__), luck)
    told = []
    for id, location in (("a", "B:/shop"), ("a:B", "/shop"), ("a", "/srv\n/shop"), ("a\n/srv", "/shop")):
        stream = f"session/codex/{id}"
        own = {"id": fact_id(stream, "x", location)} if isinstance(fact, Identified) else {}
        told.append(msgspec.structs.replace(fact, stream=stream, location=location, **own))
    assert not {*p.keys(told[0])} & {*p.keys(told[1])}
    assert not {*p.keys(told[2])} & {*p.keys(told[3])}


def test_no_two_streams_share_a_fact() -> None:
    assert fact_id("session/codex/a", "place_seen", "b:place_seen:c") != fact_id(
        "session/codex/a:place_seen:b", "place_seen", "c"
    )
    assert fact_id("session/codex/a:b", "place_seen", "c") != fact_id("session/codex/a%b", "place_seen", "c")


@settings(examples(12), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_an_id_is_given_once_or_to_the_last_of_its_type_again(seed: int) -> None:
    """`StreamState.rewind` counts on it: it knows of each type only the fact that was told last."""
    luck = random.Random(seed)
    events = fates.Log().append(fates.sessions(luck, 1, 60))
    last: dict[type[Any], UUID] = {}
    told: set[UUID] = set()
    facts = StreamFacts(events[0].stream)
    for event in sorted(events, key=lambda event: event.occurred_at):
        if not facts.extend([event]):
            continue  # it does not sort last
        for fact in facts.drain():
            if isinstance(fact, Identified):
                assert fact.id not in told or last[type(fact)] == fact.id
                assert fact.id not in told or isinstance(fact, OF_THE_OPEN_TASK)
                told.add(fact.id)
                last[type(fact)] = fact.id


RARE = (0, 1, 2, 5, 13)
"""Seeds whose histories have what few have."""


def test_the_histories_have_something_for_every_read_model_and_every_way_to_fold() -> None:
    wanted = {"extended", "rewound", "anew", *(p.name for p in (*STAGE_1, *STAGE_2))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_state, "POINT_EVERY", 3)
        for seed in (*RARE, *range(80)):
            luck = random.Random(seed)
            live, _ = lived(luck, fates.arriving(luck, history(luck, 40)))
            wanted -= live.ways.keys() | {of[0] for _, of in live.rows} | {name for name, t in live.tables.items() if t}
            if not wanted:
                return
    assert not wanted, f"nothing drawn for {wanted}: say something that they fold in `words` (tests/fates.py)"
