"""Import of legacy stores over HTTP: the body is the store itself, so nothing of the server's disk is read for it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request, Response

from memctl.api.http.answers import json_of
from memctl.api.http.commands import Key
from memctl.api.write.importing import account_of, import_stores
from memctl.infra.data_dir import Places, make_private
from memctl.infra.legacy.rows import NotALegacyStore
from memctl.infra.settings import Settings

IMPORTS_AT_ONCE = 2
"""Others wait. Each reads with a process beside it, and takes as long as it takes."""

Table = Annotated[
    str,
    Query(
        pattern=r"^[a-z_]{0,40}$",
        description="Of a list of rows without names: the table they are of.",
        examples=["collected_info"],
    ),
]


def remove_left(settings: Settings) -> None:
    """Remove what an API that was killed left of the stores that were sent to it."""
    shutil.rmtree(Places(settings.data_dir).imports, ignore_errors=True)


def routes(settings: Settings) -> APIRouter:
    """One route. Rows name their events, so importing a store again, under any key, adds nothing."""
    router, at_once = APIRouter(tags=["commands"]), anyio.CapacityLimiter(IMPORTS_AT_ONCE)

    @router.post(
        "/import",
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {}},
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
                },
            }
        },
    )
    async def import_legacy(request: Request, key: Key, table: Table = "", dry_run: bool = False) -> Response:
        """Take in what an older memory store holds: SQLite, a JSON object of tables, a list of rows, or JSON by the
        line. Answers with the account of its rows; `dry_run` changes nothing."""
        around = Places(settings.data_dir).imports  # what was sent is not redacted yet
        make_private(around)
        with tempfile.TemporaryDirectory(dir=around) as folder:
            store = Path(folder) / (table or "store")
            with store.open("wb") as file:
                async for part in request.stream():
                    file.write(part)
            return await anyio.to_thread.run_sync(_imported, settings, store, dry_run, limiter=at_once)

    return router


def _imported(settings: Settings, store: Path, dry_run: bool) -> Response:
    from memctl.api.write.ingest_writer import IngestWriter

    if not store.stat().st_size:
        raise NotALegacyStore(path="what was sent", why="nothing")
    try:
        if dry_run:
            account, _ = account_of([store])
        else:
            with IngestWriter(settings) as intake:
                account = import_stores(intake, [store])
                intake.wake()
    except NotALegacyStore as problem:
        raise NotALegacyStore(path="what was sent", why=problem.why) from problem
    answer = account.as_json()
    for bad in answer.get("bad", []):
        bad.pop("file", None)  # a name of ours, of which nobody else knows
    return json_of(answer)
