"""No row passes its limit, whatever sessions hold and people say: a law over the register."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hostile import DEAR, STREAM, Session, Values
from hypothesis import given
from hypothesis import strategies as st
from soak import FACTOR, examples

from memctl.domain.events.event import Event, Micros, Payload, Position, type_of
from memctl.domain.events.facts import Fact
from memctl.domain.support.provenance import Provenance
from memctl.projections.insights import Insight
from memctl.projections.kernel import ROW_LIMIT, Changed, Projection, Recorded, projections
from memctl.projections.stream_state import fold_stream, stored

STAGE_1, STAGE_2 = projections(1), projections(2)
EPOCH = 1_700_000_000_000_000
INPUTS = 2_000 if FACTOR else 70
"""How many of each kind go to a row: more than any of its collections holds."""


def assert_fits(p: Projection[Any], row: Any) -> None:
    size = len(stored(row) if p.stage == 1 else msgspec.json.encode(row))
    if size > ROW_LIMIT:
        most = max(p.row.__struct_fields__, key=lambda name: len(msgspec.json.encode(getattr(row, name))))
        pytest.fail(
            f"a row of {p.name} takes {size} bytes of {ROW_LIMIT}, most of them `{most}`:"
            " bound that by domain/support/bounded.py, and clip its texts",
            pytrace=False,
        )


# --- rows from what their folds subscribe to, all of it as long as can be, and new each time ---


class Inputs(Values):
    """Inputs of a projection, of each kind that it subscribes to, as if all went to one row."""

    def __init__(self, p: Projection[Any], seed: int) -> None:
        super().__init__(random.Random(seed), DEAR[seed % len(DEAR)])
        self.longest, self.members = 2_100, 12
        self._stream = {"core_memory": "core/user", "project_words": "project/1"}.get(p.name, "knowledge/notes")
        self._kinds = sorted(p.facts | p.recorded | p.upstream, key=lambda kind: kind.__name__)

    def __iter__(self) -> Iterator[Any]:
        for n in range(INPUTS):
            for kind in self._kinds:
                yield self._input(kind, Micros(EPOCH + n))

    def _input(self, kind: type[Any], at: Micros) -> Any:
        if issubclass(kind, Fact):
            return msgspec.structs.replace(self.made(kind), occurred_at=at)
        if not issubclass(kind, Payload):
            name = next(p.name for p in STAGE_2 if p.row is kind)
            row = heavy_row(name, self._rng.randrange(24))
            if isinstance(row, Insight):  # what sessions show the contrary of is no preference, nor is anybody else's
                row = msgspec.structs.replace(row, denials=(), said_by=Provenance.USER_TYPED)
            return Changed(self.hex(36), row)
        payload = self.made(kind)
        event = Event(
            position=Position(1), event_id=UUID(int=self._rng.getrandbits(128)), space_id=1, stream=self._stream,
            type=type_of(payload).name, occurred_at=at, recorded_at=at, actor="user", location=self.place(),
            session_id="1", dedupe_key=self.hex(8), payload=payload,
        )  # fmt: skip
        return Recorded(event, payload)


@functools.cache
def heavy_row(name: str, seed: int = 0) -> Any:
    """The row that such inputs come to, its size looked at on the way; but for seed 0, that of the first few."""
    p = next(p for p in projections() if p.name == name)
    row = last = None
    for n, item in enumerate(islice(Inputs(p, seed), 5 + seed % 7 if seed else None), 1):
        row = p.folded(row, [item]) if p.stage == 1 else p(row, item, next(iter(p.keys(item)), ""))
        last = last if row is None else row
        if n % 100 == 0 and row is not None:
            assert_fits(p, row)
    assert_fits(p, last)
    return last


@pytest.mark.parametrize("name", [p.name for p in projections()])
def test_a_row_stays_within_its_limit_when_all_that_goes_to_it_is_as_long_as_can_be(name: str) -> None:
    assert heavy_row(name) is not None


@pytest.mark.parametrize("p", STAGE_2, ids=lambda p: p.name)
def test_nothing_goes_to_a_row_that_no_index_takes(p: Projection[Any]) -> None:
    for seed in range(len(DEAR)):
        inputs = Inputs(p, seed)
        inputs.longest = 9_000
        for item in islice(inputs, 30):
            p.keys(item)


def test_a_row_that_would_be_too_long_loses_what_came_first() -> None:
    files = tuple(f"{n:04}" + "a" * 300 for n in range(400))
    kept = msgspec.json.decode(stored(Long(name="it", files=files, counts={"one": 1})), type=Long)
    assert kept == Long(name="it", files=files[200:], counts={"one": 1})
    with pytest.raises(AssertionError, match="beside its collections"):
        stored(Long(name="a" * ROW_LIMIT))


class Long(msgspec.Struct):
    name: str
    files: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    pair: tuple[str, str] = ("", "")


# --- rows from whole sessions ---


@examples(3)
@given(seed=st.integers(0, 2**32))
def test_no_session_comes_to_a_row_beyond_the_limit(seed: int) -> None:
    _, delta = fold_stream(STREAM, Session(random.Random(seed)).events(400))
    assert delta.rows
    for row in delta.rows.values():
        assert len(stored(row)) <= ROW_LIMIT
