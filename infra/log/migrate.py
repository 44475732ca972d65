"""Migrations of the log and of the tables that steer its readers. Forward only, run before workers start."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from memctl.domain.support.errors import MemctlError
from memctl.infra.database import Connection, connect, outage, outages, plain_url
from memctl.infra.log.partitions import make_partitions

if TYPE_CHECKING:
    from alembic.script import Script, ScriptDirectory

_LOCK = 0x6D656D6D69677261  # one migration at a time in a database


STEP = 100_000
"""Rows that one transaction of a migration's preparation goes through, about a second's work."""


class NewerSchema(MemctlError):
    """The database was migrated by a newer version of memctl."""


class OlderSchema(MemctlError):
    """The database is at schema {found}, of a memctl from before the first release; this one starts from {first}."""

    hint = "export with the memctl that wrote it, and import the file with this one into an empty database"
    found: str
    first: str


class WrongEncoding(MemctlError):
    """The database keeps text in {encoding}; memctl needs one that takes every letter."""

    hint = "create another with ENCODING 'UTF8' TEMPLATE template0, and let MEMCTL_DATABASE_URL name it"


def revisions(connection: Connection) -> tuple[str, str]:
    """The revision that the database is at ("" before the first), and the newest that this code knows."""
    row = connection.execute("SELECT to_regclass('memctl.schema_version') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return "", max(_known())
    found = connection.execute("SELECT version_num FROM memctl.schema_version").fetchone()
    return (found[0] if found else ""), max(_known())


def refuse_newer(connection: Connection) -> None:
    """Work on no database that a newer memctl has migrated: what it means by its tables is not known here.

    Raises: NewerSchema, OlderSchema, DatabaseUnavailable.
    """
    with outages():
        row = connection.execute("SELECT version_num FROM memctl.schema_version").fetchone()
    if row is not None and row[0] not in _known():
        _refuse_older(row[0])
        raise NewerSchema(
            f"the database was migrated by a newer version of memctl: its schema is {row[0]}",
            hint="upgrade memctl, then start it again",
        )


def _refuse_older(found: str) -> None:
    if found < (first := min(_known())):
        raise OlderSchema(found=found, first=first)


@functools.cache
def _known() -> frozenset[str]:
    """The revisions that this code knows: of the files as they are when it first asks, for it is not those of later."""
    files = (Path(__file__).parent / "migrations" / "versions").glob("*.py")
    return frozenset(file.name.partition("_")[0] for file in files)


def migrate(database_url: str, upto: str | None = None) -> str:
    """Bring the schema up to this version's; returns the revision. Safe to call at once from several processes.

    Each version is a transaction of its own. What one can `prepare` beside the writers goes before it, in steps that
    may be killed: the next call goes on where they were. `upto`: a version to stop at (tests begin there).

    Raises: NewerSchema when the database is ahead of this code, OlderSchema, WrongEncoding, DatabaseUnavailable.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from psycopg import Error
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with outages(), connect(database_url, name="memctl migrate") as guard:
        if (encoding := guard.info.parameter_status("server_encoding")) != "UTF8":
            raise WrongEncoding(encoding=encoding)
        guard.execute("SET lock_timeout = 0")  # another's migration takes as long as it takes
        guard.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        if found := revisions(guard)[0]:
            _refuse_older(found)
            refuse_newer(guard)
        # Not by its URL, which libpq reads otherwise: several hosts, for one.
        engine = create_engine("postgresql+psycopg://", creator=lambda: Connection.connect(plain_url(database_url)))
        try:
            for script in _pending(ScriptDirectory.from_config(config), found, upto or max(_known())):
                if prepare := getattr(script.module, "prepare", None):
                    prepare(guard, STEP)
                with engine.begin() as connection:
                    config.attributes["connection"] = connection
                    command.upgrade(config, script.revision)
        except DBAPIError as problem:
            if isinstance(problem.orig, Error) and (known := outage(problem.orig)):
                raise known from problem
            raise
        finally:
            engine.dispose()
    if upto is None:
        with connect(database_url, name="memctl migrate") as connection:
            make_partitions(connection)
    return upto or max(_known())


def _pending(scripts: "ScriptDirectory", found: str, upto: str) -> "list[Script]":
    """The versions to come behind one ("": all of them) up to another, in order."""
    return [script for script in reversed([*scripts.walk_revisions()]) if found < script.revision <= upto]
