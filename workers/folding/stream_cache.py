"""The states of recent streams that a worker of stage 1 keeps in memory, within a bound."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from memctl.domain.events.event import Position, stream_hash
from memctl.infra.log.read import StreamKey
from memctl.projections.stream_state import StreamState

KEPT_EVENTS = 60_000
"""About how many events' worth of stream states a worker keeps in memory, some 130 MB; streams beyond it are read
again."""

LARGEST = 400_000
"""Events of the longest stream that is kept beside those: some 600 MB."""

OF_A_STREAM = 40
"""How many events' worth a state takes besides its events: 80 KB, where an event of a real session adds 2 KB."""


class StreamCache(Mapping[StreamKey, StreamState]):
    """States by stream. The one that was used longest ago is dropped first."""

    def __init__(self) -> None:
        self._states: OrderedDict[StreamKey, StreamState] = OrderedDict()
        self._sizes: dict[StreamKey, int] = {}
        """By stream, in events, as of when it was last measured."""

    def __getitem__(self, key: StreamKey) -> StreamState:
        return self._states[key]

    def __iter__(self) -> Iterator[StreamKey]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def keep(self, key: StreamKey, state: StreamState) -> None:
        """Keep a state instead of the one that is there."""
        self.drop(key)
        self._states[key] = state
        self.measure(key)

    def drop(self, key: StreamKey) -> None:
        """Forget a stream's state, if there is one."""
        self._states.pop(key, None)
        self._sizes.pop(key, None)

    def drop_shard(self, hashes: tuple[int, int]) -> None:
        """Forget the states of a shard's streams."""
        low, high = hashes
        for key in [key for key in self._states if low <= stream_hash(key[1]) <= high]:
            self.drop(key)

    def measure(self, key: StreamKey) -> None:
        """Measure a state that has grown."""
        self._sizes[key] = OF_A_STREAM + self._states[key].events

    def used(self, key: StreamKey, read: Position) -> None:
        """Every event of a stream up to a position was folded onto its state."""
        self._states.move_to_end(key)
        self._states[key].remember(read)

    def shrink(self) -> None:
        """Drop the states that were used longest ago, until the others are within the bound.

        The largest stays beside those. To fold it again costs the most. It may be larger than the bound by itself, so
        that events of other streams would have it read again.
        """
        kept = sum(self._sizes.values())
        if kept <= KEPT_EVENTS:
            return
        largest = max(self._states, key=lambda key: self._states[key].events)
        beside = self._sizes[largest] if self._states[largest].events <= LARGEST else 0
        for key in [key for key in self._states if not beside or key != largest][: len(self._states) - 1]:
            if kept - beside <= KEPT_EVENTS:
                return
            kept -= self._sizes[key]
            self.drop(key)
