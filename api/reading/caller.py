"""Who asks: its scopes, and the projects that it is limited to."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.infra.api_keys import SCOPES


class Caller(msgspec.Struct, frozen=True):
    """Who asks: its name for logs, its scopes, and the remotes and paths that it is limited to (None: it is not)."""

    name: str
    scopes: frozenset[str]
    projects: tuple[str, ...] | None = None


OWNER = Caller("owner", frozenset((*SCOPES, "owner")))
NOBODY = Caller("nobody", frozenset())

CALLER: ContextVar[Caller] = ContextVar("memctl caller", default=OWNER)
"""Who the request at hand is of. A command line that opens the database itself is the owner's."""


def drawn(key: str) -> str:
    """An idempotency key as that of whoever asks: callers who draw keys know nothing of each other's."""
    caller = CALLER.get()
    return key if caller == OWNER else f"{caller.name} {key}"


class Forbidden(MemctlError):
    """{why}"""

    exit_code = 1
    why: str
