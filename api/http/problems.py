"""Every error of the API as a problem document (RFC 9457)."""

import errno
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from memctl.api.http.as_of import StillBuilding, not_built
from memctl.api.http.live import StillBehind
from memctl.api.http.spaces import OtherSpace
from memctl.api.reading.caller import Forbidden
from memctl.api.reading.reader import TooBusy
from memctl.api.write.command_handler import BadKey
from memctl.api.write.remote_ingest import BadDelivery, OfAnotherVersion
from memctl.domain.events.command import MalformedCommand
from memctl.domain.support.errors import MemctlError
from memctl.infra.database import DatabaseUnavailable
from memctl.infra.readmodels.as_of_snapshots import TooManySnapshots
from memctl.infra.vectors import VectorStoreUnavailable

log = logging.getLogger("memctl.api")

_STATUS_OF_EXIT = {2: 422, 3: 404}
"""By the exit code of the command line, which means the same: badly asked, not there."""

_FORM = (MalformedCommand, BadDelivery, BadKey)
_BADLY_ASKED = "Badly asked"
"""Title of a 422 for what the description of the API rules out; other 422s are about what memory holds."""

_LATER = (DatabaseUnavailable, VectorStoreUnavailable, TooBusy, StillBehind)


def problem(status: int, title: str, detail: str = "", **more: Any) -> Response:
    """A problem document; `more` are members of its own (`hint`, `errors`)."""
    body = {"type": "about:blank", "title": title, "status": status}
    if detail:
        body["detail"] = detail
    body.update({name: value for name, value in more.items() if value})
    headers = {"Retry-After": "2"} if status in (429, 503) else None
    return Response(orjson.dumps(body), status, headers, media_type="application/problem+json")


def install(app: FastAPI) -> None:
    """Make this app answer every error with a problem document."""
    app.add_exception_handler(MemctlError, _known)
    app.add_exception_handler(StillBuilding, not_built)
    app.add_exception_handler(RequestValidationError, _badly_asked)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(ClientDisconnect, _hung_up)
    app.add_exception_handler(OSError, _of_the_system)
    app.add_exception_handler(Exception, _unexpected)


def status_of(why: MemctlError) -> int:
    """The status of HTTP that says what an error means."""
    if isinstance(why, Forbidden):
        return 403
    if isinstance(why, OfAnotherVersion):
        return 409
    if isinstance(why, OtherSpace):
        return 421
    if isinstance(why, TooManySnapshots):
        return 429
    return 503 if isinstance(why, _LATER) else _STATUS_OF_EXIT.get(why.exit_code, 500)


async def _known(_: Request, why: Exception) -> Response:
    assert isinstance(why, MemctlError)
    status = status_of(why)
    if status == 500:
        log.error("a request failed: %s", why, exc_info=why)
    title = _BADLY_ASKED if isinstance(why, _FORM) else HTTPStatus(status).phrase
    return problem(status, title, str(why), hint=why.hint)


async def _badly_asked(_: Request, why: Exception) -> Response:
    assert isinstance(why, RequestValidationError)
    # Not the value given: it may be a secret, and it comes back to whoever reads the log.
    errors = [{"where": ".".join(str(part) for part in e["loc"]), "why": _in_words(e)} for e in why.errors()]
    detail = "; ".join(f"{_name(e['loc'])} {found['why']}" for e, found in zip(why.errors()[:3], errors, strict=False))
    return problem(422, _BADLY_ASKED, detail, errors=errors)


_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "has to be a text",
    "string_too_long": "has more than {max_length} characters",
    "too_long": "has more than {max_length} parts",
    "too_short": "needs at least {min_length} parts",
    "greater_than_equal": "has to be at least {ge}",
    "greater_than": "has to be more than {gt}",
    "less_than_equal": "may be at most {le}",
    "less_than": "has to be less than {lt}",
    "literal_error": "has to be {expected}",
    "enum": "has to be {expected}",
    "bool_parsing": "has to be true or false",
    "bool_type": "has to be true or false",
    "int_parsing": "has to be a whole number",
    "int_type": "has to be a whole number",
    "int_from_float": "has to be a whole number",
    "float_parsing": "has to be a number",
    "list_type": "has to be a list",
    "dict_type": "has to be an object",
    "model_attributes_type": "has to be an object",
    "json_invalid": "is no JSON",
    "uuid_parsing": "has to be an id (UUID)",
    "value_error": "cannot be read: {error}",
}
"""What is said of the errors that pydantic finds, by its name for them; of others its own words."""


def _in_words(error: Mapping[str, Any]) -> str:
    kind, given = error["type"], error.get("ctx") or {}
    if kind == "string_too_short":
        least = given["min_length"]
        return "is empty" if least == 1 else f"needs at least {least} characters"
    return _WORDS[kind].format(**given) if kind in _WORDS else f"cannot be read: {error['msg']}"


def _name(place: Sequence[str | int]) -> str:
    """What is at fault, as who asks would call it: the field, and which of its parts."""
    path, parts = [part for part in place[1:] if isinstance(part, str)], [p for p in place[1:] if isinstance(p, int)]
    if not path:
        return "what was sent"
    return f"`{'.'.join(path)}`" + (f" (part {parts[-1] + 1})" if parts else "")


async def of_http(request: Request, why: Exception) -> Response:
    """What the framework itself refuses: no such path, no such method."""
    assert isinstance(why, HTTPException)
    answer = problem(why.status_code, HTTPStatus(why.status_code).phrase, "" if why.detail is None else str(why.detail))
    answer.headers.update(why.headers or {})
    if why.status_code == 405:
        answer.headers["allow"] = ", ".join(_allowed(request))
    return answer


def _allowed(request: Request) -> list[str]:
    """What may be done with that path: each route knows only its own."""
    routes = request.app.router.routes
    return [
        method
        for method in ("DELETE", "GET", "POST")
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]


async def _hung_up(_: Request, __: Exception) -> Response:
    """Who asked went away before all of it was said: no error of ours, and nobody reads the answer."""
    return problem(400, _BADLY_ASKED, "the request ended before its body did")


async def _of_the_system(request: Request, why: Exception) -> Response:
    """A disk without room is no fault of memctl's, and says so."""
    if isinstance(why, OSError) and why.errno in (errno.ENOSPC, errno.EDQUOT):
        log.error("a request failed: %s", why.strerror)
        return problem(
            507, "Insufficient Storage", "the disk has no room for what was sent", hint="see `memctl status`"
        )
    return await _unexpected(request, why)


async def _unexpected(_: Request, why: Exception) -> Response:
    log.error("a request failed unexpectedly", exc_info=why)
    return problem(500, "Internal error", "memctl failed to answer; its log says why", hint="see `memctl status`")
