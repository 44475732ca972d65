"""The local vector server: Qdrant's own engine behind the part of Qdrant's REST API that memctl uses.

    python -m memctl.infra.vectors.server --dir DIR --token-file FILE --port PORT

Listens on loopback only, and wants the token in the `api-key` header. Once it answers, it writes `DIR/server.json`
(`{"pid": ..., "url": ...}`), which is how port 0 becomes known; nothing goes to stdout.

Everything runs on one event loop. The engine holds the interpreter during every call (measured: another thread got a
fiftieth of its usual speed during an upsert), so threads would bring no parallel work, only races. Instead large writes
go to the engine in slices, and queries run between them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from memctl.domain.support.errors import MemctlError
from memctl.infra import logs
from memctl.infra.data_dir import write_private
from memctl.infra.heap import return_freed_memory
from memctl.infra.http_lines import read_linearly
from memctl.infra.listening import tcp_listener
from memctl.infra.vectors import calls, indexing, wire
from memctl.infra.vectors.shards import NAME, Collection, Collections

log = logging.getLogger("memctl.vectors")
Call = Callable[[Collection, Any], Awaitable[Any]]  # with the parsed body, of the type that it is given with

# The release of Qdrant whose REST API is spoken here; clients warn when theirs is further than one minor away.
API_VERSION = "1.18.0"

MAX_BODY_BYTES = 32 << 20  # Qdrant's own default
FLUSH_AFTER_QUIET_S = 2.0
FLUSH_AT_POINTS = 20_000  # bounds the log that a restart replays (0.5 s)
FLUSH_LOOK_S = 0.5


class EmptyToken(MemctlError):
    """The token file {path} is missing or empty."""

    hint = "Write a random token into it, readable by its owner only."
    path: Path


class _AlreadyExists(wire.Refused):
    status = 409


class _TooLarge(wire.Refused):
    status = 413


class _Endpoints:
    """What answers over open collections."""

    def __init__(self, collections: Collections) -> None:
        self._collections = collections

    async def root(self, _: Request) -> Response:
        body = {"title": "memctl vectors, by qdrant-edge", "version": API_VERSION}
        return Response(orjson.dumps(body), media_type="application/json")

    async def alive(self, _: Request) -> Response:
        return PlainTextResponse("healthz check passed")

    async def ready(self, _: Request) -> Response:
        # Damaged collections do not make the server unready: they answer 404 until they are built again.
        lines = [f"damaged and set aside: {name}" for name in self._collections.damaged()]
        return PlainTextResponse("\n".join(["all shards are ready", *lines]))

    async def list_names(self, _: Request) -> Response:
        began = time.perf_counter()
        return _answer({"collections": [{"name": name} for name in self._collections.names()]}, began)

    async def exists(self, request: Request) -> Response:
        began = time.perf_counter()
        return _answer({"exists": self._collections.get(request.path_params["name"]) is not None}, began)

    async def create(self, request: Request) -> Response:
        began, name = time.perf_counter(), request.path_params["name"]
        if not NAME.fullmatch(name):
            raise wire.BadRequest(f"Wrong input: `{name}` is not a collection name: it must match {NAME.pattern}")
        asked = wire.parsed(await _body(request), wire.Create)
        described = wire.Description(asked.vectors, asked.sparse_vectors)
        if self._collections.get(name) is not None:
            raise _AlreadyExists(f"Wrong input: Collection `{name}` already exists!")
        self._collections.create(name, described, wire.shard_config(described))
        return _answer(True, began)

    async def remove(self, request: Request) -> Response:
        began, collection = time.perf_counter(), self._collections.get(request.path_params["name"])
        if collection is None:
            return _answer(False, began)
        async with collection.writing:
            if self._collections.get(collection.name) is not collection:
                return _answer(False, began)
            gone = self._collections.remove(collection.name)
        await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)
        return _answer(True, began)

    def writes(self, path: str, call: Call, of: type[wire.Body], method: str = "POST") -> Route:
        async def alone(collection: Collection, body: Any) -> Any:
            async with collection.writing:
                if self._collections.get(collection.name) is not collection:  # dropped while this request waited
                    raise _absent(collection.name)
                await call(collection, body)
            return {"operation_id": 0, "status": "completed"}

        return self.reads(path, alone, of, method)

    def reads(self, path: str, call: Call, of: type[wire.Body], method: str = "POST") -> Route:
        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            body = wire.parsed(await _body(request), of)
            collection = self._collections.get(request.path_params["name"])
            if collection is None:
                raise _absent(request.path_params["name"])
            with self._given_up_in_panic(collection):
                return _answer(await call(collection, body), began)

        return Route("/collections/{name}" + path, endpoint, methods=[method])

    @contextlib.contextmanager
    def _given_up_in_panic(self, collection: Collection) -> Iterator[None]:
        """After a panic the engine's own state is unknown. The collection can be built again, so it is not used."""
        try:
            yield
        except BaseException as why:
            if type(why).__name__ != "PanicException":
                raise
            self._collections.give_up(collection, f"the engine panicked: {why}")
            raise calls.EngineFailed(f"Service internal error: {why}") from why


