"""Export: the log as JSON lines that other tools can read and `memctl import` takes back.

Line 1: `{"memctl": "export", "version": 1, …}`. Then an event a line, as `ExportLine` has it. Last:
`{"end": true, "events": …, "sha256": …}`, the sha256 over all lines before it. What was erased is not in it.
"""

import contextlib
import hashlib
from collections.abc import Callable, Container, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from psycopg import sql

from memctl.api.reading.caller import OWNER
from memctl.api.reading.places import places_of
from memctl.api.reading.reader import reader_of
from memctl.api.write.ingest import Account
from memctl.api.write.ingest_writer import IngestWriter
from memctl.api.write.remote_ingest import COMMANDS, misnamed
from memctl.domain.events.event import Micros, NewEvent, decode_payload
from memctl.domain.events.observations import (
    CommitRecorded,
    Observation,
    SessionStarted,
    TagRecorded,
    event_id_of,
    session_in,
)
from memctl.domain.events.processor_events import Processed
from memctl.domain.events.recalls import MemoryRecalled
from memctl.domain.events.statements import Statement
from memctl.domain.language.notes import NOTES, MemoryNoted
from memctl.domain.support.errors import MemctlError
from memctl.domain.support.json_bodies import in_shape
from memctl.domain.support.location import in_another_memory
from memctl.domain.support.provenance import IMPORTED, known_actor
from memctl.infra.database import Connection, outages, snapshot
from memctl.infra.files import opened
from memctl.infra.log import erase
from memctl.infra.log.append import gone
from memctl.infra.log.mark import mark
from memctl.infra.log.spaces import at_home
from memctl.infra.settings import Settings

VERSION = 1
PAGE = 2_000
_SESSION = "session/"
BATCH = 2_000

LONGEST_LINE = 16 << 20
"""Bytes of a line that is read: an event that memctl keeps takes a hundredth."""


class NotAnExport(MemctlError):
    """{file} is not a whole export: {why}."""

    file: str
    why: str


class ExportLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event. Times in microseconds since 1970; `payload` as it is stored, in that version of its type."""

    id: UUID
    type: str
    version: int
    stream: str
    occurred_at: int
    recorded_at: int
    actor: str
    key: str
    payload: msgspec.Raw
    location: str = ""
    session_id: str = ""
    variant_of: UUID | None = None
    sources: tuple[UUID, ...] = ()


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    memctl: str
    version: int
    space: str
    space_id: int
    position: int
    made_at: str


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The last line."""

    end: bool
    events: int
    sha256: str


def exported(settings: Settings, write: Callable[[bytes], Any], *, session: str | None, project: str | None) -> int:
    """`export` over a connection of its own."""
    with at_home(settings, "memctl export") as (connection, _):
        return export(connection, settings.space, write, session=session, project=project)


def export(
    connection: Connection,
    space: str,
    write: Callable[[bytes], Any],
    *,
    session: str | None = None,
    project: str | None = None,
) -> int:
    """Write the events of a space up to the mark, in order of position; returns how many.

    Raises: UnknownProject, DatabaseUnavailable, and whatever `write` raises.
    """
    digest, count = hashlib.sha256(), 0
    with outages(), snapshot(connection):
        reader = reader_of(connection, space, OWNER)
        upto = mark(connection, reader.space_id)
        head = Head(memctl="export", version=VERSION, space=space, space_id=reader.space_id, position=upto,
                    made_at=datetime.now(UTC).isoformat())  # fmt: skip
        places = places_of(reader, project).locations if project else None
        for line in _lines(connection, reader.space_id, upto, session, places, head):
            digest.update(line)
            write(line)
            count += 1
        end = End(end=True, events=count - 1, sha256=digest.hexdigest())
        write(msgspec.json.encode(end) + b"\n")
    return count - 1


