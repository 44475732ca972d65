"""A server that answers, a byte now and then, without an end."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress


@contextlib.contextmanager
def dripping(every_s: float = 0.2) -> Iterator[str]:
    """Its address."""
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        with suppress(OSError):
            while not over.is_set():
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    def answer(client: socket.socket) -> None:
        with suppress(OSError), client:
            client.sendall(b"HTTP/1.1 200 OK\r\n")
            while not over.wait(every_s):
                client.sendall(b"a: b\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
