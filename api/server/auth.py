"""Who may ask: a token, a key or a signed-in browser, a Host that is ours, no page of another origin, no huge body."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memctl.api.http.access import NotOneKey, is_open, refused
from memctl.api.http.turns import Turn, Turns
from memctl.api.reading.caller import NOBODY, OWNER, Caller
from memctl.api.server.key_use import A_SECOND, AT_ONCE, SPACE_A_SECOND, SPACE_AT_ONCE, Audit, Rates
from memctl.api.server.proxied import BadName, Proxy
from memctl.domain.support.errors import MemctlError
from memctl.infra.listening import viewer_host

LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]"))

LONGEST_BODY = 1 << 20
"""Bytes of a request's body."""

LONGER_BODIES = {"/v1/events": 16 << 20}
"""The same where more is to be sent: events. Whoever may not send any is refused before."""

BODY_S, BODY_BYTES_A_S = 30.0, 64 << 10
"""Seconds in which a body has to come, and bytes of it that give it one second more."""

MOST_TAKEN_IN = 16 << 20
PATIENCE_S = 2.0
"""Bytes that the body of a request that is refused may have to be taken in all the same, and how long that may take."""

LONGEST_TARGET = 16 << 10
"""Bytes of a request's path and query; longer texts are posted."""


def names_of(url: str) -> frozenset[str]:
    """Hosts by which a server at that URL may be called: loopback's names, and the one that was configured."""
    host = urlsplit(url).hostname
    return LOOPBACK | {f"[{host}]" if ":" in host else host} if host else LOOPBACK


class Guard:
    """Refuses what nobody with a right to ask would send, before anything of it is read.

    `caller` returns whose a bearer token is that is not the owner's, `signed_in` whose rights a browser has by its
    `Cookie` header, `named` whose the key of that name is, which `proxy` says; all may raise if that cannot be found
    out now. Every answer also has headers that forbid sniffing, framing and caching by others.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        hosts: frozenset[str],
        signed_in: Callable[[bytes], Caller | None] = lambda _: None,
        caller: Callable[[str], Caller | None] = lambda _: None,
        proxy: Proxy | None = None,
        named: Callable[[str], Caller | None] = lambda _: None,
    ) -> None:
        if not token:
            raise ValueError("an API without a token would answer anyone")
        self._app = app
        self._token = token.encode()
        self._hosts = hosts | {viewer_host(token)}
        self._host_of = partial(viewer_host, token)
        self._signed_in = signed_in
        self._caller = caller
        self._proxy, self._named = proxy or Proxy(), named
        self._rates, self._turns, self._audit = Rates(), Turns(), Audit()
        self._spaces = Rates(of_spaces=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        method, path = scope["method"], scope["path"]
        refusal, caller, who = self._foreign(headers), None, ""
        try:
            who = self._proxy.names(path, scope["headers"])
        except BadName as why:
            refusal = refusal or (400, "Bad Request", str(why))
        if refusal is None:
            caller, refusal = await self._admitted(method, path, headers, who)
        key, space = _key_of(caller)
        # Also where it may not ask: refusing and noting it is work. What a key is refused costs its space nothing.
        if key and (self._rates.wait(key) or (space and self._spaces.wait(space))):
            refusal = _TOO_MANY
        if refusal is None:
            refusal = _too_long(path, scope.get("query_string", b""), headers)
        if refusal is not None or caller is None:
            await self._refuse(refusal or _UNKNOWN, key, scope, headers, receive, send)
            return

        async def still_admitted() -> bool:
            _, refusal = await self._admitted(method, path, headers, who)
            return refusal is None or refusal[0] == 503

        state = scope.setdefault("state", {})
        state["caller"], state["of_proxy"] = caller, bool(who)
        state["still_admitted"] = still_admitted  # for answers that go on and on
        if not key:
            await self._app(scope, _Limited(receive, _longest(path)), _hardened(send))
            return
        async with self._turns.of(key, space) as turn:
            if turn is None:
                self._audit.note(key, method, {"path": path}, _TOO_MUCH[0])
                answer = _refused(*_TOO_MUCH, goes_on=await _taken_in(headers, receive))
                await answer(scope, receive, _hardened(send))
            else:
                await self._answer(key, turn, scope, receive, send)

    async def _refuse(
        self, refusal: Refusal, key: str, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        """Refuse a request; who looks at a page without being signed in is led to where one does."""
        path: str = scope["path"]
        if key:
            self._audit.note(key, scope["method"], {"path": path}, refusal[0])
        page = not path.startswith("/v1") and b"text/html" in headers.get(b"accept", b"")
        answer: Response
        if page and refusal[0] == 401:
            answer = RedirectResponse("/sign-in", 303)
        else:
            goes_on = await _taken_in(headers, receive)
            answer = _refused(*refusal, goes_on=goes_on, as_page=page and self._proxy.there)
        await answer(scope, receive, _hardened(send))

    async def _answer(self, key: str, turn: Turn, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a key. It has its turn while it is worked on: not while its body comes, nor while its answer goes."""
        status = 0
        scope["state"]["turn"] = turn

        async def noted(message: Message) -> None:
            nonlocal status
            turn.end()
            status = message.get("status", status)
            await send(message)

        limited = _Limited(receive, _longest(scope["path"]))

        async def awaited() -> Message:
            if not limited.comes or status:
                return await limited()
            turn.give_back()
            message = await limited()
            await turn.take()
            return message

        try:
            await self._app(scope, awaited, _hardened(noted))
        finally:
            self._audit.note(key, scope["method"], scope, status)

    def _foreign(self, headers: dict[bytes, bytes]) -> Refusal | None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        # Any page can make a name of its own lead to 127.0.0.1; only the name it calls us by gives it away.
        name = _without_port(host)
        if name not in self._hosts and name != self._host_of(name.removeprefix("memctl-").partition("-")[0]):
            return 403, "Unknown host", "this server is not known by that Host"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1").lower()).netloc != host:
            return 403, "Foreign origin", "pages of other origins may not ask"
        return None

    async def _admitted(
        self, method: str, path: str, headers: dict[bytes, bytes], who: str
    ) -> tuple[Caller | None, Refusal | None]:
        """Who asks, or why there is no answer. `who`: the name that a proxy gives who looks at a page."""
        if is_open(method, path):
            return NOBODY, None
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        given = given.strip()
        # The token is compared with any scheme, so that the time taken reveals nothing.
        same = hmac.compare_digest(given, self._token)
        if same and scheme.lower() == b"bearer":
            return OWNER, None
        looks = _looks(method, path, headers, by_proxy=bool(who))
        cookies = headers.get(b"cookie", b"") if looks else b""
        try:
            caller = None
            if scheme.lower() == b"bearer":
                caller = await run_in_threadpool(self._caller, given.decode("latin-1"))
            if caller is None and looks and who:
                caller = await run_in_threadpool(self._named, who)
            elif caller is None and cookies:
                caller = await run_in_threadpool(self._signed_in, cookies)
        except NotOneKey as why:
            return None, (403, "Forbidden", str(why))
        except MemctlError as why:
            return None, (503, "Service Unavailable", str(why))
        if caller is None:
            return None, _REVOKED if scheme.lower() == b"bearer" else _UNKNOWN
        why_not = refused(caller, method, path)
        return caller, (403, "Forbidden", why_not) if why_not else None


