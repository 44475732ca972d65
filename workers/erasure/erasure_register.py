"""Every table and file of an instance, and what of something forgotten may stay in it: the one list that is walked.
Whose look it is decides which of their rows, and whether any file.

What is folded is held to nothing (`erasure_check`). The others keep ids, places and names on purpose. Where a word of
it stands in one of those, or in an event in a form that people read otherwise, the receipt names the place.
"""

import contextlib
import os
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg import sql

from memctl.domain.support import patterns
from memctl.domain.support.wording import number
from memctl.domain.support.written_forms import WrittenForms
from memctl.infra.backup import copies
from memctl.infra.backup.receipts import RECEIPTS
from memctl.infra.backup.sealed import UNSEALED
from memctl.infra.database import Connection
from memctl.infra.hooks.capture_policy import FILE, PASSED_FILE
from memctl.infra.log import erase
from memctl.infra.log.partitions import tables
from memctl.infra.settings_model import Settings
from memctl.workers.erasure.look import Look

NAMED_AT_MOST = 5
"""Ids of events that a receipt names in one line."""

BLOCK, _OVERLAP = 1 << 20, 4096
"""Bytes of a file that are read at once, and those that are read twice: a text may lie across the end of a block."""


class Leftover(Enum):
    """What may be left of something forgotten."""

    NOTHING = "nothing"
    """The receipt stays open while anything is."""
    DROPPED = "dropped"
    """Rows that hold a word of it are deleted: they are books of work that is done again."""
    NAMED = "named"
    """What stays is named in the receipt, with why."""
    UNOPENED = "unopened"
    """Holds secrets of this machine and nothing that was said: whoever looks would find them out, guess by guess."""
    ELSEWHERE = "elsewhere"
    """Another program's own format: rows leave it by the database or the vector store, freed blocks by `--scrub`."""


class DataStore(NamedTuple):
    """Tables or files by their names, as a pattern."""

    names: str
    rule: Leftover
    why: str


IDS = "deliveries"
"""The table that holds ids and numbers, and no word."""

TABLES = (
    DataStore(r".+_g[0-9]+|dead_letters", Leftover.NOTHING, "holds what was folded"),
    DataStore("events", Leftover.NOTHING, "is the log"),
    DataStore(IDS, Leftover.NAMED, "keeps ids, so that none comes twice"),
    DataStore("processing", Leftover.DROPPED, "says what processors worked on"),
    DataStore("receipts|tombstones", Leftover.NAMED, "keeps places, ids and the reason, so that it stays gone"),
    DataStore("checkpoints", Leftover.NAMED, "keeps paths of transcripts, so that none is read twice"),
    DataStore("api_keys", Leftover.NAMED, "keeps the projects that a key is for"),
    DataStore("spaces|installation|vector_models", Leftover.NAMED, "keeps names of this installation"),
    DataStore("halts|rebuilds|rebuild_tasks|glances|llm_calls", Leftover.NAMED, "says what work came to"),
    DataStore("waiting_for_vectors|embeddings", Leftover.NAMED, "keeps keys and digests of texts"),
    DataStore("generations|projection_state|offsets|mark|mark_history|schema_version", Leftover.NAMED, "keeps numbers"),
)
"""The tables of the log's schema."""

FILES = (
    DataStore("spool/.*", Leftover.NOTHING, "holds deliveries"),
    DataStore("log/.*", Leftover.NOTHING, "says what programs did"),
    DataStore(r"(postgres|valkey|vectors)[^/]*/.*", Leftover.ELSEWHERE, "is a server's"),
    DataStore("cache/.*", Leftover.ELSEWHERE, "holds compiled patterns"),
    DataStore(rf"{copies.FOLDER}/.*{copies.SUFFIX}", Leftover.ELSEWHERE, "is a backup"),
    DataStore(rf"(.*/)?{RECEIPTS}", Leftover.NAMED, "keeps places, ids and the reason, so that it stays gone"),
    DataStore(rf"{FILE}|{PASSED_FILE}", Leftover.NAMED, "says where memory is switched off"),
    DataStore(r"run/relay\.(json|process)|relay\.sqlite3.*", Leftover.NAMED, "says what was sent"),
    DataStore("imports/.*", Leftover.NAMED, "was sent to an older memctl"),
    DataStore(rf"{UNSEALED}[^/]*/.*", Leftover.ELSEWHERE, "is a backup that is being sealed or opened"),
    DataStore(r"run/.*|keys\..*|lock", Leftover.UNOPENED, "says where programs answer"),
    DataStore(r"first-run.*|models/.*|[^/]*\.toml", Leftover.NAMED, "belongs to the installation"),
)
"""The files of a data directory."""


UNKNOWN = DataStore(".*", Leftover.NAMED, "memctl does not know")
"""What somebody else laid there."""


def place_of(name: str, register: Iterable[DataStore]) -> DataStore:
    """What holds for a table or file."""
    return next((place for place in register if patterns.Pattern(place.names).fullmatch(name)), UNKNOWN)


