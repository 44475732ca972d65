"""A deadline for a whole request of httpx. Its own timeout is for each read, so a server that drips bytes meets it for
ever."""

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import httpcore

if TYPE_CHECKING:
    import httpx


class RequestDeadline(threading.local):
    """When the request of this thread has to have ended, by `time.monotonic`."""

    at = float("inf")

    def left(self, timeout: float | None) -> float:
        """What a read may take. Raises: httpcore.ReadTimeout."""
        if (left := self.at - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout("timed out")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: RequestDeadline) -> None:
        self._inner, self._deadline = inner, deadline
        self.write, self.close, self.get_extra_info = inner.write, inner.close, inner.get_extra_info  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.left(timeout))

    def start_tls(self, *asked: Any, **more: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(*asked, **more), self._deadline)


class _Backend(httpcore.SyncBackend):
    def __init__(self, deadline: RequestDeadline) -> None:
        self._deadline = deadline

    def connect_tcp(self, *asked: Any, **more: Any) -> httpcore.NetworkStream:
        return _Stream(super().connect_tcp(*asked, **more), self._deadline)


def keep_deadlines(client: "httpx.Client") -> RequestDeadline:
    """Make every read of this client keep to the deadline that is returned, and that the caller sets."""
    deadline = RequestDeadline()
    transports: Iterable[Any] = (client._transport, *(each for each in client._mounts.values() if each is not None))
    for transport in transports:
        transport._pool._network_backend = _Backend(deadline)
    return deadline
