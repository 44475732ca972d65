"""In which order the events of one stream happened, and which of them tell the same thing.

Clocks lie: in two thirds of real sessions, timestamps run backwards somewhere. So a line is never before the line it
answers, an ordinal line never before the ordinal lines above it, and a tool's outcome never before its call. The
order is a function of the set of events alone.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

import msgspec

from memctl.domain.event import Event, Micros
from memctl.domain.observations import (
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolOutcome,
)

Key = tuple[int, int, int, bytes]
"""Raised time in microseconds, depth under its parents (or line ordinal), block, delivery id."""

T = TypeVar("T", bound=Observation)


class Placed(NamedTuple):
    """An event at its place: `when` is its raised time, `payload` what all its tellings say together.

    `event` is the transcript's block once it is in, the hook's delivery until then.
    """

    event: Event
    payload: Observation
    when: Micros

    @property
    def cite(self) -> UUID:
        return self.event.delivery_id


class _Line(NamedTuple):
    raised: int
    depth: int
    own: int
    parent: str


class _Keyed(NamedTuple):
    key: Key
    event: Event
    seen: Observation
    telling: bytes | None


class Ordering:
    """Orders a stream's events as they come, and says when it cannot take one in without beginning anew."""

    def __init__(self) -> None:
        self._events: set[UUID] = set()
        self._deliveries: set[UUID] = set()
        self._lines: dict[str, _Line] = {}
        self._awaited: set[str] = set()
        """Lines that were named as a parent and have not come."""
        self._ordinal = (0, 0)
        """The highest ordinal so far, and the raised time there."""
        self._calls: dict[str, Key] = {}
        self._outcomes: set[str] = set()
        self._told: dict[bytes, list[int]] = {}
        """By telling: how often a transcript and how often a hook told it."""
        self._last: Key | None = None

    def place(self, events: Iterable[Event]) -> list[Placed] | None:
        """The events that are new, in order, all behind those placed before.

        None when one of them does not sort last, tells again what an earlier one told, or is another version of one;
        then nothing was changed.
        """
        came = list(events)
        fresh: dict[UUID, tuple[Event, Observation]] = {}
        for event in came:
            if event.event_id in self._events or not isinstance(event.payload, Observation):
                continue
            delivery = event.variant_of or event.event_id
            if delivery in self._deliveries:
                return None
            known = fresh.get(delivery)
            if known is None or (known[0].event_id != event.event_id and _version(event) < _version(known[0])):
                fresh[delivery] = (event, event.payload)
        if not fresh:
            return []
        lines = self._place_lines(fresh.values())
        keyed = None if lines is None else self._keyed(fresh.values(), lines)
        if lines is None or keyed is None or (self._last is not None and keyed[0].key <= self._last):
            return None
        placed = self._paired(keyed)
        if placed is not None:
            self._remember(came, keyed, lines)
        return placed

    def _place_lines(self, events: Iterable[tuple[Event, Observation]]) -> dict[str, _Line] | None:
        times: dict[str, int] = {}
        parents: dict[str, str] = {}
        for event, seen in events:
            if seen.line:
                times[seen.line] = max(times.get(seen.line, event.occurred_at), event.occurred_at)
                parents[seen.line] = max(parents.get(seen.line, ""), seen.parent)
        placed: dict[str, _Line] = {}
        ordinals: list[tuple[int, str]] = []
        for line, own in times.items():
            known = self._lines.get(line)
            if known is not None:
                if (own, parents[line]) != (known.own, known.parent):
                    return None
                placed[line] = known
            elif line in self._awaited:
                return None
            elif line[0] == "#" and line[1:].isdecimal():
                ordinals.append((int(line[1:]), line))
        ordinals.sort()
        highest, raised = self._ordinal
        if ordinals and ordinals[0][0] < highest:
            return None
        for ordinal, line in ordinals:
            raised = max(raised, times[line])
            placed[line] = _Line(raised, ordinal, times[line], parents[line])
        for line in times:
            if line not in placed:
                _climb(line, times, parents, placed, self._lines)
        return placed

    def _keyed(self, events: Iterable[tuple[Event, Observation]], lines: Mapping[str, _Line]) -> list[_Keyed] | None:
        keyed: list[_Keyed] = []
        outcomes: list[_Keyed] = []
        calls: dict[str, Key] = {}
        for event, seen in events:
            line = lines[seen.line] if seen.line else _Line(event.occurred_at, 0, event.occurred_at, "")
            key = (line.raised, line.depth, seen.block, event.delivery_id.bytes)
            entry = _Keyed(key, event, seen, _telling(seen))
            if isinstance(seen, ToolCalled) and seen.call:
                if seen.call in self._calls or seen.call in self._outcomes:
                    return None
                calls[seen.call] = min(calls.get(seen.call, key), key)
            elif isinstance(seen, ToolOutcome) and seen.call:
                if seen.call in self._outcomes:
                    return None
                outcomes.append(entry)
                continue
            keyed.append(entry)
        for entry in outcomes:
            assert isinstance(entry.seen, ToolOutcome)
            asked = calls.get(entry.seen.call) or self._calls.get(entry.seen.call)
            if asked is not None and entry.key[:3] <= asked[:3]:
                entry = entry._replace(key=(asked[0], asked[1] + 1, entry.key[2], entry.key[3]))
            keyed.append(entry)
        keyed.sort(key=lambda entry: entry.key)
        return keyed

    def _paired(self, keyed: Sequence[_Keyed]) -> list[Placed] | None:
        """One entry for each thing told: hook and transcript together, in the transcript's place."""
        groups: dict[bytes, tuple[list[_Keyed], list[_Keyed]]] = {}
        found: list[tuple[Key, Placed]] = []
        for entry in keyed:
            if entry.telling is None:
                found.append(_merged(entry, ()))
            else:
                groups.setdefault(entry.telling, ([], []))[entry.seen.via == "hook"].append(entry)
        for telling, (transcripts, hooks) in groups.items():
            if telling[:1] == b"t":
                # A use of a tool has one id: whatever tells it again is the same telling.
                first, *others = (*transcripts, *hooks)
                found.append(_merged(first, others))
                continue
            by_transcript, by_hook = self._told.get(telling, (0, 0))
            if (transcripts and by_hook > by_transcript) or (hooks and by_transcript > by_hook):
                return None
            for k, entry in enumerate(transcripts):
                found.append(_merged(entry, hooks[k : k + 1]))
            found.extend(_merged(entry, ()) for entry in hooks[len(transcripts) :])
        found.sort(key=lambda pair: pair[0])
        return [placed for _, placed in found]

    def _remember(self, came: Iterable[Event], keyed: Sequence[_Keyed], lines: Mapping[str, _Line]) -> None:
        self._events.update(event.event_id for event in came)
        for key, event, seen, telling in keyed:
            self._deliveries.add(event.delivery_id)
            if isinstance(seen, ToolCalled) and seen.call:
                self._calls[seen.call] = min(self._calls.get(seen.call, key), key)
            elif isinstance(seen, ToolOutcome) and seen.call:
                self._outcomes.add(seen.call)
            elif telling is not None:
                self._told.setdefault(telling, [0, 0])[seen.via == "hook"] += 1
        self._lines.update(lines)
        for name, line in lines.items():
            if name[0] == "#" and line.depth >= self._ordinal[0]:
                self._ordinal = (line.depth, max(line.raised, self._ordinal[1]))
            if line.parent and line.parent not in self._lines:
                self._awaited.add(line.parent)
        self._last = keyed[-1].key


