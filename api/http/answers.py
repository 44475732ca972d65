"""Answers in JSON: what a question returns to its caller, with an ETag where only an event can change it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import orjson
from fastapi import Request, Response

from memctl.api.http.access import caller_of
from memctl.api.queries.stats import version_of
from memctl.api.reading.reader import AS_OF, Reader, Readers

Ask = Callable[[Reader], Any]


class Answers:
    """Asks a question for the caller of a request; about the past of other `readers`, for no standby has what is built
    for that."""

    def __init__(self, readers: Readers, past: Readers | None = None) -> None:
        self._now, self._past = readers, past or readers

    @property
    def _readers(self) -> Readers:
        return self._now if AS_OF.get() is None else self._past

    def found(self, request: Request, ask: Ask) -> Response:
        """The answer with its ETag, or 304 where the caller has it already."""

        def look(reader: Reader) -> tuple[str, Any]:
            tag = f'"{version_of(reader)}"'
            return tag, None if _has(request, tag) else ask(reader)

        tag, answer = self._readers.read(look, caller_of(request))
        if answer is None:
            return Response(status_code=304, headers={"ETag": tag})
        return json_of(answer, etag=tag)

    def fresh(self, request: Request, ask: Ask) -> Response:
        """The answer to what also changes without an event: by the clock, or by what servers do."""
        return json_of(self._readers.read(ask, caller_of(request)))


def json_of(answer: Any, *, etag: str | None = None) -> Response:
    """Any of our structs, or what JSON knows, as a response."""
    body = orjson.dumps(answer, default=msgspec.to_builtins)
    return Response(body, media_type="application/json", headers={"ETag": etag} if etag else None)


def now() -> datetime:
    """The moment that the request at hand asks about."""
    then = AS_OF.get()
    return datetime.now().astimezone() if then is None else then().at


def _has(request: Request, tag: str) -> bool:
    header = request.headers.get("if-none-match", "")
    return header.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in header.split(","))
