"""Forgetting over HTTP: a look at what would go, and doing it, once for each `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from memctl.api.erasure import scope as forget
from memctl.api.erasure.scope import Preview
from memctl.api.http.access import caller_of
from memctl.api.http.answers import json_of
from memctl.api.http.commands import Key
from memctl.api.http.parameters import Iso
from memctl.api.reading.caller import Caller, drawn
from memctl.api.reading.questions import LONGEST_PLACE
from memctl.api.reading.reader import Reader, opened
from memctl.infra.settings import Settings
from memctl.workers.erasure.forgetting import store_of

T = TypeVar("T")

AT_ONCE = 4
"""Forgettings that are at work; others wait, and keep no thread from those who ask."""


def _exactly_one(schema: dict[str, Any]) -> None:
    """In JSON Schema, what `ToForget` checks."""
    for name in _SCOPES:
        schema["properties"][name].pop("default", None)
    schema["properties"]["before"] = {"anyOf": schema["properties"]["before"]["anyOf"][:-1]}
    schema["oneOf"] = [{"required": [name]} for name in _SCOPES]


_SCOPES = ("id", "session", "project", "match", "before")


class ToForget(BaseModel):
    """What is to be forgotten: exactly one of `id`, `session`, `project`, `before` and `match`."""

    model_config = ConfigDict(json_schema_extra=_exactly_one)

    id: str = Field(default="", min_length=1, max_length=512)
    session: str = Field(default="", min_length=1, max_length=512)
    project: str = Field(default="", min_length=1, max_length=LONGEST_PLACE)
    before: Iso = None
    match: str = Field(default="", min_length=1, max_length=8_000)

    @model_validator(mode="after")
    def _one_of_them(self) -> ToForget:
        if sum(bool(getattr(self, name)) for name in _SCOPES) != 1:
            raise ValueError(f"name exactly one of {', '.join(_SCOPES)}")
        return self


class Forget(ToForget):
    """The same, and why."""

    reason: str = Field(default="", max_length=1_000)


def routes(settings: Settings) -> APIRouter:
    """Forgetting takes as long as it takes to fold again what was learnt from what goes."""
    router, at_once = APIRouter(tags=["forgetting"]), anyio.CapacityLimiter(AT_ONCE)

    async def alone(do: Callable[..., T], *given: Any) -> T:
        return await anyio.to_thread.run_sync(do, *given, limiter=at_once)

    @router.post("/forget/preview")
    async def preview(request: Request, body: ToForget) -> Response:
        """What would go, and what would become of all that was learnt from it. Changes nothing."""
        return json_of(await alone(preview_of, settings, caller_of(request), body))

    @router.post("/forget")
    async def forgotten(request: Request, body: Forget, key: Key) -> Response:
        """Forget it for good; answers once nothing of it is found, with the receipt."""
        return json_of(await alone(forget_once, settings, caller_of(request), body, key))

    return router


def preview_of(settings: Settings, caller: Caller, asked: ToForget) -> Preview:
    """What would go, and what would follow. Changes nothing. Raises: NothingToForget, TooShort."""
    with opened(settings, caller, "memctl forget") as reader:
        return forget.preview(reader.connection, _plan(settings, reader, asked))


def forget_once(settings: Settings, caller: Caller, asked: Forget, key: str) -> dict[str, Any]:
    """Forget it, unless that was done under this key before: the receipt either way. Raises: KeyReused, and as
    `forget.forget_once`."""
    with opened(settings, caller, "memctl forget") as reader:
        meant = asked.model_dump_json(exclude={"reason"}).encode()
        with store_of(settings) as qdrant:
            return forget.forget_once(
                settings,
                reader.connection,
                forget.look_of(settings, reader),
                drawn(key, caller),
                meant,
                lambda: _plan(settings, reader, asked),
                qdrant,
                asked.reason,
            )


def _plan(settings: Settings, reader: Reader, asked: ToForget) -> forget.Plan:
    return forget.plan(
        settings, reader, id=asked.id, session=asked.session, project=asked.project, before=asked.before,
        match=asked.match,
    )  # fmt: skip
