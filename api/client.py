"""Asking a running memctl: the read API over HTTP, with the standard library alone, so that a command is quick."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from memctl.api.reading import views
from memctl.domain.support.errors import MemctlError

if TYPE_CHECKING:
    from typing import Unpack

    from memctl.api.reading import advice
    from memctl.api.reading.counts import Stats
    from memctl.api.reading.explanation import Explanation
    from memctl.api.reading.views import BugAnswer, Done, Job, Json, Listing, Page, SearchAnswer, Thing
    from memctl.infra.settings import Settings

T = TypeVar("T")

PATIENCE_S = 30.0
"""For an answer: twice what the API gives a question."""

SPACE = "Memctl-Space"
"""Header that names the space that is meant."""


class Unreachable(MemctlError):
    """memctl does not answer at {url}: {why}"""

    hint = "start it with `memctl up`; `memctl status` says what is wrong"
    url: str
    why: str


class Refused(MemctlError):
    """{detail}"""

    # What the server said, in its own words; `status` is that of HTTP.

    detail: str
    status: int


class NotYet(Refused):
    """Memory as it was is being built; ask again in a moment ({detail})."""

    job: int


class NotThere(Refused):
    """{detail}"""

    exit_code = 3


class BadlyAsked(Refused):
    """{detail}"""

    exit_code = 2


Asked = str | int | float | bool | None
"""A value of a query; None for what is not asked."""


_CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""How a connection that the server closed shows: over TLS it may end without a word, which is no `ConnectionError`."""


class AskedPlace(TypedDict, total=False):
    """What is asked about: a project as its user names it, else the one that `here` lies in; with `anywhere` all, where
    memory does not know that."""

    project: str | None
    here: str | None
    anywhere: bool


class OtherVersion(MemctlError):
    """memctl answered in another form than this version reads: {why}"""

    hint = "let the client and the server be of one version; `--json` prints the answer as it came"
    why: str


class Received(Generic[T]):
    """An answer: `json` as it was sent, for programs; `value` in the type that the API declares for it."""

    def __init__(self, content: bytes, of: type[T]) -> None:
        self._content = content
        self._of = of

    @property
    def json(self) -> Json:
        answer: Json = json.loads(self._content)
        return answer

    @cached_property
    def value(self) -> T:
        """Raises: OtherVersion."""
        try:
            return msgspec.json.decode(self._content, type=self._of)
        except msgspec.ValidationError as why:
            raise OtherVersion(why=str(why)) from why


