"""A transcript as a stream of lines, each accounted for once: it gave events, was ignored, is bad, or is blank.

Memory stays flat: one line at a time. Lines end at `\\n` only (transcripts hold U+2028 and the like inside strings).
What a line gives is a function of the line and of facts fixed in front of it in the same file, never of how far an
earlier reading had come: read in growing prefixes, from an offset, or under another name, equal lines give equal
events under equal dedupe keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import msgspec
import orjson

from memctl.domain.event import Micros, NewEvent
from memctl.domain.observations import Agent, Observation, session_stream, transcript_key
from memctl.infra.transcripts.fields import shallow

MAX_LINE = 64 * 1024 * 1024
"""Bytes of the longest line that is parsed. Longer ones are passed over without being loaded, and count as bad."""

_MAX_TORN = 8 * 1024 * 1024
_MAX_RECOVERIES = 32
_TAIL = 4096

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
    """How far a file has been read: bytes, lines, and a digest of the bytes just before.

    A transcript's later copy is not always an extension of the earlier one, so an offset is only good together with
    the digest (see `resume`).
    """

    offset: int = 0
    lines: int = 0
    digest: str = ""


START = Checkpoint()


class Format(Protocol):
    """A client's transcript format. One instance reads one file, from its start."""

    agent: Agent
    context: tuple[bytes, ...]
    """A line that holds one of these may change what later lines mean, and is read on the way to an offset."""

    def read(self, record: dict[str, Any], place: str) -> list[NewEvent] | str:
        """The events of one object, or the kind it is ignored as. `place` is the line's ordinal as `#<n>`.

        Raises: Unreadable where the object lacks what it cannot be kept without.
        """

    def recognises(self, record: dict[str, Any]) -> bool:
        """Whether the object is a line's own, not one nested in a torn line."""


class Unreadable(ValueError):
    """A line that cannot be kept; the message says why."""


def observed(
    payload: Observation, *, agent: Agent, session: str, actor: str, occurred_at: Micros, location: str
) -> NewEvent:
    """A block of a transcript line as an event, under the key that its line and block give it."""
    return NewEvent(
        stream=session_stream(agent, session),
        payload=payload,
        occurred_at=occurred_at,
        dedupe_key=transcript_key(agent, session, payload.line, payload.block),
        actor=actor,
        location=location,
        session_id=session,
    )


def raw_lines(file: BinaryIO, start: Checkpoint = START, limit: int = MAX_LINE) -> Iterator[RawLine]:
    """The lines of a file from a checkpoint on."""
    file.seek(start.offset)
    offset, number = start.offset, start.lines
    while data := file.readline(limit + 2):
        number += 1
        end = offset + len(data)
        whole = data.endswith(b"\n")
        kept: bytes | None = data[:-1] if whole else data
        if len(data) > limit + 1 and not whole:
            kept = None
            while not whole and (data := file.readline(1 << 20)):
                end += len(data)
                whole = data.endswith(b"\n")
        yield RawLine(number, offset, end, kept, whole)
        offset = end


def parse_lines(lines: Iterable[RawLine], format: Format, wanted_from: int = 0) -> Iterator[Parsed]:
    """Parse a file's lines, which begin at its start; give those at byte `wanted_from` and later.

    Never raises over what a line holds.
    """
    for line in lines:
        if line.offset < wanted_from:
            if line.data and any(mark in line.data for mark in format.context):
                _parse(line, format)
            continue
        yield _parse(line, format)


def parse_file(path: Path, format: Format, start: Checkpoint = START) -> Iterator[Parsed]:
    """Parse a transcript from a checkpoint on that `resume` found to hold.

    A format without context seeks there; another passes over the lines in front, which costs their reading only.

    Raises: OSError.
    """
    with path.open("rb", buffering=1 << 20) as file:
        if not format.context:
            yield from parse_lines(raw_lines(file, start), format)
        else:
            yield from parse_lines(raw_lines(file), format, start.offset)


def checkpoint(path: Path, offset: int, lines: int) -> Checkpoint:
    """The checkpoint at the end of a line that was read whole.

    Raises: OSError.
    """
    with path.open("rb") as file:
        return Checkpoint(offset, lines, _digest(file, offset))


def resume(path: Path, last: Checkpoint) -> Checkpoint:
    """Where to read on: at the last checkpoint if the file still holds the same bytes before it, else at the start.

    Reading from the start again is harmless, since equal lines have equal dedupe keys.

    Raises: OSError.
    """
    if not last.offset:
        return START
    with path.open("rb") as file:
        return last if _digest(file, last.offset) == last.digest else START


def _digest(file: BinaryIO, offset: int) -> str:
    digest = hashlib.blake2b(str(offset).encode(), digest_size=16)
    file.seek(0)
    digest.update(file.read(min(_TAIL, offset)))
    file.seek(max(0, offset - _TAIL))
    digest.update(file.read(min(_TAIL, offset)))
    return digest.hexdigest()


def _parse(line: RawLine, format: Format) -> Parsed:
    at = (line.number, line.offset, line.end, line.whole)
    data = line.data
    if data is None:
        if not line.whole:
            return Parsed(*at, "incomplete")
        return Parsed(*at, "bad", why=f"line of {line.end - line.offset} bytes is longer than {MAX_LINE}")
    if not data or data.isspace():
        return Parsed(*at, "blank" if line.whole else "incomplete")
    records, why = _records(data, format)
    if not records and not line.whole:
        return Parsed(*at, "incomplete")
    events: list[NewEvent] = []
    kind = ""
    for index, record in enumerate(records):
        place = f"#{line.number}" if not index else f"#{line.number}.{index}"
        try:
            found = format.read(record, place)
        except Unreadable as error:
            why = why or str(error)
            continue
        if isinstance(found, str):
            kind = kind or found
        else:
            events += found
    if not line.whole:
        why = ""  # what is missing of it will be read when it is there
    if events:
        return Parsed(*at, "events", tuple(events), why=why)
    if why or not kind:
        return Parsed(*at, "bad", why=why or "unreadable so far")
    return Parsed(*at, "ignored", kind=kind)


def _records(data: bytes, format: Format) -> tuple[list[dict[str, Any]], str]:
    """The objects of a line, and why some of it could not be read."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _recovered(data, format)
    if isinstance(value, dict):
        return [value], ""
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
            why = why or _why(error)
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


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} at character {error.pos + 1}"
    return "nested too deeply" if isinstance(error, RecursionError) else "holds a number too large"