def drop_from_books(connection: Connection, look: Look, sought: WrittenForms) -> None:
    """Delete rows of books that hold a word of what was erased."""
    for _, table in _tables(connection, Leftover.DROPPED):
        held = [id for id, row in _rows(connection, table, look) if sought.within(row).held]
        connection.execute(
            sql.SQL("DELETE FROM memctl.{} WHERE ctid = ANY(%s::tid[])").format(sql.Identifier(table)), [held]
        )


def named(connection: Connection, look: Look, words: Collection[str]) -> list[str]:
    """Those of the words that stand, in some form, where the rules let something stay or drop it."""
    if not words:
        return []
    sought, held = WrittenForms(words), set[str]()
    for _, table in (*_tables(connection, Leftover.DROPPED), *_tables(connection, Leftover.NAMED)):
        if sought.may_be_ids or table != IDS:
            held.update(*(sought.within(row).held for _, row in _rows(connection, table, look)))
    for place, file in files_of(look.data_dir) if look.owner else ():
        if place.rule is Leftover.NAMED:
            held.update(*(sought.within(block).held for block in _blocks(file)))
    return sorted(held)


def what_stays(connection: Connection, look: Look, sought: WrittenForms, *, folded: bool) -> list[str]:
    """Where something of it stays in some form, and why, in words that do not repeat it.

    `folded`: the log and what is folded are looked at, too.
    """
    places = list(_in_events(connection, look.space_id, sought)) if folded else []
    rules = [Leftover.NOTHING, Leftover.NAMED] if folded else [Leftover.NAMED]
    for place, table in (each for rule in rules for each in _tables(connection, rule)):
        if table == "events" or (table == IDS and not sought.may_be_ids):
            continue
        if any(sought.within(row).held for _, row in _rows(connection, table, look)):
            places.append(f"the table {table}, which {place.why}")
    for place, file in files_of(look.data_dir) if look.owner else ():
        if place.rule is Leftover.NAMED and any(sought.within(block).held for block in _blocks(file)):
            places.append(f"the file {file}, which {place.why}")
    return places


def backups_before(settings: Settings, look: Look, unsealed: Iterable[Path]) -> list[str]:
    """What to say of the backups that are there: each may hold what was forgotten since. `unsealed` are the folders of
    those that a process is just sealing or opening."""
    folder = copies.folder_of(settings)
    made = len(copies.backups(folder))
    if not look.owner:
        return ["backups of the server, made before (`memctl restore` leaves it out)"] if made else []
    said = [f"{number(made, 'backup')} in {folder}, made before (`memctl restore` leaves it out)"] if made else []
    return said + [f"the folder {each}, in which a backup is being sealed or opened" for each in unsealed]


def _in_events(connection: Connection, space_id: int, sought: WrittenForms) -> Iterator[str]:
    held, near = erase.holding(connection, space_id, sought)
    for ids, how in ((held, "in another form"), (near - held, "with other signs between its letters")):
        if ids:
            more = ", …" if len(ids) > NAMED_AT_MOST else ""
            yield f"{len(ids)} events hold it {how}: {', '.join(map(str, sorted(ids)[:NAMED_AT_MOST]))}{more}"


def _tables(connection: Connection, rule: Leftover) -> list[tuple[DataStore, str]]:
    found = [(place_of(table, TABLES), table) for table in tables(connection)]
    return [(place, table) for place, table in found if place.rule is rule]


def _rows(connection: Connection, table: str, look: Look) -> Iterator[tuple[str, bytes]]:
    """The rows of a table that the look may see: where each lies, and its words."""
    if (seen := look.rows(connection, table)) is None:
        return
    query = sql.SQL("COPY (SELECT t.ctid, t.* FROM memctl.{} t WHERE {}) TO STDOUT").format(sql.Identifier(table), seen)
    with (
        contextlib.suppress(psycopg.errors.UndefinedTable),  # of a look at the past that has just ended
        connection.cursor() as cursor,
        cursor.copy(query) as rows,
    ):
        for row in rows:
            id, _, words = bytes(row).partition(b"\t")
            yield id.decode(), words


def files_of(data_dir: Path) -> Iterator[tuple[DataStore, Path]]:
    """The files of a data directory that are not another program's."""
    for folder, inner, files in os.walk(data_dir):
        at = Path(folder).relative_to(data_dir)
        inner[:] = sorted(each for each in inner if place_of(f"{at / each}/", FILES).rule is not Leftover.ELSEWHERE)
        for name in sorted(files):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield place_of(str(at / name), FILES), path


def _blocks(file: Path) -> Iterator[bytes]:
    """A file in pieces of which each begins with the end of the last; nothing where it is gone."""
    before = b""
    with contextlib.suppress(OSError), open(file, "rb") as opened:
        while read := opened.read(BLOCK):
            yield before + read
            before = read[-_OVERLAP:]
