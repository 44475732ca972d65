"""Who may ask: a bearer token or a signed-in browser, a Host that is ours, no page of another origin, no huge body."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import orjson
from starlette.exceptions import HTTPException

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = frozenset(("/healthz", "/readyz"))
"""Probes, which tell nothing and need no token."""

VIEWER_HOST = "memctl.localhost"
"""The viewer's name: browsers lead it to loopback, and send its cookies to no other server of this machine."""

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]", VIEWER_HOST))

PUBLIC = ("/static/", "/sign-in")
"""What a browser gets before it is signed in: styles, and the page to sign in with."""

LONGEST_BODY = 1 << 20
"""Bytes of a request's body."""

LONGEST_TARGET = 16 << 10
"""Bytes of a request's path and query; longer texts are posted."""


def names_of(url: str) -> frozenset[str]:
    """Hosts by which a server at that URL may be called: loopback's names, and the one that was configured."""
    host = urlsplit(url).hostname or ""
    return LOOPBACK | {f"[{host}]" if ":" in host else host}


class Guard:
    """Refuses what nobody with a right to ask would send, before anything of it is read.

    `signed_in` tells from a `Cookie` header whether a browser may look. Every answer is also told not to be sniffed,
    framed or cached by others.
    """

    def __init__(
        self, app: ASGIApp, token: str, hosts: frozenset[str], signed_in: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        if not token:
            raise ValueError("an API without a token would answer anyone")
        self._app = app
        self._token = token.encode()
        self._hosts = hosts
        self._signed_in = signed_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        refusal = self._refusal(scope["method"], scope["path"], scope.get("query_string", b""), headers)
        if refusal is not None:
            page = not scope["path"].startswith("/v1") and b"text/html" in headers.get(b"accept", b"")
            await (_lead(send, b"/sign-in") if page and refusal[0] == 401 else _refuse(send, *refusal))
            return
        await self._app(scope, _Limited(receive), _hardened(send))

    def _refusal(
        self, method: str, path: str, query: bytes, headers: dict[bytes, bytes]
    ) -> tuple[int, str, str] | None:
        """Status, title and detail; None for a request that may pass."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        # Any page can make a name of its own lead to 127.0.0.1; only the name it calls us by gives it away.
        if _without_port(host) not in self._hosts:
            return 403, "Unknown host", "this server is not known by that Host"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1").lower()).netloc != host:
            return 403, "Foreign origin", "pages of other origins may not ask"
        known = path in OPEN or path.startswith(PUBLIC) or self._authorised(headers.get(b"authorization", b""))
        # A cookie comes by itself, also with what another page sends: for more than a look the page has to be ours.
        looks = method in ("GET", "HEAD") or origin is not None
        if not known and not (looks and self._signed_in(headers.get(b"cookie", b""))):
            return 401, "Not authorised", "send the token as `Authorization: Bearer …`; `memctl config --json` tells it"
        if len(path) + len(query) > LONGEST_TARGET:
            return 414, "Too long", f"the path and its query may have {LONGEST_TARGET} bytes; post longer texts"
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > LONGEST_BODY:
            return 413, "Too long", f"a body may have {LONGEST_BODY} bytes"
        return None

    def _authorised(self, header: bytes) -> bool:
        scheme, _, given = header.partition(b" ")
        # The token is compared whatever the scheme, so that time tells nothing.
        same = hmac.compare_digest(given.strip(), self._token)
        return same and scheme.lower() == b"bearer"


class _Limited:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = LONGEST_BODY

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            # An error of HTTP's own: whoever reads the body passes that on as it is.
            raise HTTPException(413, f"a body may have {LONGEST_BODY} bytes")
        return message


def _hardened(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            said = list(message.get("headers", ()))
            names = {name.lower() for name, _ in said}
            message["headers"] = [*said, *(header for header in _HARDENING if header[0] not in names)]
        await send(message)

    return sending


_HARDENING = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"private, no-cache"),
)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


async def _lead(send: Send, to: bytes) -> None:
    sending = _hardened(send)
    await sending({"type": "http.response.start", "status": 303, "headers": [(b"location", to)]})
    await sending({"type": "http.response.body", "body": b""})


async def _refuse(send: Send, status: int, title: str, detail: str) -> None:
    body = orjson.dumps({"type": "about:blank", "title": title, "status": status, "detail": detail})
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *_HARDENING,
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="memctl"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