class Client:
    """One connection to the API; not for several threads.

    With `as_of` (a position, or a time in ISO 8601) it reads memory as that was: NotYet is raised while that is being
    built, or whatever `not_yet` does is done before each attempt more. A `space` that is not the key's, or not there,
    is refused; without one the API answers for the key's, or its own. Methods return a `Received`. They raise
    Unreachable, NotThere, BadlyAsked or Refused.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        patience_s: float = PATIENCE_S,
        space: str = "",
        as_of: str | None = None,
        not_yet: Callable[[NotYet], None] | None = None,
    ) -> None:
        self._as_of = as_of
        self._not_yet = not_yet
        self._url = url
        self._token = token
        self._headers = headers_of(token, space)
        self._connection = connection_to(url, patience_s)
        self._prefix = urlsplit(url).path.rstrip("/")

    @classmethod
    def of(
        cls, settings: Settings, *, as_of: str | None = None, not_yet: Callable[[NotYet], None] | None = None
    ) -> Client:
        """A client of the running instance, or of the API that the settings name. Raises: NotRunning."""
        return cls(
            settings.require("api_url"),
            settings.api_token or "",
            space=settings.space_meant,
            as_of=as_of,
            not_yet=not_yet,
        )

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        profile: str = "bounded",
        explain: bool = False,
        kinds: Sequence[str] = (),
        threshold: float = 0.0,
        since: str | None = None,
        before: str | None = None,
        **place: Unpack[AskedPlace],
    ) -> Received[SearchAnswer]:
        asked = _given(
            q=query, limit=limit, profile=profile, explain=explain, kinds=list(kinds), threshold=threshold,
            since=since, before=before, **place,
        )  # fmt: skip
        return Received(self._look("POST", "/v1/search", {}, asked), views.SearchAnswer)

    def ask(
        self, kind: str, text: str, *, session: str = "", limit: int = 5, **place: Unpack[AskedPlace]
    ) -> Received[advice.Answer]:
        from memctl.api.reading import advice

        asked = _given(kind=kind, text=text, session=session, limit=limit, **place)
        return Received(self._look("POST", "/v1/ask", {}, asked), advice.Answer)

    def guidance(self, task: str, **place: Unpack[AskedPlace]) -> Received[advice.TaskGuidance]:
        from memctl.api.reading import advice

        return self.read("/v1/guidance", advice.TaskGuidance, task=task, **place)

    def bugs(self, text: str, *, command: str = "", limit: int = 5, **place: Unpack[AskedPlace]) -> Received[BugAnswer]:
        asked = _given(text=text, command=command, limit=limit, **place)
        return Received(self._look("POST", "/v1/bugs", {}, asked), views.BugAnswer)

    def known_bugs(self, *, limit: int = 5, **place: Unpack[AskedPlace]) -> Received[BugAnswer]:
        """The errors that were resolved most often."""
        return self.read("/v1/bugs", views.BugAnswer, limit=limit, **place)

    def thing(self, id: str) -> Received[Thing]:
        """Whatever has that id."""
        return self.read(f"/v1/things/{quote(id, safe='/')}", views.Thing)

    def explain(self, id: str) -> Received[Explanation]:
        from memctl.api.reading.explanation import Explanation

        return self.read(f"/v1/explain/{quote(id, safe='/')}", Explanation)

    def page(self, what: str, of: type[T], **asked: Asked) -> Received[Page[T]]:
        """One page of `memories`, `history`, `sessions`, `episodes`, `insights`, `knowledge` or another list, whose
        items are of that type."""
        return self.read(f"/v1/{what}", views.Page[of], **asked)  # type: ignore[valid-type]

    def listing(self, path: str, of: type[T], **asked: Asked) -> Received[Listing[T]]:
        """A list that has no pages."""
        return self.read(path, views.Listing[of], **asked)  # type: ignore[valid-type]

    def stats(
        self, since: str | None = None, before: str | None = None, **place: Unpack[AskedPlace]
    ) -> Received[Stats]:
        from memctl.api.reading.counts import Stats

        return self.read("/v1/stats", Stats, since=since, before=before, **place)

    def command(self, name: str, key: str, **asked: object) -> Received[Done]:
        """Have a command carried out. Sent again under the same key, it is not carried out again."""
        body = json.dumps(_given(**asked)).encode()
        return Received(self._ask("POST", f"/v1/commands/{name}", body, {"Idempotency-Key": key}), views.Done)

    def deliver(self, body: bytes) -> bytes:
        """Send events that were recorded elsewhere (a `remote_ingest.Delivery` in JSON). Returns what became of them,
        a `remote_ingest.Recorded` in JSON."""
        return self._ask("POST", "/v1/events", body)

    def viewer(self) -> str:
        """An address that opens the viewer signed in, once, within a minute."""
        from memctl.infra.api_keys import PREFIX
        from memctl.infra.listening import viewer_host

        ticket = Received(self._ask("POST", "/v1/tickets", b"{}"), views.Ticket).value
        parts = urlsplit(self._url)
        here = not self._token.startswith(PREFIX) and parts.hostname in ("127.0.0.1", "localhost", "::1")
        place = parts._replace(netloc=f"{viewer_host(self._token)}:{parts.port}") if here else parts
        return place._replace(path=self._prefix + ticket.path).geturl()

    def job(self, id: int) -> Received[Job]:
        """How far memory as it was is."""
        return Received(self._ask("GET", f"/v1/jobs/{id}", None), views.Job)

    def read(self, path: str, of: type[T], **asked: Asked) -> Received[T]:
        """What a path answers with, as that type."""
        return Received(self._look("GET", path, _given(**asked), None), of)

    def get(self, path: str, asked: Mapping[str, Asked] | None = None) -> Json:
        """What a path answers with, whatever it is."""
        answer: Json = json.loads(self._look("GET", path, asked or {}, None))
        return answer

    def post(self, path: str, body: object, *, key: str = "") -> Json:
        """`key` is the Idempotency-Key of what is to be done once."""
        headers = {"Idempotency-Key": key} if key else None
        answer: Json = json.loads(self._ask("POST", path, json.dumps(body).encode(), headers))
        return answer

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, method: str, path: str, asked: Mapping[str, object], body: object) -> bytes:
        """A read, of memory as it is or was."""
        given = {**asked, **_given(as_of=self._as_of)}
        query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
        target = path + (f"?{urlencode(query)}" if query else "")
        while True:
            try:
                return self._ask(method, target, None if body is None else json.dumps(body).encode())
            except NotYet as why:
                if self._not_yet is None:
                    raise
                self._not_yet(why)

    def _ask(self, method: str, target: str, body: bytes | None, more: Mapping[str, str] | None = None) -> bytes:
        headers = {**self._headers, "Accept": "application/json", **(more or {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            status, content = answered(self._connection, method, self._prefix + target, body, headers)
        except (OSError, HTTPException) as why:
            self._connection.close()
            reason = "it took too long" if isinstance(why, TimeoutError) else str(why) or type(why).__name__
            if isinstance(why, ssl.SSLCertVerificationError):
                reason += " (where your own authority signed it, SSL_CERT_FILE names that one's file)"
            raise Unreachable(url=self._url, why=reason) from why
        if status == 202:
            job = json.loads(content)["id"]
            raise NotYet(detail=f"job {job}", status=status, job=job)
        if status == 200:
            try:
                msgspec.json.decode(content, type=msgspec.Raw)
            except msgspec.DecodeError as why:
                raise Unreachable(url=self._url, why="what answers there is not memctl") from why
            return content
        raise _refusal(status, content)


def headers_of(token: str, space: str) -> dict[str, str]:
    """What is sent with every request: who asks, and for which space, where one is named."""
    return {"Authorization": f"Bearer {token}", **({SPACE: space} if space else {})}


def connection_to(url: str, patience_s: float) -> HTTPConnection:
    """A connection to where a URL leads, opened by the first request."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "localhost", parts.port, timeout=patience_s)