def _lines(
    connection: Connection, space_id: int, upto: int, session: str | None, places: tuple[str, ...] | None, head: Head
) -> Iterator[bytes]:
    yield msgspec.json.encode(head) + b"\n"
    with connection.cursor(name="export") as cursor:
        cursor.itersize = PAGE
        cursor.execute(
            sql.SQL(
                "SELECT event_id, type, schema_version, stream, (extract(epoch FROM occurred_at) * 1000000)::bigint,"
                " (extract(epoch FROM recorded_at) * 1000000)::bigint, actor, dedupe_key, payload, location,"
                " session_id, variant_of, sources FROM memctl.events WHERE space_id = %(space)s"
                " AND position <= %(upto)s AND payload IS NOT NULL"
                " AND (%(session)s::text IS NULL OR %(session)s IN (session_id, stream))"
                " AND (%(anywhere)s OR {}) ORDER BY position"
            ).format(sql.SQL(erase.PLACED)),
            {
                "space": space_id, "upto": upto, "session": session, "anywhere": places is None,
                **erase.at_places(places or ()),
            },
            binary=True,
        )  # fmt: skip
        for id, kind, version, stream, at, recorded, actor, key, payload, location, session_id, of, sources in cursor:
            line = ExportLine(
                id=id, type=kind, version=version, stream=stream, occurred_at=at, recorded_at=recorded, actor=actor,
                key=key, payload=msgspec.Raw(payload), location=location, session_id=session_id, variant_of=of,
                sources=tuple(sources or ()),
            )  # fmt: skip
            yield msgspec.json.encode(line) + b"\n"


def is_export(file: Path) -> bool:
    """Whether a file begins as an export does."""
    try:
        with opened(file) as lines:
            return lines.read(64).replace(b" ", b"").startswith(b'{"memctl":"export"')
    except OSError:
        return False


def import_export(writer: IngestWriter, file: Path, *, mine: bool, account: Account | None = None) -> Account:
    """Append what an export holds; what is there already is a duplicate, what was forgotten stays so.

    The file is read to its end first: one that was cut off or changed is refused. Ids of other events within a payload
    stay as they are, which suits a space of the same number.

    Anybody can write such a file. Unless its user says that it is `mine`, it is another's memory: its sessions and
    notes come in, as imported words, the sessions at places of that memory. What it settles does not come in: verdicts,
    projects, core memory.
    `account`: what others before it came to. Raises: NotAnExport, DatabaseUnavailable.
    """
    account = account or Account()
    account.files += 1
    _check(file)
    links = _links(file)
    with outages():
        out = _kept_out(writer, file, links)
    account.lines += 2
    account.read_bytes += file.stat().st_size
    account.ignored["head and end"] += 2
    for batch in _batches(file, links, account):
        kept = [event for number, _, event in batch if number not in out]
        account.forgotten += len(batch) - len(kept)
        if not mine:
            kept = _of_another(writer, kept, account)
        _put(writer, kept, account)
    return account


def look_through(file: Path, account: Account, *, mine: bool) -> None:
    """Count by type what an export would bring into an empty memory. Raises: NotAnExport."""
    account.files += 1
    _check(file)
    for batch in _batches(file, _links(file), account):
        come = [event.type for _, _, event in batch if mine or _is_said(event)]
        account.new += len(come)
        account.types.update(come)
        if len(come) < len(batch):
            account.ignored["settled in another memory"] += len(batch) - len(come)


def _of_another(writer: IngestWriter, events: list[NewEvent], account: Account) -> list[NewEvent]:
    """What of these comes in from another's memory, as imported. What is known here stays as it is."""
    ids = [event_id_of(writer.space_id, each.dedupe_key) for each in events]
    rows = writer.connection.execute(
        "SELECT event_id FROM memctl.deliveries WHERE space_id = %s AND event_id = ANY(%s)", [writer.space_id, ids]
    )
    known = {id for (id,) in rows}
    new = [each for id, each in zip(ids, events, strict=True) if id not in known]
    said = [of_another(each) for each in new if _is_said(each) and not _takes_a_name(each)]
    own = _of_own_sessions(writer, {each.stream for each in said})
    account.duplicate += len(events) - len(new)
    if len(said) < len(new):
        account.ignored["settled in another memory"] += len(new) - len(said)
    if kept_out := sum(each.stream in own for each in said):
        account.ignored["in a session that is known here"] += kept_out
    return [each for each in said if each.stream not in own]


