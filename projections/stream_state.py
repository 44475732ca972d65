"""Stage 1: one stream's events become facts, and its rows are folded from them.

A pure function of the set of the stream's events. Events that sort last extend the state; any other asks for the
whole stream to be folded again, which is the same function. A transcript is always late after its hooks, so a state
that lives on remembers some points of its past. It starts at the newest point that all late events sort behind, and
only what came since is folded again.
"""

import functools
import io
import pickle
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.events.event import Event, Position
from memctl.domain.events.facts import Fact, Identified
from memctl.domain.events.skipping import foldable
from memctl.domain.session.stream_facts import StreamFacts, derive
from memctl.projections.kernel import ROW_LIMIT, Projection, projections, stored_facts

RowOf = tuple[str, str]
"""Name of a projection, and key of a row."""


class Delta(msgspec.Struct):
    """What a batch changed in one stream: facts for stage 2 by id, and rows (None: deleted)."""

    facts: dict[UUID, Identified]
    rows: dict[RowOf, Any]
    retracted: tuple[UUID, ...] = ()
    """Facts that an earlier batch asserted and that no longer stand."""

    def add(self, more: "Delta") -> None:
        """What the next batch changed, which takes nothing back."""
        self.facts.update(more.facts)
        self.rows.update(more.rows)


STEP = 64
"""Events that a fold in steps takes at a time."""

POINTS = 3
"""How many points of its past a state remembers."""

POINT_EVERY, POINT_SHARE = 128, 16
"""Between two of them lie at least so many events, and one in so many of all: to make one, all of them are passed."""


class _Sharing(pickle.Pickler):
    """Writes objects without the strings and frozen structs in them, which it collects."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.shared: list[Any] = []

    def persistent_id(self, each: Any) -> int | None:
        if not isinstance(each, str) and not (isinstance(each, msgspec.Struct) and each.__struct_config__.frozen):
            return None
        self.shared.append(each)
        return len(self.shared) - 1


class _Shared(pickle.Unpickler):
    """Reads what `_Sharing` wrote, with what it collected."""

    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> Any:
        return self._shared[number]


class _Snapshot:
    """Objects as they are now, of which copies can be had.

    Copies share the strings and the frozen structs, which is quick, and needed: msgspec leaves a field out of JSON only
    where it holds the very object that is its default.
    """

    def __init__(self, objects: object) -> None:
        written = io.BytesIO()
        pickler = _Sharing(written)
        pickler.dump(objects)
        self._rest, self._shared = written.getvalue(), pickler.shared

    def copy(self) -> Any:
        return _Shared(io.BytesIO(self._rest), self._shared).load()


class _Point(msgspec.Struct):
    """A stream's state when all events up to a position were folded, and what was asserted since."""

    position: Position
    events: int
    state: _Snapshot
    facts: set[UUID]
    rows: set[RowOf]


