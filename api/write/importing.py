"""Import of legacy stores: their rows become events, and every row is accounted for."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import projects_of
from memctl.api.reading.reader import reader_of
from memctl.api.reading.views import iso, moment
from memctl.api.write.exporting import is_of_a_session, of_another
from memctl.api.write.ingest import Account, Batches, count
from memctl.api.write.ingest_writer import IngestWriter
from memctl.domain.events.event import Micros, NewEvent
from memctl.domain.language.notes import NOTES
from memctl.domain.projects.identity import Projects
from memctl.domain.support.location import is_in_another_memory, name_in_another_memory
from memctl.domain.support.provenance import IMPORTED
from memctl.infra.database import outages, snapshot
from memctl.infra.legacy.finding import other_memories, stores_in
from memctl.infra.legacy.isolated import rows_in_isolation
from memctl.infra.legacy.meaning import events_of
from memctl.infra.legacy.rows import NotALegacyStore, Row
from memctl.infra.transcripts.reading import Parsed

EXAMPLES = 3
"""Rows of each type of event that a dry run shows."""

MOST_COMPARED = 1_000_000
"""Events that a dry run compares with each other; what comes behind them counts as new unless it is one of them."""

MOST_BAD = 10_000
"""Rows that cannot be read of a store of which most cannot: what comes behind them is not read."""


class FoundMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Another tool's memory on this machine. `newest` is when its newest note was written (ISO 8601), empty where it
    says no time; `why` says what kept it from being read."""

    title: str
    path: str
    notes: int = 0
    newest: str = ""
    why: str = ""


def found_memories() -> list[FoundMemory]:
    """The memories of other tools in the user's home, read to count what an import would bring."""
    return [_found(each.title, each.path) for each in other_memories()]


def _found(title: str, path: Path) -> FoundMemory:
    times: dict[str, Micros] = {}
    try:
        for _, parsed in _rows(stores([path])):
            if len(times) < MOST_COMPARED:
                times.update((event.dedupe_key, event.occurred_at) for event in parsed.events)
    except NotALegacyStore as problem:
        return FoundMemory(title=title, path=str(path), why=problem.why)
    newest = max(times.values(), default=0)
    return FoundMemory(title=title, path=str(path), notes=len(times), newest=iso(moment(newest)) if newest else "")


def stores(paths: Iterable[Path]) -> list[Path]:
    """The files that are to be read. Raises: NotALegacyStore."""
    return list(dict.fromkeys(store for path in paths for store in stores_in(path.expanduser())))


def import_stores(intake: IngestWriter, paths: Sequence[Path], *, mine: bool) -> Account:
    """Append what stores hold; what was imported before is a duplicate. Anybody can write a store: unless its user says
    that it is `mine`, the sessions in it are another memory's, as those of an export are.

    Raises: NotALegacyStore, DatabaseUnavailable.
    """
    account = Account(files=len(paths))
    began = time.monotonic()
    here = _here(intake)
    with Batches(intake, account) as batches:
        for path, parsed in _rows(paths):
            events = tuple(each if is_of_a_session(each) else here.at_home(each) for each in parsed.events)
            if not mine:
                events = tuple(of_another(each) if is_of_a_session(each) else each for each in events)
            parsed = msgspec.structs.replace(parsed, events=events)
            count(account, path, parsed)
            if batches.add(path, parsed):
                batches.commit()
    account.seconds = time.monotonic() - began
    return account


class _Here(NamedTuple):
    """What notes of another memory are placed by: the projects that are known, and where notes were placed before."""

    projects: Projects
    placed: dict[str, str]

    def at_home(self, note: NewEvent) -> NewEvent:
        """A note where it was placed at first; else one on a project that the other memory knows by its name at the one
        project of that name here."""
        location = self.placed.get(note.dedupe_key)
        if location is None and is_in_another_memory(note.location):
            found = self.projects.named(name_in_another_memory(note.location))
            location = found[0].root if len(found) == 1 else None
        return note if location is None else msgspec.structs.replace(note, location=location)


def _here(intake: IngestWriter) -> _Here:
    with outages(), snapshot(intake.connection):
        rows = intake.connection.execute(
            "SELECT dedupe_key, location FROM memctl.events WHERE space_id = %s AND stream = %s AND actor = %s",
            [intake.space_id, NOTES, IMPORTED],
        )
        reader = reader_of(intake.connection, intake.settings.space, OWNER)
        return _Here(projects_of(reader), dict(rows.fetchall()))


def account_of(paths: Sequence[Path]) -> tuple[Account, list[str]]:
    """What an import would bring, and some of it to look at. Raises: NotALegacyStore."""
    account = Account(files=len(paths))
    shown: Counter[str] = Counter()
    examples = []
    keys: set[str] = set()
    for path, parsed in _rows(paths):
        count(account, path, parsed)
        for event in parsed.events:
            known = event.dedupe_key in keys
            if len(keys) < MOST_COMPARED:
                keys.add(event.dedupe_key)
            account.new += not known
            account.duplicate += known
            account.types[event.type] += not known
            shown[event.type] += 1
            if shown[event.type] <= EXAMPLES:
                said = getattr(event.payload, "text", "") or getattr(event.payload, "name", "") or event.stream
                examples.append(f"{event.type}  {' '.join(said.split())[:60]}")
    return account, examples


def _rows(paths: Sequence[Path]) -> Iterator[tuple[Path, Parsed]]:
    for path in paths:
        try:
            yield from ((path, parsed) for parsed in _rows_of(path))
        except NotALegacyStore:
            if len(paths) == 1:
                raise
            yield path, Parsed(1, 0, 0, True, "ignored", kind="not a store")
        except OSError as problem:
            yield path, Parsed(0, 0, 0, True, "bad", why=problem.strerror or type(problem).__name__)


def _rows_of(path: Path) -> Iterator[Parsed]:
    bad, first = 0, ""
    for rows, row in enumerate(rows_in_isolation(path), 1):
        parsed = _parsed(row)
        if parsed.outcome == "bad":
            bad += 1
            first = first or f"row {parsed.number}, {parsed.why}"
        if bad >= MOST_BAD and 2 * bad > rows:
            why = f"{bad:,} of its first {rows:,} rows cannot be read (first {first}), so no more were tried"
            raise NotALegacyStore(path=str(path), why=f"{why}; take the bad ones out, and import it again")
        yield parsed


def _parsed(row: Row) -> Parsed:
    at = (row.number, 0, 0, True)
    if row.why:
        return Parsed(*at, "bad", why=row.why)
    events, left_out, why = events_of(row.table, row.fields, row.number)
    if events:
        return Parsed(*at, "events", tuple(events), why=why)
    return Parsed(*at, "ignored", kind=left_out) if left_out else Parsed(*at, "bad", why=why)
