"""Stage 1 at work: a batch of events becomes facts, rows and one new offset, in one transaction.

A stream that cannot be folded is parked: it stands as before the first event, by position, with which it cannot, and
the events that follow in it wait until it is tried again or that event is left out. So is a long one that has to be
folded from its beginning, as a new worker does, or as late events ask for: another thread does, and no other waits.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from memctl.domain.events.event import Event, Position
from memctl.domain.events.skipping import EventSkipped, Undecodable, left_out, remaining
from memctl.infra.database import Connection
from memctl.infra.log.reach import Reach, at_end, next_section
from memctl.infra.log.read import StreamKey, read_range, read_streams, stream_lengths
from memctl.infra.readmodels import dead_letters, facts, generations
from memctl.infra.readmodels import rows as readmodels
from memctl.infra.readmodels.dead_letters import Fault, NoProgress, Target
from memctl.infra.readmodels.facts import Dealt, SourceKey
from memctl.infra.readmodels.generations import Lease
from memctl.projections.kernel import projections
from memctl.projections.stream_state import Delta, StreamState, fold_stream, stored
from memctl.workers.folding import stream_cache
from memctl.workers.folding.costly_streams import CostlyStreams
from memctl.workers.folding.dealing import dealt_facts
from memctl.workers.folding.long_sessions import LONG, LongSessions, beyond
from memctl.workers.folding.poison import DeadLetterIndex, Parking, is_content_fault, stream_fault
from memctl.workers.folding.sources import Register
from memctl.workers.folding.stream_cache import StreamCache
from memctl.workers.watchdog import progress_board as progress
from memctl.workers.watchdog.progress_board import ThreadWork

LONG_REFOLD = 10_000
"""Events of one stream that a batch may fold again before the next batch takes as many, up to
`stream_cache.KEPT_EVENTS`."""

WHOLE_CPU_S = 10.0
"""Seconds of processor time that a stream which goes on may take to be folded whole among others."""

APART = "a session that is folded beside others"
"""What a stream's dead letter says, where another thread folds it."""

TO_BE_TRIED = "a session at whose fold a process was ended"
"""What it says where only a trial may fold it."""

BATCH_BYTES, FEWEST, MOST = 4 << 20, 64, 100_000
"""Bytes of payloads after which a batch ends, so that none takes long; and how many events are read at least, and at
most, to find so many."""


class FoldedAhead(NamedTuple):
    """A stream that was folded whole before the lease of its shard was taken: from these events, or those before its
    fault."""

    events: Sequence[Event]
    state: StreamState
    delta: Delta
    failed: tuple[Fault, Exception] | None = None


def fold_ahead(
    key: StreamKey, events: Sequence[Event], step: Callable[[Sequence[Event]], None] | None = None
) -> FoldedAhead:
    """Fold a stream whole without its shard's lease, so that nobody waits. `step` is called before each part of it.

    If the fold raises, find the event at fault and fold what comes before it.
    """
    try:
        return FoldedAhead(events, *fold_stream(key[1], events, step))
    except Exception as problem:
        if not is_content_fault(problem):
            raise
        left = remaining(events)
        fault = stream_fault(key, left, lambda some: fold_stream(key[1], some, step))
        return FoldedAhead(events, *fold_stream(key[1], _before(fault, left), step), (fault, problem))


class CannotStore(Exception):
    """Postgres refused what a stream folds to. Which event makes it so has not been looked for yet."""


def fold_storable(connection: Connection, generation: int, upto: Position, key: StreamKey) -> FoldedAhead:
    """Fold what of a stream can be stored: all of it, or what stands before the first event with which it cannot.

    Tries to store it, and rolls that back. Holds no lease."""
    events = read_streams(connection, [key], upto)[key]
    slot = progress.slot()

    def step(some: Sequence[Event]) -> None:
        slot.goes_on()

    def store(delta: Delta) -> None:
        slot.goes_on()
        with connection.transaction(force_rollback=True):
            _write(connection, generation, upto, {key: delta}, {key})

    ready = fold_ahead(key, events, step)
    try:
        store(ready.delta)
        return ready
    except Exception as problem:
        if not is_content_fault(problem):
            raise
        left = remaining(events if ready.failed is None else _before(ready.failed[0], events))
        fault = stream_fault(key, left, lambda some: store(fold_stream(key[1], some, step)[1]))
        return FoldedAhead(events, *fold_stream(key[1], _before(fault, left), step), (fault, problem))


