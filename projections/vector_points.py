"""The desired state of each vector point; the outbox makes the vector store agree."""

import hashlib
from collections.abc import Iterator
from uuid import UUID

import msgspec

from memctl.domain.events.event import derived_text
from memctl.domain.knowledge.memory import GIST
from memctl.domain.support.bounded import clipped
from memctl.domain.support.structs import carried_over
from memctl.projections.kernel import Changed, projection
from memctl.projections.memory_rows import Memory

MOST_POINTS = 40
"""Points of one memory: its gist, and the lines of an episode that say something by themselves."""

SHORTEST_LINE = 40
"""Characters of such a line, its label left out."""

_OF_THE_WORK = ("Outcome", "Files")
"""Labels of lines that say nothing by themselves."""

_CHUNKS = 64
"""Bits of a point's id below those in which the points of one memory differ."""


class VectorPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One point: what to embed, and the payload to filter by. Independent of the embedding model and of the space.

    `chunk` 0 stands for the memory: its `dense_text` is the gist, the most informative 480 characters, its
    `sparse_text` all that is indexed by word. Each other is a line of the memory under its title, to be found by
    meaning alone: its `sparse_text` is empty. `text_hash` is the first 16 hex digits of sha256 over both, `dense_hash`
    over the dense text alone. `occurred_at` in microseconds, `before` the memory that came before it in its session,
    where that is known.
    """

    id: str
    memory_id: str
    chunk: int
    dense_text: str
    sparse_text: str
    text_hash: str
    dense_hash: str
    location: str
    locations: tuple[str, ...]
    bucket: str
    kind: str
    occurred_at: int
    before: str = ""


def point_id(memory_id: str, chunk: int = 0) -> str:
    """Id of a point of a memory: a UUIDv5 that says which, as vector stores want."""
    first = derived_text(f"point:{memory_id}:0")
    return str(UUID(int=UUID(first).int ^ chunk << _CHUNKS)) if chunk else first


def _keys(change: Changed[Memory]) -> tuple[str, ...]:
    lines = 0 if change.row is None else sum(1 for _ in lines_of(change.row))
    return tuple(point_id(change.key, chunk) for chunk in range(1 + lines))


@projection(
    row=VectorPoint,
    key=_keys,
    one_to_one=True,
    indexes=(("memory_id",), ("occurred_at",), ("dense_hash",)),
)
def vector_points(row: VectorPoint | None, change: Changed[Memory], key: str) -> VectorPoint | None:
    """What the vector store is to hold: a point for each memory, and one for each line of an episode that says
    something by itself. They are gone when the memory is."""
    if change.row is None:
        return None
    if not (chunk := _chunk(change.key, key)):
        return of_memory(change.row)
    line = _line(change.row, chunk)
    return _point(change.row, chunk, f"{change.row.title}: {line}", "") if line else None


def of_memory(memory: Memory) -> VectorPoint:
    """The point that stands for a memory."""
    return _point(memory, 0, memory.gist, memory.search_text)


def points_of(memory: Memory) -> list[VectorPoint]:
    """All points of a memory, its own first."""
    said = enumerate(lines_of(memory), 1)
    return [of_memory(memory), *(_point(memory, chunk, f"{memory.title}: {line}", "") for chunk, line in said)]


def lines_of(memory: Memory) -> Iterator[str]:
    """The lines of an episode that say something by themselves, without their labels, in order."""
    found = 1
    for line in memory.text.splitlines()[1:] if memory.kind == "episode" else ():
        label, _, said = line.partition(": ")
        if len(said) >= SHORTEST_LINE and label not in _OF_THE_WORK:
            yield said
            found += 1
            if found == MOST_POINTS:
                return


def line_at(memory: Memory, point: str) -> str:
    """The line of a memory that one of its points, by its id in any space, stands for; empty for the memory's own."""
    return _line(memory, _chunk(memory.id, point)) if point else ""


def _chunk(memory_id: str, point: str) -> int:
    return (UUID(point).int ^ UUID(point_id(memory_id)).int) >> _CHUNKS


def _line(memory: Memory, chunk: int) -> str:
    return next((line for number, line in enumerate(lines_of(memory), 1) if number == chunk), "")


def _point(memory: Memory, chunk: int, dense: str, sparse: str) -> VectorPoint:
    dense = clipped(dense, GIST)
    return carried_over(
        memory,
        VectorPoint,
        id=point_id(memory.id, chunk),
        memory_id=memory.id,
        chunk=chunk,
        dense_text=dense,
        sparse_text=sparse,
        text_hash=_hash(f"{dense}\0{sparse}"),
        dense_hash=_hash(dense),
        before="" if chunk else memory.before,
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
