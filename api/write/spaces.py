"""The directory of spaces: which there are, and on which database and collection each lives."""

from collections.abc import Sequence

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect, outages
from memctl.infra.log.spaces import space_id
from memctl.infra.readmodels import generations
from memctl.infra.settings import Settings
from memctl.infra.vectors.outbox import collection_of

_NAME = "memctl space"
"""Of the connections."""


class SpaceIsThere(MemctlError):
    """There is a space {space} already."""

    exit_code = 2
    space: str


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """One space. `database`: the name of that which it lives on, empty for the one that is asked. `collection`: that of
    its vectors in Qdrant; empty where its database does not answer, or nothing was folded yet."""

    name: str
    database: str
    collection: str = ""
    keys: int


def listed(settings: Settings) -> Sequence[Space]:
    """Every space of the directory, by name. Raises: NotRunning, DatabaseUnavailable."""
    with outages(), connect(settings.require("database_url"), name=_NAME) as connection:
        rows = connection.execute(
            "SELECT s.name, s.database, (SELECT count(*) FROM memctl.api_keys k WHERE k.space = s.name"
            " AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp()))"
            " FROM memctl.spaces s ORDER BY s.name"
        ).fetchall()
        collections = {"": _collection(connection)}
    for database in {row[1] for row in rows} - {""}:
        try:
            with connect(settings.on(database).require("database_url"), name=_NAME) as connection, outages():
                collections[database] = _collection(connection)
        except MemctlError:
            collections[database] = ""
    return [
        Space(name=name, database=database, collection=collections[database], keys=keys)
        for name, database, keys in rows
    ]


def create(settings: Settings, name: str, database: str = "") -> Space:
    """Make a space, on the database of that name where one is given. Run again after it was cut off, it goes on.

    Raises: SpaceIsThere, UnknownDatabase, NotRunning, DatabaseUnavailable.
    """
    settings = settings.of_space(name)
    with outages(), connect(settings.require("database_url"), name=_NAME) as connection:
        if connection.execute("SELECT FROM memctl.spaces WHERE name = %s", [name]).fetchone() is not None:
            raise SpaceIsThere(space=name)
        number = None
        if database:  # there first: what the directory names is there
            with connect(settings.on(database).require("database_url"), name=_NAME) as there:
                generations.ensure_live(there, settings.stage1_shards)
                number = space_id(there, name)
        with connection.transaction():
            space_id(connection, name, number)
            connection.execute("UPDATE memctl.spaces SET database = %s WHERE name = %s", [database, name])
    return next(each for each in listed(settings) if each.name == name)


def _collection(connection: Connection) -> str:
    try:
        return collection_of(connection, generations.live(connection).stage2)
    except generations.NoneYet:
        return ""
