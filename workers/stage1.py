"""Stage 1 at work: a batch of events becomes facts, rows and one new offset, in one transaction."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from memctl.domain.event import Event, Position
from memctl.infra import facts, generations, readmodels
from memctl.infra.database import Connection
from memctl.infra.generations import Lease
from memctl.infra.log.read import StreamKey, read_range, read_streams
from memctl.projections.kernel import projections
from memctl.projections.stage1 import Delta, StreamState, fold_stream

KEPT_EVENTS = 60_000
"""About how many events' worth of stream states a worker keeps in memory; streams beyond it are read again."""


class Stage1:
    """Drains shards of stage 1, keeping the states of recent streams for as long as nobody else moves the shard."""

    def __init__(self, batch: int = 2000) -> None:
        self._batch = batch
        self._states: OrderedDict[StreamKey, StreamState] = OrderedDict()
        self._kept = 0
        self._seen: dict[tuple[int, int], tuple[Position, int]] = {}
        """By generation and shard: the offset and epoch after our last batch."""

    def drain_batch(self, connection: Connection, lease: Lease, upto: Position) -> Lease:
        """Fold one batch of events up to a position (at most the mark); returns the lease at its new offset.

        Raises: LeaseLost, and then nothing was written.
        """
        shard = (lease.generation, lease.shard)
        if self._seen.get(shard) not in ((lease.position, lease.epoch), (lease.position, lease.epoch - 1)):
            self._forget(lease)
        self._seen.pop(shard, None)
        try:
            events = read_range(connection, lease.position, upto, limit=self._batch, hashes=lease.hashes)
            end = events[-1].position if len(events) == self._batch else upto
            deltas, whole = self._fold(connection, events, lease.position)
            with connection.transaction():
                lease = generations.advance(connection, lease, end)
                _write(connection, lease.generation, end, deltas, whole)
        except BaseException:
            self._forget(lease)
            raise
        self._seen[shard] = (lease.position, lease.epoch)
        self._shrink()
        return lease

    def _fold(
        self, connection: Connection, events: list[Event], before: Position
    ) -> tuple[dict[StreamKey, Delta], set[StreamKey]]:
        by_stream: dict[StreamKey, list[Event]] = {}
        for event in events:
            if event.stream.startswith("session/") and event.stream.count("/") >= 2:
                by_stream.setdefault((event.space_id, event.stream), []).append(event)
        deltas: dict[StreamKey, Delta] = {}
        for key, fresh in by_stream.items():
            state = self._states.get(key)
            delta = state.extend(fresh) if state is not None else None
            if delta is None:
                self._drop(key)
                continue
            self._states.move_to_end(key)
            self._kept += len(fresh)
            deltas[key] = delta
        whole = by_stream.keys() - deltas.keys()
        for key, known in read_streams(connection, sorted(whole), before).items():
            state, deltas[key] = fold_stream(key[1], [*known, *by_stream[key]])
            self._states[key] = state
            self._kept += state.events
        return deltas, whole

    def _drop(self, key: StreamKey) -> None:
        state = self._states.pop(key, None)
        if state is not None:
            self._kept -= state.events

    def _shrink(self) -> None:
        while self._kept > KEPT_EVENTS and len(self._states) > 1:
            _, state = self._states.popitem(last=False)
            self._kept -= state.events

    def _forget(self, lease: Lease) -> None:
        from memctl.domain.event import stream_hash

        low, high = lease.hashes
        for key in [key for key in self._states if low <= stream_hash(key[1]) <= high]:
            self._drop(key)


def _write(
    connection: Connection, generation: int, at: Position, deltas: dict[StreamKey, Delta], whole: set[StreamKey]
) -> None:
    facts.assert_facts(
        connection, generation, at, ((key[0], fact) for key, delta in deltas.items() for fact in delta.facts.values())
    )
    facts.retract_others(connection, generation, at, {key: list(deltas[key].facts) for key in whole})
    encode = msgspec.json.encode
    for p in projections(1):
        rows: dict[readmodels.RowKey, bytes | None] = {}
        streams: dict[readmodels.RowKey, str] = {}
        for (space_id, stream), delta in deltas.items():
            for (name, key), row in delta.rows.items():
                if name == p.name:
                    rows[space_id, key] = None if row is None else encode(row)
                    streams[space_id, key] = stream
        kept: dict[StreamKey, list[str]] = {
            key: [k for (name, k), row in deltas[key].rows.items() if name == p.name and row is not None]
            for key in whole
        }
        readmodels.delete_streams_rows(connection, p, generation, kept)
        readmodels.save(connection, p, generation, rows, streams)
