"""Digests of a collection: what a rebuild of the vectors is compared by."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from memctl.infra.vectors import DENSE, SPARSE
from memctl.infra.vectors.store import asked

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

PAGE = 500


def point_digests(client: QdrantClient, collection: str, without_dense: frozenset[str] = frozenset()) -> dict[str, str]:
    """By point id, a digest over its payload and vectors; dense vectors of the points named are left out.

    Raises: VectorStoreUnavailable.
    """
    found: dict[str, str] = {}
    offset: Any = None
    while True:
        with asked("list its points", collection):
            records, offset = client.scroll(
                collection, limit=PAGE, offset=offset, with_payload=True, with_vectors=[DENSE, SPARSE]
            )
        for record in records:
            identifier = str(record.id)
            vectors: Any = record.vector or {}
            sparse = vectors.get(SPARSE)
            dense = None if identifier in without_dense else vectors.get(DENSE)
            content = {
                "payload": record.payload,
                "sparse": sorted(zip(sparse.indices, sparse.values, strict=True)) if sparse is not None else None,
                "dense": dense,
            }
            found[identifier] = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
        if offset is None:
            return found


def digest(points: dict[str, str]) -> str:
    """One digest over all points, in order of id."""
    whole = hashlib.sha256()
    for identifier in sorted(points):
        whole.update(f"{identifier} {points[identifier]}\n".encode())
    return whole.hexdigest()
