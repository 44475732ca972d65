"""Sockets that servers listen on."""

import contextlib
import hmac
import os
import socket
import stat
from pathlib import Path


def tcp_listener(host: str, port: int) -> socket.socket:
    """A listening TCP socket for asyncio; port 0 takes a free one. Raises: OSError.

    What it accepts sends at once. asyncio sees to that only where a socket names its protocol, which those of
    `create_server` do not; without it the second write of each answer waited for the client's acknowledgement of the
    first, which Linux puts off for 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=128)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by what is accepted
    listener.setblocking(False)
    return listener


def unix_listener(path: Path) -> socket.socket:
    """A listening Unix socket that only its owner may open, in place of one that was left behind. Raises: OSError."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    # Bound under a umask and not changed later: there is no moment at which others could open it.
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.listen(128)
    listener.setblocking(False)
    return listener


def viewer_host(token: str, key: str = "") -> str:
    """The viewer's name for the owner, or for who has the API key of that id: browsers lead it to loopback. It is as
    secret as the token, for browsers send a name's cookies to whoever listens on another port of it."""
    drawn = hmac.digest(token.encode(), f"memctl viewer name{key}".encode(), "sha256").hex()[:20]
    return f"memctl-{key}{'-' if key else ''}{drawn}.localhost"
