"""Rows of a legacy store, be it an SQLite database, JSON or JSON by the line. Nothing is ever written to it.

A JSON file holds an object of tables, one table (then its name, or each row's fields, say which), or a row a line.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from memctl.domain.support.errors import MemctlError
from memctl.infra.legacy.meaning import TABLES, table_of
from memctl.infra.transcripts.fields import kind, shallow

LARGEST = 256 * 1024 * 1024
"""Bytes of the largest JSON document that is read; lines and databases may be larger altogether."""

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of JSON that is read: what memctl keeps of a row is a thousandth."""

LONGEST_VALUE = 16 * 1024 * 1024
"""Bytes of the longest value of a database that is read."""

_ROW, _OVERHEAD = 2, 64 * 1024
"""Bytes that a row takes in a file at least, and what a small file may hold beyond its size. A damaged file may lead in
circles, so its rows are counted against its size."""


SUFFIXES = (".db", ".sqlite", ".sqlite3", ".json", ".jsonl", ".ndjson")

_SQLITE, _DUCKDB = b"SQLite format 3\0", b"DUCK"


class NotALegacyStore(MemctlError):
    """{path} is no store that memctl can import: {why}."""

    exit_code = 2
    hint = (
        "It reads the stores of claude-mem, mem0, basic-memory and code-memory, Claude Code's notes, and SQLite or "
        "JSON with the tables bot_memory, collected_info, good_examples, knowledge_nodes or entity_profiles."
    )
    path: str
    why: str


class Row(NamedTuple):
    """One row. `table` is empty where nothing says which it is of; `why` says what kept it from being read."""

    number: int
    table: str
    fields: dict[str, Any]
    why: str = ""


def rows_of(path: Path) -> Iterator[Row]:
    """A store's rows, in its own order. Raises: NotALegacyStore, OSError."""
    with path.open("rb") as file:
        head = file.read(16)
    if head == _SQLITE:
        yield from _of_database(path)
    elif head[8:12] == _DUCKDB:
        raise NotALegacyStore(path=str(path), why="a DuckDB database; have code-memory export it as JSON first")
    elif head and not head.strip(b"\0"):
        raise NotALegacyStore(path=str(path), why="it begins with zeros")
    else:
        yield from _of_json(path)


def _of_database(path: Path) -> Iterator[Row]:
    # Without a write-ahead log the file alone is the whole store, and is opened so that nothing is made beside it.
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    number = 0
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as database:
            _limit(database)
            stored = _stored_tables(database)
            known = [table for table in TABLES if table in stored]
            if not known:
                raise NotALegacyStore(path=str(path), why="a database without any of the tables that memctl knows")
            left = 2 * path.stat().st_size + _OVERHEAD
            for table in known:
                names = _stored_columns(database, table)
                columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
                rows: Iterable[Any] = database.execute(f'SELECT {columns} FROM "{table}"')  # noqa: S608 - names, quoted
                if table == "history" and "memory_id" in names:  # mem0's changes of its memories, the newest last
                    rows = {row["memory_id"]: row for row in rows}.values()
                for found in rows:
                    number += 1
                    left -= _ROW + sum(len(value) for value in found if isinstance(value, str | bytes))
                    if left < 0:
                        raise NotALegacyStore(path=str(path), why="its rows hold more than the file has bytes")
                    yield Row(number, table, dict(zip(names, found, strict=True)))
    except sqlite3.Error as problem:
        raise NotALegacyStore(path=str(path), why=f"SQLite says: {problem}") from problem


def _limit(database: sqlite3.Connection) -> None:
    """Have a database that anybody may have written compute nothing, and take no more than a text's room at once."""
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    database.set_authorizer(_only_reading)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    database.row_factory = sqlite3.Row


def _only_reading(action: int, *_: object) -> int:
    reads = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA)
    return sqlite3.SQLITE_OK if action in reads else sqlite3.SQLITE_DENY


def _stored_tables(database: sqlite3.Connection) -> set[str]:
    """Tables whose rows stand in the file: no views, no virtual tables."""
    found = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    return {name for name, sql in found if not (sql or "").upper().startswith("CREATE VIRTUAL")}


def _stored_columns(database: sqlite3.Connection, table: str) -> list[str]:
    """Columns whose values stand in the file. Generated ones are computed when they are read, out of any expression."""
    return [row["name"] for row in database.execute(f'PRAGMA table_xinfo("{table}")') if not row["hidden"]]


def _of_json(path: Path) -> Iterator[Row]:
    data = path.read_bytes() if path.stat().st_size <= LARGEST else None
    document = _document(data) if data is not None else None
    if document is not None:
        yield from _of_document(path, document)
        return
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), 1):
            if not line.strip():
                continue
            row = _document(line) if len(line) <= LONGEST_LINE else None
            if isinstance(row, dict) and shallow(row):
                yield Row(number, table_of(row, path.stem), row)
            else:
                why = "not a JSON object" if len(line) <= LONGEST_LINE else f"longer than {LONGEST_LINE >> 20} MB"
                yield Row(number, "", {}, why)


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; of one that is too long, as much as shows that."""
    while line := file.readline(LONGEST_LINE + 1):
        rest = line
        while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE + 1)
        yield line


def _of_document(path: Path, document: Any) -> Iterator[Row]:
    if isinstance(document, dict) and not table_of(document, ""):
        tables = {name: rows for name, rows in document.items() if isinstance(rows, list)}
    else:
        tables = {path.stem: document if isinstance(document, list) else [document]}
    if not tables:
        raise NotALegacyStore(path=str(path), why="JSON without rows")
    number = 0
    for name, rows in tables.items():
        for row in rows:
            number += 1
            if isinstance(row, dict) and shallow(row):
                yield Row(number, table_of(row, name), row)
            else:
                yield Row(number, kind(name), {}, f"not an object but {type(row).__name__}")


def _document(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)  # half the memory of orjson, which ends the process where that runs out
    except (msgspec.MsgspecError, ValueError, RecursionError):
        try:  # lone surrogates, NaN
            return json.loads(data.decode("utf-8-sig", "replace"))
        except (ValueError, RecursionError):
            return None