def _key_of(caller: Caller | None) -> tuple[str, str]:
    """The name of the key that somebody comes with, and of the space that it is for; empty where there is none."""
    if caller is None:
        return "", ""
    return "" if caller.owner or caller == NOBODY else caller.name, caller.space if caller.apart else ""


def _looks(method: str, path: str, headers: dict[bytes, bytes], *, by_proxy: bool) -> bool:
    """Whether a page of ours asks, or somebody looks at one. A cookie comes by itself, also with what another page
    sends: for more than a look the page has to be ours. And it is for its time: no browser gives itself another one."""
    if path == "/v1/tickets" or (method not in ("GET", "HEAD") and headers.get(b"origin") is None):
        return False
    # The proxy's cookie may come with what pages of others load; `SameSite` keeps ours from that.
    loaded = by_proxy and headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site")
    return not loaded or headers.get(b"sec-fetch-mode") == b"navigate"


Refusal = tuple[int, str, str]
"""Status, title and detail."""

_TOO_MANY: Refusal = (
    429, "Too Many Requests", f"a key may make {A_SECOND:.0f} requests a second, and {AT_ONCE:.0f} at once;"
    f" all keys of a space {SPACE_A_SECOND:.0f}, and {SPACE_AT_ONCE:.0f}",
)  # fmt: skip

_TOO_MUCH: Refusal = (503, "Service Unavailable", "too many questions of keys are being worked on; try again")

_REVOKED: Refusal = (401, "Not authorised", "this token or key is unknown or revoked")
_UNKNOWN: Refusal = (
    401,
    "Not authorised",
    "send the token or a key as `Authorization: Bearer …`; `memctl config --json` shows the token",
)


def _too_long(path: str, query: bytes, headers: dict[bytes, bytes]) -> Refusal | None:
    if len(path) + len(query) > LONGEST_TARGET:
        return 414, "Too long", f"the path and its query may have {LONGEST_TARGET} bytes; post longer texts"
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > _longest(path):
        return 413, "Too long", f"a body may have {_longest(path)} bytes"
    return None


def _longest(path: str) -> int:
    return LONGER_BODIES.get(path, LONGEST_BODY)


class _Limited:
    """The body of a request, of bounded length and in bounded time; what is behind it, as it comes."""

    def __init__(self, receive: Receive, longest: int) -> None:
        self._receive = receive
        self._longest = self._left = longest
        self._until = time.monotonic() + BODY_S
        self.comes = True

    async def __call__(self) -> Message:
        if not self.comes:
            return await self._receive()
        # Errors of HTTP's own: whoever reads the body passes those on as they are. What still comes is not read.
        try:
            async with asyncio.timeout(self._until - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not come in time", {"connection": "close"}) from None
        size = len(message.get("body", b""))
        self._left, self._until = self._left - size, self._until + size / BODY_BYTES_A_S
        if self._left < 0:
            raise HTTPException(413, f"a body may have {self._longest} bytes", {"connection": "close"})
        self.comes = message.get("more_body", False)
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


async def _taken_in(headers: dict[bytes, bytes], receive: Receive) -> bool:
    """Whether the body of a request that is refused has come in whole. A client that still sends when the connection is
    closed may never read why; one that announces too much, or is slow, is not waited for."""
    length = headers.get(b"content-length", b"0")
    if b"transfer-encoding" in headers or not length.isdigit() or int(length[:20]) > MOST_TAKEN_IN:
        return False
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            while (message := await receive())["type"] == "http.request":
                if not message.get("more_body"):
                    return True
    return False


def _refused(status: int, title: str, detail: str, *, goes_on: bool, as_page: bool = False) -> Response:
    from memctl.api.http.problems import problem  # it brings the routes, which a server of MCP alone lacks

    answer = problem(status, title, detail)
    if as_page:
        from memctl.api.viewer import render

        page = render.page("sign_in.html", NOBODY, refusal=detail)
        answer = HTMLResponse(page, status, {"Content-Security-Policy": render.POLICY})
        if status in (429, 503):
            answer.headers["Retry-After"] = "2"
    if not goes_on:
        answer.headers["Connection"] = "close"
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="memctl"'
    return answer
