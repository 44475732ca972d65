"""Embedders for tests: one that needs no model, and a server that speaks OpenAI's API of embeddings, and misbehaves if
asked (as `llm_server` does)."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from llm_server import Behave, Handler
from qdrant_client import QdrantClient

from memctl.infra.database import Connection
from memctl.infra.embedders import Embedder, Embedders, Recipe
from memctl.workers.vectors.outbox_publisher import OutboxPublisher

SIGNS = Recipe("tests", "signs")
"""A recipe of no real model's."""

OTHERS = Recipe("tests", "other-signs")
"""Another such."""


class Signs:
    """An embedder whose vectors tell the first letter of the text; `meanwhile` happens while it embeds."""

    batch = 8

    def __init__(
        self, meanwhile: Callable[[], None] = lambda: None, recipe: Recipe = SIGNS, dimensions: int = 384
    ) -> None:
        self.name = recipe.name
        self.dimensions = dimensions
        self._meanwhile = meanwhile

    def embed_passages(self, texts: Sequence[str]) -> numpy.ndarray:
        self._meanwhile()
        vectors = numpy.zeros((len(texts), self.dimensions), dtype="f4")
        for row, text in zip(vectors, texts, strict=True):
            row[ord(text[0]) % self.dimensions] = 1.0
        return vectors

    def embed_query(self, text: str) -> numpy.ndarray:
        return self.embed_passages([text])[0]


class Loading(Embedders):
    """Loads these embedders, and no others."""

    def __init__(self, chosen: Recipe, *known: Embedder) -> None:
        super().__init__(chosen)
        self._known = {each.name: each for each in known}

    def _made(self, recipe: Recipe) -> Embedder:
        return self._known[recipe.name] if recipe.name in self._known else super()._made(recipe)


DIMENSIONS = 48


def words_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """What the server makes of a text: its words, each in a place of its own as far as there is room."""
    vector = [0.001] * dimensions
    for word in re.findall(r"\w+", text.lower()):
        vector[hashlib.sha256(word.encode()).digest()[0] % dimensions] += 1.0
    return vector


def answer_of(body: dict[str, Any]) -> dict[str, Any]:
    """An answer as it should be. Its vectors are not of length 1."""
    dimensions = body.get("dimensions", DIMENSIONS)
    data = [
        {"object": "embedding", "index": number, "embedding": words_of(text, dimensions)}
        for number, text in enumerate(body["input"])
    ]
    tokens = sum(map(len, body["input"]))
    return {"object": "list", "model": body["model"], "data": data, "usage": {"prompt_tokens": tokens}}


def embeds(change: Callable[[dict[str, Any]], None] = lambda answer: None) -> Behave:
    """Answers as it should, but for what is changed."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        answer = answer_of(body)
        change(answer)
        handler.reply(200, json.dumps(answer).encode())

    return behave


def refuses_what_says(word: str, status: int = 400) -> Behave:
    """Refuses a request in which a text has that word, and bills nothing."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        if any(word in text for text in body["input"]):
            handler.reply(status, {"error": {"message": "no", "type": "invalid_request_error"}})
        else:
            handler.reply(200, answer_of(body))

    return behave


def cut(handler: Handler, body: dict[str, Any]) -> None:
    """Sends half of its answer, and hangs up."""
    data = json.dumps(answer_of(body)).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data[: len(data) // 2])
    handler.close_connection = True


def held(until: threading.Event) -> Behave:
    """Answers once it may."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        until.wait(60)
        handler.reply(200, answer_of(body))

    return behave


def _entry(answer: dict[str, Any], **change: Any) -> None:
    answer["data"][-1].update(change)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "one too few": (lambda answer: answer["data"].pop(), "1 of them for 2 texts"),
    "one too many": (lambda answer: answer["data"].append(answer["data"][0]), "3 of them for 2 texts"),
    "none at all": (lambda answer: answer["data"].clear(), "0 of them for 2 texts"),
    "another order": (lambda answer: answer["data"].reverse(), "not in the order of the texts"),
    "one twice": (lambda answer: _entry(answer, index=0), "not in the order of the texts"),
    "another length": (lambda answer: _entry(answer, embedding=[1.0] * 3), "not of one length"),
    "not a number": (lambda answer: _entry(answer, embedding=[math.nan] * DIMENSIONS), "no finite number"),
    "infinite": (lambda answer: _entry(answer, embedding=[math.inf] * DIMENSIONS), "no finite number"),
    "zero": (lambda answer: _entry(answer, embedding=[0.0] * DIMENSIONS), "of no length"),
    "a word": (lambda answer: _entry(answer, embedding=["x"] * DIMENSIONS), "no numbers"),
    "base64": (lambda answer: [entry.update(embedding="AACAPw==") for entry in answer["data"]], "no numbers"),
    "nothing": (lambda answer: [entry.update(embedding=[]) for entry in answer["data"]], "no lists of numbers"),
    "another form": (lambda answer: answer.pop("data"), "not in the form of that API"),
}
"""What may be wrong with an answer to two texts, and what is said of it."""


def all_written(connection: Connection, client: QdrantClient, generation: int) -> OutboxPublisher:
    """Write all points of a generation that wait; what is to be embedded waits still."""
    points = OutboxPublisher(connection, client, generation)
    while points.sync():
        pass
    return points