def of_another(event: NewEvent) -> NewEvent:
    """An event as what another memory holds. A session of another memory was at a place of that one, whatever it is
    called: what it shows of the work is given to no agent that works at a place of that name here."""
    if not is_of_a_session(event):
        return msgspec.structs.replace(event, actor=IMPORTED)
    payload = event.payload
    if isinstance(payload, SessionStarted):  # a remote would be of the place that it names here
        payload = msgspec.structs.replace(payload, repository="")
    return msgspec.structs.replace(event, payload=payload, actor=IMPORTED, location=in_another_memory(event.location))


def _of_own_sessions(writer: IngestWriter, streams: set[str]) -> set[str]:
    """Those of these streams that hold what was not imported: nobody else adds to them."""
    sessions = [each for each in streams if each.startswith(_SESSION)]
    rows = writer.connection.execute(
        "SELECT DISTINCT stream FROM memctl.events WHERE space_id = %s AND stream = ANY(%s) AND actor <> %s",
        [writer.space_id, sessions, IMPORTED],
    )
    return {stream for (stream,) in rows}


_CONCLUDED = (Processed, MemoryRecalled, CommitRecorded, TagRecorded)
"""What another memory came to, and did with it, and what a repository holds."""


def _is_said(event: NewEvent) -> bool:
    """Whether an event is what a session or a note says, by its type and in a stream of that kind."""
    if isinstance(event.payload, MemoryNoted):
        return event.stream == NOTES
    said = isinstance(event.payload, Observation | Statement) and not isinstance(event.payload, _CONCLUDED)
    return said and is_of_a_session(event)


def _takes_a_name(event: NewEvent) -> bool:
    """Whether an event has the name of one that something else here will record, which would find it taken."""
    return misnamed(event) and (isinstance(event.payload, Observation) or not event.dedupe_key.startswith(COMMANDS))


def is_of_a_session(event: NewEvent) -> bool:
    """Whether an event was observed of a session, or stated of its work."""
    return event.stream.startswith(_SESSION)


class _Citing(msgspec.Struct, frozen=True):
    """A line that cites others: its number, the delivery that it records, and the deliveries that it rests on."""

    number: int
    delivery: UUID
    rests_on: frozenset[UUID]


class _Links(msgspec.Struct, frozen=True):
    """How lines hang together: of which deliveries the variants are, and what cites what."""

    delivery_of: dict[UUID, UUID]
    citing: list[_Citing]


def _links(file: Path) -> _Links:
    delivery_of: dict[UUID, UUID] = {}
    found: list[tuple[int, UUID, tuple[UUID, ...]]] = []
    for number, line in _lines_of(file):
        with contextlib.suppress(msgspec.MsgspecError):  # the error is reported when the line is read for import
            entry = in_shape(line, ExportLine)
            if entry.variant_of is not None:
                delivery_of[entry.id] = entry.variant_of
            if entry.sources:
                found.append((number, entry.variant_of or entry.id, entry.sources))
    citing = [_Citing(number, id, frozenset(delivery_of.get(each, each) for each in on)) for number, id, on in found]
    return _Links(delivery_of, citing)


def _kept_out(writer: IngestWriter, file: Path, links: _Links) -> set[int]:
    """Numbers of the lines that rest on what is not to come in, where only the file shows that.

    They cite what lies under a tombstone and was never recorded here, or they cite each other, in any order. (An append
    itself finds lines that cite what is gone here.)
    """
    if not links.citing or not erase.has_tombstones(writer.connection, writer.space_id):
        return set()
    cited = frozenset[UUID]().union(*(each.rests_on for each in links.citing))
    here = set(gone(writer.connection, writer.space_id, cited))
    counts: dict[UUID, int] = dict.fromkeys(cited - here, 0)
    """How many lines record each cited delivery."""
    under: set[UUID] = set()
    out: set[int] = set()
    for batch in _batches(file, links, Account(), counts):
        events = writer.prepare([event for _, _, event in batch]).events
        forgotten = erase.forgotten(writer.connection, writer.space_id, events)
        for n, (number, delivery, _) in enumerate(batch):
            if n in forgotten:
                out.add(number)
                under.add(delivery)
            else:
                counts[delivery] += 1
    missing = [*here, *(id for id, count in counts.items() if id in under and not count)]
    _add_resting(links, missing, counts, out)
    known = {each.number for each in links.citing if not each.rests_on.isdisjoint(here)}
    return {each.number for each in links.citing if each.number in out} - known