class Stage1:
    """Drains shards of stage 1, keeping the states of recent streams.

    A state is a function of its stream's events up to where it was read. Whoever held the lease meanwhile, it stays
    true, and what others have read and written since is folded on to it first. It is forgotten where events that were
    read may have been changed (`generations.CHANGED`), where the offset went back, and where a batch failed.
    """

    def __init__(
        self,
        batch: int = 2000,
        *,
        parks: bool = False,
        endless: Mapping[Target, Fault] = MappingProxyType({}),
        trial_only: Collection[StreamKey] = (),
        long: LongSessions | None = None,
    ) -> None:
        """`parks`: a stream that cannot be folded is parked, and the others go on; else the batch fails. `endless`:
        what is known not to come to an end, and at which event. `trial_only`: streams that only a trial may fold whole.
        `long`: where those are left that are long; without it they are folded among others."""
        self._batch = batch
        self.parks, self.endless = parks, endless
        self.costly, self.long = CostlyStreams(trial_only), long
        self.states, self.register = StreamCache(), Register()
        self._seen: dict[tuple[int, int], tuple[Position, int]] = {}
        """By generation and shard: the offset and epoch after our last batch. Of one generation: states are of it."""
        self.taken_at: dict[tuple[int, int], Position] = {}
        """By the same: where the shard stood when it was last taken from somebody else. States read up to before this
        may lack what that one has read."""
        self._last_refolded: dict[tuple[int, int], int] = {}
        """By the same: the events of the longest stream that our last batch folded again, since some came late."""
        self._fits = MOST
        """About how many events a batch may hold by their bytes."""

    def drain_batch(self, connection: Connection, lease: Lease, upto: Position | Reach) -> Lease:
        """Fold one batch of the section of events that is next, up to a position of each space (at most its mark);
        returns the lease at its new offset.

        It ends before an event that this memctl does not know. Raises: LeaseLost, UnknownEventType or
        FutureSchemaVersion when the next event is such a one, CannotFold; then nothing was written.
        """
        section = next_section(lease.reach, upto if isinstance(upto, Reach) else Reach(upto)) or at_end(lease.reach)
        shard = (lease.generation, lease.shard)
        self._take(lease)
        progress.slot().over(_step(lease))
        limit = min(self._limit(self._last_refolded.get(shard, 0)), self._fits)
        events, end = read_range(
            connection, section.after, section.upto, limit=limit, hashes=lease.hashes, of=section,
            most_bytes=BATCH_BYTES,
        )  # fmt: skip
        # What is read beyond what fits is read for nothing.
        self._fits = (
            max(2 * len(events), FEWEST) if len(events) < limit and end < section.upto else min(2 * self._fits, MOST)
        )
        streams: dict[StreamKey, list[Event]] = {}
        for event in events:
            if event.stream.startswith("session/") and event.stream.count("/") >= 2:
                streams.setdefault((event.space_id, event.stream), []).append(event)
        batch = _Batch(self, connection, lease, section.after, end)
        lease = batch.commit(streams, section.reached(lease.reach, end))
        self._last_refolded[shard] = batch.refolded
        self._seen[shard] = (lease.position, lease.epoch)
        self.states.shrink()
        return lease

    def _take(self, lease: Lease) -> None:
        """Have only states of a shard that still hold, and remember whether somebody else has had it meanwhile."""
        shard = (lease.generation, lease.shard)
        for key, state in self.long.take(lease.generation, lease.hashes).items() if self.long is not None else ():
            self.states.keep(key, state)
        if any(generation != lease.generation for generation, _ in self._seen):
            self._seen.clear()
        position, epoch = self._seen.pop(shard, (None, 0))
        if position is None or position > lease.position or not 0 <= lease.epoch - epoch < generations.CHANGED:
            self.states.drop_shard(lease.hashes)
        elif (position, epoch) not in ((lease.position, lease.epoch), (lease.position, lease.epoch - 1)):
            self.taken_at[shard] = lease.position

    def _limit(self, refolded: int) -> int:
        """How many events a batch takes. A long session that comes with its end first is folded again by each batch of
        it. With batches as long as the longest stream folded again, that costs about twice the session, not its square.
        (Not as long as all those streams: where many are no longer kept, a longer batch folds more of them again.)"""
        return self._batch if refolded < LONG_REFOLD else max(self._batch, min(refolded, stream_cache.KEPT_EVENTS))

    def refold(
        self,
        connection: Connection,
        lease: Lease,
        streams: Iterable[StreamKey],
        ready: Mapping[StreamKey, FoldedAhead] = MappingProxyType({}),
        checked: bool = True,
        at_next: bool = False,
    ) -> Lease:
        """Fold streams of this shard again from all their events up to its offset, also those that were parked. What is
        `ready` of them was folded already, as far as its events still are what they were. `checked`: the caller has
        tried whether that can be stored, or cannot try.

        Facts that changed get the offset as their `at`: whoever has read that far has to see them. With `at_next` they
        get the position behind it: whoever reads on reads them.
        Raises: LeaseLost, CannotFold, and CannotStore unless `checked`; then nothing was written.
        """
        self.states.drop_shard(lease.hashes)
        of: dict[Position, dict[StreamKey, list[Event]]] = {}
        for key in streams:
            of.setdefault(lease.reach.of(key[0]), {})[key] = []
        for end, keys in of.items():
            batch = _Batch(self, connection, lease, end, end, retry=True, ready=ready, checked=checked, at_next=at_next)
            lease = batch.commit(keys, lease.reach)
        return lease