def application(collections: Collections, token: str, hosts: frozenset[str]) -> ASGIApp:
    """The ASGI application over open collections. `hosts` are the names a request may call this server by."""
    to = _Endpoints(collections)
    routes = [
        Route("/", to.root, methods=["GET"]),
        Route("/healthz", to.alive, methods=["GET"]),
        Route("/readyz", to.ready, methods=["GET"]),
        Route("/collections", to.list_names, methods=["GET"]),
        Route("/collections/{name}/exists", to.exists, methods=["GET"]),
        Route("/collections/{name}", to.create, methods=["PUT"]),
        Route("/collections/{name}", to.remove, methods=["DELETE"]),
        to.reads("", calls.info, wire.Nothing, "GET"),
        to.reads("/points", calls.retrieve, wire.Retrieve),
        to.reads("/points/scroll", calls.scroll, wire.Scroll),
        to.reads("/points/count", calls.count, wire.Count),
        to.reads("/points/query/batch", calls.query_batch, wire.Queries),
        to.writes("/points", calls.upsert, wire.Points, "PUT"),
        to.writes("/points/delete", calls.delete, wire.Ids),
        to.writes("/points/vectors", calls.update_vectors, wire.Vectors, "PUT"),
        to.writes("/points/payload", calls.set_payload, wire.SetPayload),
        to.writes("/index", calls.create_index, wire.Index, "PUT"),
    ]
    refusals = {HTTPException: _not_routed, wire.Refused: _refused, Exception: _failed}
    app = Starlette(routes=routes, lifespan=lambda _: _serving(collections), exception_handlers=refusals)
    return _guarded(app, token.encode(), hosts)


def _answer(result: object, began: float) -> Response:
    body = {"result": result, "status": "ok", "time": time.perf_counter() - began}
    return Response(orjson.dumps(body), media_type="application/json")


def _absent(name: str) -> wire.NotFound:
    return wire.NotFound(f"Not found: Collection `{name}` doesn't exist!")


# --- requests in, errors out ---


async def _body(request: Request) -> bytearray:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise _TooLarge(f"Wrong input: a body may hold at most {MAX_BODY_BYTES} bytes")
    return body


def _error(status: int, message: str) -> Response:
    body = {"status": {"error": message}, "time": 0.0}
    return Response(orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS), status, media_type="application/json")


async def _not_routed(_: Request, why: Exception) -> Response:
    assert isinstance(why, HTTPException)
    return _error(why.status_code, f"{why.detail}: this server speaks only a part of Qdrant's API")


async def _refused(_: Request, why: Exception) -> Response:
    assert isinstance(why, wire.Refused)
    return _error(why.status, str(why))


async def _failed(_: Request, why: Exception) -> Response:
    return _error(500, f"Service internal error: {type(why).__name__}: {why}")


