"""Embedders that are extras: they run a model on this machine, and download it when they are first asked."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from memctl.infra.embedders import EmbedderFailed, ExtraMissing, LockedModel, Recipe, checked, cleaned

if TYPE_CHECKING:
    from memctl.infra.embedders import Vectors

_ONNX = ("model.onnx", "onnx/model.onnx")


class _Local(ABC):
    """A model of a library, by its name there or in a folder."""

    batch: ClassVar[int] = 8
    """Few, so that a query waits for no more than these."""

    def __init__(self, recipe: Recipe, extra: str, module: str, load: Callable[[], Any]) -> None:
        self.name = recipe.name
        if importlib.util.find_spec(module) is None:
            raise ExtraMissing(self.name, extra)
        self._recipe = recipe
        self._model = LockedModel(load)
        self._dimensions = recipe.dimensions

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self.embed_query("how long?")
        assert self._dimensions is not None
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return self._embedded([self._recipe.passage_prefix + cleaned(t, self._recipe.characters) for t in texts])

    def embed_query(self, text: str) -> Vectors:
        first: Vectors = self._embedded([self._recipe.query_prefix + cleaned(text, self._recipe.characters)])[0]
        return first

    def _embedded(self, texts: list[str]) -> Vectors:
        import numpy

        if not texts:
            return numpy.empty((0, self.dimensions), numpy.float32)
        try:
            found = numpy.asarray(self._model.ask(lambda model: self._ask(model, texts)))
        except Exception as problem:  # whatever the library raises: it may download, read files, run a model
            raise EmbedderFailed(name=self.name, why=f"{type(problem).__name__}: {problem}") from problem
        # A model that was taught so has its meaning in the first of its dimensions.
        vectors = checked(self.name, found[:, : self._dimensions], len(texts), self._dimensions)
        self._dimensions = vectors.shape[1]
        return vectors

    @abstractmethod
    def _ask(self, model: Any, texts: list[str]) -> Any:
        """A vector of each text, as the library gives them."""


class FastEmbed(_Local):
    """Models of `fastembed`'s list by their name, or of a folder with `model.onnx` and the tokenizer's files (of whose
    tokens' vectors the mean is taken)."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe, "fastembed", "fastembed", self._loaded)

    def _loaded(self) -> Any:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        model, folder = self._recipe.model, Path(self._recipe.model).expanduser()
        if not folder.is_absolute():
            return TextEmbedding(model)
        if model not in (known["model"] for known in TextEmbedding.list_supported_models()):
            file = next((each for each in _ONNX if (folder / each).is_file()), _ONNX[0])
            source = ModelSource(url=folder.as_uri())
            TextEmbedding.add_custom_model(model, PoolingType.MEAN, True, source, dim=1, model_file=file)
        return TextEmbedding(model, specific_model_path=str(folder))

    def _ask(self, model: Any, texts: list[str]) -> Any:
        return list(model.embed(texts, batch_size=self.batch))


class SentenceTransformers(_Local):
    """Models of `sentence-transformers` by their name on its hub, or of a folder. No model's own code is run."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe, "sentence-transformers", "sentence_transformers", self._loaded)

    def _loaded(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(self._recipe.model, trust_remote_code=False)

    def _ask(self, model: Any, texts: list[str]) -> Any:
        return model.encode(texts, batch_size=self.batch, show_progress_bar=False, convert_to_numpy=True)