class _Batch:
    """One call of `Stage1`: streams of a shard are folded with their events behind `after` and up to `end`.

    With `retry` they are folded again from all their events; what is `ready` of them was folded already. `checked`:
    whether that can be stored was tried. `at_next`: what changed gets the position behind `end`.
    """

    def __init__(
        self,
        stage: Stage1,
        connection: Connection,
        lease: Lease,
        after: Position,
        end: Position,
        *,
        retry: bool = False,
        ready: Mapping[StreamKey, FoldedAhead] = MappingProxyType({}),
        checked: bool = True,
        at_next: bool = False,
    ) -> None:
        self._parks, self._endless, self._register = stage.parks, stage.endless, stage.register
        self._costly, self._long, self._states = stage.costly, stage.long, stage.states
        self._taken_at = stage.taken_at.get((lease.generation, lease.shard), Position(0))
        self._connection, self._lease, self._after, self._end = connection, lease, after, end
        self._retry, self._ready, self._checked = retry, ready, checked
        self._at = Position(end + at_next)
        self._step = _step(lease)
        self._parking: Parking
        self._aside: dict[StreamKey, bool] = {}
        """What was set aside, and whether it is folded beside others rather than tried."""
        self.refolded = 0
        """The events of the longest stream that was folded again, since some came late."""

    def commit(self, streams: dict[StreamKey, list[Event]], to: Reach) -> Lease:
        """Fold the streams, write the result, and move the offset."""
        connection, lease = self._connection, self._lease
        for one_by_one in (False, True):
            self._aside.clear()
            try:
                letters = dead_letters.parked_at(connection, lease.generation, (Target("", *key) for key in streams))
                self._parking = Parking(
                    connection, lease.generation, DeadLetterIndex(letters), parks=self._parks, before=self._after
                )
                open_ = self._not_parked(streams)
                if not (one_by_one or self._retry):
                    self._catch_up(open_)
                folded = ({}, set()) if one_by_one else self._fold(open_)
                with connection.transaction():
                    moved = generations.advance(connection, lease, to)
                    # Not in a pipeline: a worker that is stopped in one is busy to Postgres, which waits for the rest
                    # for ever, and nobody could take over the shard.
                    found = [(key[0], fact) for key, delta in folded[0].items() for fact in delta.facts.values()]
                    dealt = dealt_facts(connection, lease, self._register, found, self._end)
                    _write(connection, lease.generation, self._at, *folded, dealt)
                    if one_by_one:
                        self._fold_one_by_one(moved, open_)
                    self._parking.save()
                self._request_folds_beside()
                return moved
            except BaseException as problem:
                self._states.drop_shard(lease.hashes)
                # What some stream folds to cannot be stored: then each is written by itself, to see whose.
                if one_by_one or not is_content_fault(problem):
                    raise
                if not self._checked:
                    raise CannotStore from problem
        raise AssertionError("unreachable")

    def _not_parked(self, streams: dict[StreamKey, list[Event]]) -> dict[StreamKey, list[Event]]:
        """The streams that are not parked, or are to be tried again because something was left out of them."""
        found, parking = {}, self._parking
        for key, fresh in streams.items():
            target = Target("", *key)
            left_out = any(isinstance(e.payload, EventSkipped) for e in fresh)
            if target in parking:
                self._states.drop(key)
            if target in parking and not self._retry and not (left_out and parking.passed(target)):
                parking.wait(target, len(fresh))
                if parking.place(target) == APART and not self._costly.needs_trial(key):
                    self._aside[key] = True  # who was to fold it may be gone
                continue
            parking.try_again(target)
            found[key] = fresh
        return found

    def _catch_up(self, streams: Iterable[StreamKey]) -> None:
        """Fold on to the states of these streams what others have read of them, up to where they were read. What it
        changes is written already."""
        behind: dict[StreamKey, Position] = {}
        for key in streams:
            state = self._states.get(key)
            if state is not None and state.read < self._taken_at:
                behind[key] = state.read
        missed = read_streams(self._connection, list(behind), self._after, behind)
        missed = {key: events for key, events in missed.items() if events}
        caught_up = set(self._extended(missed))
        late: dict[StreamKey, list[Event]] = {key: [] for key in missed.keys() - caught_up}
        caught_up.update(self._rewound(late))
        for key in behind:
            if key in missed and key not in caught_up:
                self._states.drop(key)
            elif key in self._states:
                self._states[key].remember(self._after)

    def _fold(self, streams: dict[StreamKey, list[Event]]) -> tuple[dict[StreamKey, Delta], set[StreamKey]]:
        deltas: dict[StreamKey, Delta] = {}
        aside: set[StreamKey] = set()
        if not self._retry:
            deltas = self._extended(streams)
            late = sorted(streams.keys() - deltas.keys())
            aside |= self._set_aside({key: streams[key] for key in late if self._costly.is_postponed(key)})
            deltas.update(self._rewound({key: streams[key] for key in late if key not in aside}))
        for key in deltas:
            self._states.used(key, self._end)
        refolds = streams.keys() - deltas.keys() - aside
        if not self._retry:
            refolds -= self._set_long_aside(streams, refolds)
        earlier = read_streams(self._connection, sorted(refolds), self._after)
        self.refolded = max((len(known) + len(streams[key]) for key, known in earlier.items() if known), default=0)
        slot = progress.slot()
        slot.fold(self._work(earlier, streams))
        for number, (key, known) in enumerate(earlier.items()):
            self._states.drop(key)
            events = [*known, *streams[key]]
            slot.stream(number, events, WHOLE_CPU_S if known else math.inf)
            deltas[key] = self._fold_whole(key, events)
        slot.over(self._step)
        return deltas, refolds

    def _fold_whole(self, key: StreamKey, events: Sequence[Event]) -> Delta:
        """What stands in a stream; its state is kept where what comes next may be folded on to it."""
        if self._parked_still(key, events):
            return fold_stream(key[1], _before(self._endless[Target("", *key)], remaining(events)))[1]
        began = time.thread_time()
        ready, waits = self._folded_ahead(key, events)
        ready = ready or fold_ahead(key, events)
        self._costly.note(key, time.thread_time() - began)
        if ready.failed is not None:
            fault, problem = ready.failed
            self._parking.fail(msgspec.structs.replace(fault, waiting=fault.waiting + waits), problem)
        elif waits:
            self._parking.postpone(_too_long(key, events[-waits:]))
        # Where something was left out, an event that comes may be one of those: such a stream is read again.
        elif not left_out(events):
            ready.state.remember(self._end)
            self._states.keep(key, ready.state)
        return ready.delta

    def _set_aside(self, fresh: Mapping[StreamKey, Sequence[Event]]) -> set[StreamKey]:
        """Park streams, where somebody sees to it that they are folded apart."""
        if not self._parks or not (progress.slot().watched or self._long is not None):
            return set()
        for key, events in fresh.items():
            beside = self._long is not None and not self._costly.needs_trial(key)
            self._parking.postpone(_too_long(key, events, APART if beside else TO_BE_TRIED))
            self._states.drop(key)
            self._aside[key] = beside
        return set(fresh)

    def _set_long_aside(
        self, fresh: Mapping[StreamKey, Sequence[Event]], among: Collection[StreamKey]
    ) -> set[StreamKey]:
        if self._long is None:
            return set()
        lengths = stream_lengths(self._connection, sorted(among), self._after, LONG)
        return self._set_aside({key: fresh[key] for key in beyond(lengths, LONG)})

    def _request_folds_beside(self) -> None:
        """Ask for the folds of what was set aside, once its letters can be seen."""
        for key, beside in self._aside.items():
            if beside and self._long is not None:
                self._long.ask(self._lease.generation, key)
            else:
                progress.ask_for_trial()
        self._aside.clear()

    def _folded_ahead(self, key: StreamKey, events: Sequence[Event]) -> tuple[FoldedAhead | None, int]:
        """What is ready of a stream, with what came since; None where its events are others now. Also how many of those
        that came since are not folded, since all of it would have to be folded again for them."""
        ready = self._ready.get(key)
        if ready is None or events[: len(ready.events)] != ready.events:
            return None, 0
        since = events[len(ready.events) :]
        if since and (left_out(events) or not self._parks):
            return None, 0
        try:
            more = ready.state.extend(since) if since and ready.failed is None else None
        except Exception as problem:
            if not is_content_fault(problem):
                raise
            return None, 0
        if more is not None:
            ready.delta.add(more)
        return ready, 0 if more is not None else len(since)

    def _work(self, keys: Iterable[StreamKey], fresh: Mapping[StreamKey, Sequence[Event]]) -> ThreadWork:
        """The folds of these streams, for who watches: each with the first position that is new."""
        pieces = [(*key, min((event.position for event in fresh[key]), default=0)) for key in keys]
        return ThreadWork("stream", pieces=pieces, generation=self._step.generation, end=self._end)

    def _parked_still(self, key: StreamKey, events: Sequence[Event]) -> bool:
        """Park a stream at the event that it is known not to end with, where that is among the events still."""
        fault = self._endless.get(Target("", *key))
        if fault is None or all(event.event_id != fault.source for event in events):
            return False
        self._parking.fail(fault, NoProgress(0, fault.place))
        return True

    def _extended(self, streams: Mapping[StreamKey, Sequence[Event]]) -> dict[StreamKey, Delta]:
        """What events change in the streams whose states are kept and that they all sort behind."""
        return self._fold_onto_states(streams, lambda state, fresh: state.extend(fresh))

    def _rewound(self, streams: Mapping[StreamKey, Sequence[Event]]) -> dict[StreamKey, Delta]:
        """What late events change in the streams whose states are kept and remember a point before them."""
        back: dict[StreamKey, Position] = {}
        for key in streams:
            state = self._states.get(key)
            if state is not None and (position := state.goes_back_to) is not None:
                back[key] = position
        since = read_streams(self._connection, list(back), self._after, back)
        return self._fold_onto_states(
            {key: [*known, *streams[key]] for key, known in since.items()},
            lambda state, events: state.rewind(events),
            self._costly.note,
        )

    def _fold_onto_states(
        self,
        streams: Mapping[StreamKey, Sequence[Event]],
        fold: Callable[[StreamState, Sequence[Event]], Delta | None],
        note_cost: Callable[[StreamKey, float], None] = lambda key, seconds: None,
    ) -> dict[StreamKey, Delta]:
        """What `fold` does to the kept states; those of streams that have to be folded again are left out."""
        deltas: dict[StreamKey, Delta] = {}
        slot = progress.slot()
        slot.fold(self._work(streams, streams))
        for number, (key, events) in enumerate(streams.items()):
            state = self._states.get(key)
            if state is None or any(isinstance(e.payload, EventSkipped | Undecodable) for e in events):
                continue
            began = time.thread_time()
            slot.stream(number, events)
            try:
                delta = fold(state, events)
                note_cost(key, time.thread_time() - began)
            except Exception as problem:
                if not is_content_fault(problem):
                    raise
                self._states.drop(key)
                continue
            self._states.measure(key)
            if delta is not None:
                deltas[key] = delta
        slot.over(self._step)
        return deltas

    def _fold_one_by_one(self, lease: Lease, streams: dict[StreamKey, list[Event]]) -> None:
        """Fold and write each stream by itself, whole, in a savepoint; the one that cannot be stored is parked. Where
        some are folded beside others, so are long ones, and it is looked there what is wrong with the one."""

        connection = self._connection

        def store(key: StreamKey, events: Sequence[Event], *, keep: bool) -> None:
            with connection.transaction(force_rollback=not keep):
                _, delta = fold_stream(key[1], events)
                found = [(key[0], fact) for fact in delta.facts.values()]
                dealt = dealt_facts(connection, lease, self._register, found, self._end)
                _write(connection, lease.generation, self._at, {key: delta}, {key}, dealt)

        aside = self._set_long_aside(streams, streams)
        read = read_streams(connection, sorted(streams.keys() - aside), self._end)
        slot = progress.slot()
        slot.fold(self._work(read, streams))
        for number, (key, known) in enumerate(read.items()):
            events = remaining(known)
            slot.stream(number, events)
            if self._parked_still(key, events):
                store(key, _before(self._endless[Target("", *key)], events), keep=True)
                continue
            try:
                store(key, events, keep=True)
            except Exception as problem:
                if not is_content_fault(problem):
                    raise
                if self._long is not None and self._set_aside({key: streams[key]}):
                    continue
                fault = stream_fault(key, events, partial(store, key, keep=False))
                self._parking.fail(fault, problem)
                store(key, _before(fault, events), keep=True)


