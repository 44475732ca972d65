"""Laws that every projection keeps, over the register: a projection written tomorrow is held to them unasked."""

from __future__ import annotations

import itertools
import json
import math
import random
import types
import typing
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal, Union
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from soak import FACTOR

from memctl.domain.events.event import Event, Micros, Payload, Position, type_of
from memctl.domain.events.facts import FACT_TYPES, Fact, Identified
from memctl.projections.kernel import Changed, Projection, Recorded, projections
from memctl.projections.kernel import _subscription as subscription

STAGE_1, STAGE_2 = projections(1), projections(2)
Table = dict[str, Any]
Tables = dict[str, Table]

# Few words, so that keys meet; some that hurt: an empty one, Hangul, quotes, a control character, a long one.
WORDS = (
    "",
    "a",
    "use pnpm",
    "not use pnpm",
    "one/package manager",
    "테스트를 항상 먼저 돌려",
    'say "x"\x1b[0m',
    "word " * 200,
)
EPOCH = 1_700_000_000_000_000


def made(hint: Any, rng: random.Random, name: str = "") -> Any:
    """A value of that type."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return rng.choice(args)
    if origin in (Union, types.UnionType):
        return made(rng.choice(args), rng, name)
    if origin is tuple:
        if args[-1] is Ellipsis:
            return tuple(made(args[0], rng) for _ in range(rng.randint(0, 3)))
        return tuple(made(arg, rng) for arg in args)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return rng.choice(list(hint))
    if hint is type(None):
        return None
    if hint is bool:
        return rng.random() < 0.5
    if hint is str and name == "stream":
        return f"session/claude-code/{rng.randint(1, 5)}"
    if hint is str:
        return rng.choice(WORDS)
    if hint in (int, Micros):
        return EPOCH + rng.randint(0, 50) * 3_600_000_000 if name.endswith(("_at", "_seen")) else rng.randint(0, 9)
    if hint is float:
        return rng.choice((0.0, -0.0, 0.25, 0.7, 1.0))
    if hint is UUID:
        return UUID(int=rng.getrandbits(128))
    if hint is dict or origin is dict:
        return {}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return struct(hint, rng)
    raise AssertionError(f"the generator knows no {hint!r}")


def struct(cls: type[Any], rng: random.Random) -> Any:
    hints = typing.get_type_hints(cls)
    return cls(**{f.name: made(hints[f.name], rng, f.name) for f in msgspec.structs.fields(cls)})


def recorded(cls: type[Payload], rng: random.Random) -> Recorded[Any]:
    payload = struct(cls, rng)
    key = str(rng.random())
    event = Event(
        position=Position(rng.randint(1, 10**6)),
        event_id=UUID(int=rng.getrandbits(128)),
        space_id=1,
        stream="session/claude-code/1",
        type=type_of(payload).name,
        occurred_at=made(Micros, rng, "_at"),
        recorded_at=made(Micros, rng, "_at"),
        actor="user",
        location=rng.choice(WORDS),
        session_id="1",
        dedupe_key=key,
        payload=payload,
    )
    return Recorded(event, payload)


def inputs_of(found: Sequence[Projection[Any]], rng: random.Random, count: int) -> list[Any]:
    """Facts and recorded events of a few kinds, most of them near copies of another, so that keys meet."""
    kinds: list[type[Any]] = sorted({k for p in found for k in p.facts | p.recorded}, key=lambda cls: cls.__name__)
    items: list[Any] = []
    for kind in rng.choices(rng.sample(kinds, min(4, len(kinds))), k=count):
        alike = [item for item in items if type(item) is kind]
        if alike and rng.random() < 0.8:
            items.append(_near_copy(rng.choice(alike), rng))
        else:
            items.append(struct(kind, rng) if issubclass(kind, Fact) else recorded(kind, rng))
    return items


def _near_copy(fact: Fact, rng: random.Random) -> Fact:
    other = struct(type(fact), rng)
    kept = [f.name for f in msgspec.structs.fields(fact) if f.name != "id" and rng.random() < 0.75]
    return msgspec.structs.replace(other, **{name: getattr(fact, name) for name in kept})


def takes(p: Projection[Any], item: Any) -> bool:
    if isinstance(item, Recorded):
        return type(item.payload) in p.recorded
    return type(item) in p.facts


class MiniKernel:
    """Stage 2 as the kernel's contract has it: batches, downstream changes, refolds after a retraction."""

    def __init__(self) -> None:
        self.tables: Tables = {p.name: {} for p in STAGE_2}
        self.inputs: list[Any] = []

    def batch(self, items: Sequence[Any]) -> None:
        self.change((), items)

    def retract(self, gone: Sequence[Any]) -> None:
        self.change(gone, ())

    def change(self, gone: Sequence[Any], items: Sequence[Any]) -> None:
        """Some inputs go, others come; a revised one does both."""
        was = {id(item) for item in gone}
        self.inputs = [*(item for item in self.inputs if id(item) not in was), *items]
        self._run(items, {p.name: {k for item in gone if takes(p, item) for k in p.keys(item)} for p in STAGE_2})

    def _run(self, items: Sequence[Any], stale: dict[str, set[str]]) -> None:
        before: Tables = {}
        for p in STAGE_2:
            table = self.tables[p.name]
            ups = [up for up in STAGE_2 if up.row in p.upstream]
            # An upstream row that is another now makes what it went to be folded anew, as a revised fact does.
            was = (Changed(k, row) for up in ups for k, row in before[up.name].items() if row is not None)
            again = stale.get(p.name, set()) | {key for change in was for key in p.keys(change)}
            old: Table = {key: table.pop(key, None) for key in sorted(again)}
            work = [(k, i) for i in self.inputs if takes(p, i) for k in p.keys(i) if k in again]
            work += [(k, i) for i in items if takes(p, i) for k in p.keys(i) if k not in again]
            for up in ups:
                for source, row in self.tables[up.name].items():
                    change = Changed(source, row)
                    work += [(k, change) for k in p.keys(change) if k in again or source in before[up.name]]
            for key, item in work:
                old.setdefault(key, table.get(key))
                row = p(table.get(key), item, key)
                if row is None:
                    table.pop(key, None)
                else:
                    table[key] = row
            before[p.name] = {k: row for k, row in old.items() if row != table.get(k)}


