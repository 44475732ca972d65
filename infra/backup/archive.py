"""Backups: the log with all that steers it, in one zip file that any zip tool can open and check.

Members are tables as Postgres' COPY writes them (text), then `manifest.json`: schema, columns, rows and sha256 of each.
Read models are not in it: they are folded again. The cache of dense vectors is, so that a restore embeds nothing twice;
and what processors did and spent, so that no language model is asked twice and its budget goes on.
What is in a backup is what one snapshot saw: writers go on meanwhile, and what they had not committed is not in it.
"""

import contextlib
import hashlib
import json
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql

from memctl.domain.support.errors import MemctlError
from memctl.infra.data_dir import open_private
from memctl.infra.database import Connection, single_row, snapshot
from memctl.infra.files import opened
from memctl.infra.log.mark import hold_off_appends
from memctl.infra.log.migrate import revisions
from memctl.infra.log.partitions import POSITIONS
from memctl.infra.log.spaces import space_names
from memctl.infra.readmodels import generations

FORMAT = 1

TABLES = (
    "spaces", "events", "receipts", "tombstones", "mark_history", "checkpoints", "embeddings", "api_keys", "processing",
    "llm_calls", "vector_models",
)  # fmt: skip
"""In the order in which they can be restored."""

_SINCE = {"vector_models": "0015"}
"""The schema from which on backups hold these. A memctl of before refuses tables that it does not expect, and it is to
read the backup that is made before its database is upgraded."""

_BLOCK = 1 << 20
_LONGEST_MANIFEST = 1 << 20
"""Bytes; a file that unpacks to more was not written by memctl."""

_UNREADABLE = (
    KeyError, OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
"""What a damaged member raises, or one that is packed or locked as memctl packs none."""

_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_LAST_POSITION = 1 << 53
"""Readers hold no later one."""
_MOST_PARTITIONS = 100
"""Of the log, that are made in one transaction."""

_NEVER_WRITTEN = """
SELECT FROM memctl.events WHERE position NOT BETWEEN 1 AND 1::bigint << 53
    OR occurred_at NOT BETWEEN '0001-01-02' AND '9999-12-30' OR recorded_at NOT BETWEEN '0001-01-02' AND '9999-12-30'
    OR space_id NOT IN (SELECT space_id FROM memctl.spaces)
    OR stream_hash <> get_byte(sha256(convert_to(stream, 'UTF8')), 0)
LIMIT 1
"""
"""Events of moments that no reader can hold, or at positions behind which none is left, and of no space or shard."""

_ENTER = """
INSERT INTO memctl.deliveries (position, space_id, event_id)
SELECT position, space_id, event_id FROM memctl.events ORDER BY space_id, event_id
"""

Progress = Callable[[str, int], None]
"""Called with the table and how many bytes of it are done."""


class BadBackup(MemctlError):
    """{file} cannot be restored: {why}."""

    file: str
    why: str


class NotEmpty(MemctlError):
    """The log holds {events} events already."""

    hint = "restore into a database without any: another MEMCTL_DATA_DIR, or `memctl restore --set-aside`"
    events: int


class BackupMember(msgspec.Struct, frozen=True):
    """One table in a backup."""

    columns: tuple[str, ...]
    rows: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True):
    """What is in a backup. `position` is the last one in it; `schema` the revision of the tables."""

    format: int
    schema: str
    made_at: str
    position: int
    tables: dict[str, BackupMember]


