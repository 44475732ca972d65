"""The projection kernel: what a projection is, what it subscribes to, and how a batch of inputs is folded.

    @projection(row=NoteCount, key=repo_of)
    def note_counts(row: NoteCount | None, fact: NoteKept | NoteDropped) -> NoteCount | None: ...

The annotation of the second parameter is the subscription: fact classes, `Recorded[Payload]` for events that were
recorded, `Changed[Row]` for the rows of another projection of stage 2. `None` in means the row is absent, `None` out
deletes it. The function's name is the projection's name; modules of this package are discovered, none is listed.

A fold of stage 2 whose inputs go to several rows each may take the row's `key` as a third parameter.

In stage 1, where facts come by the million, a fold may take all that a batch has for its row at once, as
`facts: Sequence[NoteKept | NoteDropped]`; in how many pieces they come must change nothing.
"""

import functools
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, Literal, TypeVar, Union

import msgspec

from memctl.domain.events.event import Event, Payload
from memctl.domain.events.facts import Fact, Identified
from memctl.domain.support.errors import MemctlError

R = TypeVar("R")
P = TypeVar("P", bound=Payload)

Stage = Literal[1, 2]

ROW_LIMIT = 64 * 1024
"""Bytes of JSON that no row passes."""

INDEX_LIMIT = 2_560
"""Bytes of a key of stage 2, or of all texts of one index: an index of Postgres's takes some more, or many more of what
can be compressed. Who folds goes by this: a rebuild has its indexes only once all rows are there."""

Keys = str | Iterable[str] | None


class TooLongForAnIndex(MemctlError):
    """What a row of {read_model} is found by has {size} bytes: its key is to be a hash of that (`derived_of`)."""


class Changed(msgspec.Struct, Generic[R], frozen=True):
    """A row of an upstream projection is now `row`, or is gone (`None`).

    The fold does not take back what the row contributed before. If the row went somewhere before and is different now,
    the rows that it went to are folded again (decision 5).
    """

    key: str
    row: R | None


class Recorded(msgspec.Struct, Generic[P], frozen=True):
    """A statement or outcome as the log recorded it."""

    event: Event
    payload: P


class Projection(msgspec.Struct, Generic[R], frozen=True):
    """One read model: its name, row type, and fold. Called, it folds one input.

    `key(input)` names the row or rows an input belongs to (`None`: not routed). `indexes` are tuples of field names
    that queries filter or sort by. Rows stay under 64 KB and hold no position, no `recorded_at`, no NaN.
    """

    name: str
    stage: Stage
    row: type[R]
    key: Callable[[Any], Keys]
    fold: Callable[..., R | None]
    facts: frozenset[type[Fact]]
    recorded: frozenset[type[Payload]]
    upstream: frozenset[type[Any]]
    indexes: tuple[tuple[str, ...], ...]
    doc: str
    module: str
    at_once: bool = False
    """The fold takes a sequence of facts (stage 1 only)."""
    one_to_one: bool = False
    """No two inputs go to one row (stage 2 only): a rebuild deals out what it reads, and keeps no row waiting."""
    same_key: bool = False
    """Rows that it reads go to the row of their own key (stage 2 only): one shard folds both."""
    keyed: bool = False
    """The fold takes the row's key too (stage 2 only)."""
    indexed_texts: tuple[tuple[str, ...], ...] = ()
    """Of each index the fields that hold a text of any length, where it has such."""

    def __call__(self, row: R | None, item: Any, key: str = "") -> R | None:
        """The row under `key` with one input folded in."""
        return self.fold(row, item, key) if self.keyed else self.fold(row, item)

    def folded(self, row: R | None, facts: Sequence[Fact]) -> R | None:
        """The row after these facts."""
        if self.at_once:
            return self.fold(row, facts)
        for fact in facts:
            row = self.fold(row, fact)
        return row

    def keys(self, item: Any) -> tuple[str, ...]:
        """The rows that an input belongs to. Raises: TooLongForAnIndex."""
        found = self.key(item)
        keys = (found,) if isinstance(found, str) else () if found is None else tuple(dict.fromkeys(found))
        for key in keys:
            if len(key) > _SHORT:
                self._check((key,))
        return keys

    def check(self, row: R) -> None:
        """Raises: TooLongForAnIndex where an index cannot take what it has of a row."""
        for fields in self.indexed_texts:
            texts = [getattr(row, field) for field in fields]
            if sum(map(len, texts)) > _SHORT:
                self._check(texts)

    def _check(self, texts: Sequence[str]) -> None:
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        if size > INDEX_LIMIT:
            raise TooLongForAnIndex(read_model=self.name, size=size)


_SHORT = INDEX_LIMIT // 4
"""Characters that are never too many bytes."""


_register: dict[str, Projection[Any]] = {}


