"""Evidence on read: quotes cut from their source events now, and whether they still hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from memctl.api.reader import Reader
from memctl.api.views import Evidence, Origin
from memctl.domain.event import Event
from memctl.domain.facts import Span, quote_hash
from memctl.infra.log.read import read_events


def events_of(reader: Reader, spans: Iterable[Span]) -> dict[UUID, Event]:
    """The events that those spans quote, in one look-up; erased ones are left out."""
    wanted = list(dict.fromkeys(span.event for span in spans))
    return read_events(reader.connection, reader.space_id, wanted) if wanted else {}


def evidence_of(spans: Sequence[Span], events: Mapping[UUID, Event]) -> list[Evidence]:
    """The spans' quotes, cut from `events`; the same quote once."""
    return [_cut(span, events.get(span.event)) for span in dict.fromkeys(spans)]


def field_text(payload: Any, path: str) -> str | None:
    """The text of a payload's field: `text`, or a path such as `input.command` or `input.edits.0.new_string`."""
    value = payload
    for name in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, (list, tuple)) and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else None
        elif isinstance(value, msgspec.Struct) and name in value.__struct_fields__:
            value = getattr(value, name)
        else:
            return None
    return value if isinstance(value, str) else None


def origin_of(event: Event) -> Origin:
    """Where an event came from."""
    agent = event.stream.split("/", 2)[1] if event.stream.startswith("session/") else ""
    return Origin(agent, event.session_id, str(getattr(event.payload, "line", "")))


def _cut(span: Span, event: Event | None) -> Evidence:
    if event is None:
        return Evidence(span.event, Origin("", "", ""), span.field, span.start, span.end, "", False)
    text = field_text(event.payload, span.field)
    quote = "" if text is None else text[span.start : span.end]
    holds = bool(quote) and (not span.quote_hash or quote_hash(quote) == span.quote_hash)
    return Evidence(span.event, origin_of(event), span.field, span.start, span.end, quote, holds)
