"""Requests of httpx that end by a moment: its own limit is of each read, which a server that drips keeps for ever."""

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    import httpx


class Ends(threading.local):
    """When the request of this thread is to have ended, by `time.monotonic`."""

    at = float("inf")

    def left(self, timeout: float | None) -> float:
        """What a read may take. Raises: httpcore.ReadTimeout."""
        if (left := self.at - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout("timed out")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, ends: Ends) -> None:
        self._inner, self._ends = inner, ends
        self.write, self.close, self.get_extra_info = inner.write, inner.close, inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._ends.left(timeout))

    def start_tls(self, *asked: Any, **more: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(*asked, **more), self._ends)


class _Backend(httpcore.SyncBackend):
    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def connect_tcp(self, *asked: Any, **more: Any) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(*asked, **more), self._ends)


def have_ends(client: "httpx.Client") -> Ends:
    """Have what this client reads keep to the moment in what is returned."""
    ends = Ends()
    transports: Iterable[Any] = (client._transport, *(each for each in client._mounts.values() if each is not None))
    for transport in transports:
        transport._pool._network_backend = _Backend(ends)
    return ends
