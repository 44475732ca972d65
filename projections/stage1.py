"""Stage 1: one stream's events become facts, and its rows are folded from them.

A pure function of the set of the stream's events. Events that sort last extend the state; any other asks for the
whole stream to be folded anew, which is the same function.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from memctl.domain.derive import StreamFacts, derive
from memctl.domain.event import Event
from memctl.domain.facts import Fact, Identified
from memctl.domain.skipping import foldable
from memctl.projections.kernel import Projection, handed_on, projections

RowOf = tuple[str, str]
"""Name of a projection, and key of a row."""


class Delta(msgspec.Struct):
    """What a batch changed in one stream: facts for stage 2 by id, and rows (None: deleted)."""

    facts: dict[UUID, Identified]
    rows: dict[RowOf, Any]


class StreamState:
    """A stream's facts so far, and the rows folded from them."""

    def __init__(self, facts: StreamFacts) -> None:
        self._facts = facts
        self._rows: dict[str, dict[str, Any]] = defaultdict(dict)
        self.events = 0

    def extend(self, events: Sequence[Event]) -> Delta | None:
        """Fold further events. None when they do not all sort last: then this state is of no more use."""
        if not self._facts.extend(events):
            return None
        return self.drain(len(events))

    def drain(self, events: int) -> Delta:
        self.events += events
        facts = self._facts.drain()
        wanted = handed_on()
        delta = Delta({fact.id: fact for fact in facts if isinstance(fact, Identified) and type(fact) in wanted}, {})
        for p in _stage1():
            rows = self._rows[p.name]
            told: dict[str, list[Fact]] = {}
            for fact in facts:
                if type(fact) in p.facts:
                    for key in p.keys(fact):
                        told.setdefault(key, []).append(fact)
            for key, about in told.items():
                row = rows[key] = delta.rows[p.name, key] = p.folded(rows.get(key), about)
                if row is None:
                    del rows[key]
        return delta


def fold_stream(stream: str, events: Iterable[Event]) -> tuple[StreamState, Delta]:
    """All events of a stream, in any order: its state, with everything that stands in it as the delta.

    What was left out of the stream is left out here. Raises: UndecodablePayload, or whatever a fold raises.
    """
    known = foldable(events)
    state = StreamState(derive(stream, known))
    return state, state.drain(len(known))


@functools.cache
def _stage1() -> tuple[Projection, ...]:
    return projections(1)