def write(connection: Connection, file: Path, progress: Progress = lambda table, size: None) -> BackupManifest:
    """Write a backup, whole or not at all, readable by its owner alone. Raises: OSError, DatabaseUnavailable."""
    with (
        open_private(file) as written,
        snapshot(connection),
        zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        manifest = _written(connection, archive, progress)
    return manifest


def _written(connection: Connection, archive: zipfile.ZipFile, progress: Progress) -> BackupManifest:
    tables = {}
    schema, _ = revisions(connection)
    for table in TABLES:
        if schema < _SINCE.get(table, ""):
            continue
        columns = _columns(connection, table)
        digest, rows, size = hashlib.sha256(), 0, 0
        query = sql.SQL("COPY (SELECT {} FROM memctl.{} ORDER BY 1) TO STDOUT").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(table)
        )
        with (
            archive.open(table, "w", force_zip64=True) as member,
            connection.cursor() as cursor,
            cursor.copy(query) as copied,
        ):
            for row in copied:
                member.write(row)
                digest.update(row)
                rows += 1
                size += len(row)
                if size >= _BLOCK:
                    progress(table, size)
                    size = 0
        progress(table, size)
        tables[table] = BackupMember(columns, rows, digest.hexdigest())
    found = single_row(connection, "SELECT coalesce(max(position), 0) FROM memctl.events")
    manifest = BackupManifest(FORMAT, schema, datetime.now(UTC).isoformat(), found[0], tables)
    archive.writestr("manifest.json", json.dumps(msgspec.to_builtins(manifest), indent=2) + "\n")
    return manifest


def read_manifest(file: Path) -> BackupManifest:
    """What a backup says of itself. Raises: BadBackup."""
    with _opened(file) as archive:
        return _manifest(file, archive)


def check(file: Path, room: int | None = None) -> BackupManifest:
    """Read a backup through and compare every checksum, where what it unpacks to has that much room (in bytes).

    Raises: BadBackup.
    """
    with _opened(file) as archive:
        manifest = _manifest(file, archive)
        size = sum(each.file_size for each in archive.infolist())
        if room is not None and size > room:
            raise BadBackup(file=str(file), why=f"it unpacks to {size >> 20:,} MB, and {room >> 20:,} are free")
        for table in manifest.tables:
            for _ in _blocks(file, archive, table, manifest):
                pass
        return manifest


def restore(connection: Connection, file: Path, progress: Progress = lambda table, size: None) -> BackupManifest:
    """Put a backup into a log that holds no event, in the caller's transaction. Check the file first (`check`).

    Whoever appends meanwhile waits: it would be given a position, or record an event, that the backup brings. Where a
    space has another number afterwards, memctl's other connections are ended: they go by the one of before.

    Raises: NotEmpty, BadBackup.
    """
    hold_off_appends(connection)
    spaces = space_names(connection)
    row = connection.execute("SELECT count(*) FROM (SELECT FROM memctl.events LIMIT 1) e").fetchone()
    if row and row[0]:
        (count,) = connection.execute("SELECT count(*) FROM memctl.events").fetchone() or (0,)
        raise NotEmpty(events=count)
    with _opened(file) as archive:
        manifest = _manifest(file, archive)
        if manifest.schema > revisions(connection)[0]:
            raise BadBackup(file=str(file), why="it was written by a newer memctl")
        tables = [table for table in TABLES if table in manifest.tables]
        for table in reversed(tables):
            if table != "events":  # there is none, and nothing may delete from it
                connection.execute(sql.SQL("DELETE FROM memctl.{}").format(sql.Identifier(table)))
        # Each takes locks until the end, and there are only so many of those.
        size = max(POSITIONS, manifest.position // _MOST_PARTITIONS)
        connection.execute("SELECT memctl.make_partitions(%s, %s)", [size, manifest.position])
        connection.execute("SELECT set_config('memctl.covered', 'entered', true)")  # they are entered below
        for table in tables:
            statement = sql.SQL("COPY memctl.{} ({}) FROM STDIN").format(
                sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, manifest.tables[table].columns))
            )
            try:
                with connection.cursor() as cursor, cursor.copy(statement) as copy:
                    for block in _blocks(file, archive, table, manifest):
                        copy.write(block)
                        progress(table, len(block))
                if table == "events":
                    connection.execute(_ENTER)
            except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError) as problem:
                why = f"{table} holds what no memctl wrote ({problem.diag.message_primary})"
                raise BadBackup(file=str(file), why=why) from problem
        if connection.execute(_NEVER_WRITTEN).fetchone() is not None:
            raise BadBackup(file=str(file), why="events holds what no memctl wrote")
        # A log without events may have handed out positions, to appends that were undone, or to a restore that was:
        # who has passed them starts over, and none is handed out again, for somebody may be about to pass it.
        connection.execute(
            "SELECT setval(sequence, greatest(last, max(position), 1), coalesce(last, max(position)) IS NOT NULL)"
            " FROM pg_get_serial_sequence('memctl.events', 'position') AS sequence,"
            " pg_sequence_last_value(sequence::regclass) AS last LEFT JOIN memctl.events ON true"
            " GROUP BY sequence, last"
        )
        connection.execute("UPDATE memctl.mark SET position = 0, held = '{}'")
        generations.reset_offsets(connection)
        for table, column in (("spaces", "space_id"), ("llm_calls", "call")):
            connection.execute(
                sql.SQL("SELECT setval(pg_get_serial_sequence(%s, %s), greatest(max({}), 1)) FROM {}").format(
                    sql.Identifier(column), sql.Identifier("memctl", table)
                ),
                [f"memctl.{table}", column],
            )
        if not spaces.items() <= space_names(connection).items():
            _end_others(connection)
        return manifest


