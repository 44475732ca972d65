"""Embedders behind an API that is compatible with OpenAI's (Ollama and vLLM among them).

What is sent obeys what language models are asked by: it is redacted by today's rules, without private blocks, and every
request is a line of the ledger, so that embeddings and language models keep within one budget.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg

from memctl.infra.database import Connection, connect
from memctl.infra.embedders import PLAIN, EmbedderFailed, Recipe, TextsRefused, UnusableVectors, checked, cleaned
from memctl.infra.llm import budget
from memctl.infra.llm.budget import Purpose
from memctl.infra.log.spaces import space_id
from memctl.infra.redaction.text import Redactor, drop_private

if TYPE_CHECKING:
    import httpx

    from memctl.infra.embedders import Vectors
    from memctl.infra.settings_model import Settings

DEFAULT_URL = "https://api.openai.com/v1"

TRIES = 3
"""Requests for one batch of passages, where the server is busy or fails. A query is asked once."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""Before a request is made again: the first, doubled up to the second."""

QUERY_PATIENCE_S = 3.0
"""For a query's vector: whoever waits for the answer is better served by words."""

LONGEST_ANSWER = 64 << 20
"""Bytes."""

_CONTENT = (400, 413, 422)
"""Statuses by which a server may mean these very texts."""

_MAYBE_COUNTED = (408, *range(500, 600))
"""Statuses after which the server may have counted the request. A 503 says that the server did not begin it."""


def address_of(recipe: Recipe) -> str:
    return (recipe.base_url or DEFAULT_URL).rstrip("/")


class _Again(EmbedderFailed):
    """The embedder {name} gave no vectors: {why}"""

    # It may by the next try.


class OpenAi:
    """Asks `POST {base_url}/embeddings`. A text without a single word is sent as a full stop: servers refuse it."""

    def __init__(self, recipe: Recipe, settings: Settings) -> None:
        self.name = recipe.name
        self.batch = settings.embedding.batch
        self._recipe = recipe
        self._url = f"{address_of(recipe)}/embeddings"
        self._key = settings.embedding.api_key
        self._timeout = settings.embedding.timeout_s
        self._settings = settings
        self._ledger = _Ledger(settings, f"openai:{recipe.model}")
        self._dimensions = recipe.dimensions

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._asked([PLAIN], TRIES, self._timeout)
        assert self._dimensions is not None
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        import numpy

        if not texts:
            return numpy.empty((0, self.dimensions), numpy.float32)
        parts = [texts[at : at + self.batch] for at in range(0, len(texts), self.batch)]
        prefix = self._recipe.passage_prefix
        return numpy.concatenate(
            [self._asked([prefix + self._clean(t) for t in p], TRIES, self._timeout) for p in parts]
        )

    def embed_query(self, text: str) -> Vectors:
        patience = min(self._timeout, QUERY_PATIENCE_S)
        first: Vectors = self._asked([self._recipe.query_prefix + self._clean(text)], 1, patience)[0]
        return first

    def _clean(self, text: str) -> str:
        # Cut once it is redacted, for a cut may hide a secret from its rule.
        public, _ = drop_private(text)
        clean, _ = self._redactor.redact(public)
        return cleaned(clean, self._recipe.characters).strip() or "."

    @cached_property
    def _redactor(self) -> Redactor:
        return self._settings.redactor()

    @cached_property
    def _client(self) -> httpx.Client:
        import httpx

        key = self._key.get_secret_value() if self._key is not None else None
        return httpx.Client(headers={"Authorization": f"Bearer {key}"} if key else {})

    def _asked(self, texts: list[str], tries: int, timeout_s: float) -> Vectors:
        """Vectors of one batch. Raises: EmbedderFailed, OverBudget, psycopg's errors where the ledger is not there."""
        body: dict[str, Any] = {"model": self._recipe.model, "input": texts, "encoding_format": "float"}
        if self._recipe.dimensions is not None:
            body["dimensions"] = self._recipe.dimensions
        sent = json.dumps(body).encode()
        pause = FIRST_PAUSE_S
        for left in reversed(range(tries)):
            try:
                status, said, after = self._request(sent, timeout_s)
            except _Again:
                if not left:
                    raise
                status, said, after = 503, b"", None
            if status == 200:
                return self._read(said, len(texts))
            if status in _CONTENT:
                raise self._refused(status, texts, timeout_s)
            if status == 500 and tries > 1 and not left and texts != [PLAIN]:
                # Some fail at what they do not take: at a text too long, or numbers that JSON has not.
                raise self._refused(status, texts, timeout_s)
            if (status not in (408, 409, 429) and status < 500) or not left:
                raise self._failed(f"its server answered {status}")
            if after is not None and after > LONGEST_PAUSE_S:
                raise self._failed(f"its server is busy, and says to come back in {after:.0f} s")
            time.sleep(pause if after is None else after)
            pause = min(pause * 4, LONGEST_PAUSE_S)
        raise AssertionError("unreachable")

    def _request(self, sent: bytes, timeout_s: float) -> tuple[int, bytes, float | None]:
        """Status, answer, and the seconds after which to come back, if it says so."""
        import httpx

        with self._ledger.line(len(sent)) as line:
            began = time.monotonic()
            try:
                with self._client.stream(
                    "POST", self._url, content=sent, timeout=timeout_s, headers={"Content-Type": "application/json"}
                ) as answer:
                    said = bytearray()
                    for piece in answer.iter_bytes():
                        said += piece
                        if len(said) > LONGEST_ANSWER:
                            raise self._failed(f"its answer is longer than {LONGEST_ANSWER:,} bytes")
                        if time.monotonic() - began > timeout_s:
                            raise self._failed(f"no answer within {timeout_s:g} s")
            except (httpx.ConnectError, httpx.ConnectTimeout) as problem:
                line.free("connection")
                raise _Again(name=self.name, why="its server cannot be reached") from problem
            except httpx.TimeoutException as problem:
                raise self._failed(f"no answer within {timeout_s:g} s") from problem
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
                raise _Again(name=self.name, why=f"its server hung up ({type(problem).__name__})") from problem
            if answer.status_code == 200:
                line.counted(_tokens(bytes(said)))
            elif answer.status_code not in _MAYBE_COUNTED or answer.status_code == 503:
                line.free(f"HTTP {answer.status_code}")
            else:
                line.why = f"HTTP {answer.status_code}"
            return answer.status_code, bytes(said), _seconds(answer.headers.get("Retry-After"))

    def _read(self, said: bytes, count: int) -> Vectors:
        try:
            data = json.loads(said)["data"]
            order = [entry["index"] for entry in data]
            found = [entry["embedding"] for entry in data]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UnusableVectors(name=self.name, why="the answer is not in the form of that API") from None
        if len(order) == count and order != list(range(count)):
            raise UnusableVectors(name=self.name, why="they are not in the order of the texts")
        vectors = checked(self.name, found, count, self._dimensions)
        self._dimensions = vectors.shape[1]
        return vectors

    def _refused(self, status: int, texts: list[str], timeout_s: float) -> EmbedderFailed:
        """Whether it is the texts that a server refuses, or anything that it is asked."""
        if texts != [PLAIN]:
            try:
                self._asked([PLAIN], 1, timeout_s)
            except TextsRefused:
                pass
            else:
                return TextsRefused(name=self.name, why=f"its server answered {status}")
            return self._failed(f"its server answers {status} to any text")
        return TextsRefused(name=self.name, why=f"its server answered {status}")

    def _failed(self, why: str) -> EmbedderFailed:
        return EmbedderFailed(name=self.name, why=why)


