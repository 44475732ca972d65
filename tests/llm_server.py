"""A server that speaks the wire formats of OpenAI's chat completions and Anthropic's messages, and misbehaves if asked.

It counts what it would bill: tokens of every answer that it gave, whether anybody waited for it or not.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

TOKENS_IN, TOKENS_OUT = 100, 20
"""What each answer counts."""


class Asked(NamedTuple):
    """A request as it came over the wire."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        return json.dumps(self.body, ensure_ascii=False)


Behave = Callable[["Handler", dict[str, Any]], None]


class Server:
    """What was asked and billed, and how the next requests are answered (the last behaviour goes on)."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.billed = 0
        self.behaviours: list[Behave] = []
        self.url = ""
        self._lock = threading.Lock()

    def then(self, *behaviours: Behave) -> None:
        self.behaviours = list(behaviours)

    def next_behaviour(self, asked: Asked) -> Behave:
        with self._lock:
            self.asked.append(asked)
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]

    def bill(self) -> None:
        with self._lock:
            self.billed += TOKENS_IN + TOKENS_OUT


class Handler(BaseHTTPRequestHandler):
    """One request. `server.of` is the `Server`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.of: Server = self.server.of  # type: ignore[attr-defined]
        behave = self.of.next_behaviour(Asked(self.path, body, dict(self.headers.items())))
        try:
            behave(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def reply(self, status: int, answer: Any, **headers: str) -> None:
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


def answer_of(path: str, body: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """An answer in the form that the request asks for: a schema, or a call of the tool that it offers."""
    if path.endswith("/messages"):
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "stop_reason": "tool_use",
            "stop_sequence": None, "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
            "content": [{"type": "tool_use", "id": "toolu_1", "name": body["tools"][0]["name"], "input": output}],
        }  # fmt: skip
    message: dict[str, Any] = {"role": "assistant", "content": json.dumps(output)}
    if body.get("tools"):
        call = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps(output)}
        calls = [{"id": "c1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if body.get("tools") else "stop"}],
        "usage": {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT},
    }  # fmt: skip


def answers(output: dict[str, Any]) -> Behave:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        handler.reply(200, answer_of(handler.path, body, output))

    return behave


def uncounted(output: dict[str, Any]) -> Behave:
    """Bills, and does not say how much."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        handler.reply(200, {k: v for k, v in answer_of(handler.path, body, output).items() if k != "usage"})

    return behave


def fails_late(status: int) -> Behave:
    """Bills, and then fails."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        handler.reply(status, {"error": {"message": "no", "type": "error"}})

    return behave


def fails(status: int, **headers: str) -> Behave:
    """Refuses, and bills nothing."""
    return lambda handler, _: handler.reply(status, {"error": {"message": "no", "type": "error"}}, **headers)


def slow(seconds: float, output: dict[str, Any]) -> Behave:
    """Answers, and bills, when nobody waits any more."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        time.sleep(seconds)
        handler.reply(200, answer_of(handler.path, body, output))

    return behave


def truncated(output: dict[str, Any]) -> Behave:
    """Bills, sends half of its answer, and hangs up."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        data = json.dumps(answer_of(handler.path, body, output)).encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.close_connection = True

    return behave


def garbage(data: bytes = b"<html>it works</html>") -> Behave:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.of.bill()
        handler.reply(200, data)

    return behave


def in_turn(outputs: Sequence[dict[str, Any]]) -> list[Behave]:
    return [answers(output) for output in outputs]


@contextmanager
def llm_server() -> Iterator[Server]:
    """A server on a free port of this machine's, for as long as the context lasts."""
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    httpd.of = server = Server()  # type: ignore[attr-defined]
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