def _end_others(connection: Connection) -> None:
    """End memctl's other connections to this database. Whoever connects again waits for the end of the transaction
    before it learns what number a space has."""
    _terminate(connection)  # one that has read the spaces, and goes on, would keep the lock for as long as it does
    connection.execute("LOCK TABLE memctl.spaces IN ACCESS EXCLUSIVE MODE")
    _terminate(connection)  # who connected in between


def _terminate(connection: Connection) -> None:
    connection.execute("SELECT pg_stat_clear_snapshot()")  # who is connected is looked up once in a transaction
    connection.execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
        " AND usename = current_user AND application_name LIKE 'memctl%' AND pid <> pg_backend_pid()"
    )


def _columns(connection: Connection, table: str) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
        " ORDER BY attnum",
        [f"memctl.{table}"],
    )
    return tuple(row[0] for row in rows)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[zipfile.ZipFile]:
    with contextlib.ExitStack() as kept:
        try:
            archive = kept.enter_context(zipfile.ZipFile(kept.enter_context(opened(file))))
        except _UNREADABLE as problem:
            why = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
            raise BadBackup(file=str(file), why=why) from problem
        yield archive


def _manifest(file: Path, archive: zipfile.ZipFile) -> BackupManifest:
    try:
        if archive.getinfo("manifest.json").file_size > _LONGEST_MANIFEST:
            raise ValueError
        found = msgspec.json.decode(archive.read("manifest.json"), type=BackupManifest)
    except (msgspec.MsgspecError, *_UNREADABLE) as problem:
        raise BadBackup(file=str(file), why="it is no backup of memctl's, or damaged") from problem
    if found.format != FORMAT or set(found.tables) - set(TABLES):
        raise BadBackup(file=str(file), why="it was written by a newer memctl")
    if not 0 <= found.position <= _LAST_POSITION:
        raise BadBackup(file=str(file), why="its position is one that no log reaches")
    if not {"spaces", "events"} <= set(found.tables):
        raise BadBackup(file=str(file), why="it lacks a table")
    return found


def _blocks(file: Path, archive: zipfile.ZipFile, table: str, manifest: BackupManifest) -> Iterator[bytes]:
    """What a table holds. At its end: raises BadBackup where the checksum is another."""
    digest = hashlib.sha256()
    try:
        if archive.getinfo(table).compress_type not in _PACKED:
            raise ValueError("it is packed as memctl packs none")
        with archive.open(table) as member:
            while block := member.read(_BLOCK):
                digest.update(block)
                yield block
    except _UNREADABLE as problem:
        raise BadBackup(file=str(file), why=f"{table} cannot be read ({problem})") from problem
    if digest.hexdigest() != manifest.tables[table].sha256:
        raise BadBackup(file=str(file), why=f"the checksum of {table} is not that of its manifest")
