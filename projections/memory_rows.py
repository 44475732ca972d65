"""What a memory's row holds, and the small rules by which every kind of memory is put in words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from memctl.domain.events.facts import Span
from memctl.domain.knowledge.memory import Bucket, MemoryKind, Status, day_of, place_of
from memctl.domain.support.bounded import clipped


class Source(msgspec.Struct, frozen=True):
    """Where a memory comes from: a read model and its key, or `facts` and a fact's id."""

    projection: str
    key: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be found again. Times in microseconds.

    `text` is shown (2,000 characters at most), `search_text` is indexed by word (3,000), `gist` is the chunk to embed
    (480). `location` is empty for what holds everywhere; `locations` are all places it was met in. `status` is record
    for what happened, verified or conflicted for claims. `importance` and `confidence` in 0 to 1.
    """

    id: str
    kind: MemoryKind
    bucket: Bucket
    title: str
    gist: str
    text: str
    search_text: str
    location: str
    locations: tuple[str, ...]
    sessions: tuple[str, ...]
    """Streams, newest first."""
    importance: float
    confidence: float
    status: Status
    occurred_at: int
    first_at: int
    last_at: int
    source: Source
    evidence: tuple[Span, ...] = ()
    files: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    outcome: str = ""
    task: str = ""
    before: str = ""
    """Of a turn, the memory of the turn before it in its session."""


def context(location: str, at: int) -> str:
    """The project and the day, as people search for them."""
    return f"{place_of(location)} {day_of(at)}".strip()


def places(locations: Iterable[str]) -> tuple[str, ...]:
    """The locations that are known."""
    return tuple(place for place in locations if place)


def paths(files: Iterable[str]) -> tuple[str, ...]:
    """Paths as a row keeps them."""
    return tuple(clipped(f, 160) for f in files)[:16]


def listed(files: Iterable[str]) -> str:
    """A dozen names on one line."""
    return clipped(" ".join(list(files)[:12]), 500)