def answered(
    connection: HTTPConnection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    """Status and body. Asked once more over a fresh connection where one that was kept is found to be closed: servers
    close what has been idle. Whatever changes anything has a key, and is done once. Raises: OSError, HTTPException."""
    kept = connection.sock is not None
    try:
        return _sent(connection, method, target, body, headers)
    except _CLOSED:
        if not kept:
            raise
    connection.close()
    return _sent(connection, method, target, body, headers)


def _sent(
    connection: HTTPConnection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    connection.request(method, target, body, headers)
    response = connection.getresponse()
    return response.status, response.read()


def _refusal(status: int, content: bytes) -> Refused:
    try:
        body = json.loads(content)
        detail, hint = body.get("detail") or body.get("title") or "", body.get("hint")
    except (ValueError, AttributeError, RecursionError):
        detail, hint = "", None
    kind = {404: NotThere, 413: BadlyAsked, 414: BadlyAsked, 421: BadlyAsked, 422: BadlyAsked}.get(status, Refused)
    if status == 401 and not hint:
        hint = "MEMCTL_API_TOKEN or the running instance has the token; see `memctl config`"
    return kind(detail=detail or f"memctl answered with status {status}", status=status, hint=hint)


def _given(**asked: object) -> dict[str, object]:
    return {name: value for name, value in asked.items() if value is not None}
