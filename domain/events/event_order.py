"""In which order the events of one stream happened, and which of them report the same thing.

Clocks lie: in two thirds of real sessions, timestamps run backwards somewhere. So a line is never before the line it
answers, an ordinal line never before the ordinal lines above it, and a tool's outcome never before its call. The
order is a function of the set of events alone.
"""

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar
from uuid import UUID

import msgspec

from memctl.domain.events.event import Event, Micros, Payload
from memctl.domain.events.observations import (
    NoticeReceived,
    Observation,
    PromptSubmitted,
    ResponseReceived,
    SessionStarted,
    ToolCalled,
    ToolOutcome,
)
from memctl.domain.events.recalls import MemoryRecalled
from memctl.domain.events.statements import Statement
from memctl.domain.support.location import by_key
from memctl.domain.support.provenance import IMPORTED, is_persons, through, unattended
from memctl.domain.support.text import digest_of

Observed = Observation | Statement

Key = tuple[int, ...]
"""Raised time in microseconds, depth under its parents (or line ordinal), block, delivery id; of what memory injected,
the key of what asked for it and its own delivery id."""

T = TypeVar("T", bound=Payload)


class OrderedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event at its place: `when` is its raised time, `payload` what all reports of it say together.

    `event` is the transcript's block once it is in, the hook's delivery until then; `cite` is the id of its delivery.
    """

    event: Event
    payload: Observed
    cite: UUID
    when: Micros
    key: Key
    match_key: str
    """The key that a hook and a transcript share for the same thing; empty for what only one of them reports."""
    hook: UUID | None = None
    """The hook's delivery that the transcript's block took the place of."""


_BY_KEY = attrgetter("key")

_LONGEST_ORDINAL = 20
"""Characters of a line's name that is read as an ordinal: Python refuses numbers of some thousand digits."""


class _Line(msgspec.Struct, frozen=True, gc=False):
    raised: int
    depth: int
    own: int
    parent: str