def projection(
    *,
    row: type[R],
    key: Callable[[Any], Keys],
    stage: Stage = 2,
    indexes: tuple[tuple[str, ...], ...] = (),
    one_to_one: bool = False,
    same_key: bool = False,
) -> Callable[[Callable[..., R | None]], Projection[R]]:
    """Make a fold a projection, registered under its own name.

    `one_to_one`: each input has a row or rows of its own, which makes a large read model of stage 2 quicker to rebuild.
    `same_key`: each row that it reads goes to the row of the same key, so that no other shard has to hear of it.
    """

    def register(fold: Callable[..., R | None]) -> Projection[R]:
        name = fold.__name__
        if name in _register:
            raise ValueError(f"projection {name!r} is registered twice")
        _, parameter, *others = inspect.signature(fold).parameters
        hints = typing.get_type_hints(fold, include_extras=False)
        at_once = typing.get_origin(hints[parameter]) is Sequence
        members = typing.get_args(hints[parameter])[0] if at_once else hints[parameter]
        facts, recorded, upstream = _subscription(name, members)
        if stage == 1 and (recorded or upstream):
            raise ValueError(f"projection {name!r}: stage 1 folds the facts of one stream and nothing else")
        if stage == 2 and at_once:
            raise ValueError(f"projection {name!r}: stage 2 folds one input at a time")
        for fact in facts:
            if stage == 2 and not issubclass(fact, Identified):
                raise TypeError(f"projection {name!r}: stage 2 folds facts that have an id; {fact.__name__} has none")
        if others not in ([], ["key"]) or (others and stage == 1):
            raise ValueError(f"projection {name!r}: a fold takes a row, an input and, in stage 2, `key`")
        doc = (fold.__doc__ or "").strip()
        kinds = typing.get_type_hints(row) if indexes else {}
        texts = (tuple(field for field in fields if kinds[field] is str) for fields in indexes)
        _register[name] = made = Projection(
            name, stage, row, key, fold, facts, recorded, upstream, indexes, doc, fold.__module__, at_once, one_to_one,
            same_key, bool(others), tuple(dict.fromkeys(fields for fields in texts if fields)),
        )  # fmt: skip
        stored_facts.cache_clear()
        folded_as_recorded.cache_clear()
        return made

    return register


def _subscription(
    name: str, annotation: Any
) -> tuple[frozenset[type[Fact]], frozenset[type[Payload]], frozenset[type[Any]]]:
    members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    facts: set[type[Fact]] = set()
    recorded: set[type[Payload]] = set()
    upstream: set[type[Any]] = set()
    for member in members:
        origin = typing.get_origin(member)
        if origin is Changed:
            upstream.add(typing.get_args(member)[0])
        elif origin is Recorded:
            recorded.add(typing.get_args(member)[0])
        elif isinstance(member, type) and issubclass(member, Fact):
            facts.add(member)
        else:
            raise TypeError(f"projection {name!r} cannot subscribe to {member!r}")
    return frozenset(facts), frozenset(recorded), frozenset(upstream)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (Union, types.UnionType)


def projections(stage: Stage | None = None) -> tuple[Projection[Any], ...]:
    """Every projection of this package, upstream before downstream, else by name.

    Raises: ValueError where projections of stage 2 read each other in a circle, or a row type nobody makes.
    """
    _load_all()
    return tuple(p for p in _in_order(tuple(_register.values())) if stage is None or p.stage == stage)


@functools.cache
def _load_all() -> None:
    import memctl.projections

    for module in pkgutil.walk_packages(memctl.projections.__path__, "memctl.projections."):
        importlib.import_module(module.name)


@functools.cache
def stored_facts() -> frozenset[type[Fact]]:
    """The facts that stage 2 folds, all `Identified`. Only these are stored: the others live on in the rows of
    stage 1."""
    return frozenset(fact for p in projections(2) for fact in p.facts)


@functools.cache
def folded_as_recorded() -> frozenset[type[Payload]]:
    """The payloads that stage 2 folds without stage 1. Of several versions of a delivery, one of these counts for all
    of its read models."""
    return frozenset(payload for p in projections(2) for payload in p.recorded)


@functools.lru_cache(maxsize=8)
def _in_order(found: tuple[Projection[Any], ...]) -> tuple[Projection[Any], ...]:
    waiting = sorted(found, key=lambda p: (p.stage, p.name))
    makers = {p.row: p.name for p in waiting}
    for p in waiting:
        for row in p.upstream:
            if row not in makers:
                raise ValueError(f"projection {p.name!r} reads {row.__name__}, which no projection makes")
    done: list[Projection[Any]] = []
    names: set[str] = set()
    while waiting:
        ready = [p for p in waiting if all(makers[row] in names for row in p.upstream)]
        if not ready:
            raise ValueError("projections read each other in a circle: " + ", ".join(p.name for p in waiting))
        done.append(ready[0])
        names.add(ready[0].name)
        waiting.remove(ready[0])
    return tuple(done)
