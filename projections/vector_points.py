"""The desired state of each vector point; the outbox makes the vector store agree."""

import hashlib

import msgspec

from memctl.domain.events.event import derived_text
from memctl.domain.support.structs import carried_over
from memctl.projections.kernel import Changed, projection
from memctl.projections.memory_rows import Memory


class VectorPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One point: what to embed, and the payload to filter by. Independent of the embedding model and of the space.

    `dense_text` is one short chunk, the most informative 480 characters; `sparse_text` all that is indexed by word.
    `text_hash` is the first 16 hex digits of sha256 over both, `dense_hash` over the dense text alone. `occurred_at`
    in microseconds, `before` the memory that came before it in its session, where that is known.
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


def point_id(memory_id: str) -> str:
    """Id of the point of a memory: a UUIDv5, as vector stores want."""
    return derived_text(f"point:{memory_id}:0")


@projection(
    row=VectorPoint,
    key=lambda change: point_id(change.key),
    one_to_one=True,
    indexes=(("memory_id",), ("occurred_at",), ("dense_hash",)),
)
def vector_points(row: VectorPoint | None, change: Changed[Memory]) -> VectorPoint | None:
    """What the vector store is to hold: one point a memory, gone when the memory is."""
    return None if change.row is None else of_memory(change.row)


def of_memory(memory: Memory) -> VectorPoint:
    """The point that stands for a memory."""
    return carried_over(
        memory,
        VectorPoint,
        id=point_id(memory.id),
        memory_id=memory.id,
        chunk=0,
        dense_text=memory.gist,
        sparse_text=memory.search_text,
        text_hash=_hash(f"{memory.gist}\0{memory.search_text}"),
        dense_hash=_hash(memory.gist),
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
