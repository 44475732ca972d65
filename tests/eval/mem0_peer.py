"""mem0 as a peer, without inference: it keeps the passages as they are, and what is measured is how it searches them.

What differs is the search alone, since its vectors are those of the run: the nearest by meaning, four times as many as
are asked for, each scored by its cosine and by BM25 of its words (of their lemmas, where spaCy is installed). The names
it can go by as well are linked only where a model inferred what to keep. A question's date is a condition on what is
searched, as whoever calls mem0 would set it. Nothing leaves this machine: no telemetry, no model, no download.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluation import Asked, Passage
from evaluation.bench import DEPTH

from memctl.api.search.engine import HORIZON_US

if TYPE_CHECKING:
    from memctl.infra.embedders import Embedder, Vectors

_MAJOR = "2"
_NOWHERE = {"provider": "lmstudio", "config": {"lmstudio_base_url": "http://127.0.0.1:9/v1"}}
"""mem0 needs the address of a model server, although no model is asked."""


def lacking(embedder: Embedder | None) -> str | None:
    """Why mem0 cannot be asked, in words; None where it can."""
    version = _version("mem0ai")
    if version is None:
        return "not installed: pip install mem0ai"
    if version.partition(".")[0] != _MAJOR:
        return f"mem0ai {version} may search otherwise; {_MAJOR} is asked"
    if embedder is None:
        return "it searches by vectors, and nothing makes them"
    if _version("spacy") and not _version("en_core_web_sm"):
        return "spaCy is installed without en_core_web_sm, which mem0 would download"
    return None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


class Mem0:
    """mem0's memory of the passages; each scope is a user's. `name` says what it searches by."""

    def __init__(self, passages: Sequence[Passage], vectors: Vectors, embedder: Embedder) -> None:
        self._users = {scope: str(user) for user, scope in enumerate(dict.fromkeys(each.scope for each in passages))}
        self._dated = any(each.at for each in passages)
        self._memory = _memory(embedder.dimensions)
        self._memory.embedding_model = _Vectors(
            {each.text: vector for each, vector in zip(passages, vectors, strict=True)}, embedder
        )
        self._memory.vector_store._bm25_encoder = _Words()
        for each in passages:
            about = {"passage": each.id, "at": each.at}
            self._memory.add(each.text, user_id=self._users[each.scope], metadata=about, infer=False)
        words = "lemmas" if _version("spacy") else "words"
        by_words = self._memory.vector_store.keyword_search(words) is not None
        self.name = f"mem0, meaning and {words}" if by_words else "mem0, meaning alone"

    def rank(self, asked: Asked) -> list[str]:
        """Ids of passages, best first."""
        filters: dict[str, Any] = {"user_id": self._users[asked.scope]}
        if asked.now is not None and self._dated:
            filters["at"] = {"lt": int(asked.now.timestamp() * 1e6) + HORIZON_US}
        found = self._memory.search(asked.query, filters=filters, top_k=DEPTH)["results"]
        return [each["metadata"]["passage"] for each in found]


class _Vectors:
    """What mem0 embeds with: what is added is known already."""

    def __init__(self, known: Mapping[str, Vectors], embedder: Embedder) -> None:
        self._known = known
        self._embedder = embedder

    def embed(self, text: str, memory_action: str) -> list[float]:
        vector = self._known[text] if memory_action == "add" else self._embedder.embed_query(text)
        values: list[float] = vector.tolist()
        return values

    def embed_batch(self, texts: Sequence[str], memory_action: str) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class _Sparse(NamedTuple):
    indices: Vectors
    values: Vectors


class _Words:
    """Qdrant's BM25 in the place of fastembed's, whose stop words mem0 would download: their vectors are the same, but
    for words with an underscore, which fastembed leaves whole."""

    def __init__(self) -> None:
        from qdrant_edge import Bm25

        self._bm25 = Bm25()

    def embed(self, texts: Sequence[str]) -> Iterator[_Sparse]:
        import numpy

        for made in map(self._bm25.embed_document, texts):
            yield _Sparse(numpy.array(made.indices), numpy.array(made.values))


def _memory(dimensions: int) -> Any:
    """An empty memory of mem0's, within this process."""
    with tempfile.TemporaryDirectory(prefix="memctl-eval-") as folder:
        # Both are read as it is imported; it writes there who uses it.
        os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=folder)
        from mem0.memory.main import Memory
    logging.getLogger("mem0").setLevel(logging.ERROR)
    store = {"path": ":memory:", "embedding_model_dims": dimensions}
    return Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": _NOWHERE,
            "llm": _NOWHERE,
            "history_db_path": ":memory:",
        }
    )
