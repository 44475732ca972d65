"""The local vector server as a process of its own, for tests."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_START_S = 30.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent() -> None:
    """For `preexec_fn`: the child is killed when this process ends, however it ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class ServerProcess:
    """A server over `folder`, which can be killed and started again. `log` is what it wrote to stderr so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "vectors"
        self.token = secrets.token_hex(16)
        self._token_file = folder / "vectors.token"
        self._token_file.write_text(self.token)
        self._log_file = folder / "vectors.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    @property
    def log(self) -> str:
        return self._log_file.read_text() if self._log_file.exists() else ""

    def command(self, *more: str) -> list[str]:
        module = [sys.executable, "-m", "memctl.infra.vectors.server"]
        return [*module, "--dir", str(self.folder), "--token-file", str(self._token_file), *more]

    def start(self, port: int = 0) -> None:
        announcement = self.folder / "server.json"
        announcement.unlink(missing_ok=True)
        with self._log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command("--port", str(port)), stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        deadline = time.monotonic() + _START_S
        while not announcement.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"the vector server did not start:\n{self.log}")
            time.sleep(0.01)
        self.url = json.loads(announcement.read_text())["url"]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End the process by a signal and return its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def kill(self) -> None:
        self.stop(signal.SIGKILL)


@contextlib.contextmanager
def vector_server_process(folder: Path) -> Iterator[ServerProcess]:
    folder.mkdir(parents=True, exist_ok=True)
    server = ServerProcess(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def vector_server(folder: Path) -> Iterator[tuple[str, str]]:
    """A running server that keeps its files under `folder`: its URL and its token."""
    with vector_server_process(folder) as server:
        yield server.url, server.token


def raw(server: ServerProcess, method: str, path: str, body: object = None, **headers: str) -> tuple[int, str]:
    """Status and body of an answer to a plain request; a body that is not bytes is sent as JSON."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    sent = body if isinstance(body, bytes) else json.dumps(body)
    connection.request(method, path, sent if body is not None else None, {"api-key": server.token, **headers})
    response = connection.getresponse()
    answer = response.status, response.read().decode()
    connection.close()
    return answer