def _climb(
    line: str,
    times: Mapping[str, int],
    parents: Mapping[str, str],
    placed: dict[str, _Line],
    known: Mapping[str, _Line],
) -> None:
    """Place a line after its parent, and its parent before it. Lines in a circle count as having no parent."""
    path: dict[str, int] = {}
    at = line
    while at in times and at not in placed and at not in path:
        path[at] = len(path)
        at = parents[at]
    circle_from = path.get(at, len(path)) if at not in placed else len(path)
    for step, index in reversed(path.items()):
        above = None if index >= circle_from else placed.get(parents[step]) or known.get(parents[step])
        if above is None:
            placed[step] = _Line(times[step], 0, times[step], parents[step])
        else:
            placed[step] = _Line(max(times[step], above.raised), above.depth + 1, times[step], parents[step])


def preferred(variants: Iterable[Event]) -> Event:
    """Of several events of one delivery, the one that counts whichever arrived first."""
    return min(variants, key=_version)


def _version(event: Event) -> tuple[int, bytes]:
    """Of several versions of one delivery the least counts: the longest text, then the lowest hash."""
    stored = msgspec.json.encode(event.payload, order="sorted")
    text = getattr(event.payload, "text", None)
    told = b"\0".join((stored, event.type.encode(), str(event.occurred_at).encode(), event.location.encode()))
    return (-len(text if isinstance(text, str) else stored), hashlib.sha256(told).digest())


def _telling(seen: Observation) -> bytes | None:
    """What a hook and a transcript would tell alike; None for what only one of them tells."""
    if isinstance(seen, ToolCalled):
        return b"tc" + seen.call.encode("utf-8", "surrogatepass") if seen.call else None
    if isinstance(seen, ToolOutcome):
        return b"to" + seen.call.encode("utf-8", "surrogatepass") if seen.call else None
    if isinstance(seen, PromptSubmitted):
        return b"p" + text_digest(seen.text)
    if isinstance(seen, ResponseReceived) and seen.kind == "text":
        return b"r" + text_digest(seen.text)
    if isinstance(seen, SessionStarted):
        return b"s" + seen.source.encode("utf-8", "surrogatepass")
    return None


def text_digest(text: str) -> bytes:
    """16 bytes that are equal for texts equal but for white space."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).digest()[:16]


def _merged(first: _Keyed, others: Iterable[_Keyed]) -> tuple[Key, Placed]:
    payload = first.seen
    for other in others:
        payload = filled(payload, other.seen)
    return first.key, Placed(first.event, payload, Micros(first.key[0]))


@functools.cache
def _defaults(kind: type[Observation]) -> tuple[tuple[str, object], ...]:
    """The fields that another telling may fill, with what they hold where nothing was told."""
    found = []
    for field in msgspec.structs.fields(kind):
        if field.name in ("via", "line", "block", "parent"):
            continue
        default = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append((field.name, default))
    return tuple(found)


def filled(first: T, second: Observation) -> T:
    """`first`, with what it leaves at its default taken from `second`."""
    gaps = {}
    for name, default in _defaults(type(first)):
        value = getattr(first, name)
        if value == default:
            other = getattr(second, name, value)
            if other != value:
                gaps[name] = other
    return msgspec.structs.replace(first, **gaps) if gaps else first
