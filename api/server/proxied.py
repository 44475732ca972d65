"""Who a proxy in front says is signed in: by a header of its own, beside a secret that only the proxy sends."""

import hmac
import logging
import time
from collections.abc import Callable, Iterable

from memctl.api.http.access import is_page
from memctl.domain.support.errors import MemctlError
from memctl.infra.settings_model import PROXY_PROOF

log = logging.getLogger("memctl.api")

_LONGEST_NAME = 200
"""Letters of a name that a proxy sends."""

REPEATED_S = 60.0
"""Seconds for which no more is logged of headers that nobody vouched for."""


class BadName(MemctlError):
    """The proxy sends a {header} that names nobody: one such header is wanted, with a name of at most 200 letters."""

    header: str


class Proxy:
    """Reads the header by which a proxy names whoever signed in to it. An empty `header`: there is no such proxy.

    It counts only beside the secret: an address proves nothing, for whoever runs on this machine or network has one
    as well. `clock` gives seconds.
    """

    def __init__(self, header: str = "", secret: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        if header and not secret:
            raise ValueError("a header without a secret could be sent by anyone")
        self._header, self._secret, self._clock = header, secret.encode(), clock
        self._ignored, self._logged_at = 0, float("-inf")

    @property
    def there(self) -> bool:
        """Whether there is such a proxy: then people who have no key see the viewer's pages."""
        return bool(self._header)

    def names(self, path: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
        """Who looks at a page of the viewer, as the proxy says; empty where it says nobody, or may not be the proxy.
        Takes headers as they came, twice where they came twice. Raises: BadName."""
        if not self._header:
            return ""
        wanted = self._header.lower().encode(), PROXY_PROOF.lower().encode()
        named, secrets = ([value for name, value in headers if name.lower() == each] for each in wanted)
        if not named:
            return ""
        if not hmac.compare_digest(b"\n".join(secrets), self._secret):
            self._note_ignored()
            return ""
        name = named[0].decode(errors="replace").strip()
        if not is_page(path):
            return ""
        if len(named) > 1 or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or "\ufffd" in name:
            raise BadName(header=self._header)
        return name

    def _note_ignored(self) -> None:
        self._ignored += 1
        if self._clock() - self._logged_at >= REPEATED_S:
            self._logged_at = self._clock()
            log.warning("a %s without the proxy's secret was ignored (%d so far)", self._header, self._ignored)
