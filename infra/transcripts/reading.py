"""A transcript as a stream of lines, each accounted for once: it gave events, was ignored, is bad, or is blank.

Memory stays flat: one line at a time. Lines end at `\\n` only (transcripts hold U+2028 and the like inside strings).
What a line gives is a function of the line and of facts fixed in front of it in the same file, never of how far an
earlier reading had come: read in growing prefixes, from an offset, or under another name, equal lines give equal
events under equal dedupe keys.
"""

import errno
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import msgspec
import orjson

from memctl.domain.events.event import NewEvent
from memctl.domain.support.json_bodies import has_few_values
from memctl.infra.transcripts.fields import shallow
from memctl.infra.transcripts.formats import (
    BOM,
    MANY_VALUES,
    NOTHING,
    Document,
    Format,
    Unfinished,
    Unreadable,
    not_json,
    read_within_limits,
    within_limits,
    without_zeros,
)

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is parsed. Longer ones are passed over without being loaded, and count as bad."""

_STEP = 1 << 20
"""Bytes of a line that is passed over which are read at once."""

_MAX_TORN = 8 * 1024 * 1024
_MAX_RECOVERIES = 32
_EDGE = 4096
"""Bytes at the start of a file, and before an offset, that show whether it is still the same file."""

_json = json.JSONDecoder()


class RawLine(msgspec.Struct, frozen=True):
    """One line as bytes, without its newline.

    `number` counts from 1; `offset` and `end` are bytes in the file, `end` just behind the newline. `data` is None
    where the line is too long. `whole` is False for a last line that no newline ends.
    """

    number: int
    offset: int
    end: int
    data: bytes | None
    whole: bool = True


class Parsed(msgspec.Struct, frozen=True):
    """What became of one line.

    `outcome` says how the line counts. `why` is set where something in it could not be read, which happens beside
    events too: of two objects run together in one line, one may be whole. An `incomplete` last line (its writer is
    still at it) counts as nothing yet: a later read gets it. Reading goes on behind the last `whole` line: one that no
    newline ends may grow, even where it gave events already.
    """

    number: int
    offset: int
    end: int
    whole: bool
    outcome: Literal["events", "ignored", "bad", "blank", "incomplete"]
    events: tuple[NewEvent, ...] = ()
    kind: str = ""
    why: str = ""


class Checkpoint(msgspec.Struct, frozen=True):
    """How far a file has been read: bytes, lines, and a digest of its first bytes and of those just before.

    A transcript's later copy is not always an extension of the earlier one, so an offset is only good together with
    the digest (see `Transcript.resume`).
    """

    offset: int = 0
    lines: int = 0
    digest: str = ""


START = Checkpoint()

Begin = Callable[[int], str]
"""Is called before a line or a record is parsed, and says why it is not to be, or nothing."""


class Trail:
    """The first and the last bytes of the whole lines read so far: what a checkpoint's digest is made of.

    It knows them behind the last line and behind the one before, since whoever reads may end between two lines.
    """

    def __init__(self, head: bytes = b"", tail: bytes = b"", end: int = 0) -> None:
        self._now = self._before = (end, head, tail)
        self._torn = b""

    def add(self, data: bytes, end: int) -> None:
        """Bytes of a line up to `end`, which count once its newline has come."""
        data = self._torn + data
        if not data.endswith(b"\n"):
            # What lies between the first and the last of it is in no digest.
            self._torn = data if len(data) <= 2 * _EDGE else data[:_EDGE] + data[-_EDGE:]
            return
        self._torn = b""
        self._before = self._now
        _, head, tail = self._now
        if len(head) < _EDGE:
            head += data[: _EDGE - len(head)]
        self._now = (end, head, data[-_EDGE:] if len(data) >= _EDGE else (tail + data)[-_EDGE:])

    def digest(self, offset: int) -> str:
        """Of the whole lines up to `offset`, which is the end of the last or of the one before."""
        end, head, tail = self._now if self._now[0] == offset else self._before
        if end != offset:
            raise ValueError(f"no line ended at {offset} just now")
        return _digest(offset, head, tail)


class Transcript:
    """A transcript held open. Its lines, its size and its checkpoints all speak of the bytes that are read through it,
    also when another file takes its path meanwhile, or it is rewritten in place.

    Raises: OSError, as each of its methods does.
    """

    def __init__(self, path: Path) -> None:
        self.file: BinaryIO = path.open("rb", buffering=1 << 18)
        self._trail = Trail()
        self._data: bytes | None = None
        """All of it, where it is a document."""
        self._until = self.size
        """How far it is read: one that grows faster than it is read would hold its reader for good."""

    @property
    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    @property
    def identity(self) -> tuple[int, int]:
        """The same for all names of a file."""
        status = os.fstat(self.file.fileno())
        return status.st_dev, status.st_ino

    def resume(self, last: Checkpoint, format: Format | Document) -> Checkpoint:
        """Where to read on: at the last checkpoint if the file still holds the same bytes before it, else at the start.

        Reading from the start again is harmless, since equal lines have equal dedupe keys. A document holds as a whole
        or not at all.
        """
        if not last.offset:
            return START
        if isinstance(format, Document):
            if last.offset != self.size or self._whole() is None:
                return START
            return last if self._digest_of_whole(last.offset) == last.digest else START
        return last if _digest(last.offset, *self._edges(last.offset)) == last.digest else START

    def parse(
        self, format: Format | Document, start: Checkpoint = START, begin: Begin | None = None
    ) -> Iterator[Parsed]:
        """The lines from a checkpoint on that `resume` found to hold; of a document, all its records.

        A format without context seeks there; another passes over the lines in front, which costs their reading only.
        """
        if isinstance(format, Document):
            return self._parse_whole(format, begin)
        if format.context:
            self._trail = Trail()
            return parse_lines(raw_lines(self.file, trail=self._trail, until=self._until), format, start.offset, begin)
        self._trail = Trail(*self._edges(start.offset), start.offset)
        return parse_lines(raw_lines(self.file, start, trail=self._trail, until=self._until), format, 0, begin)

    def checkpoint(self, last: Parsed) -> Checkpoint:
        """The checkpoint behind a whole line that `parse` gave just now. Reads nothing."""
        digest = self._trail.digest(last.end) if self._data is None else self._digest_of_whole(last.end)
        return Checkpoint(last.end, last.number, digest)

    def _parse_whole(self, format: Document, begin: Begin | None) -> Iterator[Parsed]:
        data = self._whole()
        if data is None:
            yield Parsed(1, 0, self.size, True, "bad", why=f"document of more than {MAX_LINE} bytes")
            return
        yield from parse_document(data, format, begin)

    def _whole(self) -> bytes | None:
        """The file's bytes; None where there are too many."""
        if self._data is None:
            self.file.seek(0)
            self._data = self.file.read(MAX_LINE + 1)
        return self._data if len(self._data) <= MAX_LINE else None

    def _digest_of_whole(self, offset: int) -> str:
        return _digest(offset, hashlib.blake2b(self._data or b"").digest(), b"")

    def _edges(self, offset: int) -> tuple[bytes, bytes]:
        size = min(_EDGE, offset)
        self.file.seek(0)
        head = self.file.read(size)
        self.file.seek(offset - size)
        return head, self.file.read(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.file.close()


def raw_lines(
    file: BinaryIO,
    start: Checkpoint = START,
    limit: int = MAX_LINE,
    trail: Trail | None = None,
    until: int = sys.maxsize,
) -> Iterator[RawLine]:
    """The lines of a file from a checkpoint on, as far as byte `until`. `trail` is shown every byte."""
    trail = trail or Trail()
    file.seek(start.offset)
    offset, number = start.offset, start.lines
    while data := file.readline(max(0, min(limit + 2, until - offset))):
        number += 1
        end = offset + len(data)
        trail.add(data, end)
        whole = data.endswith(b"\n")
        kept: bytes | None = data[:-1] if whole else data
        if len(data) > limit + 1 and not whole:
            kept = None
            while not whole and (data := file.readline(max(0, min(_STEP, until - end)))):
                end += len(data)
                trail.add(data, end)
                whole = data.endswith(b"\n")
                if len(data) == _STEP and not data.strip(b"\0"):
                    end = _behind_hole(file, end, until)
        yield RawLine(number, offset, end, kept, whole)
        offset = end


def _behind_hole(file: BinaryIO, at: int, until: int) -> int:
    """Where to read on in a line of which the last bytes were zeros: of a hole, which may be a terabyte, its end alone
    is read."""
    try:
        before = os.lseek(file.fileno(), 0, os.SEEK_CUR)
        data = os.lseek(file.fileno(), at, os.SEEK_DATA)
        os.lseek(file.fileno(), before, os.SEEK_SET)  # where its buffer ends
    except OSError as problem:
        if problem.errno != errno.ENXIO:  # no file of a disk, or one that knows no holes
            return at
        data = until
    return file.seek(max(at, min(data, until) - 2 * _EDGE))


def parse_lines(
    lines: Iterable[RawLine], format: Format, wanted_from: int = 0, begin: Begin | None = None
) -> Iterator[Parsed]:
    """Parse a file's lines, which begin at its start; give those at byte `wanted_from` and later.

    Never raises over what a line holds.
    """
    for line in lines:
        if begin is not None and (why := begin(line.number)):
            if line.offset >= wanted_from:
                yield Parsed(line.number, line.offset, line.end, line.whole, "bad", why=why)
        elif line.offset < wanted_from:
            if line.data and any(mark in line.data for mark in format.context):
                _parse(line, format)
        else:
            yield _parse(line, format)


def parse_document(data: bytes, format: Document, begin: Begin | None = None) -> Iterator[Parsed]:
    """The records of a whole document. Their places in the file only say how far reading has come.

    Never raises over what it holds.
    """
    size = len(data)
    if not data.strip(NOTHING):
        yield Parsed(1, 0, size, False, "incomplete")
        return
    data, lost = without_zeros(data)
    try:
        records, left_out = read_within_limits(format.split, data)
    except Unfinished:
        yield Parsed(1, 0, size, False, "incomplete")
        return
    except Unreadable as error:
        yield Parsed(1, 0, size, True, "bad", why=str(error))
        return
    if not records:
        yield Parsed(1, 0, size, True, "ignored", kind="empty")
    for index, record in enumerate(records):
        at = (index + 1, size * index // len(records), size * (index + 1) // len(records), True)
        if begin is not None and (why := begin(index + 1)):
            yield Parsed(*at, "bad", why=why)
            continue
        try:
            found = format.read(record, f"#{index + 1}")
        except Unreadable as error:
            yield Parsed(*at, "bad", why=str(error))
            continue
        why = "" if index else lost or left_out
        if not isinstance(found, str):
            yield Parsed(*at, "events", tuple(found), why=why)
        else:
            yield Parsed(*at, "bad", why=why) if why else Parsed(*at, "ignored", kind=found)


def _digest(offset: int, head: bytes, tail: bytes) -> str:
    return hashlib.blake2b(str(offset).encode() + head + tail, digest_size=16).hexdigest()


def _parse(line: RawLine, format: Format) -> Parsed:
    at = (line.number, line.offset, line.end, line.whole)
    data = line.data.removeprefix(BOM) if line.data is not None and line.number == 1 else line.data
    if data is None:
        if not line.whole:
            return Parsed(*at, "incomplete")
        return Parsed(*at, "bad", why=f"line of {line.end - line.offset} bytes is longer than {MAX_LINE}")
    if not data or data.isspace():
        return Parsed(*at, "blank" if line.whole else "incomplete")
    records, why = _records(data, format)
    if not records and not line.whole:
        return Parsed(*at, "incomplete")
    events, kind, unreadable = _read(records, f"#{line.number}", format)
    # What is missing of a torn line will be read when it is there.
    why = (why or unreadable) if line.whole else ""
    if events:
        return Parsed(*at, "events", tuple(events), why=why)
    if why or not kind:
        return Parsed(*at, "bad", why=why or "unreadable so far")
    return Parsed(*at, "ignored", kind=kind)


def _read(records: Sequence[dict[str, Any]], place: str, format: Format) -> tuple[list[NewEvent], str, str]:
    """The events of a line's objects, the kind that the first without events is ignored as, and why the first
    unreadable one is so."""
    events: list[NewEvent] = []
    kind = why = ""
    for index, record in enumerate(records):
        try:
            found = format.read(record, f"{place}.{index}" if index else place)
        except Unreadable as error:
            why = why or str(error)
            continue
        if isinstance(found, str):
            kind = kind or found
        else:
            events += found
    return events, kind, why


def _records(data: bytes, format: Format) -> tuple[list[dict[str, Any]], str]:
    """The objects of a line, and why some of it could not be read."""
    if not has_few_values(data):
        return [], MANY_VALUES
    data, why = without_zeros(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        data, left_out = within_limits(data)
        why = why or left_out
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            records, torn = _recovered(data, format)
            return records, why or torn
    if isinstance(value, dict):
        return [value], why
    return [], f"not an object but {type(value).__name__}"


def _recovered(data: bytes, format: Format) -> tuple[list[dict[str, Any]], str]:
    """Objects of a line that is not one JSON text: odd escapes and bytes are cleaned, torn writes taken apart.

    Two processes appending at once leave whole objects run together, or one inside another. Objects are decoded one
    after the other; where one breaks off, decoding goes on at the next brace that begins an object of the format.
    """
    if len(data) > _MAX_TORN:
        return [], "not JSON"
    text = data.decode("utf-8", "replace")
    records: list[dict[str, Any]] = []
    why = ""
    position, attempts = 0, 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, end = _json.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            why = why or not_json(error)
        else:
            if isinstance(value, dict) and (not why or format.recognises(value)) and shallow(value):
                records.append(value)
                position = end
                continue
            why = why or "text that is no object"
        attempts += 1
        position = text.find('{"', position + 1)
        if position < 0 or attempts > _MAX_RECOVERIES:
            break
    return records, why
