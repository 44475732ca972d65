"""What a memory's row holds, and the small rules by which every kind of memory is put in words."""

from collections.abc import Iterable, Sequence

import msgspec

from memctl.domain.events.facts import Span
from memctl.domain.knowledge import memory as rules
from memctl.domain.knowledge.memory import (
    Bucket,
    FormerKind,
    MemoryKind,
    Status,
    day_of,
    memory_id,
    place_of,
    search_text,
)
from memctl.domain.support.bounded import clipped, one_line
from memctl.domain.support.provenance import Provenance


class Source(msgspec.Struct, frozen=True):
    """Where a memory comes from: a read model and its key, or `facts` and a fact's id."""

    projection: str
    key: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be found again. Times in microseconds.

    `text` is shown (2,000 characters at most), `search_text` is indexed by word (7,000), `gist` is the chunk to embed
    (480). `location` is empty for what holds everywhere; `locations` are all places it was met in. `status` is record
    for what happened, verified or conflicted for claims. `importance` and `confidence` in 0 to 1.
    """

    id: str
    kind: MemoryKind | FormerKind
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
    said_by: Provenance = Provenance.TOOL
    """Whose words it is in; of several the least trusted."""
    member: str = ""
    """Of the team, who said it."""
    confirmed: bool = False
    """A person confirmed it."""
    evidence: tuple[Span, ...] = ()
    files: tuple[str, ...] = ()
    error_types: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    outcome: str = ""
    task: str = ""
    before: str = ""
    """Of a turn, the memory of the turn before it in its session."""
    elsewhere: tuple[str, ...] = ()
    """Other places that the session worked at meanwhile; it is not found from there."""


def memory_of(
    kind: MemoryKind,
    key: str,
    source: str,
    *,
    bucket: Bucket,
    title: str,
    gist: str = "",
    lines: Iterable[str],
    searched: Iterable[str],
    where: Sequence[str],
    first_at: int,
    at: int,
    importance: float,
    said_by: Provenance = Provenance.TOOL,
    member: str = "",
    confidence: float = 1.0,
    sessions: tuple[str, ...] = (),
    evidence: tuple[Span, ...] = (),
    files: Iterable[str] = (),
    error_types: tuple[str, ...] = (),
    signatures: tuple[str, ...] = (),
    outcome: str = "",
) -> Memory:
    """The memory that the row under `key` of the read model `source` makes, with each text cut to what a memory keeps.

    `gist` is the title where it is empty. Empty `lines` are left out. `searched` is what is indexed beside the project
    and the day. `where` are locations, the newest first; `at` is when it was seen last, in microseconds.
    """
    location = where[0] if where else ""
    return Memory(
        id=memory_id(kind, key),
        kind=kind,
        bucket=bucket,
        title=one_line(title, rules.TITLE),
        gist=one_line(gist or title, rules.GIST),
        text=clipped("\n".join(filter(None, lines)), rules.TEXT),
        search_text=search_text(*searched, context(location, at)),
        location=location,
        locations=places(where),
        sessions=sessions,
        importance=importance,
        confidence=confidence,
        status="record",
        occurred_at=at,
        first_at=first_at,
        last_at=at,
        source=Source(source, key),
        said_by=said_by,
        member=member,
        evidence=evidence,
        files=paths(files),
        error_types=error_types,
        signatures=signatures,
        outcome=outcome,
    )


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