class EventOrder:
    """Orders a stream's events as they come, and says when it cannot take one in without starting over."""

    def __init__(self) -> None:
        self._events: set[int] = set()
        self._deliveries: set[int] = set()
        """Ids seen, as integers: the hash of a UUID is computed in Python."""
        self._lines: dict[str, _Line] = {}
        self._awaited: set[str] = set()
        """Lines that were named as a parent and have not come."""
        self._ordinal = (-1, 0)
        """The highest ordinal so far, and the raised time there."""
        self._calls: dict[str, Key] = {}
        self._outcomes: set[str] = set()
        self._reported: dict[str, tuple[int, int]] = {}
        """By the shared key: how often a transcript reported it, and how often a hook did."""
        self._last: Key | None = None
        self._last_aside: Key | None = None
        self._asking: dict[int, Key] = {}
        """Where hooks stand that may have asked memory, by their deliveries."""
        self._unasked: set[int] = set()
        """Deliveries that memory answered and that have not come."""
        self._hooked = False
        """A hook has reported something. Until then no event is matched by its words, which is expensive."""
        self._unattended: frozenset[str] = frozenset()
        """Through whom events came that say that a program began the session. Each says it of what came so."""

    def place(self, events: Iterable[Event]) -> list[OrderedEvent] | None:
        """The events that are new, in order, all behind those placed before but for asides.

        None when one of them does not sort last, repeats what an earlier one reported, is another version of one, or is
        the first that says that a program began the session. Then nothing was changed.
        """
        came = list(events)
        fresh = self._fresh(came)
        if not fresh:
            return None if fresh is None else []
        if not self._hears(fresh.values()):
            return None
        lines = self._place_lines(fresh.values())
        if lines is None or (entries := self._keyed(fresh, lines)) is None:
            return None
        asides = [each.key for each in entries if each.key[0] <= 0 and is_aside(each)]
        if not self._sort_last(entries, asides):
            return None
        placed = self._paired(entries)
        if placed is None or (self._hooked and not self._answered(placed)):
            return None
        self._events.update(event.event_id.int for event in came)
        self._deliveries.update(fresh)
        self._remember(entries, lines)
        last = max(entries[-1].key, placed[-1].key)
        self._last = last if self._last is None else max(self._last, last)
        self._last_aside = asides[-1] if asides else self._last_aside
        return placed

    def _hears(self, came: Iterable[tuple[Event, Observed]]) -> bool:
        """Note that hooks report the session, or that a program began it, where these are the first to say so. False
        where something was placed without knowing it."""
        hooked, unattended = self._hooked, self._unattended
        for event, seen in came:
            hooked |= isinstance(seen, Observation) and seen.via == "hook"
            if getattr(seen, "unattended", False):
                unattended |= {through(event.actor)}
        if self._last is not None and (hooked, unattended) != (self._hooked, self._unattended):
            return False
        self._hooked, self._unattended = hooked, unattended
        return True

    def _fresh(self, events: Iterable[Event]) -> dict[int, tuple[Event, Observed]] | None:
        """By delivery, the events that were not seen before, of several versions the first; None where one of them is
        another version of what was placed."""
        fresh: dict[int, tuple[Event, Observed]] = {}
        for event in events:
            if event.event_id.int in self._events or not isinstance(event.payload, Observed):
                continue
            delivery = event.delivery_id.int
            if delivery in self._deliveries:
                return None
            known = fresh.get(delivery)
            if known is None or (known[0].event_id != event.event_id and _version(event) < _version(known[0])):
                fresh[delivery] = (event, event.payload)
        return fresh

    def _sort_last(self, entries: Sequence[OrderedEvent], asides: Sequence[Key]) -> bool:
        """Whether all entries but asides stand behind those placed before, and `asides` behind the asides before: the
        latest title counts, so these have to come in order among themselves."""
        if self._last is not None and any(not is_aside(each) for each in entries if each.key <= self._last):
            return False
        return not asides or self._last_aside is None or asides[0] > self._last_aside

    def _place_lines(self, events: Iterable[tuple[Event, Observed]]) -> dict[str, _Line] | None:
        times: dict[str, int] = {}
        parents: dict[str, str] = {}
        for event, seen in events:
            if line := seen.line:
                own = times.get(line)
                if own is None:
                    times[line], parents[line] = event.occurred_at, seen.parent
                else:
                    times[line], parents[line] = max(own, event.occurred_at), max(parents[line], seen.parent)
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
            elif _is_ordinal(line):
                ordinals.append((int(line[1:]), line))
        ordinals.sort()
        highest, raised = self._ordinal
        if ordinals and ordinals[0][0] <= highest:  # `#7` and `#07` are two lines of one place
            return None
        for ordinal, line in ordinals:
            raised = max(raised, times[line])
            placed[line] = _Line(raised, ordinal, times[line], parents[line])
        for line in times:
            if line not in placed:
                _climb(line, times, parents, placed, self._lines)
        return placed

    def _keyed(
        self, fresh: Mapping[int, tuple[Event, Observed]], lines: Mapping[str, _Line]
    ) -> list[OrderedEvent] | None:
        """One entry for each event, in order; None where a tool's call came after its outcome, or an outcome again."""
        entries: list[OrderedEvent] = []
        outcomes: list[tuple[str, OrderedEvent]] = []
        calls: dict[str, Key] = {}
        for delivery, (event, seen) in fresh.items():
            if seen.line:
                line = lines[seen.line]
                key = (line.raised, line.depth, seen.block, delivery)
            else:
                key = (event.occurred_at, 0, seen.block, delivery)
            entry = OrderedEvent(event, seen, event.delivery_id, Micros(key[0]), key, self._shared_key(event, seen))
            if isinstance(seen, ToolCalled) and seen.call:
                if seen.call in self._calls or seen.call in self._outcomes:
                    return None
                calls[seen.call] = min(calls.get(seen.call, key), key)
            elif isinstance(seen, ToolOutcome) and seen.call:
                if seen.call in self._outcomes:
                    return None
                outcomes.append((seen.call, entry))
                continue
            entries.append(entry)
        for call, entry in outcomes:
            asked = calls.get(call) or self._calls.get(call)
            if asked is not None and entry.key[:3] <= asked[:3]:
                key = (asked[0], asked[1] + 1, entry.key[2], entry.key[3])
                entry = msgspec.structs.replace(entry, key=key, when=Micros(key[0]))
            entries.append(entry)
        entries.sort(key=_BY_KEY)
        return entries

    def _shared_key(self, event: Event, seen: Observed) -> str:
        """The key that a hook and a transcript share for the same thing; empty for what only one of them can report.
        What came through a member's key is never the same thing as what another brought."""
        shared = self._reported_by_both(seen)
        return shared and f"{shared}\0{through(event.actor)}"

    def _reported_by_both(self, seen: Observed) -> str:
        if isinstance(seen, ToolCalled):
            return f"call:{seen.call}" if seen.call else ""
        if isinstance(seen, ToolOutcome):
            return f"outcome:{seen.call}" if seen.call else ""
        if not self._hooked:
            return ""
        if isinstance(seen, PromptSubmitted):
            return prompt_about(seen.text)
        if isinstance(seen, ResponseReceived):
            return f"answer:{text_digest(seen.text)}" if seen.kind == "text" else ""
        if isinstance(seen, SessionStarted):
            return f"started:{seen.source}"
        return ""

    def _paired(self, entries: Sequence[OrderedEvent]) -> list[OrderedEvent] | None:
        """One entry for each thing reported: hook and transcript together, in the transcript's place."""
        placed: list[OrderedEvent] = []
        groups: dict[str, list[OrderedEvent]] = {}
        for entry in entries:
            if key := entry.match_key:
                groups.setdefault(key, []).append(entry)
            else:
                placed.append(entry)
        for shared, group in groups.items():
            if shared.startswith(_OF_ONE_USE):
                # A use of a tool has one id: whatever reports it again reports the same thing.
                if len(group) > 1:
                    group.sort(key=_by_hook)
                placed.append(_merged(group[0], group[1:]))
                continue
            hooks = [entry for entry in group if _by_hook(entry)]
            transcripts = [entry for entry in group if not _by_hook(entry)] if hooks else group
            by_transcript, by_hook = self._reported.get(shared, (0, 0))
            if (transcripts and by_hook > by_transcript) or (hooks and by_transcript > by_hook):
                return None
            placed.extend(_merged(entry, hooks[k : k + 1]) for k, entry in enumerate(transcripts))
            placed.extend(hooks[len(transcripts) :])
        if self._unattended:
            placed = [_of_program(each) if self._is_programs(each) else each for each in placed]
        placed.sort(key=_BY_KEY)
        return placed

    def _is_programs(self, each: OrderedEvent) -> bool:
        return _by_hook(each) and through(each.event.actor) in self._unattended

    def _answered(self, placed: list[OrderedEvent]) -> bool:
        """Put what memory injected behind the hook that asked for it. Its own time is taken after the search, and the
        prompt's time may be raised. False where it belongs among what was placed before."""
        asking = {
            (each.hook or each.cite).int: each.key
            for each in placed
            if isinstance(each.payload, _ASKING) and (each.hook is not None or _by_hook(each))
        }
        if not self._unasked.isdisjoint(asking):
            return False
        unasked = set()
        for place, each in enumerate(placed):
            if not isinstance(each.payload, MemoryRecalled) or (by := each.payload.asked_by) is None:
                continue
            asked = asking.get(by.int) or self._asking.get(by.int)
            if asked is None:
                unasked.add(by.int)
                continue
            key = (*asked, each.event.delivery_id.int)
            if self._last is not None and key <= self._last:
                return False
            placed[place] = msgspec.structs.replace(each, key=key, when=Micros(key[0]))
        placed.sort(key=_BY_KEY)
        self._asking.update(asking)
        self._unasked |= unasked
        return True

    def _remember(self, entries: Sequence[OrderedEvent], lines: Mapping[str, _Line]) -> None:
        for entry in entries:
            seen, shared = entry.payload, entry.match_key
            if isinstance(seen, ToolCalled) and seen.call:
                self._calls[seen.call] = min(self._calls.get(seen.call, entry.key), entry.key)
            elif isinstance(seen, ToolOutcome) and seen.call:
                self._outcomes.add(seen.call)
            elif shared:
                by_transcript, by_hook = self._reported.get(shared, (0, 0))
                hook = seen.via == "hook"
                self._reported[shared] = (by_transcript + (not hook), by_hook + hook)
        self._lines.update(lines)
        for name, line in lines.items():
            if _is_ordinal(name) and line.depth >= self._ordinal[0]:
                self._ordinal = (line.depth, max(line.raised, self._ordinal[1]))
            if line.parent and line.parent not in self._lines:
                self._awaited.add(line.parent)