def _guarded(app: ASGIApp, token: bytes, hosts: frozenset[str]) -> ASGIApp:
    """Refuse requests that call the server by another name (DNS rebinding) or lack the token.

    The two probes and the version are open, as they are in Qdrant.
    """

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name: value for name, value in scope["headers"] if name in (b"host", b"api-key")}
            given = headers.get(b"api-key", b"")
            if headers.get(b"host", b"").decode("latin-1").lower() not in hosts:
                await _error(403, "Forbidden: this server is not known by that Host")(scope, receive, send)
                return
            if scope["path"] not in ("/", "/healthz", "/readyz") and not hmac.compare_digest(given, token):
                await _error(401, "Invalid API key")(scope, receive, send)
                return
        await app(scope, receive, send)

    return guard


# --- the process ---


@contextlib.asynccontextmanager
async def _serving(collections: Collections) -> AsyncIterator[None]:
    chores = [asyncio.create_task(_flush_when_quiet(collections)), asyncio.create_task(indexing.when_due(collections))]
    try:
        yield
    finally:
        for chore in chores:
            chore.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await chore
        collections.close()


async def _flush_when_quiet(collections: Collections) -> None:
    """Flush collections that rest after writes. A flush holds the loop (30 ms after a few points, 250 ms after 20,000),
    so it waits for a pause in the writing, but not for ever. Then what the writing took is given back."""
    while True:
        await asyncio.sleep(FLUSH_LOOK_S)
        flushed = False
        for collection in collections:
            quiet = time.monotonic() - collection.written_at >= FLUSH_AFTER_QUIET_S
            if collection.unflushed and (quiet or collection.unflushed >= FLUSH_AT_POINTS):
                async with collection.writing:
                    if collections.get(collection.name) is not collection:
                        continue
                    try:
                        collection.flush()
                        flushed = True
                    except Exception:
                        # The log still holds everything; the next look tries again.
                        collection.unflushed += 1
                        log.exception("collection %s was not flushed", collection.name)
        if flushed:
            await asyncio.to_thread(return_freed_memory)


def serve(folder: Path, token: str, port: int = 0) -> None:
    """Serve `folder` until SIGTERM or SIGINT; everything is flushed and closed then."""
    collections = Collections(folder)
    listener = tcp_listener("127.0.0.1", port)
    port = listener.getsockname()[1]
    names = ["localhost", "127.0.0.1"]
    hosts = frozenset([*names, *(f"{name}:{port}" for name in names)])
    announcement = folder / "server.json"
    write_private(announcement, json.dumps({"pid": os.getpid(), "url": f"http://127.0.0.1:{port}"}))
    try:
        read_linearly()
        config = uvicorn.Config(
            application(collections, token, hosts),
            http="h11",
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=5,
        )
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        announcement.unlink(missing_ok=True)


def _token(path: Path) -> str:
    token = path.read_text().strip() if path.is_file() else ""
    if not token:
        raise EmptyToken(path=path)
    return token


def main() -> int:
    parser = argparse.ArgumentParser(prog="memctl.infra.vectors.server", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dir", type=Path, required=True, help="folder of the collections, owned by one server")
    parser.add_argument("--token-file", type=Path, required=True, help="file that holds the api-key")
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 takes a free one (default)")
    options = parser.parse_args()
    # It is a program of its own, without memctl's settings.
    logs.set_up("info", "json" if os.environ.get("MEMCTL_LOG_FORMAT") == "json" else "text")
    os.umask(0o077)
    for number in (signal.SIGTERM, signal.SIGINT):
        # uvicorn stops gracefully and then raises the signal again; it must not cut short what is left to do here.
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        serve(options.dir, _token(options.token_file), options.port)
    except (MemctlError, OSError) as why:
        hint = getattr(why, "hint", None)
        print(f"memctl vectors: {why}" + (f"\nhint: {hint}" if hint else ""), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