def folded(items: Sequence[Any], cuts: Sequence[int] = ()) -> Tables:
    kernel = MiniKernel()
    edges = [0, *sorted(cuts), len(items)]
    for start, end in itertools.pairwise(edges):
        kernel.batch(items[start:end])
    return kernel.tables


def assert_clean(value: Any, where: str) -> None:
    """No NaN, no infinity, no -0.0, no NUL, no random order, no field that names a place in the log."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            assert name not in {"position", "recorded_at"}, f"{where}.{name}"
            assert_clean(getattr(value, name), f"{where}.{name}")
    elif isinstance(value, float):
        assert math.isfinite(value), where
        assert str(value) != "-0.0", where
    elif isinstance(value, str):
        assert "\0" not in value, f"{where}: jsonb holds no NUL"
        value.encode()  # nor lone surrogates
    elif isinstance(value, (list, tuple)):
        for i, member in enumerate(value):
            assert_clean(member, f"{where}[{i}]")
    elif isinstance(value, dict):
        for key, member in value.items():
            assert_clean(key, where)
            assert_clean(member, f"{where}[{key}]")
    else:
        assert not isinstance(value, (set, frozenset)), f"{where}: a set has no order of its own"


def through_jsonb(row: Any) -> Any:
    """The row after a stay in a `jsonb` column: keys in another order, whole floats perhaps without their point."""

    def stored(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: stored(value[k]) for k in sorted(value, key=lambda k: (len(k), k))}
        if isinstance(value, list):
            return [stored(v) for v in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    text = json.dumps(stored(json.loads(msgspec.json.encode(row))))
    return msgspec.json.decode(text.encode(), type=type(row))


laws = settings(max_examples=60 * max(FACTOR, 1), deadline=None)


def test_the_register_holds_the_read_models_of_stage_2_upstream_first() -> None:
    names = [p.name for p in STAGE_2]
    road = ["insights", "candidates", "verified_knowledge", "memories", "vector_points"]
    assert [n for n in names if n in road] == road
    assert names.index("bug_patterns") < names.index("memories")


@pytest.mark.parametrize("p", projections(), ids=lambda p: p.name)
def test_a_row_type_can_be_indexed_as_declared_and_is_documented(p: Projection[Any]) -> None:
    fields = {f.name for f in msgspec.structs.fields(p.row)}
    assert {name for index in p.indexes for name in index} <= fields
    assert p.doc
    assert p.row.__doc__


@pytest.mark.parametrize("p", STAGE_2, ids=lambda p: p.name)
def test_what_a_key_is_given_for_is_what_the_fold_subscribes_to(p: Projection[Any]) -> None:
    """The fold's annotation is the subscription: what only its key knows would never come."""
    hints = typing.get_type_hints(p.key)
    told = [hint for name, hint in hints.items() if name != "return"]
    assert all(subscription(p.name, hint) == (p.facts, p.recorded, p.upstream) for hint in told)


@pytest.mark.parametrize("p", STAGE_1, ids=lambda p: p.name)
def test_no_two_sessions_share_a_row_of_stage_1(p: Projection[Any]) -> None:
    """Each session writes its rows whole: of a row that two share, one session's part would be lost."""
    rng = random.Random(p.name)
    for kind in sorted(p.facts, key=lambda cls: cls.__name__):
        mine = struct(kind, rng)
        others = msgspec.structs.replace(mine, stream=f"{mine.stream}0")
        if isinstance(others, Identified):  # whose id is derived from its stream
            others = msgspec.structs.replace(others, id=made(UUID, rng))
        assert not {*p.keys(mine)} & {*p.keys(others)}, (
            f"the key of {p.name} is the same for two sessions' {kind.__name__}. Let it name the session:"
            f" derived_of({p.name!r}, fact.stream, …). Who asks adds the rows up (`api/queries/stats.py`)."
        )