class StreamState:
    """A stream's facts so far, and the rows folded from them."""

    def __init__(self, facts: StreamFacts) -> None:
        self._facts = facts
        self._rows: dict[str, dict[str, Any]] = defaultdict(dict)
        self._last: dict[type[Fact], Identified] = {}
        """Of each type of fact that stage 2 folds the last, which alone may be revised."""
        self._points: list[_Point] = []
        self.events = 0
        self.read = Position(0)
        """Up to where every event of the stream was folded, for who keeps the state."""

    @property
    def goes_back_to(self) -> Position | None:
        """The position behind which `rewind` wants every event; None where there is no way back."""
        return self._points[0].position if self._points else None

    def remember(self, position: Position) -> None:
        """Every event up to a position was folded: late ones may find their way back to here, once there is more."""
        self.read = position
        apart = max(POINT_EVERY, self.events // POINT_SHARE)
        if self.events >= (self._points[-1].events if self._points else 0) + apart:
            state = _Snapshot((self._facts, self._rows, self._last))
            self._points = [*self._points, _Point(position, self.events, state, set(), set())][-POINTS:]

    def rewind(self, events: Sequence[Event]) -> Delta | None:
        """Fold every event behind `goes_back_to`: those known, and others that need not sort last.

        None when there is one that sorts before all points, or pairs with what lies before them; then this state is of
        no more use.
        """
        was = self._rows
        while self._points:
            point = self._points[-1]
            since = [event for event in events if event.position > point.position]
            self._facts, self._rows, self._last = point.state.copy()
            if not self._facts.extend(since):
                self._points.pop()
                continue
            facts_before, rows_before, last = point.facts, point.rows, dict(self._last)
            point.facts, point.rows = set(), set()
            self.events = point.events
            delta = self.drain(len(since))
            stood = {fact.id: fact for fact in last.values()}
            gone = facts_before - delta.facts.keys()
            delta.facts.update((id, stood[id]) for id in gone if id in stood)
            delta.retracted = tuple(gone - stood.keys())
            for earlier in self._points:
                earlier.facts.difference_update(delta.retracted)
            for name, key in rows_before | delta.rows.keys():
                delta.rows[name, key] = self._rows[name].get(key)
            same = [(name, key) for (name, key), row in delta.rows.items() if row == was[name].get(key)]
            for of in same:
                del delta.rows[of]
            return delta
        return None

    def extend(self, events: Sequence[Event]) -> Delta | None:
        """Fold further events. None when they do not all sort last: then this state is of no more use."""
        if not self._facts.extend(events):
            return None
        return self.drain(len(events))

    def drain(self, events: int) -> Delta:
        self.events += events
        facts = self._facts.drain()
        wanted = stored_facts()
        delta = Delta({fact.id: fact for fact in facts if type(fact) in wanted and isinstance(fact, Identified)}, {})
        for p in _stage1():
            rows = self._rows[p.name]
            subscribed, key_of, by_key = p.facts, p.key, defaultdict[str, list[Fact]](list)
            for fact in facts:
                if type(fact) in subscribed:
                    key = key_of(fact)
                    for each in (key,) if isinstance(key, str) else p.keys(fact):
                        by_key[each].append(fact)
            for key, about in by_key.items():
                row = rows[key] = delta.rows[p.name, key] = p.folded(rows.get(key), about)
                if row is None:
                    del rows[key]
                else:
                    p.check(row)
        self._last.update((type(fact), fact) for fact in delta.facts.values())
        for point in self._points:
            point.facts.update(delta.facts)
            point.rows.update(delta.rows)
        return delta


def stored(row: Any) -> bytes:
    """A row's JSON, as it is kept. One that would pass `ROW_LIMIT` is kept without the first half of its longest
    collection, again and again until it fits.

    Of a session that never ends, or in which everything is as long as it may be. What goes is what came first; the
    state that is folded on has it still, so in how many pieces a stream was folded makes no difference.
    """
    data = msgspec.json.encode(row)
    while len(data) > ROW_LIMIT:
        sizes = {name: len(msgspec.json.encode(getattr(row, name))) for name in _collections(row.__class__)}
        longest = max(sizes, key=lambda name: (sizes[name], name))
        held = getattr(row, longest)
        if not held:
            raise AssertionError(f"a row of {type(row).__name__} has {len(data)} bytes beside its collections")
        first = (len(held) + 1) // 2
        kept = dict(list(held.items())[first:]) if isinstance(held, dict) else held[first:]
        row = msgspec.structs.replace(row, **{longest: kept})
        data = msgspec.json.encode(row)
    return data


@functools.cache
def _collections(kind: type[Any]) -> tuple[str, ...]:
    """The fields that hold any number of members."""
    hints = typing.get_type_hints(kind)
    return tuple(
        field.name
        for field in msgspec.structs.fields(kind)
        if typing.get_origin(hints[field.name]) is dict
        or (typing.get_origin(hints[field.name]) is tuple and typing.get_args(hints[field.name])[1:] == (...,))
    )


def fold_stream(
    stream: str, events: Iterable[Event], step: Callable[[Sequence[Event]], None] | None = None
) -> tuple[StreamState, Delta]:
    """All events of a stream, in any order: its state, with everything that stands in it as the delta.

    With a `step` they are folded a few at a time, which it is given before.
    What was left out of the stream is left out here. Raises: UndecodablePayload, or whatever a fold raises.
    """
    known = foldable(events)
    if step is None:
        state = StreamState(derive(stream, known))
        return state, state.drain(len(known))
    facts, delta, folded = StreamFacts(stream), Delta({}, {}), 0
    state = StreamState(facts)
    for some in facts.begin_in_steps(known, STEP):
        if not facts.waits:
            delta.add(state.drain(folded))
        step([each.event for each in some])
        folded = len(some)
    delta.add(state.drain(folded))
    state.events = len(known)
    return state, delta


@functools.cache
def _stage1() -> tuple[Projection[Any], ...]:
    return projections(1)