def _add_resting(links: _Links, missing: list[UUID], counts: dict[UUID, int], out: set[int]) -> None:
    """Add to `out` the lines that rest on missing deliveries, and on those that go missing by that."""
    resting: dict[UUID, list[_Citing]] = {}
    for each in links.citing:
        for id in each.rests_on:
            resting.setdefault(id, []).append(each)
    while missing:
        for each in resting.get(missing.pop(), ()):
            if each.number not in out:
                out.add(each.number)
                if each.delivery in counts:
                    counts[each.delivery] -= 1
                    if not counts[each.delivery]:
                        missing.append(each.delivery)


def _lines_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that hold events, with their numbers."""
    for number, line in enumerate(_all_lines(file), 1):
        if number > 1 and not line.startswith(b'{"end":'):
            yield number, line


def _all_lines(file: Path) -> Iterator[bytes]:
    with opened(file) as lines:
        while line := lines.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise NotAnExport(file=str(file), why=f"a line of it has more than {LONGEST_LINE >> 20} MB")
            yield line


def _batches(
    file: Path, links: _Links, account: Account, only: Container[UUID] | None = None
) -> Iterator[list[tuple[int, UUID, NewEvent]]]:
    """The events of a file with the numbers of their lines and the deliveries that they record (of these
    `only`); what is no event is entered in the account."""
    batch: list[tuple[int, UUID, NewEvent]] = []
    for number, line in _lines_of(file):
        try:
            entry = in_shape(line, ExportLine)
            delivery = entry.variant_of or entry.id
            if only is not None and delivery not in only:
                continue
            batch.append((number, delivery, _event(entry, links.delivery_of)))
            account.with_events += 1
        except (MemctlError, msgspec.MsgspecError, ValueError, KeyError) as problem:
            account.refuse(file, number, str(problem))
        account.lines += 1
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _put(writer: IngestWriter, batch: list[NewEvent], account: Account) -> None:
    if not batch:
        return
    done = writer.record(batch)
    account.redacted.update(done.redactions)
    for event, entry in zip(batch, done.appended, strict=True):
        account.take(event.type, entry)


def _event(line: ExportLine, delivery_of: Mapping[UUID, UUID]) -> NewEvent:
    """The event as it was recorded."""
    key = line.key
    if line.variant_of is not None:  # its own id stands behind the key that it was recorded under
        key = key.removesuffix(f"#{line.id}")
    return NewEvent(
        stream=line.stream,
        payload=decode_payload(line.type, line.version, bytes(line.payload)),
        occurred_at=Micros(line.occurred_at),
        dedupe_key=key,
        actor=known_actor(line.actor),
        location=line.location,
        session_id=session_in(line.stream, line.session_id),
        sources=line.sources,
        deliveries=tuple(delivery_of[id] for id in line.sources if id in delivery_of),
    )


def _check(file: Path) -> None:
    digest, count = hashlib.sha256(), 0
    last = b""
    for line in _all_lines(file):
        if last:
            digest.update(last)
            count += 1
        else:
            try:
                head = in_shape(line, Head)
            except msgspec.MsgspecError as problem:
                raise NotAnExport(file=str(file), why=f"its first line is no head ({problem})") from problem
            if head.version > VERSION:
                raise NotAnExport(file=str(file), why="it was written by a newer memctl")
        last = line
    try:
        end = in_shape(last, End)
    except msgspec.MsgspecError as problem:
        raise NotAnExport(file=str(file), why="it was cut off: its last line is no end") from problem
    if (end.events, end.sha256) != (count - 1, digest.hexdigest()):
        raise NotAnExport(file=str(file), why="its lines are not those that its checksum is of")