@pytest.mark.parametrize("p", [p for p in STAGE_2 if p.facts or p.recorded], ids=lambda p: p.name)
def test_a_fold_gives_the_same_rows_in_any_order(p: Projection[Any]) -> None:
    """Each by itself: of histories of all kinds, few have enough for any one."""
    rng = random.Random(p.name)
    for _ in range(40 * max(FACTOR, 1)):
        items = inputs_of([p], rng, 12)
        expected = rows_of(p, items)
        rng.shuffle(items)
        assert rows_of(p, items) == expected, f"{p.name}: the order in which these come changes a row"


def rows_of(p: Projection[Any], items: Sequence[Any]) -> Table:
    """What one fold makes of its inputs, in that order."""
    table: Table = {}
    for item in items:
        for key in p.keys(item):
            table[key] = p(table.get(key), item, key)
    return {key: row for key, row in table.items() if row is not None}


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30))
def test_facts_folded_in_any_order_and_in_any_batches_give_the_same_rows(seed: int, count: int) -> None:
    rng = random.Random(seed)
    items = inputs_of(STAGE_2, rng, count)
    expected = folded(items)
    shuffled = list(items)
    rng.shuffle(shuffled)
    assert folded(shuffled, [rng.randint(0, count) for _ in range(3)]) == expected


@settings(max_examples=40 * max(FACTOR, 1), deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(2, 25))
def test_in_how_many_pieces_stage_one_is_folded_changes_no_row(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for p in STAGE_1:
        facts = [struct(rng.choice(sorted(p.facts, key=lambda cls: cls.__name__)), rng) for _ in range(count)]
        whole = p.folded(None, facts)
        cut = rng.randint(1, count - 1)
        first = p.folded(None, facts[:cut])
        kept = msgspec.json.encode(first)
        assert p.folded(through_jsonb(first), facts[cut:]) == whole
        row = first
        for fact in facts[cut:]:
            row = p.folded(row, [fact])
        assert row == whole
        assert msgspec.json.encode(first) == kept, "a row that was handed out never changes"


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(2, 40))
def test_retracted_facts_leave_no_trace(seed: int, count: int) -> None:
    rng = random.Random(seed)
    items = inputs_of(STAGE_2, rng, count)
    gone = [item for item in items if rng.random() < 0.4]
    kernel = MiniKernel()
    half = rng.randint(0, count)
    kernel.batch(items[:half])
    kernel.batch(items[half:])
    kernel.retract(gone)
    assert kernel.tables == folded([i for i in items if not any(i is g for g in gone)])


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(1, 20))
def test_rows_are_clean_and_come_back_from_json_as_they_were(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for name, table in folded(inputs_of(STAGE_2, rng, count)).items():
        for row in table.values():
            assert_clean(row, name)
            assert through_jsonb(row) == row


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(2, 20))
def test_a_row_that_was_stored_folds_on_as_one_that_stayed_in_memory(seed: int, count: int) -> None:
    rng = random.Random(seed)
    items = inputs_of(STAGE_2, rng, count)
    half = rng.randint(1, count - 1)
    kernel = MiniKernel()
    kernel.batch(items[:half])
    kernel.tables = {name: {k: through_jsonb(row) for k, row in t.items()} for name, t in kernel.tables.items()}
    kernel.batch(items[half:])
    assert kernel.tables == folded(items)


def test_every_fact_has_a_type_of_its_own() -> None:
    assert len({cls.__struct_config__.tag for cls in FACT_TYPES.values()}) == len(FACT_TYPES)


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(2, 30))
def test_where_each_input_has_a_row_of_its_own_no_two_share_one(seed: int, count: int) -> None:
    rng = random.Random(seed)
    items = inputs_of(STAGE_2, rng, count)
    tables = folded(items)
    for p in (p for p in STAGE_2 if p.one_to_one):
        taken = [item for item in items if takes(p, item)]
        for up in (up for up in STAGE_2 if up.row in p.upstream):
            taken += [Changed(key, row) for key, row in tables[up.name].items()]
        keys = [key for item in taken for key in p.keys(item)]
        assert len(keys) == len(set(keys)), p.name


@laws
@given(seed=st.integers(0, 2**32), count=st.integers(2, 30))
def test_where_rows_go_to_the_row_of_their_key_they_go_nowhere_else(seed: int, count: int) -> None:
    tables = folded(inputs_of(STAGE_2, random.Random(seed), count))
    for p in (p for p in STAGE_2 if p.same_key):
        for up in (up for up in STAGE_2 if up.row in p.upstream):
            for key, row in tables[up.name].items():
                assert p.keys(Changed(key, row)) == p.keys(Changed(key, None)) == (key,), p.name
