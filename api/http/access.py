"""Who asks, and what each may ask: every route stands here under the scopes that open it.

What no rule names is the owner's alone, whose token is that of the running instance. A key that is limited to projects
sees these and nothing else (`memctl.api.reading.places`), and gets no answer at all from routes that report on memory
as a whole.
"""

import functools
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from starlette.requests import Request

from memctl.api.reading.caller import IN_DIRECTORY, Caller
from memctl.api.reading.questions import questions
from memctl.api.reading.reader import Reader, Readers
from memctl.domain.support.errors import MemctlError
from memctl.infra import api_keys
from memctl.infra.api_keys import SCOPES, Key, Scope
from memctl.infra.log import spaces

FRESH_S = 2.0
"""Seconds within which a key that was revoked is refused."""

MOST_MISSES = 20
"""Tokens of no known key that are looked up at once in that time: one may just have been made, the others are guesses.
"""


class RouteRule(NamedTuple):
    """Any one of these scopes opens a route; without scopes it is open to everyone.

    `whole`: the route reports on memory as a whole, so a key that is limited to projects gets no answer. `shared`: it
    reports on what all spaces of the database share, so no key does where there are several.
    """

    scopes: frozenset[Scope]
    whole: bool = False
    shared: bool = False


def _rule(*scopes: Scope, whole: bool = False, shared: bool = False) -> RouteRule:
    return RouteRule(frozenset(scopes), whole, shared)


_READ, _WRITE, _INGEST = _rule("read"), _rule("write"), _rule("ingest")
_WATCH = _rule("operate", whole=True)

_PAGES = (
    *("/", "/search", "/sessions", "/sessions/", "/work", "/things/", "/events/", "/bugs", "/knowledge", "/hindsight"),
    *("/recalls", "/trends", "/projects", "/projects/"),
)
"""Of the viewer, for whoever may read."""

RULES: dict[tuple[str, str], RouteRule] = {
    ("GET", "/healthz"): _rule(),
    ("GET", "/readyz"): _rule(),
    ("GET", "/static/"): _rule(),
    ("GET", "/favicon.ico"): _rule(),
    ("GET", "/sign-in"): _rule(),
    ("GET", "/sign-in/"): _rule(),
    ("POST", "/sign-in"): _rule(),
    ("POST", "/sign-out"): _rule(*SCOPES),
    **{("GET", page): _READ for page in _PAGES},
    ("POST", "/things"): _WRITE,
    ("POST", "/bugs"): _READ,
    ("GET", "/engine"): _rule("operate", whole=True, shared=True),
    ("GET", "/forget"): _rule("erase", whole=True),
    ("POST", "/forget"): _rule("erase", whole=True),
    ("POST", "/v1/tickets"): _READ,
    ("GET", "/metrics"): _WATCH,
    ("GET", "/v1/openapi.json"): _rule(*SCOPES),
    ("GET", "/v1/caller"): _rule(*SCOPES),
    ("POST", "/v1/search"): _READ,
    ("POST", "/v1/bugs"): _READ,
    ("POST", "/v1/ask"): _READ,
    ("GET", "/v1/jobs/"): _rule("read", whole=True),
    ("GET", "/v1/tail/events"): _rule("read", whole=True),
    ("GET", "/v1/tail/progress"): _rule("operate", whole=True, shared=True),
    ("POST", "/v1/commands/"): _WRITE,
    ("POST", "/v1/hooks/"): _READ,
    ("POST", "/v1/events"): _INGEST,
    ("GET", "/mcp"): _rule(*SCOPES),
    ("POST", "/mcp"): _rule(*SCOPES),
    ("DELETE", "/mcp"): _rule(*SCOPES),
    ("POST", "/v1/forget"): _rule("erase", whole=True),
    ("POST", "/v1/forget/preview"): _rule("erase", whole=True),
}
"""What no declared question is, by method and path. A path that ends with a slash stands for all below it."""


@functools.cache
def rules() -> dict[tuple[str, str], RouteRule]:
    """The rule of each method and path; those of the declared questions stand beside them. The longest path decides."""
    declared = {
        ("GET", f"/v1{each.path.partition('{')[0]}"): RouteRule(each.scopes, each.whole, each.shared)
        for each in questions()
    }
    return RULES | declared


@functools.cache
def _longest() -> int:
    """Characters of the longest path that a rule is of: behind them a path is not looked at."""
    return max(len(path) for _, path in rules())


