"""Asking a running memctl: the read API over HTTP, with the standard library alone, so that a command is quick."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from memctl.domain.support.errors import MemctlError

if TYPE_CHECKING:
    from memctl.infra.settings import Settings

PATIENCE_S = 30.0

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


class Client:
    """One connection to the API; not for several threads.

    `url` is the API's, or `socket_path` that of its Unix socket. With `as_of` (a position, or a time in ISO 8601) it
    reads memory as that was: NotYet is raised while that is being built, or whatever `not_yet` does is done before each
    attempt more. A `space` that is not the API's is refused; without one it answers for its own. Every method answers
    JSON as Python has it, and raises Unreachable, NotThere, BadlyAsked or Refused.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        socket_path: str = "",
        patience_s: float = PATIENCE_S,
        space: str = "",
        as_of: str | None = None,
        not_yet: Callable[[NotYet], None] | None = None,
    ) -> None:
        self._as_of = as_of
        self._not_yet = not_yet
        self._url = url
        self._headers = headers_of(token, space)
        self._connection: HTTPConnection
        if socket_path:
            self._url = socket_path
            self._connection = _UnixConnection(socket_path, patience_s)
        else:
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
        project: str | None = None,
        here: str | None = None,
        limit: int = 5,
        profile: str = "bounded",
        explain: bool = False,
        kinds: Sequence[str] = (),
        since: str | None = None,
        before: str | None = None,
    ) -> dict[str, Any]:
        """A `views.SearchAnswer`."""
        asked = {
            "q": query,
            "limit": limit,
            "profile": profile,
            "explain": explain,
            "kinds": list(kinds),
            **_given(project=project, here=here, since=since, before=before),
        }
        answer: dict[str, Any] = self._look("POST", "/v1/search", {}, asked)
        return answer

    def ask(
        self,
        kind: str,
        text: str,
        *,
        session: str = "",
        project: str | None = None,
        here: str | None = None,
        limit: int = 3,
    ) -> dict[str, Any]:
        """A `guiding.Answer`."""
        asked = {"kind": kind, "text": text, "session": session, "limit": limit, **_given(project=project, here=here)}
        answer: dict[str, Any] = self._look("POST", "/v1/ask", {}, asked)
        return answer

    def guidance(self, task: str, *, project: str | None = None, here: str | None = None) -> dict[str, Any]:
        """A `guiding.TaskGuidance`."""
        answer: dict[str, Any] = self.get("/v1/guidance", _given(task=task, project=project, here=here))
        return answer

    def bugs(
        self, text: str, *, command: str = "", project: str | None = None, here: str | None = None, limit: int = 5
    ) -> dict[str, Any]:
        """A `views.BugAnswer`."""
        asked = {"text": text, "command": command, "limit": limit, **_given(project=project, here=here)}
        answer: dict[str, Any] = self._look("POST", "/v1/bugs", {}, asked)
        return answer

    def known_bugs(self, *, project: str | None = None, here: str | None = None, limit: int = 5) -> dict[str, Any]:
        """A `views.BugAnswer` of the errors that were resolved most often."""
        answer: dict[str, Any] = self.get("/v1/bugs", _given(project=project, here=here, limit=limit))
        return answer

    def thing(self, id: str) -> dict[str, Any]:
        """Whatever has that id: `{"kind": …, "item": …}`."""
        answer: dict[str, Any] = self.get(f"/v1/things/{quote(id, safe='/')}")
        return answer

    def explain(self, id: str) -> dict[str, Any]:
        """An `explain.Explanation`."""
        answer: dict[str, Any] = self.get(f"/v1/explain/{quote(id, safe='/')}")
        return answer

    def page(self, what: str, **asked: Any) -> dict[str, Any]:
        """One page of `memories`, `history`, `sessions`, `episodes`, `insights` or `knowledge`: a `views.Page`."""
        answer: dict[str, Any] = self.get(f"/v1/{what}", _given(**asked))
        return answer

    def stats(self, *, project: str | None = None, here: str | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = self.get("/v1/stats", _given(project=project, here=here))
        return answer

    def health(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.get("/v1/health")
        return answer

    def command(self, name: str, key: str, **asked: Any) -> dict[str, Any]:
        """Have a command carried out: a `deciding.Done`. Sent again under the same key, it is not carried out again."""
        answer: dict[str, Any] = self._ask(
            "POST", f"/v1/commands/{name}", json.dumps(_given(**asked)).encode(), {"Idempotency-Key": key}
        )
        return answer

    def deliver(self, body: bytes) -> dict[str, Any]:
        """Send events that were recorded elsewhere (a `delivering.Delivery` in JSON). Returns a `commands.Recorded`."""
        answer: dict[str, Any] = self._ask("POST", "/v1/events", body)
        return answer

    def viewer(self) -> str:
        """An address that opens the viewer signed in, once, within a minute."""
        ticket: dict[str, Any] = self.post("/v1/tickets", {})
        parts = urlsplit(self._url)
        here = parts.hostname in ("127.0.0.1", "localhost", "::1")
        place = parts._replace(netloc=f"memctl.localhost:{parts.port}") if here else parts
        return place._replace(path=self._prefix + ticket["path"]).geturl()

    def forget(self, key: str, *, preview: bool = False, **asked: Any) -> dict[str, Any]:
        """Forget what one of `id`, `session`, `project`, `before` and `match` means: a `forget.Forgotten`; or with
        `preview` show what would go, a `forget.Preview`. Under the same key it is done once."""
        path = "/v1/forget/preview" if preview else "/v1/forget"
        answer: dict[str, Any] = self._ask("POST", path, json.dumps(_given(**asked)).encode(), {"Idempotency-Key": key})
        return answer

    def job(self, id: int) -> dict[str, Any]:
        """How far memory as it was is: `{"status": …, "message": …}`."""
        answer: dict[str, Any] = self._ask("GET", f"/v1/jobs/{id}", None)
        return answer

    def get(self, path: str, asked: Mapping[str, Any] | None = None) -> Any:
        return self._look("GET", path, asked or {}, None)

    def post(self, path: str, body: Any, *, key: str = "") -> Any:
        """`key` is the Idempotency-Key of what is to be done once."""
        return self._ask("POST", path, json.dumps(body).encode(), {"Idempotency-Key": key} if key else None)

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self, method: str, path: str, asked: Mapping[str, Any], body: Any) -> Any:
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

    def _ask(self, method: str, target: str, body: bytes | None, more: Mapping[str, str] | None = None) -> Any:
        headers = {**self._headers, "Accept": "application/json", **(more or {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            status, content = answered(self._connection, method, self._prefix + target, body, headers)
        except (OSError, HTTPException) as why:
            self._connection.close()
            reason = "it took too long" if isinstance(why, TimeoutError) else str(why) or type(why).__name__
            raise Unreachable(url=self._url, why=reason) from why
        if status == 202:
            job = json.loads(content)["id"]
            raise NotYet(detail=f"job {job}", status=status, job=job)
        if status == 200:
            try:
                return json.loads(content)
            except ValueError as why:
                raise Unreachable(url=self._url, why="what answers there is not memctl") from why
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
    except ConnectionError:
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


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, patience_s: float) -> None:
        super().__init__("localhost", timeout=patience_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _refusal(status: int, content: bytes) -> Refused:
    try:
        body = json.loads(content)
        detail, hint = body.get("detail") or body.get("title") or "", body.get("hint")
    except (ValueError, AttributeError):
        detail, hint = "", None
    kind = {404: NotThere, 413: BadlyAsked, 414: BadlyAsked, 421: BadlyAsked, 422: BadlyAsked}.get(status, Refused)
    if status == 401 and not hint:
        hint = "MEMCTL_API_TOKEN or the running instance has the token; see `memctl config`"
    return kind(detail=detail or f"memctl answered with status {status}", status=status, hint=hint)


def _given(**asked: Any) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if value is not None}