def _step(lease: Lease) -> ThreadWork:
    """For who watches: whatever is no fold."""
    return ThreadWork("stage 1", str(lease.shard), generation=lease.generation)


def _too_long(key: StreamKey, fresh: Sequence[Event], place: str = APART) -> Fault:
    """Where a stream is parked for which these events wait."""
    first = min(fresh, key=lambda event: event.position)
    return Fault(Target("", *key), first.event_id, first.position, NoProgress.__name__, place, len(fresh) - 1)


def _before(fault: Fault, events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.position < fault.position]


def _write(
    connection: Connection,
    generation: int,
    at: Position,
    deltas: dict[StreamKey, Delta],
    whole: set[StreamKey],
    dealt: Mapping[SourceKey, Dealt | None] = MappingProxyType({}),
) -> None:
    found = ((key[0], fact) for key, delta in deltas.items() for fact in delta.facts.values())
    facts.assert_facts(connection, generation, at, found, dealt)
    retracted = [(key[0], id) for key, delta in deltas.items() for id in delta.retracted]
    facts.retract(connection, generation, at, retracted)
    facts.retract_others(connection, generation, at, {key: list(deltas[key].facts) for key in whole})
    for p in projections(1):
        rows: dict[readmodels.RowKey, bytes | None] = {}
        streams: dict[readmodels.RowKey, str] = {}
        for (space_id, stream), delta in deltas.items():
            for (name, key), row in delta.rows.items():
                if name == p.name:
                    rows[space_id, key] = None if row is None else stored(row)
                    streams[space_id, key] = stream
        kept: dict[StreamKey, list[str]] = {
            key: [k for (name, k), row in deltas[key].rows.items() if name == p.name and row is not None]
            for key in whole
        }
        readmodels.delete_streams_rows(connection, p, generation, kept)
        readmodels.save(connection, p, generation, rows, streams)