_ASKING = (PromptSubmitted, SessionStarted)


def is_aside(placed: OrderedEvent) -> bool:
    """Whether this is a title without a time, which sorts before all that has one.

    Some clients write one again every few lines. It names the session and does nothing else, so their order among
    themselves is enough.
    """
    seen = placed.payload
    return (
        isinstance(seen, NoticeReceived)
        and seen.kind == "title"
        and placed.key[0] <= 0
        and seen.line[:1] == "#"
        and not (placed.event.location or seen.branch or seen.agent_version)
    )


def _is_ordinal(line: str) -> bool:
    return line[0] == "#" and len(line) <= _LONGEST_ORDINAL and line[1:].isdecimal()


def _by_hook(entry: OrderedEvent) -> bool:
    return entry.payload.via == "hook"


def _climb(
    line: str,
    times: Mapping[str, int],
    parents: Mapping[str, str],
    placed: dict[str, _Line],
    known: Mapping[str, _Line],
) -> None:
    """Place a line after its parent, and its parent before it. Lines in a circle count as having no parent."""
    above = placed.get(parents[line]) or known.get(parents[line])
    if above is not None:
        placed[line] = _Line(max(times[line], above.raised), above.depth + 1, times[line], parents[line])
        return
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


def keyed_at(event: Event) -> int:
    """When an event was delivered that came with a key (microseconds); 0 of what this machine saw."""
    return int(event.recorded_at) if through(event.actor) else 0


