"""Who asks: its scopes, and the projects that it is limited to."""

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.domain.support.provenance import known_actor, spoken_through
from memctl.infra.api_keys import SCOPES


class Caller(msgspec.Struct, frozen=True):
    """Who asks: its name for logs, its scopes, and the remotes and paths that it is limited to (None: it is not)."""

    name: str
    scopes: frozenset[str]
    projects: tuple[str, ...] | None

    member: str = ""
    """The member of the team whose key it is: the key's name."""

    key: str = ""
    """The id of that key."""

    space: str = ""
    """The space that is meant, which is that of the key; empty for the API's own."""

    apart: bool = False
    """Whether the database holds other spaces, of which the key is shown nothing: not what they hold, nor how much."""

    @property
    def owner(self) -> bool:
        """Whether it is the owner, whichever space is meant."""
        return "owner" in self.scopes

    def speaks(self, actor: str) -> str:
        """The actor of what the caller has recorded: the user is the owner, and nobody who comes with a key."""
        return spoken_through(actor, self.member) if self.member else known_actor(actor)


OWNER = Caller("owner", frozenset((*SCOPES, "owner")), None)
"""Who holds the token of the instance, or opens the database itself, as the command line does."""

NOBODY = Caller("nobody", frozenset(), ())
"""Who is not known, and memctl itself where it reads nothing of a project."""

IN_DIRECTORY = msgspec.structs.replace(NOBODY, space="*")
"""memctl itself where it looks into the database of the settings, wherever spaces live: none is called so."""


def drawn(key: str, caller: Caller) -> str:
    """An idempotency key as that of its caller: callers who draw keys know nothing of each other's."""
    return key if caller.owner else f"{caller.name} {key}"


class Forbidden(MemctlError):
    """{why}"""

    exit_code = 1
    why: str
