"""Import of legacy stores: their rows become events, and every row is accounted for."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from memctl.api.write.exporting import is_of_a_session, of_another
from memctl.api.write.ingest import Account, Batches, count
from memctl.api.write.ingest_writer import IngestWriter
from memctl.infra.legacy.isolated import rows_in_isolation
from memctl.infra.legacy.meaning import events_of
from memctl.infra.legacy.rows import NotALegacyStore, Row, stores_in
from memctl.infra.transcripts.reading import Parsed

EXAMPLES = 3
"""Rows of each type of event that a dry run shows."""

MOST_COMPARED = 1_000_000
"""Events that a dry run compares with each other; what comes behind them counts as new unless it is one of them."""

MOST_BAD = 10_000
"""Rows that cannot be read of a store of which most cannot: what comes behind them is not read."""


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
    with Batches(intake, account) as batches:
        for path, parsed in _rows(paths):
            if not mine:
                theirs = tuple(of_another(each) if is_of_a_session(each) else each for each in parsed.events)
                parsed = msgspec.structs.replace(parsed, events=theirs)
            count(account, path, parsed)
            if batches.add(path, parsed):
                batches.commit()
    account.seconds = time.monotonic() - began
    return account


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
