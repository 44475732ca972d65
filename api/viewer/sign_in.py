"""Who may look with a browser: a signed cookie, given for a ticket of the command line or for the API's token."""

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from hashlib import sha256

COOKIE = "memctl"

SIGNED_IN_S = 12 * 3600
"""Seconds after which a browser has to sign in again."""

TICKET_S = 60
"""Seconds within which a ticket must be used. It works once, so that one left in a browser's history opens nothing."""

MOST_TICKETS = 64
"""Tickets that were made and not used; the oldest go."""

MOST_LEFT = 1_024
"""Cookies that signed out and have not expired; the oldest go."""


class Browsers:
    """Tickets wait in memory; cookies are not kept: `EXPIRES.DRAWN.MAC`, signed with a key of the API's token.

    A new token so signs every browser out. A cookie that signed out is known as such until the API starts again.
    `secure`: browsers come by https, and say the cookie nowhere else. `clock` gives seconds since 1970.
    """

    def __init__(self, token: str, clock: Callable[[], float] = time.time, *, secure: bool = False) -> None:
        self.secure = secure
        self._token = token.encode()
        self._key = hmac.digest(self._token, b"memctl viewer", "sha256")
        self._clock = clock
        self._tickets: dict[str, float] = {}
        self._left: dict[str, None] = {}
        self._lock = threading.Lock()

    def ticket(self) -> str:
        """A word that signs one browser in, once, within a minute."""
        now = self._clock()
        with self._lock:
            live = [(word, until) for word, until in self._tickets.items() if until > now]
            self._tickets = dict(live[-MOST_TICKETS + 1 :])
            word = secrets.token_urlsafe(24)
            self._tickets[word] = now + TICKET_S
        return word

    def by_ticket(self, word: str) -> str | None:
        """The cookie that a ticket is good for; None where it is unknown, used or too old."""
        with self._lock:
            until = self._tickets.pop(word, 0.0)
        return self._cookie() if until > self._clock() else None

    def by_token(self, token: str) -> str | None:
        """The cookie for whoever knows the API's token; None for others."""
        return self._cookie() if hmac.compare_digest(token.encode(), self._token) else None

    def knows(self, cookies: bytes) -> bool:
        """Whether a `Cookie` header holds a cookie of ours that has not expired, nor signed out."""
        value = _ours(cookies)
        said, _, mac = value.rpartition(".")
        until = said.partition(".")[0]
        same = hmac.compare_digest(self._mac(said), mac.encode())
        live = until.isascii() and until.isdigit() and int(until[:20]) > self._clock()
        return same and live and value not in self._left

    def leave(self, cookies: bytes) -> None:
        """Let the cookie of this header be good for nothing from now on."""
        if self.knows(cookies):
            with self._lock:
                self._left[_ours(cookies)] = None
                for oldest in list(self._left)[:-MOST_LEFT]:
                    del self._left[oldest]

    def _cookie(self) -> str:
        said = f"{int(self._clock()) + SIGNED_IN_S}.{secrets.token_urlsafe(9)}"
        return f"{said}.{self._mac(said).decode()}"

    def _mac(self, said: str) -> bytes:
        return hmac.new(self._key, said.encode(), sha256).hexdigest().encode()


def _ours(cookies: bytes) -> str:
    # The library's own reading of this header takes the square of its length.
    pairs = (pair.partition("=") for pair in cookies.decode("latin-1").split(";"))
    return next((value.strip() for name, _, value in pairs if name.strip() == COOKIE), "")