def caller_of(request: Request) -> Caller:
    """Who asks, as `memctl.api.server.auth.Guard` found. Raises: AttributeError where it stands before no application:
    then nobody is answered."""
    caller: Caller = request.state.caller
    return caller


def rule_of(method: str, path: str) -> RouteRule | None:
    """The rule for a request; None where it is the owner's alone."""
    method = "GET" if method == "HEAD" else method
    known = rules()
    if found := known.get((method, path)):
        return found
    below = path.rfind("/", 0, _longest())
    while below > 0:
        if found := known.get((method, path[: below + 1])):
            return found
        below = path.rfind("/", 0, below)
    return None


def is_open(method: str, path: str) -> bool:
    """Whether everyone is answered there."""
    rule = rule_of(method, path)
    return rule is not None and not rule.scopes


def is_page(path: str) -> bool:
    """Whether it is of the viewer. What programs ask takes a key of theirs, however a browser signed in."""
    return not path.startswith(("/v1", "/mcp", "/metrics", "/healthz", "/readyz"))


def refused(caller: Caller, method: str, path: str) -> str:
    """Why a caller gets no answer there; empty where it does."""
    rule = rule_of(method, path)
    if caller.owner or (rule is not None and not rule.scopes):
        return ""
    if rule is None:
        return "this is the owner's alone"
    if caller.scopes.isdisjoint(rule.scopes):
        return f"this key has no scope {' or '.join(sorted(rule.scopes))}"
    if rule.whole and caller.projects is not None:
        return "this reports on memory as a whole, and this key is limited to projects"
    if rule.shared and caller.apart:
        return "this reports on what all spaces of the database share, and this key is of one"
    return ""


class NotOneKey(MemctlError):
    """You are signed in as {who!r}, and {found} called so. Ask whoever runs this memctl to make you one key of that
    name (`memctl keys add NAME`), or to revoke all others (`memctl keys revoke ID`)."""

    who: str
    found: str


class Keyring:
    """The keys of all spaces of a database, looked up at most every `FRESH_S` seconds. For any number of threads."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._lock = threading.Lock()
        self._known = api_keys.Lock({})
        self._held = frozenset[str]()
        self._read_at = float("-inf")
        self._spare = 0

    def caller(self, token: str) -> Caller | None:
        """Who a token is of; None for nobody. Raises: DatabaseUnavailable, TooBusy."""
        return self._caller(lambda known: known.opened_by(token)) if token.startswith(api_keys.PREFIX) else None

    def holder(self, id: str) -> Caller | None:
        """Whose the key of that id is; None where it is in force no more. Raises: as `caller`."""
        return self._caller(lambda known: known.keys[id][0] if id in known.keys else None)

    def named(self, who: str) -> Caller:
        """Whose the one key in force of that name is, in small letters or capitals. Only letters of ASCII count as the
        same: others are folded together that two people may have. Raises: NotOneKey, and as `caller`."""

        def alone(known: api_keys.Lock) -> Key | None:
            now = datetime.now(UTC)
            found = [key for key, _ in known.keys.values() if key.holds(now) and _folded(key.name) == _folded(who)]
            if len(found) > 1:
                raise NotOneKey(who=who, found="several keys in force are")
            return found[0] if found else None

        if (caller := self._caller(alone)) is None:
            raise NotOneKey(who=who, found="no key in force is")
        return caller

    def _caller(self, wanted: Callable[[api_keys.Lock], Key | None]) -> Caller | None:
        """Who comes with a key; None where it is not in force."""
        key = self._key(wanted)
        if key is None or not key.holds(datetime.now(UTC)):
            return None
        name = key.name.strip() or key.id
        apart = bool(self._held - {key.space})
        return Caller(f"key {key.id}", frozenset(key.scopes), key.projects, name, key.id, key.space, apart)

    def _key(self, wanted: Callable[[api_keys.Lock], Key | None]) -> Key | None:
        with self._lock:
            if time.monotonic() - self._read_at > FRESH_S:
                self._read()
                self._read_at, self._spare = time.monotonic(), MOST_MISSES
            found = wanted(self._known)
            if found is None and self._spare:
                self._read()
                found = wanted(self._known)
                self._spare -= found is None
            return found

    def _read(self) -> None:
        def look(reader: Reader) -> tuple[api_keys.Lock, frozenset[str]]:
            return api_keys.lock_of(reader.connection), frozenset(spaces.held(reader.connection))

        self._known, self._held = self._readers.read(look, IN_DIRECTORY)


def _folded(name: str) -> bytes:
    return name.strip().encode("utf-8", "surrogatepass").lower()
