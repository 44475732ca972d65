"""API keys in the database: made once, shown once, kept as a hash.

A key reads `memctl_<id>_<secret>`. The id is no secret: lists show it, and it is what a key is revoked by. The secret
is 32 random bytes, so a plain sha256 of it cannot be searched through.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from memctl.domain.support.errors import MemctlError

if TYPE_CHECKING:
    from memctl.infra.database import Connection

Scope = Literal["read", "write", "ingest", "erase", "operate"]
"""What a key may do: ask memory (and have hooks inject); state and command; deliver what hooks and transcripts
hold; forget for good; see how the machinery does."""

SCOPES: tuple[Scope, ...] = get_args(Scope)

PREFIX = "memctl_"

_ALL = (
    "SELECT key_id AS id, space, name, scopes, projects, made_at, expires_at, revoked_at, hash FROM memctl.api_keys"
    " WHERE space = coalesce(%s, space) ORDER BY made_at DESC, key_id"
)


class NoKey(MemctlError):
    """No key that is in force is called {wanted!r}."""

    exit_code = 3
    hint = "`memctl keys list` shows names and ids."
    wanted: str


class SeveralKeys(MemctlError):
    """Several keys are called {wanted!r}: {ids}."""

    exit_code = 2
    hint = "Give the id of one of them."
    wanted: str
    ids: str


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. It opens its space and no other. `projects` are the remotes and paths that it is
    limited to (`domain.projects.key_limits`); None stands for all."""

    id: str
    space: str
    name: str
    scopes: tuple[Scope, ...]
    projects: tuple[str, ...] | None
    made_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def holds(self, at: datetime) -> bool:
        """Whether it is in force at a moment."""
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


def make(
    connection: Connection,
    space: str,
    name: str,
    scopes: Iterable[Scope],
    projects: Sequence[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[Key, str]:
    """A new key, and the token that it is used by, which is returned here and kept nowhere."""
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    kept = tuple(sorted(set(scopes)))
    limit = None if projects is None else tuple(projects)
    row = connection.execute(
        "INSERT INTO memctl.api_keys (key_id, space, name, hash, scopes, projects, expires_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING made_at",
        [id, space, name, _hash(secret), list(kept), limit and list(limit), expires_at],
    ).fetchone()
    assert row is not None
    key = Key(id=id, space=space, name=name, scopes=kept, projects=limit, made_at=row[0], expires_at=expires_at)
    return key, f"{PREFIX}{id}_{secret}"


def listed(connection: Connection, space: str) -> list[Key]:
    """Every key that was ever made for a space, latest first."""
    return [key for key, _ in _all(connection, space)]


def revoke(connection: Connection, space: str, wanted: str) -> Key:
    """Put a key out of force, by its id or its name. Raises: NoKey, SeveralKeys."""
    there = [key for key in listed(connection, space) if key.revoked_at is None]
    found = [key for key in there if key.id == wanted] or [key for key in there if key.name == wanted]
    if not found:
        raise NoKey(wanted=wanted)
    if len(found) > 1:
        raise SeveralKeys(wanted=wanted, ids=", ".join(key.id for key in found))
    row = connection.execute(
        "UPDATE memctl.api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE key_id = %s"
        " RETURNING revoked_at",
        [found[0].id],
    ).fetchone()
    assert row is not None
    return msgspec.structs.replace(found[0], revoked_at=row[0])


class Lock(msgspec.Struct, frozen=True):
    """What tokens are compared with: keys by id, each with the hash of its secret."""

    keys: dict[str, tuple[Key, bytes]]

    def opened_by(self, token: str) -> Key | None:
        """The key that a token is of, in force or not; None for none. Takes as long whether there is such a key."""
        id, _, secret = token.removeprefix(PREFIX).partition("_")
        key, expected = self.keys.get(id, (None, bytes(32)))
        same = hmac.compare_digest(_hash(secret), expected)
        return key if same and token.startswith(PREFIX) else None


def lock_of(connection: Connection) -> Lock:
    """All that tokens are compared with, of every space."""
    return Lock({key.id: (key, hash) for key, hash in _all(connection, None)})


def _all(connection: Connection, space: str | None) -> Iterator[tuple[Key, bytes]]:
    from psycopg.rows import dict_row

    rows = connection.cursor(row_factory=dict_row).execute(_ALL, [space])
    for row in rows:
        hash = row.pop("hash")
        yield msgspec.convert(row, Key), hash


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
