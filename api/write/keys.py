"""Keys of the API: made, listed and revoked where the database is. No request over HTTP does this."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime

from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import project_asked
from memctl.api.reading.reader import Reader, opened
from memctl.domain.projects.identity import UnknownProject, remote_of
from memctl.domain.projects.key_limits import given
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.provenance import LONGEST_NAME, member_called
from memctl.infra import api_keys
from memctl.infra.api_keys import Key, Scope
from memctl.infra.database import Connection, connect, outages
from memctl.infra.redaction import redact
from memctl.infra.settings import Settings


class NameHoldsASecret(MemctlError):
    """The name of a key may hold no secret: lists show it, and what is said with the key bears it."""

    exit_code = 2


class NotAMembersName(MemctlError):
    """A key is called as its member: by at most {most} letters, all of them seen, with single blanks between them.

    Else two keys would be one member.
    """

    exit_code = 2
    most: int


_NAME = "memctl keys"
"""Of the connection."""


def make(
    settings: Settings, name: str, scopes: Sequence[Scope], projects: Sequence[str], until: datetime | None
) -> tuple[Key, str]:
    """Make a key, limited to these projects where any is named. Returns it and its token, which nothing keeps.

    Raises: NameHoldsASecret, NotAMembersName, UnknownProject, SeveralRemotes, DatabaseUnavailable, and as
    `api_keys.make`.
    """
    if redact(name)[1]:
        raise NameHoldsASecret
    if member_called(name) != name:
        raise NotAMembersName(most=LONGEST_NAME)
    limits: tuple[str, ...] = ()
    if projects:
        with opened(settings, OWNER, _NAME) as reader:
            limits = tuple(dict.fromkeys(each for project in projects for each in _given(reader, project)))
    with _home(settings) as connection:
        return api_keys.make(connection, settings.space, name, scopes, limits or None, until)


def _given(reader: Reader, named: str) -> tuple[str, ...]:
    """What a key for a project is given that was named so; of a git remote that memory does not know yet, that one."""
    try:
        return given(project_asked(reader, named, None), named)
    except UnknownProject:
        host = named.partition("/")[0]
        if remote := remote_of(named if ":" in host else f"https://{named}"):
            return (remote,)
        raise


def listed(settings: Settings) -> list[Key]:
    """Every key of the space, latest first. Raises: DatabaseUnavailable."""
    with _home(settings) as connection:
        return api_keys.listed(connection, settings.space)


def revoke(settings: Settings, key: str) -> Key:
    """Put a key, by its id or name, out of force for good. Raises: as `api_keys.revoke`, DatabaseUnavailable."""
    with _home(settings) as connection:
        return api_keys.revoke(connection, settings.space, key)


@contextlib.contextmanager
def _home(settings: Settings) -> Iterator[Connection]:
    """Keys lie where the API looks them up, wherever their spaces live."""
    with outages(), connect(settings.require("database_url"), name=_NAME) as connection:
        yield connection
