"""Commands over HTTP: `POST /v1/commands/<name>`, a route for each command that the domain knows."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from memctl.api.http.access import caller_of
from memctl.api.http.answers import json_of
from memctl.api.write.command_handler import LONGEST_KEY, CommandHandler
from memctl.domain.events.command import Command, commands

Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        pattern="^[!-~]([ -~]*[!-~])?$",
        description="Drawn by the caller; the same command under the same key is carried out once.",
    ),
]


def routes(handler: CommandHandler) -> APIRouter:
    """A route for each command. The answer says which event it became, and whether it had been before."""
    router = APIRouter(tags=["commands"])
    for name, cls in commands().items():
        router.post(
            f"/commands/{name}",
            name=f"command {name}",
            description=" ".join((cls.__doc__ or "").split()),
            openapi_extra={"requestBody": {"required": True, "content": _content(cls)}},
        )(_door(handler, name))
    return router


def _door(handler: CommandHandler, name: str) -> Any:
    async def carry_out(request: Request, key: Key) -> Response:
        body = await request.body()
        done = await run_in_threadpool(handler.carry_out, name, body, key, caller_of(request))
        return json_of(done)

    return carry_out


def _content(cls: type[Command]) -> dict[str, Any]:
    schemas, components = msgspec.json.schema_components([cls], ref_template="#/$defs/{name}")
    (schema,) = schemas
    return {"application/json": {"schema": components[cls.__name__] if "$ref" in schema else schema}}
