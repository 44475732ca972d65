"""Vectors: the local Qdrant-compatible server, and the adapter that speaks to it or to a real Qdrant."""

from typing import TYPE_CHECKING, Any

from memctl.domain.support.errors import MemctlError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient as QdrantClient
else:
    QdrantClient = Any  # its package takes more than a second to import

# Names of the two vectors of every point, and the only ones memctl asks for.
DENSE = "dense"
SPARSE = "sparse"


class VectorStoreUnavailable(MemctlError):
    """The vector store did not {action}: {reason}

    `action` is a verb phrase ("search"), `reason` what the client or the server said. Whatever was asked for may or
    may not have happened, so the caller asks again; every write of the adapter is safe to repeat.
    """

    hint = "Look at `memctl status`; searches by words and vectors come back when the store does."
    action: str
    reason: str


class CollectionMissing(VectorStoreUnavailable):
    """The vector collection {collection} does not exist.

    It was never built, was dropped, or its files were damaged and set aside: it has to be built again.
    """

    hint = "It is rebuilt from `vector_points` and the embedding cache."
    collection: str