def place_of(event: Event) -> str:
    """Where what an event says lies: at no path of this machine, where a key limited to projects says it."""
    return by_key(event.location) if getattr(event.payload, "confined", False) else event.location


def shown_at(event: Event) -> tuple[str, ...]:
    """Where an event is shown to who may see some places alone: what was stated under a key limited to projects lies
    where it was kept."""
    return (place_of(event),) if isinstance(event.payload, Observation) else (event.location, place_of(event))


def _version(event: Event) -> tuple[bool, bool, bool, int, int, bytes, str, str, str, tuple[UUID, ...]]:
    """Of several versions of one delivery the least counts: one that may show its content everywhere, one that this
    machine saw, one that neither another memory nor a file from elsewhere brought, one of a repository that was there,
    the longest text, the lowest hash; of equal words that of the first actor by name, so that nobody's words become the
    user's."""
    payload, confined = event.payload, getattr(event.payload, "confined", False)
    brought = event.actor == IMPORTED or getattr(payload, "brought", False)
    stored = msgspec.json.encode(
        msgspec.structs.replace(payload, confined=False) if confined else payload, order="sorted"
    )
    text = getattr(payload, "text", None)
    described = b"\0".join((stored, event.type.encode(), str(event.occurred_at).encode(), event.location.encode()))
    length = len(text if isinstance(text, str) else stored)
    who = (event.actor, event.stream, event.session_id, event.sources)
    there_since = getattr(payload, "there_since", 0)
    return (confined, bool(keyed_at(event)), brought, there_since, -length, hashlib.sha256(described).digest(), *who)


_OF_ONE_USE = ("call:", "outcome:")


def prompt_about(text: str) -> str:
    """What a prompt of that text is called."""
    return f"prompt:{text_digest(text)}"


def text_digest(text: str) -> str:
    """32 hex digits that are equal for texts equal but for white space."""
    return digest_of(" ".join(text.split()), 32)


def _merged(first: OrderedEvent, others: Sequence[OrderedEvent]) -> OrderedEvent:
    if not others:
        return first
    payload, event = first.payload, first.event
    for other in others:
        payload = filled(payload, other.payload)
        # A hook may know what no transcript says: that a program spoke. What is the user's is so by each report.
        if is_persons(event.actor) and not is_persons(other.event.actor):
            event = msgspec.structs.replace(event, actor=other.event.actor)
    return msgspec.structs.replace(first, payload=payload, event=event, hook=others[0].cite)


def _of_program(each: OrderedEvent) -> OrderedEvent:
    """What a hook alone reports of a session that a program began: a hook does not say who asked."""
    event = each.event
    if not is_persons(event.actor):
        return each
    return msgspec.structs.replace(each, event=msgspec.structs.replace(event, actor=unattended(event.actor)))


@functools.cache
def _defaults(kind: type[Payload]) -> tuple[tuple[str, object], ...]:
    """The fields that another report may fill, with the values that they hold where nothing was reported."""
    found = []
    for field in msgspec.structs.fields(kind):
        if field.name in ("via", "line", "block", "parent"):
            continue
        default = field.default
        if default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append((field.name, default))
    return tuple(found)


def filled(first: T, second: Payload) -> T:
    """`first`, with what it leaves at its default taken from `second`."""
    gaps = {}
    for name, default in _defaults(type(first)):
        value = getattr(first, name)
        if value == default:
            other = getattr(second, name, value)
            if other != value:
                gaps[name] = other
    return msgspec.structs.replace(first, **gaps) if gaps else first
