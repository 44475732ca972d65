"""What relays deliver, over HTTP: `POST /v1/events`."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from memctl.api.http.openapi import described
from memctl.api.write.remote_ingest import Delivery, RemoteIngest


def routes(deliveries: RemoteIngest) -> APIRouter:
    """One route. Sent again, what was kept is told as `duplicate`: no key is needed but those of the events."""
    router = APIRouter(tags=["log"])

    @router.post(
        "/events",
        openapi_extra={"requestBody": {"required": True, "content": _content()}},
        responses={409: described("What was sent is of a newer version than this API.")},
    )
    async def deliver(request: Request) -> Response:
        """Keep events that clients told elsewhere, as `memctl relay` sends them: one entry in `appended` for each that
        was kept, in order; `refused` tells by index which never will be, and why."""
        body = await request.body()
        recorded = await run_in_threadpool(deliveries.take, body)
        return Response(orjson.dumps(msgspec.to_builtins(recorded, str_keys=True)), media_type="application/json")

    return router


def _content() -> dict[str, Any]:
    _, components = msgspec.json.schema_components([Delivery], ref_template="#/$defs/{name}")
    event = components["Sent"]
    event["properties"]["payload"] = {"type": "object"}
    schema = components["Delivery"]
    schema["properties"]["events"]["items"] = event
    return {"application/json": {"schema": schema}}
