"""Forgetting over HTTP: a look at what would go, and doing it, once for each `Idempotency-Key`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import orjson
from fastapi import APIRouter, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, model_validator

from memctl.api import forget
from memctl.api.forget import Preview
from memctl.api.http_commands import Key
from memctl.api.reader import Reader, reader_of
from memctl.infra.database import connect
from memctl.infra.settings import Settings


class Wanted(BaseModel):
    """What is to be forgotten: exactly one of `id`, `session`, `project`, `before` and `match`."""

    id: str = Field(default="", max_length=512)
    session: str = Field(default="", max_length=512)
    project: str = Field(default="", max_length=4096)
    before: datetime | None = None
    match: str = Field(default="", max_length=8_000)
    here: str | None = Field(default=None, max_length=4096)

    @model_validator(mode="after")
    def _one_of_them(self) -> Wanted:
        if sum(map(bool, (self.id, self.session, self.project, self.before, self.match))) != 1:
            raise ValueError("name exactly one of id, session, project, before and match")
        return self


class Forget(Wanted):
    """The same, and why."""

    reason: str = Field(default="", max_length=1_000)


def routes(settings: Settings) -> APIRouter:
    """Two routes; both take as long as folding anew what was learnt from it."""
    router = APIRouter(tags=["forgetting"])

    @router.post("/forget/preview")
    async def preview(body: Wanted) -> Response:
        """What would go, and what would become of all that was learnt from it. Changes nothing."""
        return _json(msgspec.to_builtins(await run_in_threadpool(preview_of, settings, body)))

    @router.post("/forget")
    async def forgotten(body: Forget, key: Key) -> Response:
        """Forget it for good; answers once nothing of it is found, with the receipt."""
        return _json(await run_in_threadpool(forget_once, settings, body, key))

    return router


def preview_of(settings: Settings, asked: Wanted) -> Preview:
    """What would go, and what would follow. Changes nothing. Raises: NothingToForget, TooShort."""
    with connect(settings.require("database_url"), name="memctl forget") as connection:
        reader = reader_of(connection, settings.space)
        return forget.preview(connection, reader.space_id, _plan(reader, asked))


def forget_once(settings: Settings, asked: Forget, key: str) -> dict[str, Any]:
    """Forget it, unless that was done under this key before: the receipt either way."""
    from memctl.infra.vectors import store

    with connect(settings.require("database_url"), name="memctl forget") as connection:
        reader = reader_of(connection, settings.space)
        if (before := forget.told_before(connection, reader.space_id, key)) is not None:
            return dict(before)
        plan = _plan(reader, asked)
        qdrant = store.connect(settings.qdrant_url, settings.qdrant_api_key) if settings.qdrant_url else None
        try:
            done = forget.forget(settings, connection, reader.space_id, plan, qdrant, asked.reason, key)
        finally:
            if qdrant is not None:
                qdrant.close()
        return dict(msgspec.to_builtins(done))


def _plan(reader: Reader, asked: Wanted) -> forget.Plan:
    return forget.plan(
        reader, id=asked.id, session=asked.session, project=asked.project, before=asked.before, match=asked.match,
        here=asked.here,
    )  # fmt: skip


def _json(answer: Any) -> Response:
    return Response(orjson.dumps(answer), media_type="application/json")