class _Line:
    """One request in the ledger. What nobody says otherwise of counts as all that was set aside."""

    def __init__(self) -> None:
        self.tokens: int | None = None
        self.why = "no answer"
        self.nothing = False

    def counted(self, tokens: int) -> None:
        self.tokens, self.why = tokens or None, "no usage"

    def free(self, why: str) -> None:
        self.nothing, self.why = True, why


class _Ledger:
    """Sets aside what requests may cost, and settles it, by a connection of its own. Thread-safe."""

    def __init__(self, settings: Settings, model: str) -> None:
        self._settings = settings
        self._model = model
        self._lock = threading.Lock()
        self._open: Connection | None = None
        self._space = 0

    @contextlib.contextmanager
    def line(self, size: int) -> Iterator[_Line]:
        """A request of so many bytes: no token of any model is less than one. Raises: OverBudget, and nothing is."""
        with self._connection() as connection:
            purpose = Purpose(
                space_id=self._space, processor="embedder", subject="vectors", model=self._model, prompt="-"
            )
            call = budget.reserve(connection, self._settings.llm, purpose, size, self._cost(size))
        line = _Line()
        try:
            yield line
        finally:
            with self._connection() as connection:
                if line.nothing:
                    budget.refused(connection, call, line.why)
                elif line.tokens is not None:
                    budget.settle(connection, call, line.tokens, 0, self._cost(line.tokens))
                else:
                    budget.unknown(connection, call, line.why)

    def _cost(self, tokens: int) -> Decimal:
        return tokens * Decimal(str(self._settings.embedding.usd_per_million)) / 1_000_000

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._lock:
            if self._open is None:
                self._open = connect(self._settings.require("database_url"), name="memctl embedder's ledger")
                self._space = space_id(self._open, self._settings.space)
            try:
                yield self._open
            except psycopg.OperationalError:
                self._open.close()
                self._open = None
                raise


def _tokens(said: bytes) -> int:
    """What the server counted; 0 where it does not say."""
    try:
        return max(int(json.loads(said)["usage"]["prompt_tokens"]), 0)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return 0


def _seconds(after: str | None) -> float | None:
    """What `Retry-After` says, in seconds from now."""
    if after is None:
        return None
    try:
        return max(float(int(after)), 0.0)
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(after)
    except ValueError:
        return None
    return max((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
