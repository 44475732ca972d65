"""What relays deliver, over HTTP: `POST /v1/events`."""

from typing import Any

import msgspec
import orjson
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from memctl.api.http.access import caller_of
from memctl.api.http.openapi import described
from memctl.api.write.remote_ingest import Delivery, RemoteIngest


def routes(deliveries: RemoteIngest) -> APIRouter:
    """One route. An event that is sent again is reported as `duplicate`, so only the events' own keys are needed."""
    router = APIRouter(tags=["log"])

    @router.post(
        "/events",
        openapi_extra={"requestBody": {"required": True, "content": _content()}},
        responses={409: described("What was sent is of a newer version than this API.")},
    )
    async def deliver(request: Request) -> Response:
        """Append events that clients recorded elsewhere, as `memctl relay` sends them. `appended` has one entry for
        each event that was appended, in order. `refused` says, by index, which events never will be, and why."""
        body = await request.body()
        recorded = await run_in_threadpool(deliveries.take, body, caller_of(request))
        return Response(orjson.dumps(msgspec.to_builtins(recorded, str_keys=True)), media_type="application/json")

    return router


def _content() -> dict[str, Any]:
    _, components = msgspec.json.schema_components([Delivery], ref_template="#/$defs/{name}")
    event = components["Sent"]
    event["properties"]["payload"] = {"type": "object"}
    schema = components["Delivery"]
    schema["properties"]["events"]["items"] = event
    return {"application/json": {"schema": schema}}
