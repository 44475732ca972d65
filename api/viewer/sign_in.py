"""Who may look with a browser: a signed cookie, given for a ticket of the command line, the API's token, or a key."""

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from hashlib import sha256

from memctl.api.http.access import Keyring, refused
from memctl.api.reading.caller import OWNER, Caller
from memctl.infra.listening import viewer_host

COOKIE = "memctl"

SIGNED_IN_S = 12 * 3600
"""Seconds after which a browser has to sign in again."""

TICKET_S = 60
"""Seconds within which a ticket must be used. It works once, so that one left in a browser's history opens nothing."""

MOST_TICKETS = 64
"""Tickets of one caller that were made and not used; the oldest go."""

MOST_LEFT = 1_024
"""Cookies of one caller that signed out and have not expired. One more, and all that the caller has are signed out."""


class Browsers:
    """Tickets wait in memory; cookies are not kept: `EXPIRES.DRAWN.KEY.MAC`, signed with a key of the API's token.

    KEY is the id of the API key whose rights the browser has, and empty for the owner's; a browser loses them with
    the key. A new token signs every browser out. A cookie that signed out is known as such until the API starts again.
    `secure`: browsers come by https, and say the cookie nowhere else. `clock` gives seconds since 1970.
    """

    def __init__(
        self,
        token: str,
        clock: Callable[[], float] = time.time,
        *,
        keyring: Keyring | None = None,
        secure: bool = False,
    ) -> None:
        self.secure = secure
        self._keyring = keyring
        self._token = token.encode()
        self._key = hmac.digest(self._token, b"memctl viewer", "sha256")
        self._clock = clock
        self._tickets: dict[str, tuple[float, str]] = {}
        self._left: dict[str, set[str]] = {}
        self._void: dict[str, int] = {}
        """By key, the second up to which all of its cookies are signed out."""
        self._lock = threading.Lock()

    def ticket(self, caller: Caller) -> str:
        """A word that signs one browser in with the caller's rights, once, within a minute."""
        return self._ticket(caller.key)

    def onward(self, host: str, port: int | None, cookie: str | None, ticket: str = "") -> str:
        """Where who came by one of loopback's names has to sign in, with a ticket: the cookies of such a name go to all
        that listens there. Empty where the cookie is to be set, and where there is none and the ticket is not known."""
        with self._lock:
            _, key = self._tickets.get(ticket, (0.0, None)) if cookie is None else (0.0, _key_of(cookie))
        if key is None or self.secure or host not in ("localhost", "127.0.0.1", "::1"):
            return ""
        return f"http://{viewer_host(self._token.decode(), key)}:{port or 80}/sign-in/{ticket or self._ticket(key)}"

    def _ticket(self, key: str) -> str:
        now = self._clock()
        with self._lock:
            live = {word: kept for word, kept in self._tickets.items() if kept[0] > now}
            for oldest in [word for word, (_, of) in live.items() if of == key][: -MOST_TICKETS + 1]:
                del live[oldest]
            self._tickets = live
            word = secrets.token_urlsafe(24)
            self._tickets[word] = now + TICKET_S, key
        return word

    def by_ticket(self, word: str) -> str | None:
        """The cookie that a ticket is good for; None where it is unknown, used or too old."""
        with self._lock:
            until, key = self._tickets.pop(word, (0.0, ""))
        return self._cookie(key) if until > self._clock() else None

    def by_token(self, token: str) -> str | None:
        """The cookie for whoever knows the API's token, or a key that may read; None for others. Raises: as
        `Keyring.caller`."""
        if hmac.compare_digest(token.encode(), self._token):
            return self._cookie("")
        member = self._keyring.caller(token) if self._keyring else None
        return self._cookie(member.key) if member and not refused(member, "GET", "/") else None

    def signed_in(self, cookies: bytes) -> Caller | None:
        """Whose rights a browser has by its `Cookie` header; None without a cookie of ours, where it expired or
        signed out, and where its key is in force no more. Raises: as `Keyring.caller`."""
        if not self.knows(cookies):
            return None
        key = _key_of(_ours(cookies))
        if not key:
            return OWNER
        return self._keyring.holder(key) if self._keyring else None

    def knows(self, cookies: bytes) -> bool:
        """Whether a `Cookie` header holds a cookie of ours that has not expired, nor signed out."""
        value = _ours(cookies)
        said, _, mac = value.rpartition(".")
        until = said.partition(".")[0]
        same = hmac.compare_digest(self._mac(said), mac.encode())
        live = until.isascii() and until.isdigit() and int(until[:20]) > self._clock()
        if not (same and live):
            return False
        key = _key_of(value)
        return int(until) - SIGNED_IN_S > self._void.get(key, -1) and value not in self._left.get(key, ())

    def leave(self, cookies: bytes) -> None:
        """Let the cookie of this header be good for nothing from now on."""
        if self.knows(cookies):
            value = _ours(cookies)
            key = _key_of(value)
            with self._lock:
                left = self._left.setdefault(key, set())
                left.add(value)
                if len(left) > MOST_LEFT:
                    self._void[key] = int(self._clock())
                    left.clear()

    def _cookie(self, key: str) -> str:
        said = f"{int(self._clock()) + SIGNED_IN_S}.{secrets.token_urlsafe(9)}.{key}"
        return f"{said}.{self._mac(said).decode()}"

    def _mac(self, said: str) -> bytes:
        return hmac.new(self._key, said.encode(), sha256).hexdigest().encode()


def _key_of(value: str) -> str:
    return value.split(".")[2]


def _ours(cookies: bytes) -> str:
    # The library's own reading of this header takes the square of its length.
    pairs = (pair.partition("=") for pair in cookies.decode("latin-1").split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == COOKIE), "")
